# SPDX-License-Identifier: Apache-2.0
"""The project's own Portals 4 tests: a plain C program for each feature group, on every card and kind of interface."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from spinkit._errors import SpinkitError
from spinkit.common import _terminal
from spinkit.common._processes import Processes, pool
from spinkit.simulate._toolchain import Toolchain

PROGRAMS = Path("tests", "portals")
"""Folder of the programs, below the home folder."""

_TIMEOUT_S = 60
_SKIPPED = 77
_HEAD = re.compile(r"/\* conformance: ranks=([\d,]+)\n \* (.*?)(?: \*/|\n)")
_COUNTS = re.compile(r"^CHECKS (\d+) passed (\d+) failed$", re.MULTILINE)
_TIMED = re.compile(r"^TIMED (.*)$", re.MULTILINE)
_FAILURE = re.compile(r"^FAILED (.*?) \| (.*)$", re.MULTILINE)

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Group:
    """A feature group, which is one program."""

    name: str
    source: Path
    ranks: tuple[int, ...]
    """Numbers of processes with which it runs."""
    about: str


@dataclass(frozen=True)
class Case:
    """One run of a group's program."""

    group: Group
    nic: str
    matching: str
    addressing: str
    ranks: int

    @property
    def what(self) -> str:
        """Description of the case for messages."""
        noun = "process" if self.ranks == 1 else "processes"
        return f"{self.group.name} on {self.nic}, {self.matching}, {self.addressing}, {self.ranks} {noun}"


@dataclass(frozen=True)
class Failure:
    """A check that failed."""

    check: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run."""

    case: Case
    status: Literal["passed", "failed", "skipped"]
    checks: int
    """Number of checks that passed."""
    failures: tuple[Failure, ...]
    timed: frozenset[str] = frozenset()
    """Checks about simulated time, which a live run leaves out."""


def groups(home: Path) -> list[Group]:
    """Read the groups from the first lines of the programs."""
    folder = home / PROGRAMS
    found = []
    for source in sorted(folder.glob("*.c")):
        head = _HEAD.match(source.read_text(encoding="utf-8"))
        if head is None:
            raise SpinkitError(f"{source}: does not start with /* conformance: ranks=... and a sentence")
        ranks = tuple(int(number) for number in head[1].split(","))
        found.append(Group(source.stem, source, ranks, head[2].strip()))
    if not found:
        raise SpinkitError(f"{folder}: no programs")
    return found


def cases(chosen: Iterable[Group], nics: Sequence[str]) -> list[Case]:
    """List every run of these groups."""
    kinds = itertools.product(("matching", "non-matching"), ("logical", "physical"))
    grid = list(itertools.product(nics, kinds))
    return [Case(group, nic, *kind, ranks) for group in chosen for nic, kind in grid for ranks in group.ranks]


def run(
    home: Path, chosen: Sequence[Group], nics: Sequence[str], tools: Toolchain, *, live: bool = False
) -> list[Outcome]:
    """Compile and run everything on this computer's cores; outcomes are in the order of `cases`.

    `live` runs the programs in real time (`spinrun --live`).
    """
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        TemporaryDirectory(prefix="spinkit-conformance-") as scratch,
        pool(len(os.sched_getaffinity(0))) as (threads, processes),
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("compile", total=len(chosen))

        def gather(work: Callable[[_T], _R], items: Sequence[_T], what: Callable[[_T], str]) -> list[_R]:
            bar.reset(task, total=len(items))
            futures = {threads.submit(work, item): item for item in items}
            for future in as_completed(futures):
                bar.update(task, advance=1, description=what(futures[future]))
                future.result()
            return [future.result() for future in futures]

        gather(partial(_compile, home, tools, processes, Path(scratch)), chosen, lambda group: group.name)
        every = cases(chosen, nics)
        return gather(partial(_run, tools, processes, Path(scratch), live), every, lambda case: case.what)


def _compile(home: Path, tools: Toolchain, processes: Processes, scratch: Path, group: Group) -> None:
    """Build a program like any Portals program: with the C compiler, the header and the library."""
    if tools.library is None:
        raise SpinkitError("libportals.so was not found; `make build` or `pip install .` provides it")
    where = tools.library.parent
    command = [
        *shlex.split(os.environ.get("CC", "cc")),
        *("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"),
        *("-I", str(home / "sdk" / "include"), str(group.source), "-o", str(scratch / group.name)),
        *(f"-L{where}", "-lportals", f"-Wl,-rpath,{where}", "-lm", "-pthread"),
    ]
    status, _, errors = processes.execute(command, None)
    if status != 0:
        raise SpinkitError(f"{group.source} does not compile:\n{errors.strip()}")


def _run(tools: Toolchain, processes: Processes, scratch: Path, live: bool, case: Case) -> Outcome:
    limit = ("--timeout", str(_TIMEOUT_S), *(["--live"] if live else []))
    command = [str(tools.spinrun), "-n", str(case.ranks), "--nic", case.nic, *limit]
    program = [str(scratch / case.group.name), case.matching, case.addressing]
    status, output, errors = processes.execute([*command, *program], 2 * _TIMEOUT_S)
    held = sum(int(passed) for passed, _ in _COUNTS.findall(output))
    failures = tuple(Failure(check, detail) for check, detail in _FAILURE.findall(output))
    timed = frozenset(_TIMED.findall(output))
    if status == _SKIPPED and not failures:
        return Outcome(case, "skipped", 0, ())
    if status == 0 and not failures and held > 0:
        return Outcome(case, "passed", held, (), timed)
    if not failures:
        last = errors.strip().splitlines()[-1:] or ["nothing was checked"]
        failures = (Failure("runs to its end", f"status {status}: {last[0]}"),)
    return Outcome(case, "failed", held, failures, timed)


def show(outcomes: Sequence[Outcome]) -> None:
    """Print a line for each group, then the first occurrence of each failure."""
    console = _terminal.console()
    table = Table("feature", "what", box=None, pad_edge=False)
    for title in ("passed", "failed", "skipped", "checks"):
        table.add_column(title, justify="right")
    for group, ended in itertools.groupby(outcomes, lambda outcome: outcome.case.group):
        runs = list(ended)
        counts = [sum(run.status == status for run in runs) for status in ("passed", "failed", "skipped")]
        style = "red" if counts[1] else None
        checks = sum(run.checks for run in runs)
        table.add_row(group.name, group.about, *map(str, counts), f"{checks:,}", style=style)
    console.print(table)
    for (group_name, check), first, times in _failing(outcomes):
        where = first[0].what + (f" and {times - 1} more" if times > 1 else "")
        console.print(f"\n{group_name}: {check}: {where}\n    {first[1]}", markup=False, soft_wrap=True)
    timed = {(outcome.case.group.name, check): None for outcome in outcomes for check in sorted(outcome.timed)}
    if timed:
        console.print("\nLeft out, because they are about simulated time:")
    for group_name, check in timed:
        console.print(f"    {group_name}: {check}", markup=False, soft_wrap=True)
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    checks = sum(outcome.checks for outcome in outcomes)
    console.print(f"\n{len(outcomes)} runs, {failed} failed; {checks:,} checks passed")


def _failing(outcomes: Iterable[Outcome]) -> list[tuple[tuple[str, str], tuple[Case, str], int]]:
    """Return every failing check once: group and name, the first run with its detail, number of runs."""
    seen: dict[tuple[str, str], list[tuple[Case, str]]] = {}
    for outcome in outcomes:
        details = {failure.check: failure.detail for failure in reversed(outcome.failures)}
        for check, detail in details.items():
            seen.setdefault((outcome.case.group.name, check), []).append((outcome.case, detail))
    return [(key, places[0], len(places)) for key, places in seen.items()]


def report(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return every run as JSON."""
    return [
        {
            "group": outcome.case.group.name,
            "nic": outcome.case.nic,
            "interface": [outcome.case.matching, outcome.case.addressing],
            "ranks": outcome.case.ranks,
            "status": outcome.status,
            "checks": outcome.checks,
            "failures": [{"check": failure.check, "detail": failure.detail} for failure in outcome.failures],
            **({"timed": sorted(outcome.timed)} if outcome.timed else {}),
        }
        for outcome in outcomes
    ]
