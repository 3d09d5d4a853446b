# SPDX-License-Identifier: Apache-2.0
"""A matrix of waiting loops, libraries, thread counts and clocks on a busy machine: each run ends, rightly.

`make soak` runs it after soak.py. MATRIX_RUNS (runs of each command, 5), MATRIX_JOBS (runs at once, 2), MATRIX_SECONDS
(a longer run hangs, 120), MATRIX_WORDS (only commands whose name holds one of these words), SOAK_LOOPS (processes that
keep the machine busy, 4). A failure is printed with its command; out/matrix keeps the programs, the table of counts and
failures.txt.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from soak import BIN, HOME, MARK, end, marked, number, states
from waiting_loops import LOOPS, PORTALS, Loop

OUT = HOME / "out/matrix"
HERE = Path(__file__).parent
FLAGS = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{HERE}"]
THREADS = (1, 2, 3, 8)
CLOCKS = ("real", "simulated")


@dataclass(frozen=True)
class Waiting:
    """One command of the matrix."""

    loop: Loop
    library: str
    threads: int
    clock: str

    @property
    def program(self) -> str:
        return f"{self.library}-{self.loop.name}"

    @property
    def name(self) -> str:
        return f"{self.program}-{self.threads}-{self.clock}"

    def command(self, programs: Path) -> list[str]:
        options = ["-n", "2", "--clock", self.clock]
        return [str(BIN / "spinrun"), *options, str(programs / self.program), str(self.threads)]


def commands(loops: tuple[Loop, ...] = LOOPS) -> list[Waiting]:
    """Return the whole matrix."""
    return [
        Waiting(loop, library, threads, clock)
        for loop in loops
        for library in loop.libraries
        for threads in THREADS
        for clock in CLOCKS
    ]


def build(folder: Path, wanted: list[Waiting]) -> None:
    """Compile the programs of these commands."""
    for one in {each.program: each for each in wanted}.values():
        source = folder / f"{one.program}.c"
        source.write_text(one.loop.source(one.library))
        compiler = BIN / "spincc" if one.library == PORTALS else HOME / ".venv/mpi" / one.library / "bin/mpicc"
        subprocess.run([str(compiler), *FLAGS, str(source), "-o", str(folder / one.program)], check=True)


@dataclass
class Tally:
    """Counts of the runs of one program."""

    commands: set[str] = field(default_factory=set)
    runs: int = 0
    hangs: int = 0
    wrong: int = 0
    differ: int = 0
    seconds: float = 0.0
    slowest: float = 0.0


@dataclass
class Matrix:
    """The runs so far."""

    programs: Path
    limit_s: float
    reports: dict[str, bytes] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def run(self, number: int, one: Waiting) -> str | None:
        """Make one run and return the failure, with the command."""
        mark = f"{os.getpid()}-matrix-{number}"
        command = one.command(self.programs)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.programs) as folder:
            report = Path(folder) / "report.json"
            process = subprocess.Popen(
                [command[0], "--json", str(report), *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, MARK: mark},
                start_new_session=True,
                cwd=folder,
            )
            problem = hang = ""
            try:
                output, errors = process.communicate(timeout=self.limit_s)
                problem = self.wrong(one, process.returncode, output, errors)
            except subprocess.TimeoutExpired:
                hang = f"it hangs: {self.limit_s:.0f} s\n{states(mark)}"
                os.killpg(process.pid, signal.SIGKILL)
                for pid in marked(mark):
                    end(pid)
                process.communicate()
            text = report.read_bytes() if report.exists() and not hang else b""
        took = time.monotonic() - began
        with self.lock:
            tally = self.tallies.setdefault(one.program, Tally())
            tally.commands.add(one.name)
            tally.runs += 1
            tally.hangs += bool(hang)
            tally.wrong += bool(problem)
            tally.differ += bool(text) and self.reports.setdefault(one.name, text) != text
            tally.seconds += took
            tally.slowest = max(tally.slowest, took)
        return f"{one.name}: {hang or problem}\n  {shlex.join(command)}" if hang or problem else None

    def wrong(self, one: Waiting, status: int, output: str, errors: str) -> str:
        """Return the difference of a run that ended from the right one, or nothing."""
        if status != 0:
            return f"status {status}: {(errors.strip() or output.strip()).splitlines()[-1:]}"
        if output != one.loop.output(one.threads):
            return f"wrong output: {output!r}"
        return ""


def table(tallies: dict[str, Tally]) -> str:
    """Return the counts of each program, and their sums."""
    counts = f"{'commands':>8} {'runs':>7} {'hangs':>6} {'wrong':>6} {'differ':>6}"
    lines = [f"{'program':<34} {counts} {'mean s':>7} {'most s':>7}"]
    total = Tally()
    for name, tally in sorted(tallies.items()):
        lines.append(row(name, tally))
        total.commands |= tally.commands
        total.runs += tally.runs
        total.hangs += tally.hangs
        total.wrong += tally.wrong
        total.differ += tally.differ
        total.seconds += tally.seconds
        total.slowest = max(total.slowest, tally.slowest)
    return "\n".join([*lines, row(f"all {len(tallies)} programs", total)])


def row(name: str, tally: Tally) -> str:
    mean = tally.seconds / max(tally.runs, 1)
    counts = f"{len(tally.commands):>8} {tally.runs:>7} {tally.hangs:>6} {tally.wrong:>6} {tally.differ:>6}"
    return f"{name:<34} {counts} {mean:>7.2f} {tally.slowest:>7.2f}"


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the machine busy with low priority."""
    burn = "import os; os.nice(19)\nwhile True: pass"
    running = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


def main() -> int:
    runs, jobs, limit = number("MATRIX_RUNS", 5), number("MATRIX_JOBS", 2), number("MATRIX_SECONDS", 120)
    words = os.environ.get("MATRIX_WORDS", "").split()
    wanted = [each for each in commands() if not words or any(word in each.name for word in words)]
    if not wanted or jobs < 1:
        sys.exit("nothing to do: look at MATRIX_WORDS and MATRIX_JOBS")
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "programs").mkdir(parents=True)
    matrix = Matrix(OUT / "programs", limit)
    build(matrix.programs, wanted)
    failures = 0
    began = told = time.monotonic()
    # Each command runs once before any runs again, so an interrupted soak has seen all of them.
    plan = [each for _ in range(runs) for each in wanted]
    with busy(number("SOAK_LOOPS", 4)), (OUT / "failures.txt").open("w") as file, ThreadPoolExecutor(jobs) as pool:
        try:
            for done, problem in enumerate(pool.map(matrix.run, range(len(plan)), plan), 1):
                if problem:
                    failures += 1
                    print(problem, flush=True)
                    print(problem, file=file, flush=True)
                if time.monotonic() - told > 10 or done == len(plan):
                    told = time.monotonic()
                    print(f"{done} of {len(plan)} runs, {failures} failed, {told - began:.0f} s", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            failures += 1
    text = table(matrix.tallies)
    print(text)
    (OUT / "table.txt").write_text(f"{text}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
