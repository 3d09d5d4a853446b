# SPDX-License-Identifier: Apache-2.0
"""A sample of the matrix of waiting loops (tests/soak/matrix.py); `make soak` runs all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
import matrix
import waiting_loops

COMMANDS = matrix.commands()
# Every library, number of threads and clock is among them, and most kinds of loops.
# One in seven runs of the named ones was told as a deadlock.
NAMED = {"portals-counting-barrier-8-real"}
SAMPLE = [*COMMANDS[1::109], *(each for each in COMMANDS if each.name in NAMED)]
# A run that takes longer hangs, on any machine.
LIMIT_S = 900


def test_the_matrix_has_more_than_a_hundred_different_programs() -> None:
    assert len({each.program for each in COMMANDS}) > 100
    assert len({each.name for each in COMMANDS}) == len(COMMANDS)
    assert {each.library for each in SAMPLE} == set(waiting_loops.EVERYWHERE)
    assert {each.threads for each in SAMPLE} == set(matrix.THREADS)
    assert {each.clock for each in SAMPLE} == set(matrix.CLOCKS)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    matrix.build(folder, SAMPLE)
    return folder


@pytest.mark.parametrize("waiting", SAMPLE, ids=lambda waiting: waiting.name)
def test_a_program_that_waits_ends(waiting: matrix.Waiting, programs: Path) -> None:
    done = subprocess.run(waiting.command(programs), capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, waiting.loop.output(waiting.threads)), done.stderr


def test_a_hang_is_named_with_its_command_and_ends(tmp_path: Path) -> None:
    endless = waiting_loops.Loop("endless", "MEMORY", "for (volatile unsigned long n = 0;; n++) {} return 0;")
    one = matrix.Waiting(endless, waiting_loops.PORTALS, 2, "real")
    matrix.build(tmp_path, [one])
    runs = matrix.Matrix(tmp_path, 2)
    problem = runs.run(7, one)
    assert problem is not None
    assert problem.startswith("portals-endless-2-real: it hangs: 2 s\n")
    assert problem.endswith(f"spinrun -n 2 --clock real {tmp_path / 'portals-endless'} 2")
    assert (runs.tallies[one.program].hangs, runs.tallies[one.program].wrong) == (1, 0)
    assert matrix.marked(f"{os.getpid()}-matrix-7") == []


def test_a_wrong_output_is_a_failure(tmp_path: Path) -> None:
    wrong = waiting_loops.Loop("wrong", "MEMORY", "while (!flags[3]) {} return 5;")
    one = matrix.Waiting(wrong, waiting_loops.PORTALS, 1, "real")
    matrix.build(tmp_path, [one])
    runs = matrix.Matrix(tmp_path, LIMIT_S)
    assert (runs.run(0, one) or "").startswith("portals-wrong-1-real: wrong output: 'thread 0 found 5\\n'\n")
    assert runs.run(1, matrix.Waiting(wrong, waiting_loops.PORTALS, 9, "real")) is not None  # it ends with status 2
    assert (runs.tallies[one.program].wrong, runs.tallies[one.program].runs) == (2, 2)
    assert matrix.table(runs.tallies).splitlines()[-1].split()[:6] == ["all", "1", "programs", "2", "2", "0"]
