# SPDX-License-Identifier: Apache-2.0
"""Thousands of short spinrun runs on a busy machine: none hangs, none leaves anything behind, and all runs of one
command line give the same bytes.

`make soak` runs it. SOAK_RUNS (10000), SOAK_JOBS (runs at once, 2), SOAK_SEED (1), SOAK_LOOPS (processes that keep the
machine busy, 4), SOAK_CASES (words; only cases whose name holds one of them). A failure is told with its command line;
its output is kept in out/soak/failures.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
BIN = HOME / ".venv/bin"
OUT = HOME / "out/soak"
# A run that takes longer on a machine as busy as this one hangs.
MOST_SECONDS = 60.0
# Marks the processes of a run.
MARK = "SPINKIT_SOAK_RUN"


@dataclass(frozen=True)
class Case:
    """A command line, and the status with which it must end."""

    name: str
    options: str
    program: str
    arguments: str
    status: frozenset[int]
    # Set if all runs give the same bytes.
    same: bool = True
    # Set if the run is interrupted at a random moment.
    interrupted: bool = False
    # Set if the last argument is the number of the run.
    seeded: bool = False


def case(
    name: str,
    options: str,
    command: str,
    *status: int,
    same: bool = True,
    interrupted: bool = False,
    seeded: bool = False,
) -> Case:
    program, _, arguments = command.partition(" ")
    return Case(name, options, program, arguments, frozenset(status or (0,)), same, interrupted, seeded)


CASES = [
    case("hello", "-n 3", "ends hello"),
    case("tagged", "-n 2 --tag-output", "ends hello"),
    case("deadlock", "-n 4", "ends deadlock", 1),
    case("polls-for-ever", "-n 2 --busy-wait-quantum 5", "ends poll", 1),
    case("crash", "-n 3", "ends crash", 139),
    case("abort", "-n 2", "ends abort", 134),
    case("exit", "-n 4", "ends exit", 3),
    case("leaves-a-thread", "-n 2", "ends leave", 4),
    case("leaves-a-sleep", "-n 2", "ends sleep", 4),
    case("timeout", "-n 2 --timeout 0.2", "ends forever", 124, same=False),
    case("interrupt", "-n 2", "ends forever", 130, same=False, interrupted=True),
    case("pmi", "-n 4", "pmi 3"),
    case("pmi-rdma", "-n 3 --nic rdma", "pmi 2"),
    case("pmi-interrupt", "-n 4", "pmi 40", 0, 130, same=False, interrupted=True),
    case("threads", "-n 4", "threads 4"),
    case("threads-rdma", "-n 3 --nic rdma", "threads 4"),
    case("threads-portals4", "-n 2 --nic portals4", "threads 4"),
    case("threads-patient", "-n 2 --busy-wait-quantum 1", "threads 4"),
    case("threads-simulated", "-n 3 --clock simulated", "threads 4"),
    case("threads-interrupt", "-n 4", "threads 60", 0, 130, same=False, interrupted=True),
    case("sleeps", "-n 2", "sleeps 3"),
    case("sleeps-simulated", "-n 2 --clock simulated", "sleeps 3"),
    case("sleeps-interrupt", "-n 2", "sleeps 40", 0, 130, same=False, interrupted=True),
    case("all-to-all", "-n 6", "alltoall 700"),
    case("all-to-all-rdma", "-n 4 --nic rdma", "alltoall 5000"),
    # Its own status may be anything but that of a crash of spinrun.
    case("hostile", "-n 2 --timeout 5", "hostile", same=False, seeded=True),
]


@dataclass
class Tally:
    runs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    failures: int = 0


@dataclass
class Soak:
    programs: Path
    marks: str
    references: dict[str, dict[str, bytes]] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    def run(self, number: int, which: Case, delay: float) -> str | None:
        """Makes one run and returns its failure, if any."""
        with tempfile.TemporaryDirectory(dir=self.programs) as folder:
            place = Path(folder)
            mark = f"{self.marks}-{number}"
            files = {name: place / name for name in ("json", "trace")}
            command = [str(BIN / "spinrun"), *which.options.split()]
            command += [word for name, path in files.items() for word in (f"--{name}", str(path))]
            command += [str(self.programs / which.program), *which.arguments.split()]
            if which.seeded:
                command.append(str(number))
            began = time.monotonic()
            problem, outcome = self.watch(command, mark, place, which, delay)
            took = time.monotonic() - began
            problem = problem or self.leftovers(mark, place) or self.compare(which, outcome, files)
            tally = self.tallies.setdefault(which.name, Tally())
            tally.runs += 1
            tally.seconds += took
            tally.slowest = max(tally.slowest, took)
            if problem is None:
                return None
            tally.failures += 1
            kept = OUT / "failures" / f"{which.name}-{number}"
            shutil.copytree(place, kept, dirs_exist_ok=True)
            for name, text in outcome.items():
                (kept / name).write_bytes(text)
            told = f"run {number}, {which.name}, interrupted after {delay:.3f} s: {problem}"
            line = shlex.join(command)
            (kept / "problem").write_text(f"{told}\n{line}\n")
            return f"{told}\n  {line}\n  kept in {kept}"

    def watch(
        self, command: list[str], mark: str, place: Path, which: Case, delay: float
    ) -> tuple[str | None, dict[str, bytes]]:
        """Runs the command, interrupts it if requested, and returns the failure if it ended unexpectedly."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, MARK: mark},
            start_new_session=True,
            cwd=place,
        )
        limit = MOST_SECONDS
        if which.interrupted:
            try:
                out, err = process.communicate(timeout=delay)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            state = states(mark)
            os.killpg(process.pid, signal.SIGKILL)
            for pid in marked(mark):
                end(pid)
            out, err = process.communicate()
            return f"it hangs: {limit:.0f} s\n{state}", {"stdout": out, "stderr": err}
        outcome = {"stdout": out, "stderr": err}
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        if b"panicked at" in err or (process.returncode < 0 and not which.interrupted):
            return f"spinrun crashed: status {process.returncode}", outcome
        # An interrupt may precede the installation of spinrun's handler.
        if not which.seeded and status not in which.status and not (which.interrupted and status == 130):
            return f"status {status}", outcome
        return None, outcome

    def leftovers(self, mark: str, place: Path) -> str | None:
        """Returns processes and files left behind by a run."""
        left = marked(mark)
        if left:
            state = states(mark)
            for pid in left:
                end(pid)
            return f"processes are left:\n{state}"
        names = sorted(path.name for path in place.iterdir() if path.name not in ("core",))
        if not set(names) <= {"json", "trace"}:
            return f"files are left: {names}"
        report = place / "json"
        if report.exists():
            try:
                json.loads(report.read_bytes())
            except ValueError as error:
                return f"the report is cut: {error}"
        return None

    def compare(self, which: Case, outcome: dict[str, bytes], files: dict[str, Path]) -> str | None:
        """Returns true if the run gave the same bytes as the first one of its case."""
        if not which.same:
            return None
        got = {**outcome, **{name: path.read_bytes() for name, path in files.items() if path.exists()}}
        place = str(files["json"].parent).encode()
        got = {name: text.replace(place, b"PLACE") for name, text in got.items()}
        first = self.references.setdefault(which.name, got)
        differ = [name for name in sorted(first.keys() | got.keys()) if first.get(name) != got.get(name)]
        if not differ:
            return None
        reference = OUT / "failures" / f"{which.name}-reference"
        reference.mkdir(parents=True, exist_ok=True)
        for name, text in first.items():
            (reference / name).write_bytes(text)
        return f"{', '.join(differ)} of the first run were different"


def marked(mark: str) -> list[int]:
    """Returns the processes of a run."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    found.append(int(folder.name))
        except OSError:
            continue
    return found


def states(mark: str) -> str:
    """Describes the states of a run's threads."""
    lines = []
    for pid in marked(mark):
        for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
            words = []
            for name in ("comm", "wchan", "syscall"):
                try:
                    words.append((task / name).read_text().strip())
                except OSError as error:
                    words.append(error.strerror or "")
            state = next((line for line in read(task / "status").splitlines() if line.startswith("State")), "")
            lines.append(f"    {pid} {task.name}: {state}; {'; '.join(words)}")
    return "\n".join(lines)


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def build(folder: Path) -> None:
    """Compiles the programs."""
    sources = [HOME / "tests/programs" / f"{name}.c" for name in ("ends", "alltoall")]
    sources += sorted((HOME / "tests/soak").glob("*.c"))
    for source in sources:
        command = [str(BIN / "spincc"), "-O1", "-g", "-pthread", "-o", str(folder / source.stem), str(source)]
        subprocess.run(command, check=True)


def table(tallies: dict[str, Tally]) -> str:
    lines = [f"{'case':<20} {'runs':>6} {'failures':>8} {'mean s':>8} {'most s':>8}"]
    for name, tally in sorted(tallies.items()):
        mean = tally.seconds / max(tally.runs, 1)
        lines.append(f"{name:<20} {tally.runs:>6} {tally.failures:>8} {mean:>8.3f} {tally.slowest:>8.3f}")
    runs, failures = (sum(getattr(tally, name) for tally in tallies.values()) for name in ("runs", "failures"))
    lines.append(f"{'all':<20} {runs:>6} {failures:>8}")
    return "\n".join(lines)


def number(name: str, default: int) -> int:
    word = os.environ.get(name, str(default))
    if not word.isdecimal():
        sys.exit(f"{name}={word} is no whole number")
    return int(word)


def main() -> int:
    runs, jobs, seed = number("SOAK_RUNS", 10_000), number("SOAK_JOBS", 2), number("SOAK_SEED", 1)
    words = os.environ.get("SOAK_CASES", "").split()
    cases = [each for each in CASES if not words or any(word in each.name for word in words)]
    if not cases or jobs < 1:
        sys.exit("nothing to do: look at SOAK_CASES and SOAK_JOBS")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    dice = random.Random(seed)
    plan = [(index, dice.choice(cases), dice.uniform(0.0, 0.3)) for index in range(runs)]
    shared = set(Path("/dev/shm").iterdir())
    burn = "while True: pass"
    loops = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(number("SOAK_LOOPS", 4))]
    failures = 0
    began = told = time.monotonic()
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        soak = Soak(Path(folder), f"{os.getpid()}-{seed}")
        try:
            build(soak.programs)
            with ThreadPoolExecutor(jobs) as pool:
                for done, problem in enumerate(pool.map(lambda each: soak.run(*each), plan), 1):
                    if problem:
                        failures += 1
                        print(f"SOAK_SEED={seed}: {problem}", flush=True)
                    if time.monotonic() - told > 10 or done == runs:
                        told = time.monotonic()
                        print(f"{done} of {runs} runs, {failures} failed, {told - began:.0f} s", flush=True)
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
    left = sorted(str(path) for path in set(Path("/dev/shm").iterdir()) - shared)
    print(table(soak.tallies))
    if left:
        print(f"shared memory is left: {left}")
    return 1 if failures or left else 0


if __name__ == "__main__":
    sys.exit(main())
