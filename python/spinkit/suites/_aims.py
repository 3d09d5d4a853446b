# SPDX-License-Identifier: Apache-2.0
"""Aims of `spinkit bench`, compared with the measured numbers and with other programs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Number:
    """One measured number."""

    name: str
    value: float
    unit: str
    remark: str = ""
    """Reason why the value does not show its subject, such as a comparison of two threads that used one."""

    def __str__(self) -> str:
        remark = f" ({self.remark})" if self.remark else ""
        return f"{self.name} {self.value:.4g} {self.unit}{remark}"


@dataclass(frozen=True)
class Aim:
    """Lower or upper bound of a number."""

    name: str
    value: float
    unit: str
    at_most: bool = False
    peer: str = ""
    """The command of a program that does the same work."""


_LOGGOPSIM, _HTSIM, _SPIKE = "LogGOPSim", "htsim", "spike"

AIMS = (
    Aim("messages/stream/2", 500e3, "messages/s"),
    Aim("messages/alltoall/64", 200e3, "messages/s"),
    Aim("ranks/start-barrier-end/1024", 1, "s", at_most=True),
    Aim("ranks/start-barrier-end/16384", 15, "s", at_most=True),
    Aim("ranks/all-reduce-20-times/1024", 6, "s", at_most=True),
    Aim("goal/nic/dissemination/65536", 4, "us/message", at_most=True),
    Aim("goal/nic/bcast-spin/1048576", 15, "us/message", at_most=True),
    Aim("goal/nic/bcast-spin/1048576/memory", 4, "GB", at_most=True),
    Aim("goal/loggops/halo/1024", 12e6, "events/s", peer=_LOGGOPSIM),
    Aim("goal/loggops/mpi-traces", 16e6, "events/s", peer=_LOGGOPSIM),
    Aim("goal/loggops/halo/1024/two-threads", 1.5, "times-as-fast"),
    Aim("goal/loggops/halo/1024/two-threads-beside-a-busy-process", 0.95, "times-as-fast"),
    Aim("goal/packet/dissemination/65536/fat-tree", 8e6, "hops/s", peer=_HTSIM),
    Aim("goal/packet/dissemination/65536/fat-tree/two-threads", 1.6, "times-as-fast"),
    Aim("spinkit-benches/short-handlers/ooo-a15", 400e6, "elements/s", peer=_SPIKE),
    Aim("reproduce/all/check", 70, "s", at_most=True),
)
"""The aims for one of two shared cores, in CPU time."""

_NOT_MEASURED = {
    "ranks/start-barrier-end/16384": "needs 16,384 processes",
    "ranks/all-reduce-20-times/1024": "spinkit reproduce allreduce-ranks runs it",
    "goal/nic/bcast-spin/1048576": "needs 10 GiB of free memory",
    "goal/nic/bcast-spin/1048576/memory": "needs 10 GiB of free memory",
    "goal/loggops/mpi-traces": "needs traces of an MPI program",
    "reproduce/all/check": "make reproduce runs it; reproduce/all/quick is a part",
}
"""Aims that this command does not measure, and why."""


@dataclass(frozen=True)
class Compared:
    """An aim, the measured number, and the known number of the peer."""

    aim: Aim
    measured: float | None
    peer: str
    remark: str = ""
    """Reason why a number with this name does not count as measured."""

    @property
    def is_reached(self) -> bool:
        """True if the measured number meets the aim."""
        if self.measured is None:
            return False
        return self.measured <= self.aim.value if self.aim.at_most else self.measured >= self.aim.value

    def __str__(self) -> str:
        sign = "<=" if self.aim.at_most else ">="
        found = "not measured" if self.measured is None else f"{self.measured:.4g}"
        if self.measured is None and (why := self.remark or _NOT_MEASURED.get(self.aim.name)):
            found += f" ({why})"
        verdict = "" if self.measured is None else ", reached" if self.is_reached else ", missed"
        peer = f"; {self.peer}" if self.peer else ""
        return f"{self.aim.name}: {found}, aim {sign} {self.aim.value:.4g} {self.aim.unit}{verdict}{peer}"

    def as_json(self) -> dict[str, Any]:
        """Return the members for bench.json."""
        found = {"measured": self.measured, "reached": self.is_reached, "remark": self.remark}
        return asdict(self.aim) | found | {"peer": self.peer}


def compare(numbers: Iterable[Number]) -> list[Compared]:
    """Put each aim beside the number with its name."""
    measured = {number.name: number for number in numbers}
    compared = []
    for aim in AIMS:
        number = measured.get(aim.name)
        if number is not None and number.unit != aim.unit:
            raise ValueError(f"{aim.name} is measured in {number.unit}, its aim is in {aim.unit}")
        value = None if number is None or number.remark else number.value
        compared.append(Compared(aim, value, _peer(aim.peer), "" if number is None else number.remark))
    return compared


def _peer(command: str) -> str:
    """Report the presence of a peer's program. Neither Debian nor PyPI packages one of them, so none is run."""
    if not command:
        return ""
    found = shutil.which(command)
    return f"peer {command} is at {found}, not run" if found else f"peer {command} is not packaged"
