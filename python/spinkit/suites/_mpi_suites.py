# SPDX-License-Identifier: Apache-2.0
"""Test suites of others for MPI, run under spinrun: that of mpi4py's source package, and MPICH's own."""

from __future__ import annotations

import os
import re
import signal
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from spinkit._errors import EndingError, SpinkitError
from spinkit.common import _terminal
from spinkit.common._processes import Processes
from spinkit.suites import _mpi4py_suite, _mpich_suite
from spinkit.suites._mpi_cases import Case, Ended, Outcome, Suite

_GRACE_S = 60
"""Additional time for spinrun to end after its own --timeout."""
_INTERRUPTED = re.compile(r"^spinrun: interrupted by signal", re.MULTILINE)
"""Message of spinrun after an interrupt, which means nothing for the test."""


def read(
    folder: Path,
    ranks: Sequence[int],
    nics: Sequence[str],
    python: Path,
    timeout_s: int,
    only: Sequence[str],
    skip: Sequence[str] = (),
) -> Suite:
    """List the runs of a suite.

    `ranks` is for mpi4py's suite; if it is empty, that runs on 1 to 4. MPICH's lists have the number of ranks of each
    program. Tests with a text of `skip` in their name stay in the list, as skipped.
    """
    suite = _mpi4py_suite.read(folder, ranks, nics, python, timeout_s) or _mpich_suite.read(folder, nics, timeout_s)
    if suite is None:
        raise SpinkitError(f"{folder}: neither mpi4py's source (test/main.py) nor tests with a list (testlist)")
    unknown = [name for name in (*only, *skip) if not any(name in case.name for case in suite.cases)]
    if unknown:
        raise SpinkitError(f"{folder}: no test has {unknown[0]!r} in its name")
    chosen = tuple(case for case in suite.cases if not only or any(name in case.name for name in only))
    if not chosen:
        raise SpinkitError(f"{folder}: no tests")
    return replace(suite, cases=tuple(_left_out(case, skip) for case in chosen))


def _left_out(case: Case, skip: Sequence[str]) -> Case:
    name = next((name for name in skip if name in case.name), None)
    return case if name is None else replace(case, without=f"--skip {name}")


def run(
    suite: Suite,
    spinrun: Path,
    jobs: int | None = None,
    keep: Callable[[list[Outcome]], None] | None = None,
    mpiexec: Path | None = None,
) -> list[Outcome]:
    """Run everything, some jobs at a time; outcomes are in the order of the cases.

    `mpiexec` is the MPI's own: it also runs each test that does not pass under spinrun.

    `keep` gets the outcomes so far, in that order, after the end of each job, so that a run that is interrupted loses
    nothing.
    """
    processes = Processes()
    ended: dict[int, Outcome] = {}
    one_at_a_time = Lock()
    locks: defaultdict[str, Lock] = defaultdict(Lock)

    def one(number: int, case: Case) -> None:
        with locks[case.lock] if case.lock else nullcontext():
            outcome = _run(case, suite, processes, spinrun, mpiexec)
        with one_at_a_time:
            ended[number] = outcome
            if keep is not None:
                keep([ended[number] for number in sorted(ended)])
        bar.update(task, advance=1, description=case.what)

    with _terminal.progress_bar() as bar, ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        task = bar.add_task("MPI tests", total=len(suite.cases))
        try:
            list(pool.map(one, *zip(*enumerate(suite.cases), strict=True)))
            return [ended[number] for number in range(len(suite.cases))]
        except BaseException:
            processes.interrupt()
            pool.shutdown(cancel_futures=True)
            raise


def _run(case: Case, suite: Suite, processes: Processes, spinrun: Path, mpiexec: Path | None) -> Outcome:
    if case.without:
        return Outcome(case, "skipped", reason=case.without)
    outcome = _simulate(case, suite, processes, spinrun)
    if mpiexec is None or not (outcome.status == "failed" or outcome.skips_itself):
        return outcome
    native = _run_natively(case, suite, processes, mpiexec)
    return replace(outcome, native=native.status, native_reason=native.reason)


def _simulate(case: Case, suite: Suite, processes: Processes, spinrun: Path) -> Outcome:
    options = ["-n", str(case.ranks), "--nic", case.nic, "--timeout", str(case.timeout_s)]
    variables = [word for variable in case.environment for word in ("-x", variable)]
    command = [str(spinrun), *options, *variables, *case.command]
    try:
        ended = Ended(*processes.execute(command, case.timeout_s + _GRACE_S, case.folder))
    except EndingError:
        raise
    except SpinkitError as error:  # one that hangs costs no other
        return Outcome(case, "failed", reason=str(error))
    if ended.status == -signal.SIGINT or _INTERRUPTED.search(ended.errors):
        raise EndingError("interrupted")
    return suite.judge(case, ended)


def _run_natively(case: Case, suite: Suite, processes: Processes, mpiexec: Path) -> Outcome:
    # Hydra's and Open MPI's mpiexec end their ranks when this time is over.
    limit = [f"MPIEXEC_TIMEOUT={case.timeout_s}"]
    command = ["env", *limit, *case.environment, str(mpiexec.absolute()), "-n", str(case.ranks), *case.command]
    try:
        ended = Ended(*processes.execute(command, case.timeout_s + _GRACE_S, case.folder), is_native=True)
    except EndingError:
        raise
    except SpinkitError as error:
        return Outcome(case, "failed", reason=str(error))
    if ended.status == -signal.SIGINT:
        raise EndingError("interrupted")
    return suite.judge(case, ended)


def whose(outcome: Outcome, suite: Suite) -> str:
    """Return the culprit of a failed test, judged by a native run."""
    if outcome.native is None:
        return ""
    return "ours" if outcome.native == "passed" else suite.owner


def show(suite: Suite, outcomes: Sequence[Outcome]) -> None:
    """Print skips and failures with their reasons, then the numbers for each card and number of ranks."""
    console = _terminal.console()
    for status in ("skipped", "failed"):
        for outcome in outcomes:
            if outcome.status == status:
                line = f"{status}: {outcome.case.what}: {outcome.reason}{_beside(outcome, suite)}"
                console.print(line, markup=False, soft_wrap=True)
    for outcome in outcomes:
        for warning in outcome.warnings:
            console.print(f"warning: {outcome.case.what}: {warning}", markup=False, soft_wrap=True)
    groups = dict.fromkeys((outcome.case.nic, outcome.case.ranks) for outcome in outcomes)
    for nic, ranks in groups:
        here = [outcome for outcome in outcomes if (outcome.case.nic, outcome.case.ranks) == (nic, ranks)]
        counts = {
            status: sum(outcome.status == status for outcome in here) for status in ("passed", "failed", "skipped")
        }
        tests = sum(outcome.tests - outcome.skipped for outcome in here if outcome.status == "passed")
        numbers = ", ".join(f"{count} {status}" for status, count in counts.items())
        noun = "rank" if ranks == 1 else "ranks"
        line = f"{nic}, {ranks} {noun}: {numbers}; {tests:,} tests in what passed"
        if themselves := sum(outcome.skips_itself for outcome in here):
            line += f"; {themselves} of the skips are by the tests themselves"
        console.print(line, soft_wrap=True)


def _beside(outcome: Outcome, suite: Suite) -> str:
    if outcome.native is None:
        return ""
    reason = f": {outcome.native_reason}" if outcome.native_reason else ""
    return f" [{whose(outcome, suite)}; natively {outcome.native}{reason}]"


def report(suite: Suite, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return every run as JSON."""
    return [
        {
            "name": outcome.case.name,
            "nic": outcome.case.nic,
            "ranks": outcome.case.ranks,
            "status": outcome.status,
            "tests": outcome.tests,
            "skipped": outcome.skipped,
            "skips_itself": outcome.skips_itself,
            "reason": outcome.reason,
            "warnings": list(outcome.warnings),
            "native": outcome.native,
            "native_reason": outcome.native_reason,
            "whose": whose(outcome, suite) or None,
        }
        for outcome in outcomes
    ]
