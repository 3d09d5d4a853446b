"""Test suites of others for MPI, run under spinrun: that of mpi4py's source package, and MPICH's own."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from spinkit import _text
from spinkit._errors import EndingError, SpinkitError
from spinkit._pool import Processes

_GRACE_S = 60
"""Additional time that spinrun has to end after its own --timeout."""
_INTERRUPTED = re.compile(r"^spinrun: interrupted by signal", re.MULTILINE)
"""What spinrun tells when it was interrupted, which says nothing about the test."""
_NO_ERRORS = ("No Errors", "No errors")
"""The last line that programs of MPICH's suite print when all is well."""
_IGNORED = frozenset({"mpiversion", "mpix", "strict", "lock", "init", "mem"})
"""Keys of MPICH's lists that say for which MPIs or computers a test is."""
_RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
_SKIPPED = re.compile(r"^OK \(skipped=(\d+)", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One run of a test program."""

    name: str
    folder: Path
    """Where it runs."""
    command: tuple[str, ...]
    ranks: int
    nic: str
    timeout_s: int
    environment: tuple[str, ...] = ()
    """`NAME=VALUE`."""
    without: str = ""
    """Why it cannot be run."""

    @property
    def what(self) -> str:
        return f"{self.name} on {self.nic}, {self.ranks} {'rank' if self.ranks == 1 else 'ranks'}"


@dataclass(frozen=True)
class Outcome:
    """How a run has ended."""

    case: Case
    status: Literal["passed", "failed", "skipped"]
    tests: int = 0
    """How many tests of the program a rank has run."""
    skipped: int = 0
    """How many of them did not apply."""
    reason: str = ""
    """Why it has failed or was skipped."""


@dataclass(frozen=True)
class Suite:
    """The programs of a folder, and how their output is judged."""

    cases: tuple[Case, ...]
    judge: Callable[[Case, int, str, str], Outcome]


def read(
    folder: Path, ranks: Sequence[int], nics: Sequence[str], python: Path, timeout_s: int, only: Sequence[str]
) -> Suite:
    """List the runs of a suite.

    `ranks` is for mpi4py's suite; if it is empty, that runs on 1 to 4. MPICH's lists say how many ranks a program has.
    """
    mpi4py = next((place for place in (folder / "test", folder) if (place / "main.py").is_file()), None)
    if mpi4py is not None:
        modules = sorted(path.stem for path in mpi4py.glob("test_*.py"))
        cases = [
            Case(name, mpi4py, (str(python), "main.py", "-v", "-i", rf"^{name}\b"), number, nic, timeout_s)
            for nic in nics
            for number in ranks or (1, 2, 3, 4)
            for name in modules
        ]
        judge = _judge_unittest
    elif (folder / "testlist").is_file():
        cases = [replace(case, nic=nic) for nic in nics for case in _listed(folder, Path(), timeout_s)]
        judge = _judge_no_errors
    else:
        raise SpinkitError(f"{folder}: neither mpi4py's source (test/main.py) nor tests with a list (testlist)")
    unknown = [name for name in only if not any(name in case.name for case in cases)]
    if unknown:
        raise SpinkitError(f"{folder}: no test has {unknown[0]!r} in its name")
    chosen = tuple(case for case in cases if not only or any(name in case.name for name in only))
    if not chosen:
        raise SpinkitError(f"{folder}: no tests")
    return Suite(chosen, judge)


def _listed(top: Path, below: Path, timeout_s: int) -> Iterable[Case]:
    """Read a list of MPICH's suite: a line names a program, its ranks and options, or a folder with a further list."""
    file = top / below / "testlist"
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        name, *words = line.partition("#")[0].split() or [""]
        if not name:
            continue
        folder = top / below / name
        if folder.is_dir():
            if (folder / "testlist").is_file():
                yield from _listed(top, below / name, timeout_s)
            else:
                yield Case(str(below / name), folder, (), 1, "", timeout_s, without="its folder has no testlist")
            continue
        if not words or not words[0].isdigit():
            raise SpinkitError(f"{file}, line {number}: a program needs its number of ranks: {line.strip()}")
        yield _program(top, below, name, words, timeout_s)


def _program(top: Path, below: Path, name: str, words: Sequence[str], timeout_s: int) -> Case:
    arguments, environment, without, limit = [], [], "", timeout_s
    for word in words[1:]:
        key, _, value = word.partition("=")
        if key == "arg":
            arguments.append(value)
        elif key == "env":
            environment.append(value)
        elif key == "timeLimit" and value.isdigit():
            limit = max(limit, int(value))
        elif key == "xfail":
            without = f"the list expects it to fail ({value})"
        elif key not in _IGNORED:
            without = f"{word} in its list is not known here"
    folder = top / below
    program = folder / name
    if not without and not program.is_file():
        without = "it is not there: compile the suite with the MPI's mpicc first"
    case = str(below / name) + "".join(f" {argument}" for argument in arguments)
    command = (str(program.absolute()), *arguments)
    return Case(case, folder, command, int(words[0]), "", limit, tuple(environment), without)


def run(
    suite: Suite, spinrun: Path, jobs: int | None = None, keep: Callable[[list[Outcome]], None] | None = None
) -> list[Outcome]:
    """Run everything, some jobs at a time; outcomes are in the order of the cases.

    `keep` gets all that have ended so far, each time that one ends, so that a run that is interrupted loses nothing.
    """
    processes = Processes()
    ended: dict[int, Outcome] = {}
    one_at_a_time = Lock()

    def one(number: int, case: Case) -> None:
        outcome = _run(case, spinrun, processes, suite.judge)
        with one_at_a_time:
            ended[number] = outcome
            if keep is not None:
                keep([ended[number] for number in sorted(ended)])
        bar.update(task, advance=1, description=case.what)

    with _text.progress_bar() as bar, ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        task = bar.add_task("MPI tests", total=len(suite.cases))
        try:
            list(pool.map(one, *zip(*enumerate(suite.cases), strict=True)))
            return [ended[number] for number in range(len(suite.cases))]
        except BaseException:
            processes.interrupt()
            pool.shutdown(cancel_futures=True)
            raise


def _run(case: Case, spinrun: Path, processes: Processes, judge: Callable[[Case, int, str, str], Outcome]) -> Outcome:
    if case.without:
        return Outcome(case, "skipped", reason=case.without)
    options = ["-n", str(case.ranks), "--nic", case.nic, "--timeout", str(case.timeout_s)]
    variables = [word for variable in case.environment for word in ("-x", variable)]
    command = [str(spinrun), *options, *variables, *case.command]
    try:
        status, output, errors = processes.execute(command, case.timeout_s + _GRACE_S, case.folder)
    except EndingError:
        raise
    except SpinkitError as error:  # one that hangs costs no other
        return Outcome(case, "failed", reason=str(error))
    if status == -signal.SIGINT or _INTERRUPTED.search(errors):
        raise EndingError("interrupted")
    return judge(case, status, output, errors)


def _judge_unittest(case: Case, status: int, output: str, errors: str) -> Outcome:
    counts = [int(count) for count in _RAN.findall(errors)]
    tests, skipped = max(counts, default=0), max(map(int, _SKIPPED.findall(errors)), default=0)
    names = {where if where.endswith(f".{name}") else f"{where}.{name}" for name, where in _FAILED.findall(errors)}
    if status != 0 or len(counts) != case.ranks or names:
        return Outcome(case, "failed", tests, skipped, ", ".join(sorted(names)) or _end(status, output, errors))
    if tests == skipped:
        return Outcome(case, "skipped", tests, skipped, "none of its tests applies")
    return Outcome(case, "passed", tests, skipped)


def _judge_no_errors(case: Case, status: int, output: str, errors: str) -> Outcome:
    last = (output.strip().splitlines() or [""])[-1].strip()
    if status == 0 and last in _NO_ERRORS:
        return Outcome(case, "passed", 1)
    return Outcome(case, "failed", 1, reason=_end(status, output, errors))


def _end(status: int, output: str, errors: str) -> str:
    """Return what a run says of its end: what spinrun tells of a failure, or else the last line of the program."""
    told = re.search(r"spinrun: .*", errors) if status != 0 else None
    lines = ((errors.strip() if status != 0 else "") or output.strip() or "nothing was printed").splitlines()
    return f"status {status}: {told[0] if told else lines[-1].strip()}"


def show(outcomes: Sequence[Outcome]) -> None:
    """Print what failed and what was skipped, with the reasons, then the numbers for each card and number of ranks."""
    console = _text.console()
    for status in ("skipped", "failed"):
        for outcome in outcomes:
            if outcome.status == status:
                console.print(f"{status}: {outcome.case.what}: {outcome.reason}", markup=False, soft_wrap=True)
    groups = dict.fromkeys((outcome.case.nic, outcome.case.ranks) for outcome in outcomes)
    for nic, ranks in groups:
        here = [outcome for outcome in outcomes if (outcome.case.nic, outcome.case.ranks) == (nic, ranks)]
        counts = {
            status: sum(outcome.status == status for outcome in here) for status in ("passed", "failed", "skipped")
        }
        tests = sum(outcome.tests - outcome.skipped for outcome in here if outcome.status == "passed")
        numbers = ", ".join(f"{count} {status}" for status, count in counts.items())
        noun = "rank" if ranks == 1 else "ranks"
        console.print(f"{nic}, {ranks} {noun}: {numbers}; {tests:,} tests in what passed", soft_wrap=True)


def report(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return every run as JSON."""
    return [
        {
            "name": outcome.case.name,
            "nic": outcome.case.nic,
            "ranks": outcome.case.ranks,
            "status": outcome.status,
            "tests": outcome.tests,
            "skipped": outcome.skipped,
            "reason": outcome.reason,
        }
        for outcome in outcomes
    ]
