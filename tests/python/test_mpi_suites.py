# SPDX-License-Identifier: Apache-2.0
"""`spinkit mpi-tests` runs third-party suites: the programs it finds, and the interpretation of outcomes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spinkit._errors import SpinkitError
from spinkit.suites import _mpi_suites

MPICC = Path(sys.prefix) / "mpi" / "mpich" / "bin" / "mpicc"
SUM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, ranks, sum = 0, more = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        more += getenv("MORE") ? atoi(getenv("MORE")) : 0;
        if (sum + more == ranks * (ranks - 1) / 2) printf(" No Errors\\n"); else printf(" Found 1 errors\\n");
    }
    MPI_Finalize();
    return 0;
}
"""
# Behaviour of mpi4py's test/main.py seen by the runner: one module is chosen, and each rank reports its outcome.
MAIN = r"""
import re, sys, unittest
chosen = sys.argv[sys.argv.index("-i") + 1]
[name] = [name for name in ("test_bad", "test_crash", "test_good", "test_none") if re.search(chosen, name)]
unittest.main(module=name, argv=["main.py", "-v"])
"""
MODULES = {
    "test_good": "def testOne(self): self.assertEqual(1, 1)\n    @unittest.skip('no')\n    def testTwo(self): pass",
    "test_bad": "def testOne(self): self.assertEqual(1, 2)\n    def testTwo(self): pass",
    "test_none": "@unittest.skip('no')\n    def testOne(self): pass",
    "test_crash": "def testOne(self): __import__('os').kill(__import__('os').getpid(), 11)",
}


def mpi_tests(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spinkit", "mpi-tests", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_suite_of_the_form_of_mpichs(tmp_path: Path) -> None:
    inner = tmp_path / "coll"
    inner.mkdir()
    (tmp_path / "testlist").write_text("# folders\ncoll\n")
    (inner / "sum.c").write_text(SUM)
    subprocess.run([MPICC, inner / "sum.c", "-o", inner / "sum"], check=True)
    (inner / "testlist").write_text(
        "sum 4 mpiversion=3.0 timeLimit=100\nsum 2 arg=1 # wrong\nsum 2 arg=1 env=MORE=-1\n"
        "absent 2\nsum 2 xfail=ticket3\nsum 2 odd=1\n"
    )
    done = mpi_tests(tmp_path, "--nic", "rdma", "--json", tmp_path / "out.json")
    assert done.returncode == 1
    out = json.loads((tmp_path / "out.json").read_text())
    found = [(run["name"], run["ranks"], run["status"], run["reason"]) for run in out]
    assert found == [
        ("coll/sum", 4, "passed", ""),
        ("coll/sum 1", 2, "failed", "status 0: Found 1 errors"),
        ("coll/sum 1", 2, "passed", ""),
        ("coll/absent", 2, "skipped", "it is not there: compile the suite with the MPI's mpicc first"),
        ("coll/sum", 2, "skipped", "the list expects it to fail (ticket3)"),
        ("coll/sum", 2, "skipped", "odd=1 in its list is not known here"),
    ]
    assert "failed: coll/sum 1 on rdma, 2 ranks: status 0: Found 1 errors" in done.stdout
    assert "rdma, 2 ranks: 1 passed, 1 failed, 3 skipped; 1 tests in what passed" in done.stdout
    done = mpi_tests(tmp_path, "--only", "nothing")
    assert (done.returncode, done.stderr.strip().endswith("no test has 'nothing' in its name")) == (1, True)


def test_a_suite_of_the_form_of_mpi4pys(tmp_path: Path) -> None:
    folder = tmp_path / "test"
    folder.mkdir()
    (folder / "main.py").write_text(MAIN)
    for name, body in MODULES.items():
        (folder / f"{name}.py").write_text(f"import unittest\nclass Test(unittest.TestCase):\n    {body}\n")
    done = mpi_tests(tmp_path, "-n", 2, "--json", tmp_path / "out.json")
    assert done.returncode == 1
    out = {run["name"]: run for run in json.loads((tmp_path / "out.json").read_text())}
    assert {name: run["status"] for name, run in out.items()} == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_none": "skipped",
        "test_crash": "failed",
    }
    assert (out["test_good"]["tests"], out["test_good"]["skipped"]) == (2, 1)
    assert out["test_bad"]["reason"] == "test_bad.Test.testOne"
    assert "rank 0 was ended by signal 11 (SIGSEGV)" in out["test_crash"]["reason"]
    assert "spin, 2 ranks: 1 passed, 2 failed, 1 skipped; 1 tests in what passed" in done.stdout
    done = mpi_tests(tmp_path, "-n", 1, "-n", 2, "--only", "good")
    assert (done.returncode, done.stdout.count("1 passed, 0 failed, 0 skipped")) == (0, 2)


def test_what_has_ended_is_kept_when_the_run_is_interrupted(tmp_path: Path) -> None:
    folder, out = tmp_path / "test", tmp_path / "out.json"
    folder.mkdir()
    (folder / "main.py").write_text(MAIN.replace('"test_bad"', '"test_waits"'))
    (folder / "test_good.py").write_text(
        f"import unittest\nclass Test(unittest.TestCase):\n    {MODULES['test_good']}\n"
    )
    (folder / "test_waits.py").write_text("import time\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "spinkit", "mpi-tests", folder, "-n", "1", "--jobs", "1", "--json", out]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        give_up = time.monotonic() + 60
        while not out.exists() and run.poll() is None and time.monotonic() < give_up:
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) != 0
    assert [(one["name"], one["status"], one["tests"]) for one in json.loads(out.read_text())] == [
        ("test_good", "passed", 2)
    ]


def test_a_run_that_hangs_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_mpi_suites, "_GRACE_S", 2)
    spinrun = tmp_path / "spinrun"
    spinrun.write_text('#!/bin/sh\ncase "$*" in */hangs) exec sleep 600;; esac\necho " No errors"\n')
    spinrun.chmod(0o755)
    for name in ("hangs", "ends"):
        (tmp_path / name).touch()
    (tmp_path / "testlist").write_text("hangs 2\nends 2\n")
    suite = _mpi_suites.read(tmp_path, (), ("spin",), Path(sys.executable), 0, ())
    hangs, ends = _mpi_suites.run(suite, spinrun, 1)
    assert (hangs.status, hangs.reason) == ("failed", f"{spinrun} did not end within 2 s")
    assert ends.status == "passed"


def test_a_stream_gets_the_outcomes_once(tmp_path: Path) -> None:
    (tmp_path / "testlist").write_text("absent 1\nabsent 2\n")
    done = mpi_tests(tmp_path, "--json", "-")
    assert [one["ranks"] for one in json.loads(done.stdout[done.stdout.index("[\n") :])] == [1, 2]


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    done = mpi_tests(tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path}: neither mpi4py's source (test/main.py) nor tests with a list (testlist)" in done.stderr
    (tmp_path / "testlist").write_text("sum\n")
    with pytest.raises(SpinkitError, match="testlist, line 1: a program needs its number of ranks: sum"):
        _mpi_suites.read(tmp_path, (), ("spin",), Path(sys.executable), 60, ())
