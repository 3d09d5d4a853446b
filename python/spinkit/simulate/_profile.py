# SPDX-License-Identifier: Apache-2.0
"""`spinkit profile`: costs of a program's handlers by line, compared with line rate."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json

_STDERR = 2
"""The descriptor of standard error."""


@dataclass(frozen=True)
class Spread:
    """Least, mean and largest value over all calls."""

    min: int
    mean: float
    max: int


@dataclass(frozen=True)
class Rate:
    """Highest packet rate of the card's HPUs when they run only one handler, for packets of one size."""

    packet_bytes: int
    packets_per_s: float
    gbit_per_s: float
    sustains_line: bool


@dataclass(frozen=True)
class Line:
    """Instructions of one source line, or of one function where the line is not known."""

    function: str | None
    file: str | None
    line: int | None
    instructions: int
    share: float
    """Share of the handler's instructions, 0 to 1."""

    @property
    def place(self) -> str:
        """File and line, or the function."""
        return f"{self.file}:{self.line}" if self.file else f"{self.function or 'unknown'} (no line information)"

    @property
    def text(self) -> str:
        """The text of the line, if its file can be read."""
        if self.file is None or self.line is None:
            return ""
        try:
            lines = Path(self.file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[self.line - 1].strip() if self.line <= len(lines) else ""


@dataclass(frozen=True)
class Handler:
    """Work of one handler, summed over all cards."""

    name: str
    calls: int
    errors: int
    instructions: int
    per_call: Spread
    cycles: Spread
    bytes: int
    dmas: int
    puts: int
    mean_wait_ns: float
    """Time of a call beyond its own cycles: waiting for DMA, puts, and its HPU."""
    rate: Rate | None
    """The packet rate; None for a handler that gets no packets."""
    calls_per_s: float
    lines: tuple[Line, ...]
    """Source lines, the one with the most instructions first."""


@dataclass(frozen=True)
class Profile:
    """Profile of the handlers of a run."""

    machine: str
    hpus: int
    line_gbit_per_s: float
    mtu_bytes: int
    handlers: tuple[Handler, ...]

    def verdict(self, handler: Handler) -> str:
        """Return a sentence on the line rate of the HPUs; empty for a handler that gets no packets."""
        if handler.rate is None:
            return ""
        goal = f"sustains {self.line_gbit_per_s:g} Gbit/s at {handler.rate.packet_bytes} B packets"
        return f"{handler.name} {goal} with {self.hpus} HPUs: {'yes' if handler.rate.sustains_line else 'no'}"

    def to_json(self) -> bytes:
        """Return the profile as JSON."""
        return (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode()


def run(spinrun: Path, options: Sequence[str], program: Sequence[str], to_stderr: bool) -> Profile:
    """Run a program; its output goes to our standard output or error."""
    with TemporaryDirectory(prefix="spinkit-profile-") as folder:
        report = Path(folder) / "report.json"
        command = [str(spinrun), "--profile", "--json", str(report), *options, *program]
        done = subprocess.run(command, stdout=_STDERR if to_stderr else None, check=False)
        if done.returncode != 0:
            raise SpinkitError(f"spinrun ended with status {done.returncode}")
        return read(parse_json(report.read_text(encoding="utf-8")))


def read(report: Mapping[str, Any]) -> Profile:
    """Make a profile from spinrun's report."""

    def parameter(key: str) -> Fraction:
        return Fraction(report["parameters"][key]["value"])

    card = _Card(
        hpus=int(parameter("accelerator.hpus")),
        contexts=int(parameter("accelerator.contexts")),
        cycle_ps=1000 / parameter("hpu.clock_ghz"),
        byte_ps=parameter("network.G_ps_per_byte"),
    )
    return Profile(
        machine=report["machine"],
        hpus=card.hpus,
        line_gbit_per_s=float(8000 / card.byte_ps),
        mtu_bytes=int(parameter("network.mtu_bytes")),
        handlers=tuple(
            _handler(name, counted, card, int(parameter("network.mtu_bytes")), report["profile"].get(name, []))
            for name, counted in report["handlers"].items()
            if counted["calls"]
        ),
    )


@dataclass(frozen=True)
class _Card:
    hpus: int
    contexts: int
    cycle_ps: Fraction
    byte_ps: Fraction

    def call_ps(self, calls: int, cycles: int, occupancy_ps: int) -> Fraction:
        """Least time between calls: a handler that waits frees its HPU for others, but not its context."""
        return max(cycles * self.cycle_ps / self.hpus, Fraction(occupancy_ps, self.contexts)) / calls


def _handler(
    name: str, counted: Mapping[str, int], card: _Card, mtu: int, lines: Sequence[Mapping[str, Any]]
) -> Handler:
    calls, cycles, occupancy_ps = counted["calls"], counted["cycles"], counted["occupancy_ps"]
    total = sum(line["instructions"] for line in lines)
    return Handler(
        name=name,
        calls=calls,
        errors=counted["errors"],
        instructions=counted["instructions"],
        per_call=_spread(counted, "instructions"),
        cycles=_spread(counted, "cycles"),
        bytes=counted["bytes"],
        dmas=counted["dmas"],
        puts=counted["puts"],
        mean_wait_ns=float((occupancy_ps - cycles * card.cycle_ps) / calls / 1000),
        rate=_rate(counted, card, mtu),
        calls_per_s=_per_s(card.call_ps(calls, cycles, occupancy_ps)),
        lines=tuple(Line(**line, share=line["instructions"] / total if total else 0.0) for line in lines),
    )


def _spread(counted: Mapping[str, int], what: str) -> Spread:
    return Spread(counted[f"min_{what}"], counted[what] / counted["calls"], counted[f"max_{what}"])


def _rate(counted: Mapping[str, int], card: _Card, mtu: int) -> Rate | None:
    """Use full packets if there were any; otherwise all packets, with their mean size."""
    if counted["full_packets"]:
        calls, size = counted["full_packets"], Fraction(mtu)
        call_ps = card.call_ps(calls, counted["full_packet_cycles"], counted["full_packet_occupancy_ps"])
    else:
        calls, size = counted["calls"], Fraction(counted["bytes"], counted["calls"])
        call_ps = card.call_ps(calls, counted["cycles"], counted["occupancy_ps"])
    if size == 0:
        return None
    gbit_per_s = float(8000 * size / call_ps) if call_ps else float("inf")
    return Rate(round(size), _per_s(call_ps), gbit_per_s, call_ps <= size * card.byte_ps)


def _per_s(call_ps: Fraction) -> float:
    return float(10**12 / call_ps)
