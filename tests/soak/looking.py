# SPDX-License-Identifier: Apache-2.0
"""Observation does not change a run: every program with handlers has the same output and report on every execution
path.

`make soak` runs it. It compiles each program at -O0, -O1, -O2, -O3 and -Os, and compares a plain run with runs under
--sanitize, --profile, --trace, --print-free (unless handlers print), --post-ahead 128, without --json, and under --gdb
at the first and at the last rank, where a debugger that only continues is attached; with both core timings.
LOOKING_CASES (words; only programs whose name holds one of them), LOOKING_JOBS (runs at once, 2). Differences are
printed with their command lines.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from spinkit import _paths
from spinkit.experiments._jobs import jobs
from spinkit.experiments._reader import available, load
from spinkit.experiments._runners import ProgramRun
from spinkit.simulate import _machines

HOME = Path(__file__).resolve().parents[2]
BIN = HOME / ".venv/bin"
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
TIMINGS = ("ooo-a15", "inorder")
MOST_SECONDS = 300.0
# An experiment on more ranks is a matter of the network.
MOST_RANKS = 32


@dataclass(frozen=True)
class Case:
    """A program, and its run options."""

    name: str
    sources: tuple[Path, ...]
    options: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    timings: tuple[str, ...] = TIMINGS


@dataclass(frozen=True)
class Outcome:
    """Everything that a run reports."""

    command: str
    status: int
    output: bytes
    errors: str
    report: object
    stops: int = 0
    """Number of debugger stops."""


def case(folder: str, name: str, ranks: int, *arguments: str, options: str = "") -> Case:
    """A program of a folder of the project."""
    words = ("-n", str(ranks), *options.split())
    return Case(" ".join((f"{folder}/{name}", *arguments)), (HOME / folder / name,), words, arguments)


OWN = [
    case("examples", "hello.c", 4),
    case("examples", "filter.c", 4),
    case("examples", "counter.c", 4),
    case("examples", "kvstore.c", 4),
    case("examples", "allreduce.c", 4),
    case("examples", "scatter.c", 2),
    case("examples", "request_reply.c", 3),
    case("examples", "flow_control.c", 4),
    case("examples", "minmax.cpp", 4),
    case("tests/programs", "channels.c", 3),
    *(
        case("tests/programs", "commands.c", 2, name)
        for name in ("dma_blocking", "dma_nonblocking", "dma_segments", "counters", "put_from_device", "arithmetic")
    ),
    case("tests/programs", "common.c", 4),
    case("tests/programs", "consensus_card.c", 2),
    case("tests/programs", "debugging.c", 2, "6000"),
    case("tests/programs", "debugging.c", 2, "6000", "race"),
    case("tests/programs", "drops.c", 3, "well"),
    case("tests/programs", "errors.c", 2, "payload", "peek", "0"),
    case("tests/programs", "errors.c", 2, "completion", "abort"),
    *(
        case("tests/programs", "handlers.c", 2, name)
        for name in ("order", "proceed", "drop_packets", "user_header", "pending_completion", "memory_outlives_entries")
    ),
    case("tests/programs", "message_order.c", 3, "20"),
    case("tests/programs", "order.c", 2, "acquire"),
    case("tests/programs", "outlive.c", 2, "cas", "stack", "return", options="--set accelerator.hpus=1"),
    *(
        case("tests/programs", "p4spin_calls.c", 2, name)
        for name in ("gets_to_host", "atomics_device", "dma_contended", "hpu_contended", "aligned")
    ),
    *(case("tests/programs", "p4spin_gets.c", 2, name) for name in ("proceed", "pending", "times")),
    *(case("tests/programs", "p4spin_times.c", 2, name, "64") for name in ("GetToHost", "DMAToHostB")),
    case("sdk/handlers", "cost.c", 2),
]


def of_experiments() -> Iterator[Case]:
    """Yield the runs of experiments with handlers on the unit of the sPIN paper, each with its first quick value."""
    command = _paths.command("spinkit-machines")

    def describe(machine: str, changes: tuple[str, ...]) -> _machines.Machine:
        return _machines.load(command, machine, changes)

    for name in available(HOME):
        experiment = load(HOME, name)
        program = experiment.program
        if not program.sources or program.mpi:
            continue
        few = replace(experiment, chosen=experiment.quick_values[:1])
        seen = set()
        for job in jobs(few, True, describe):
            series = job.series[0]
            machine = describe(experiment.place(job.machine), job.changes)
            kind = next((one.value for one in machine.parameters if one.key == "accelerator.kind"), "")
            # One run for each way in which the program runs.
            way = (series.mode, series.args)
            if (
                series.script is not None
                or series.nic != "spin"
                or kind != "sc17"
                or job.ranks > MOST_RANKS
                or way in seen
            ):
                continue
            seen.add(way)
            sources = tuple(experiment.folder / source for source in program.sources)
            yield Case(
                f"{name} {series.name}", sources, tuple(ProgramRun.options(job)), tuple(ProgramRun.arguments(job))
            )


def compile_program(sources: Sequence[Path], level: str, to: Path) -> str | None:
    """Compiles a program; returns the compiler's messages if it refuses."""
    command = [BIN / "spincc", level, "-g", *sources, "-o", to]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr


def execute(command: list[str], report: Path | None, debugger: bool) -> Outcome:
    """Runs a command to its end, with a debugger if it waits for one."""
    stops = 0
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[str] = []
    if debugger:
        for line in process.stderr:
            errors.append(line.decode())
            if found := re.search(r"'target remote (\S+)'", errors[-1]):
                attached = threading.Thread(target=lambda place=found[1]: continue_to_end(place))
                attached.start()
                stops += 1
                break
    timer = threading.Timer(MOST_SECONDS, process.kill)
    timer.start()
    output, rest = process.communicate()
    timer.cancel()
    if stops:
        attached.join()
    told = json.loads(report.read_bytes()) if report is not None and report.exists() else None
    return Outcome(shlex.join(command), process.returncode, output, "".join(errors) + rest.decode(), told, stops)


def continue_to_end(place: str) -> None:
    """Plays a debugger that lets handlers go on whenever they stop."""
    if place.startswith(":"):
        connection = socket.create_connection(("127.0.0.1", int(place[1:])), timeout=MOST_SECONDS)
    else:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(MOST_SECONDS)
        connection.connect(place)
    with connection:
        for packet in ("qSupported:swbreak+;multiprocess+;vContSupported+", "?"):
            connection.sendall(packed(packet))
            answer(connection)
        while True:
            connection.sendall(packed("vCont;c"))
            if answer(connection)[:1] in (b"W", b"X", b""):
                return


def packed(packet: str) -> bytes:
    return f"+${packet}#{sum(packet.encode()) % 256:02x}".encode()


def answer(connection: socket.socket) -> bytes:
    """Returns gdb's next packet; none when the connection is closed."""
    received = b""
    while not re.search(rb"\$[^#]*#..$", received):
        try:
            byte = connection.recv(1)
        except ConnectionError:
            return b""
        if not byte:
            return b""
        received += byte
    # A run that has ended does not wait for the answer.
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"+")
    return received.partition(b"$")[2][:-3]


def paths(one: Case) -> list[tuple[str, list[str]]]:
    """Returns the execution paths other than the plain one, by name, with their options."""
    ranks = int(one.options[one.options.index("-n") + 1])
    return [
        ("sanitize", ["--sanitize"]),
        ("gdb-first", ["--gdb", "0"]),
        ("gdb-last", ["--gdb", str(ranks - 1)]),
        ("profile", ["--profile"]),
        ("trace", ["--trace", "{folder}/trace"]),
        ("quiet", []),
        ("print-free", ["--print-free"]),
        ("post-ahead", ["--post-ahead", "128"]),
    ]


def difference(name: str, plain: Outcome, other: Outcome) -> str | None:
    """Returns the difference between two runs of a program."""
    # The sanitizer lets a run fail that has made mistakes.
    if other.status != plain.status and not (name == "sanitize" and other.status == 1 and "sanitizer:" in other.errors):
        return f"status {plain.status} and {other.status}: {other.errors[-500:]}"
    if plain.output != other.output:
        return f"output: {plain.output[-300:]!r} and {other.output[-300:]!r}"
    if name == "quiet":
        return None
    unlike = [place for place in differing(plain.report, other.report) if not place.startswith(("profile", "end."))]
    return f"report: {', '.join(unlike[:8])}" if unlike else None


def differing(one: object, other: object, place: str = "") -> Iterator[str]:
    """Yields the places at which two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differing(one.get(key), other.get(key), f"{place}.{key}" if place else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differing(*pair, f"{place}[{index}]")
    elif one != other:
        yield f"{place} {one} and {other}"


@dataclass
class Looking:
    """Comparisons of runs, and their counts."""

    folder: Path
    counts: Counter[str]

    def compare(self, one: Case, level: str, only: Iterable[str] = ()) -> list[str]:
        """Compares the paths of a program at an optimisation level, or those in `only`. Returns the differences."""
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            folder = Path(place)
            program = folder / "program"
            problem = compile_program(one.sources, level, program)
            if problem is not None:
                self.counts["not compiled"] += 1
                return [f"{one.name} {level}: does not compile:\n{problem}"]
            found = []
            for timing in one.timings:
                found += self.at(one, f"{level} {timing}", folder, timing, tuple(only))
            return found

    def at(self, one: Case, where: str, folder: Path, timing: str, only: tuple[str, ...]) -> list[str]:
        def run(name: str, options: list[str]) -> Outcome:
            report = None if name == "quiet" else folder / f"{name}.json"
            told = [] if report is None else ["--json", str(report)]
            words = [word.format(folder=folder) for word in options]
            machine = ["--set", f"hpu.timing={timing}"]
            command = [
                str(BIN / "spinrun"),
                *one.options,
                *machine,
                *told,
                *words,
                str(folder / "program"),
                *one.arguments,
            ]
            self.counts["runs"] += 1
            return execute(command, report, name.startswith("gdb"))

        plain = run("plain", [])
        # A program without this case does nothing that could differ.
        found = [f"{one.name} {where}: status 2: {plain.errors[-300:]}"] if plain.status == 2 else []
        for name, options in paths(one):
            # Free printing changes the times of handlers that print.
            if (only and name not in only) or (name == "print-free" and "HPU " in plain.errors):
                continue
            other = run(name, options)
            self.counts["comparisons"] += 1
            self.counts[name] += 1
            self.counts["debuggers"] += other.stops
            what = difference(name, plain, other)
            if what is not None:
                self.counts["differences"] += 1
                found.append(f"{one.name} {where} {name}: {what}\n  {plain.command}\n  {other.command}")
        return found


def main() -> int:
    words = os.environ.get("LOOKING_CASES", "").split()
    cases = [one for one in (*OWN, *of_experiments()) if not words or any(word in one.name for word in words)]
    if not cases:
        sys.exit("nothing to do: look at LOOKING_CASES")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        looking = Looking(Path(folder), Counter())
        plan = [(one, level) for one in cases for level in LEVELS]
        with ThreadPoolExecutor(int(os.environ.get("LOOKING_JOBS", "2"))) as pool:
            for done, found in enumerate(pool.map(lambda each: looking.compare(*each), plan), 1):
                for problem in found:
                    failures += 1
                    print(problem, flush=True)
                if done % 50 == 0 or done == len(plan):
                    print(f"{done} of {len(plan)} programs, {failures} differences", flush=True)
    told = ", ".join(f"{name} {count}" for name, count in sorted(looking.counts.items()))
    print(f"{len(cases)} cases at {len(LEVELS)} levels: {told}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
