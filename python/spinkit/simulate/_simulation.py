# SPDX-License-Identifier: Apache-2.0
"""Runs programs from Python, and returns their costs as typed values."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json
from spinkit.common._values import Value, typed, written

_SOURCES = {".c", ".cc", ".cpp"}
_PS_PER_US = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Handler:
    """Costs of one handler, summed over all calls on all cards."""

    calls: int
    errors: int
    """Calls that ended with an error."""
    instructions: int
    min_instructions: int
    """Instructions of the shortest call."""
    max_instructions: int
    """Instructions of the longest call."""
    cycles: int
    """Cycles of the HPU, without those in which the handler waited for DMA or for puts."""
    min_cycles: int
    max_cycles: int
    occupancy_ps: int
    """Time from the begin to the end of each call, waiting included, in picoseconds."""
    bytes: int
    """Bytes of its packets."""
    puts: int
    dmas: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """Counters of one card."""

    messages_sent: int
    packets_sent: int
    bytes_sent: int
    messages_received: int
    packets_received: int
    bytes_received: int
    dma_bytes: int
    """Bytes that the card moved to and from host memory."""
    memory_bytes: int
    """Traffic of host memory: of the card, and of the CPU's declared accesses."""
    undeliverable: int
    """Messages to cards that do not exist."""
    packets_lost: int
    packets_resent: int
    packets_held: int
    """Packets that waited in this card for one that was lost, or for their header packet."""
    packets_dropped: int
    """Packets dropped for lack of room."""
    flow_control: int
    """Number of times that a portal table entry was disabled because handlers could not keep up."""
    packet_buffer_peak_bytes: int
    tx_busy_ps: int
    """Time in which the port sent, in picoseconds."""
    rx_busy_ps: int
    dma_busy_ps: int
    hpu_busy_ps: int
    """Time in which HPUs ran handlers, summed over HPUs, in picoseconds."""


@dataclass(frozen=True)
class Result:
    """The outcome of a run."""

    machine: str
    nic: str
    """The kind of the cards: rdma, portals4 or spin."""
    ranks: int
    end_ps: int
    """The simulated time at the end, in picoseconds."""
    rank_end_ps: tuple[int, ...]
    """The simulated time at which each rank ended, in picoseconds."""
    parameters: Mapping[str, Value]
    """The machine's parameters, by key; numbers are numbers."""
    cards: tuple[Card, ...]
    """The card of each rank."""
    handlers: Mapping[str, Handler]
    """The handlers, by name."""
    output: str
    """Standard output of the ranks."""
    errors: str
    """Standard error of ranks and spinrun, such as reports of dropped messages."""
    report: Mapping[str, Any]
    """The whole report of `spinrun --json`: also drops by reason, links of a fabric, source lines with --profile."""

    @property
    def end_us(self) -> float:
        """The simulated time at the end, in microseconds."""
        return self.end_ps / _PS_PER_US

    def lines(self) -> list[Any]:
        """Return the output of a program that prints a JSON value a line."""
        try:
            return [parse_json(line) for line in self.output.splitlines()]
        except ValueError as error:
            raise SpinkitError(f"the program's output is not a JSON value a line: {error}") from None


class _Report(msgspec.Struct, frozen=True):
    """Fields of a report that become a `Result`."""

    machine: str
    nic: str
    ranks: int
    end_ps: int
    rank_end_ps: tuple[int, ...]
    parameters: dict[str, dict[str, str]]
    cards: tuple[Card, ...]
    handlers: dict[str, Handler]


def run(
    program: str | Path,
    ranks: int = 1,
    machine: str | Path = "sc17-int",
    set: Mapping[str, Value] | None = None,  # noqa: A002, as the option is called
    *,
    arguments: Sequence[object] = (),
    nic: str | None = None,
    trace: str | Path | None = None,
    options: Sequence[str] = (),
    timeout_s: float | None = None,
) -> Result:
    """Run a program on simulated cards, and wait for its end.

    Args:
        program: An executable file; a C or C++ source is compiled first, with `spincc -O3 -g`.
        ranks: The number of processes.
        machine: The name of a machine, or a TOML file.
        set: Changed parameters of the machine, such as `{"accelerator.hpus": 8}`.
        arguments: Arguments of the program.
        nic: The kind of card if not the machine's: rdma, portals4 or spin.
        trace: The file to which the timeline is written, for `Trace` and for ui.perfetto.dev.
        options: Further options of spinrun, such as `["--profile"]`.
        timeout_s: Seconds, not simulated ones, after which the run is ended.

    Raises:
        SpinkitError: The program does not compile, or the run failed; the message has what was on standard error.

    """
    with TemporaryDirectory(prefix="spinkit-") as name:
        report = Path(name) / "report.json"
        place = Path(program)
        if place.suffix in _SOURCES:
            place = _compile(place, Path(name))
        spinrun_options = ["-n", str(ranks), "--machine", str(machine), "--json", str(report)]
        spinrun_options += [word for key, value in (set or {}).items() for word in ("--set", f"{key}={written(value)}")]
        for option, value in (("--nic", nic), ("--trace", trace), ("--timeout", timeout_s)):
            spinrun_options += [] if value is None else [option, str(value)]
        # A path, as spinrun looks for a plain name on PATH.
        command = [
            str(_paths.command("spinrun")),
            *spinrun_options,
            *options,
            "--",
            str(place.resolve()),
            *map(str, arguments),
        ]
        done = _execute(command)
        if done.returncode != 0:
            raise SpinkitError(f"{program}: spinrun ended with status {done.returncode}\n{done.stderr.strip()}")
        return _result(report, done.stdout, done.stderr)


def _compile(source: Path, folder: Path) -> Path:
    built = folder / source.stem
    done = _execute([_paths.command("spincc"), "-O3", "-g", source, "-o", built])
    if done.returncode != 0:
        raise SpinkitError(f"{source} does not compile:\n{done.stderr.strip()}")
    return built


def _execute(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )


def _result(file: Path, output: str, errors: str) -> Result:
    try:
        report = parse_json(file.read_text(encoding="utf-8"))
        fields = msgspec.convert(report, _Report)
    except (OSError, ValueError) as error:
        raise SpinkitError(f"spinrun's report: {error}") from None
    parameters = {key: typed(one["value"]) for key, one in fields.parameters.items()}
    return Result(
        machine=fields.machine,
        nic=fields.nic,
        ranks=fields.ranks,
        end_ps=fields.end_ps,
        rank_end_ps=fields.rank_end_ps,
        parameters=parameters,
        cards=fields.cards,
        handlers=fields.handlers,
        output=output,
        errors=errors,
        report=report,
    )
