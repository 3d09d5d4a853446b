# SPDX-License-Identifier: Apache-2.0
"""`spinkit mpi-tests` judges runs by the rules of MPICH's `runtests`; programs and launchers are shell scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.cli import main
from spinkit.suites import _mpi_suites, _mpich_suite
from spinkit.suites._mpi_cases import Outcome, Suite

Judge = Callable[..., Outcome]
# It executes the program as its only rank, after all options, each of which has a value.
LAUNCHER = '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift 2; done\nexec "$@"\n'


def script(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o755)
    return file


def suite_of(folder: Path, programs: dict[str, str], options: str = "") -> Suite:
    """Write a suite of shell scripts, and read it."""
    for name, body in programs.items():
        script(folder / name, f"#!/bin/sh\n{body}\n")
    (folder / "testlist").write_text("".join(f"{name} 1 {options}\n" for name in programs))
    return _mpi_suites.read(folder, (), ("spin",), Path(sys.executable), 60, ())


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    spinrun = script(tmp_path / "spinrun", LAUNCHER)

    def one(body: str, options: str = "") -> Outcome:
        [outcome] = _mpi_suites.run(suite_of(tmp_path, {"program": body}, options), spinrun, 1)
        return outcome

    return one


GOOD = "echo ' No Errors'"
WARNS = "echo 'WARNING: a leak'"


def test_output_beside_no_errors_is_a_failure(judge: Judge) -> None:
    assert judge(GOOD).status == "passed"
    assert judge("echo; echo No errors").reason == "status 0: unexpected output: an empty line"
    assert judge(f"echo 'value is 3'; {GOOD}").reason == "status 0: unexpected output: value is 3"
    assert judge(f"{GOOD}; echo 'late' >&2").reason == "status 0: unexpected output: late"
    assert judge(f"{GOOD}; {GOOD}").reason == "status 0: unexpected output: No Errors"
    assert judge(f"{GOOD}; exit 3").reason == "status 3: No Errors"
    assert judge("echo ' Found 1 errors'").reason == "status 0: Found 1 errors"
    assert judge("true").reason == "status 0: nothing was printed"
    assert judge(f"{GOOD}; echo 'FORTRAN STOP'").status == "passed"


def test_spinruns_own_messages_are_no_output_of_the_program(judge: Judge) -> None:
    outcome = judge(f"{GOOD}; echo 'spinrun: making the provider' >&2; echo 'spinrun: warning: 2 messages' >&2")
    assert (outcome.status, outcome.warnings) == ("passed", ("2 messages",))


def test_a_program_that_says_test_skipped_is_a_skip(judge: Judge) -> None:
    for body in ("echo 'Test Skipped'", f"echo ' Test Skipped '; {GOOD}"):
        outcome = judge(body)
        assert (outcome.status, outcome.skips_itself, outcome.tests) == ("skipped", True, 0)
        assert outcome.reason == "it says Test Skipped"
    assert judge("echo 'Test Skipped'; exit 1").status == "failed"
    assert judge("echo 'Test Skipped'; echo more").status == "failed"


@pytest.mark.parametrize(
    ("rule", "body", "status"),
    [
        ("TestAllowWarnings", f"{WARNS}; {GOOD}", "passed"),
        ("TestAllowWarnings", f"echo other; {GOOD}", "failed"),
        ("TestAllowWarnings", f"{WARNS}", "failed"),
        ("TestAllowWarnings", f"{WARNS}; {GOOD}; exit 1", "failed"),
        ("TestStatus", "echo anything; exit 2", "passed"),
        ("TestStatus", GOOD, "failed"),
        ("TestErrFatal", "kill -ABRT $$", "passed"),
        ("TestErrFatal", GOOD, "failed"),
        ("TestStatusNoErrors", f"{GOOD}; echo 'application called MPI_Abort(3)'; exit 3", "passed"),
        ("TestStatusNoErrors", GOOD, "failed"),
        ("TestStatusNoErrors", "exit 3", "failed"),
        ("TestStatusNoErrors", f"echo other; {GOOD}; exit 3", "failed"),
        ("TestStatusNoErrors", "echo 'Test Skipped'; exit 3", "failed"),
        ("TestBench", "echo '8 bytes: 0.3 us'", "passed"),
        ("TestBench", "echo ' Found 1 errors'; exit 1", "failed"),
    ],
)
def test_each_judgement_of_a_list(judge: Judge, rule: str, body: str, status: str) -> None:
    assert judge(body, f"resultTest={rule}").status == status


def test_a_warning_of_mpich_is_a_failure_unless_its_list_allows_it(judge: Judge) -> None:
    assert judge(f"{WARNS}; {GOOD}").reason == "status 0: unexpected output: WARNING: a leak"
    has_to_fail = judge(GOOD, "resultTest=TestStatus")
    assert has_to_fail.reason == "status 0: it has to end with another one"


def test_a_test_that_needs_more_than_there_is_does_not_run(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mpich_suite, "memory_gb", lambda: 7.5)
    needs = judge("touch ran; " + GOOD, "mem=8")
    assert (needs.status, needs.skips_itself) == ("skipped", False)
    assert needs.reason == "it needs 8 GB of memory, this computer has 7.5"
    assert not (needs.case.folder / "ran").exists()
    assert judge(GOOD, "mem=7.6").reason == "it needs 7.6 GB of memory, this computer has 7.5"
    assert [judge(GOOD, f"mem={size}").status for size in ("7", "7.4")] == ["passed", "passed"]
    assert judge(GOOD, "mem=much").reason == "mem=much in its list is not known here"
    assert judge(GOOD, "hasgpu=any").reason == "it needs a GPU (any)"
    option = judge(GOOD, "mpiexecarg=-disable-auto-cleanup")
    assert option.status == "skipped"
    assert option.reason == "it needs the option -disable-auto-cleanup of MPICH's mpiexec, which spinrun does not have"
    assert judge(GOOD, "resultTest=TestOther").reason == "resultTest=TestOther in its list is not known here"


def test_the_memory_of_this_computer_is_known() -> None:
    assert 0.1 < _mpich_suite.memory_gb() < 1e6


def test_a_program_that_would_start_processes_and_ends_without_a_try_skips_itself(judge: Judge) -> None:
    symbol = "exit 0\n\0MPI_Comm_spawn\0"
    outcome = judge(f"{GOOD}; {symbol}")
    assert (outcome.status, outcome.skips_itself) == ("skipped", True)
    assert outcome.reason == "it starts processes, which spinrun refuses, and ended without a try"
    refused = "echo 'spinrun: rank 0: it cannot spawn processes: a simulated job' >&2"
    assert judge(f"{refused}; {GOOD}; {symbol}").status == "passed"


def test_lines_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "testlist").write_text(
        "!util:all\nbelow/one 2\ntwo 3 timeLimit=10 resultTest=TestErrFatal\nthree 3 timeLimit=10\n"
        "four 3 timeLimit=90 lock=x\n"
    )
    suite = _mpi_suites.read(tmp_path, (), ("spin",), Path(sys.executable), 60, ())
    one, two, three, four = suite.cases
    assert (one.name, one.ranks, one.folder) == ("below/one", 2, tmp_path / "below")
    # Reaching its limit is how a program that has to fail may end.
    assert (two.timeout_s, three.timeout_s, four.timeout_s, four.lock) == (10, 60, 90, "x")


def test_tests_can_be_left_out(tmp_path: Path) -> None:
    suite_of(tmp_path, {"short": GOOD, "short_too": GOOD, "long": GOOD})
    suite = _mpi_suites.read(tmp_path, (), ("spin",), Path(sys.executable), 60, (), ("long", "too"))
    assert [(case.name, case.without) for case in suite.cases] == [
        ("short", ""),
        ("short_too", "--skip too"),
        ("long", "--skip long"),
    ]
    with pytest.raises(SpinkitError, match="no test has 'longer' in its name"):
        _mpi_suites.read(tmp_path, (), ("spin",), Path(sys.executable), 60, (), ("longer",))


def test_tests_with_a_lock_do_not_run_at_the_same_time(tmp_path: Path) -> None:
    spinrun = script(tmp_path / "spinrun", LAUNCHER)
    alone = f"mkdir busy || exit 1; sleep 0.05; rmdir busy; {GOOD}"
    suite = suite_of(tmp_path, {f"program{number}": alone for number in range(4)}, "lock=file")
    assert {outcome.status for outcome in _mpi_suites.run(suite, spinrun, 4)} == {"passed"}


def test_a_native_run_tells_whose_failure_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spinrun = script(tmp_path / "spinrun", f'{LAUNCHER.rpartition("exec")[0]}SIMULATED=1 exec "$@"\n')
    mpiexec = script(tmp_path / "mpiexec", LAUNCHER)
    suite_of(
        tmp_path,
        {
            "good": f"echo once >> runs; {GOOD}",
            "bad": "echo ' Found 1 errors'",
            "ours": f"[ $SIMULATED ] || {GOOD}",
            "skips": f"[ $SIMULATED ] && echo 'Test Skipped' || {GOOD}",
        },
    )
    monkeypatch.setattr(_paths, "command", lambda _: spinrun)
    out = tmp_path / "out.json"
    done = CliRunner().invoke(main, ["mpi-tests", str(tmp_path), "--native", str(mpiexec), "--json", str(out)])
    assert done.exit_code == 1
    told = {run["name"]: (run["status"], run["whose"], run["native"]) for run in json.loads(out.read_text())}
    assert told == {
        "good": ("passed", None, None),
        "bad": ("failed", "MPICH's", "failed"),
        "ours": ("failed", "ours", "passed"),
        "skips": ("skipped", "ours", "passed"),
    }
    # A passing test is not run again.
    assert (tmp_path / "runs").read_text() == "once\n"
    wanted = (
        "failed: bad on spin, 1 rank: status 0: Found 1 errors [MPICH's; natively failed: status 0: Found 1 errors]"
    )
    assert wanted in done.output
    assert "spin, 1 rank: 1 passed, 2 failed, 1 skipped; 1 tests in what passed; 1 of the skips are by" in done.output


def test_the_report_is_written_as_the_run_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.json"
    spinrun = script(tmp_path / "spinrun", LAUNCHER)
    suite_of(tmp_path, {"first": GOOD, "second": f"cp {out} seen; {GOOD}"})
    monkeypatch.setattr(_paths, "command", lambda _: spinrun)
    done = CliRunner().invoke(main, ["mpi-tests", str(tmp_path), "--jobs", "1", "--json", str(out)])
    assert done.exit_code == 0
    assert [run["name"] for run in json.loads((tmp_path / "seen").read_text())] == ["first"]


def test_a_stream_gets_the_outcomes_of_an_interrupted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    spinrun = script(tmp_path / "spinrun", LAUNCHER)
    suite_of(tmp_path, {"first": GOOD, "second": "echo 'spinrun: interrupted by signal 2' >&2"})
    monkeypatch.setattr(_paths, "command", lambda _: spinrun)
    done = CliRunner().invoke(main, ["mpi-tests", str(tmp_path), "--jobs", "1", "--json", "-"])
    assert done.exit_code != 0
    [first] = json.loads(capfd.readouterr().out)
    assert (first["name"], first["status"]) == ("first", "passed")
