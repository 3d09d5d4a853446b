# SPDX-License-Identifier: Apache-2.0
"""measure.py of the experiment mpi-programs: values taken from LAMMPS and HPCC, and refusals.

Scripts that print the same text stand in for both, since neither is part of spinkit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPERIMENT = Path(__file__).resolve().parents[2] / "experiments" / "mpi" / "programs"
# Rank 0 prints; a card may be set to compute another value.
LMP = """#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
energy=-4.6222968
[ "$SPIN_NIC" = "$OTHER" ] && energy=-4.6222969
echo "   Step          Temp          E_pair         E_mol          TotEng         Press     "
echo "         0   1.44          -6.7733681      0             -4.6134999     -5.0197435    "
echo "       100   0.76249116    -5.7659637      0             $energy     0.16422962   "
echo "Loop time of 0.0020$PMI_SIZE on $PMI_SIZE procs for 100 steps with 16384 atoms"
"""
HPCC = """#!/bin/sh
[ "$PMI_RANK" = 0 ] || exit 0
[ -f hpccinf.txt ] || exit 3
cat > hpccoutf.txt <<END
    5 tests completed and passed residual checks.
    ${FAILED:-0} tests completed and failed residual checks.
              0 tests completed and failed residual checks,
Success=1
HPL_time=0.00037
HPL_RnormI=2.9643e-14
HPL_Xnorm1=112.79
PTRANS_residual=0
MPIRandomAccess_LCG_Errors=0
MPIRandomAccess_Errors=${ERRORS:-0}
MPIRandomAccess_time=0.0013$PMI_SIZE
MPIRandomAccess_ExeUpdates=131072
MPIFFT_maxErr=9.5505e-16
MPIFFT_time0=0
MPIFFT_time1=3e-06
MPIFFT_time2=0
MPIFFT_time3=4e-06
MPIFFT_time4=0
MPIFFT_time5=2e-06
MPIFFT_time6=0
AvgPingPongLatency_usec=0.331351
RandomlyOrderedRingLatency_usec=0.2876$PMI_SIZE
AvgPingPongBandwidth_GBytes=40
RandomlyOrderedRingBandwidth_GBytes=50
END
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, text in (("lmp", LMP), ("hpcc", HPCC)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def measure(programs: Path, *options: object, **environment: str) -> subprocess.CompletedProcess[str]:
    there = {"--lmp": programs / "lmp", "--hpcc": programs / "hpcc", "--out": programs / "out.json"}
    words = [str(word) for pair in there.items() for word in pair]
    path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
    command = [sys.executable, EXPERIMENT / "measure.py", *words, *map(str, options)]
    return subprocess.run(
        command, env=os.environ | {"PATH": path} | environment, capture_output=True, text=True, check=False
    )


def test_what_is_taken_from_both_programs(programs: Path) -> None:
    done = measure(programs)
    assert (done.returncode, done.stderr) == (0, "")
    results = json.loads((programs / "out.json").read_text())["results"]
    assert sorted(results) == ["portals4", "rdma", "spin"]
    for rows in results.values():
        assert {row: numbers["time_ps"] for row, numbers in rows.items()} == {
            "melt-16": 2_016_000_000,
            "melt-64": 2_064_000_000,
            "hpl": 370_000_000,
            "random-access": 1_316_000_000,
            "fft": 9_000_000,
            "ping-pong-8": 331_351,
            "ring-8": 287_616,
            "ping-pong-2M": 50_000_000,
            "ring-2M": 40_000_000,
            "random-access-64": 1_364_000_000,
            "fft-64": 9_000_000,
            "ring-8-64": 287_664,
            "ring-2M-64": 40_000_000,
        }
        assert rows["melt-16"]["result"] == -4.6222968
        assert rows["hpl"]["result"] == 2.9643e-14
    assert results["rdma"].keys() == json.loads((EXPERIMENT / "programs.json").read_text())["results"]["rdma"].keys()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTHER": "spin"}, "LAMMPS computes on spin\n"),
        ({"FAILED": "1"}, "on rdma, 16 ranks: a test has failed: ['1', '0'] of PTRANS and HPL"),
        ({"ERRORS": "7"}, "'MPIRandomAccess_Errors': 7"),
    ],
)
def test_wrong_results_are_refused(programs: Path, environment: dict[str, str], told: str) -> None:
    done = measure(programs, **environment)
    assert done.returncode == 1
    assert told in done.stderr
    assert not (programs / "out.json").exists()


def test_a_program_that_is_not_there_is_named_and_keeps_its_numbers(programs: Path) -> None:
    before = {"results": {nic: {"melt-16": {"time_ps": 1}} for nic in ("rdma", "portals4", "spin")}}
    (programs / "out.json").write_text(json.dumps(before))
    done = measure(programs, "--lmp", programs / "absent")
    assert done.returncode == 1
    assert f"LAMMPS is not installed: there is no {programs / 'absent'}; docs/mpi.md says how to get it" in done.stderr
    rows = json.loads((programs / "out.json").read_text())["results"]["spin"]
    assert (rows["melt-16"]["time_ps"], rows["hpl"]["time_ps"]) == (1, 370_000_000)


def test_a_program_that_fails_is_told(programs: Path) -> None:
    (programs / "hpcc").write_text("#!/bin/sh\nexit 4\n")
    done = measure(programs)
    assert done.returncode == 1
    assert f"{programs / 'hpcc'} on rdma, 16 ranks: status 4" in done.stderr
    assert "exited with status 4" in done.stderr
