# SPDX-License-Identifier: Apache-2.0
"""The test suite in mpi4py's source package: each of its modules is a job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from spinkit.suites._mpi_cases import Case, Ended, Outcome, Suite

_RAN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)
_SKIPPED = re.compile(r"^OK \(skipped=(\d+)", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.MULTILINE)


def read(folder: Path, ranks: Sequence[int], nics: Sequence[str], python: Path, timeout_s: int) -> Suite | None:
    """List the runs of every module, if the folder has this suite."""
    tests = next((place for place in (folder / "test", folder) if (place / "main.py").is_file()), None)
    if tests is None:
        return None
    modules = sorted(path.stem for path in tests.glob("test_*.py"))
    cases = tuple(
        Case(name, tests, (str(python.absolute()), "main.py", "-v", "-i", rf"^{name}\b"), number, nic, timeout_s)
        for nic in nics
        for number in ranks or (1, 2, 3, 4)
        for name in modules
    )
    return Suite(cases, judge, "the MPI's")


def judge(case: Case, ended: Ended) -> Outcome:
    """Judge the output of unittest on each rank."""
    counts = [int(count) for count in _RAN.findall(ended.errors)]
    tests, skipped = max(counts, default=0), max(map(int, _SKIPPED.findall(ended.errors)), default=0)
    found = _FAILED.findall(ended.errors)
    names = {where if where.endswith(f".{name}") else f"{where}.{name}" for name, where in found}
    if ended.status != 0 or len(counts) != case.ranks or names:
        return Outcome(case, "failed", tests, skipped, ", ".join(sorted(names)) or ended.reason)
    if tests == skipped:
        return Outcome(case, "skipped", tests, skipped, "none of its tests applies", skips_itself=True)
    return Outcome(case, "passed", tests, skipped)
