# SPDX-License-Identifier: Apache-2.0
"""MPICH's test suite, or one of its form: the lists of programs, and the rules of its script `runtests`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from spinkit._errors import SpinkitError
from spinkit.suites._mpi_cases import Case, Ended, Outcome, Suite

_MEMORY = "memory"
"""Lock of programs that need much memory."""
_IGNORED = frozenset({"mpiversion", "mpix", "strict", "init"})
"""Keys that select the MPIs of a test."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_NO_ERRORS = re.compile(r"\s*No [Ee]rrors\s*")
_TEST_SKIPPED = re.compile(r"\s*Test Skipped\s*")
_WARNING = re.compile(r"MPICH: |WARNING: |(Abort.*)?application called MPI_Abort")
_HARMLESS = re.compile(r".*(FORTRAN STOP|requesting checkpoint|checkpoint completed)\s*")
_SPAWNS = re.compile(rb"\0(P?MPI_Comm_spawn(_multiple)?|mpi_comm_spawn(_multiple)?_)\0")
"""Name of a function that starts processes, in a program's table of symbols."""
_REFUSED = "cannot spawn processes"
"""Part of spinrun's message about a call of such a function."""


@dataclass(frozen=True)
class _Rule:
    """One judgement of `runtests`: which parts of a run count."""

    fails: bool = False
    """The exit status must not be 0."""
    says: bool = True
    """The program must print "No Errors", or "Test Skipped"."""
    clean: bool = True
    """Nothing else may be printed."""
    warnings: bool = False
    """Warnings of MPICH may be printed nevertheless."""


_RULES = {
    "": _Rule(),
    "TestAllowWarnings": _Rule(warnings=True),
    "TestStatusNoErrors": _Rule(fails=True, warnings=True),
    "TestStatus": _Rule(fails=True, says=False, clean=False),
    "TestErrFatal": _Rule(fails=True, says=False, clean=False),
    "TestBench": _Rule(says=False, clean=False),
}
"""Judgements by their names in `resultTest=`."""


def read(folder: Path, nics: Sequence[str], timeout_s: int) -> Suite | None:
    """List the runs of every program, if the folder has a list."""
    if not (folder / "testlist").is_file():
        return None
    cases = tuple(replace(case, nic=nic) for nic in nics for case in _listed(folder, Path(), timeout_s))
    return Suite(cases, judge, "MPICH's")


def _listed(top: Path, below: Path, timeout_s: int) -> Iterable[Case]:
    """Read a list: a line names a program, its ranks and options, or a folder with a further list."""
    file = top / below / "testlist"
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        name, *words = line.partition("#")[0].split() or [""]
        # A target to make before the programs.
        if not name or name.startswith("!"):
            continue
        folder = top / below / name
        if folder.is_dir():
            if (folder / "testlist").is_file():
                yield from _listed(top, below / name, timeout_s)
            else:
                yield Case(str(below / name), folder, (), 1, "", timeout_s, without="its folder has no testlist")
            continue
        if not words or not words[0].isdecimal() or int(words[0]) == 0:
            raise SpinkitError(f"{file}, line {number}: a program needs its number of ranks: {line.strip()}")
        yield _program(folder, str(below / name), int(words[0]), words[1:], timeout_s)


def _program(program: Path, name: str, ranks: int, words: Sequence[str], timeout_s: int) -> Case:
    arguments, environment = [], []
    rule = lock = without = ""
    own_limit = 0
    for word in words:
        key, _, value = word.partition("=")
        if key == "arg":
            arguments.append(value)
        elif key == "env":
            environment.append(value)
        elif key == "mpiexecarg":
            without = f"it needs the option {value} of MPICH's mpiexec, which spinrun does not have"
        elif key == "timeLimit" and value.isdecimal():
            own_limit = int(value)
        elif key == "resultTest" and value in _RULES:
            rule = value
        elif key == "lock":
            lock = value
        elif key == "mem" and _NUMBER.fullmatch(value):
            lock = lock or _MEMORY
            if float(value) > memory_gb():
                without = f"it needs {value} GB of memory, this computer has {memory_gb():.1f}"
        elif key == "hasgpu":
            without = f"it needs a GPU ({value})"
        elif key == "xfail":
            without = f"the list expects it to fail ({value})"
        elif key not in _IGNORED:
            without = f"{word} in its list is not known here"
    if not without and not program.is_file():
        without = "it is not there: compile the suite with the MPI's mpicc first"
    # A time-out counts as a failure, so a program that must fail may wait for its limit.
    limit = own_limit if own_limit and _RULES[rule].fails else max(timeout_s, own_limit)
    return Case(
        " ".join((name, *arguments)),
        program.parent,
        (str(program.absolute()), *arguments),
        ranks,
        "",
        limit,
        tuple(environment),
        rule,
        lock,
        without,
    )


def memory_gb() -> float:
    """Return the memory of this computer, or that of the container, in GB as the lists count them."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):  # no such limit, or "max"
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min(limits) / (1 << 30)


def judge(case: Case, ended: Ended) -> Outcome:
    """Judge a run as `runtests` does; a test that was not made is never one that passed."""
    lines = ended.printed
    no_errors = [line for line in lines if _NO_ERRORS.fullmatch(line)]
    skips = [line for line in lines if _TEST_SKIPPED.fullmatch(line)]
    rule = _RULES[case.rule]
    if problem := _problem(rule, ended, lines, bool(no_errors), bool(skips)):
        return Outcome(case, "failed", 1, reason=problem)
    if skips:
        return Outcome(case, "skipped", reason="it says Test Skipped", skips_itself=True, warnings=ended.warnings)
    if not rule.fails and not ended.is_native and _avoids_spawning(case, ended):
        reason = "it starts processes, which spinrun refuses, and ended without a try"
        return Outcome(case, "skipped", reason=reason, skips_itself=True, warnings=ended.warnings)
    return Outcome(case, "passed", 1, warnings=ended.warnings)


def _problem(rule: _Rule, ended: Ended, lines: Sequence[str], no_errors: bool, skips: bool) -> str:
    """Return the first reason for which a run has failed, or nothing."""
    says_enough = no_errors or (skips and not rule.fails)
    if rule.says and not says_enough:
        return ended.reason
    if rule.fails and ended.status == 0:
        return "status 0: it has to end with another one"
    if not rule.fails and ended.status != 0:
        return ended.reason
    if rule.clean:
        seen = False
        for line in lines:
            first = bool(_NO_ERRORS.fullmatch(line)) and not seen
            seen = seen or first
            is_warning = bool(_WARNING.match(line))
            if is_warning and rule.warnings:
                continue
            if is_warning or not (first or _TEST_SKIPPED.fullmatch(line) or _HARMLESS.fullmatch(line)):
                return f"status {ended.status}: unexpected output: {line.strip() or 'an empty line'}"
    return ""


def _avoids_spawning(case: Case, ended: Ended) -> bool:
    """Return whether a program that starts processes passed without a call that does.

    Those of MPICH's suite do when MPI_UNIVERSE_SIZE leaves no room, and print "No Errors".
    """
    program = Path(case.command[0])
    return _REFUSED not in ended.errors and bool(_SPAWNS.search(program.read_bytes()))
