# SPDX-License-Identifier: Apache-2.0
"""The fault-tolerant broadcast: its time is the sum of the page, and survivors get every message once whatever dies."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .conftest import CHECKOUT
from .use_cases import by_hand, refuses

SOURCE = CHECKOUT / "experiments" / "use-cases" / "ft-broadcast" / "ft-broadcast.c"
SETS = CHECKOUT / "experiments" / "use-cases" / "ft-broadcast" / "sets.py"
NICS = {"rdma": "rdma", "triggered": "portals4", "spin": "spin", "tree": "spin"}
MACHINES = ("sc17-int", "sc17-dis", "pspin-400g")


def compiled(folder: Path, *flags: str) -> Path:
    command = [_paths.command("spincc"), "-O3", "-Wall", "-Wextra", "-Werror", *flags, SOURCE, "-o", folder / "program"]
    subprocess.run(command, check=True)
    return folder / "program"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("ft-broadcast"))


def run(program: Path, mode: str, options: str, arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Return the lines of a run, and spinrun's messages."""
    command = [_paths.command("spinrun"), "--nic", NICS[mode], *options.split(), program, "--mode", mode]
    done = subprocess.run([*command, *arguments.split()], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    is_right = all(line.get("data_ok", True) for line in lines)
    assert done.returncode == (0 if is_right else 1), done.stderr
    return lines, done.stderr


def sets(program: Path, *options: str) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, SETS, program, *options], capture_output=True, text=True, check=False)
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == (0 if all(line["data_ok"] for line in lines) else 1), done.stderr
    return lines


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_the_sum_by_hand_is_that_of_a_run(program: Path, machine: str) -> None:
    [point], _ = run(program, "spin", f"-n 4 --machine {machine}", "--bytes 8 --ranks 4")
    assert by_hand("ft-broadcast", "8 B among 4 ranks", machine)["sum"] == Decimal(point["time_ps"]) / 1000


@pytest.mark.parametrize("machine", MACHINES)
def test_all_modes_deliver_messages_of_all_sizes(program: Path, machine: str) -> None:
    for mode, network in itertools.product(NICS, ("latency", "fabric")):
        options = f"-n 7 --machine {machine} --set network.model={network} --fail-on-drop --fail-on-handler-error"
        for bytes_ in ("1", "10000"):
            points, _ = run(program, mode, options, f"--bytes {bytes_} --ranks 2,5,7 --links both")
            assert [(point["ranks"], point["missed"], point["data_ok"]) for point in points] == [
                (ranks, 0, True) for ranks in (2, 5, 7)
            ]


def test_two_runs_are_the_same(program: Path) -> None:
    options = "-n 16 --drop *:0.05 --kill-card 3@700ns,9@53us"
    one, other = (run(program, "spin", options, "--bytes 9000 --rounds 4") for _ in range(2))
    assert one == other


@pytest.mark.parametrize("mode", ["rdma", "triggered", "spin"])
def test_losses_cost_time_only(program: Path, mode: str) -> None:
    lines, told = run(program, mode, "-n 8 --drop *:0.1", "--bytes 8 --rounds 8")
    assert [line["delivered"] for line in lines] == ["ff"] * 8
    assert "packets were lost" in told
    assert not any(line["wrong"] for line in lines)
    # Without handlers every copy is in memory, also those returned to the root.
    assert {line["told"] for line in lines} == {7 if mode == "spin" else 8 * 3}


def test_measuring_ends_when_a_rank_dies(program: Path) -> None:
    """A process or a card that is dead from the start misses the three broadcasts; a dead root affects all ranks."""
    for death in ("--fail 5@0ns", "--kill-card 5@0ns"):
        [point], _ = run(program, "spin", f"-n 16 {death}", "--bytes 8 --ranks 16")
        assert (point["missed"], point["data_ok"]) == (1, False)
    lines, told = run(program, "spin", "-n 16 --kill-card 0@0ns", "--bytes 8 --rounds 1")
    assert {line["delivered"] for line in lines if line["lives"]} == {"0"}
    assert "rank 0: its card dies" in told


def test_fewer_than_log2_failures_are_survived(program: Path) -> None:
    points = sets(program, "--failures", "0,1,2", "--during", "1200", "--rounds", "4")
    assert [point["sets"] for point in points] == [1, 1, 8]
    assert not any(point[key] for point in points for key in ("missed", "split", "twice"))
    [one] = sets(program, "--failures", "4")
    assert (one["sets"], one["broadcasts"], one["missed"], one["data_ok"]) == (1, 12, 11, True)
    assert not any(one[key] for key in ("split", "twice"))
    [both] = sets(program, "--failures", "4", "--links", "both")
    assert both["missed"] == 0
    [more] = sets(program, "--ranks", "64", "--failures", "2", "--sets", "1", "--rounds", "2")
    assert (more["missed"], more["sets"], more["left_out"]) == (0, 2, 2016 - 2)


def test_one_set_of_a_class_stands_for_all(program: Path) -> None:
    """Ranks 0 and 1 of 4 are dead, and rank 3 has not got the messages of rank 2: the same, three ranks further on."""
    named = importlib.util.spec_from_file_location("sets", SETS)
    assert named is not None
    assert named.loader is not None
    module = importlib.util.module_from_spec(named)
    named.loader.exec_module(module)
    assert module.turn((0, 1), 3, 4) == (0, 3)
    assert module.turned({2: 0b0100, 3: 0b1000}, 3, 4) == {1: 0b0010, 2: 0b0100}
    one, two = sets(program, "--failures", "1,2", "--turned")
    assert [(point["sets"], point["left_out"], point["asymmetric"]) for point in (one, two)] == [(1, 0, 0), (8, 0, 0)]
    [some] = sets(program, "--failures", "2", "--sets", "1", "--rounds", "1")
    assert (some["sets"], some["left_out"]) == (2, 118)


def test_a_tree_loses_those_behind_a_dead_rank(program: Path) -> None:
    """The depths of 16 ranks add up to 32: 15 dead ranks have 17 behind them."""
    [point] = sets(program, "--failures", "1", "--mode", "tree", "--sets", "all")
    assert (point["sets"], point["broadcasts"], point["missed"]) == (16, 15, 17)


def test_the_checker_finds_copies_that_are_delivered(tmp_path: Path) -> None:
    [point] = sets(compiled(tmp_path, "-DDELIVER_COPIES"), "--failures", "0")
    assert (point["missed"], point["twice"]) == (0, 16)


def test_wrong_arguments_are_refused(program: Path) -> None:
    wrong = (
        ("--mode spin --bytes 0 --ranks 2", "--bytes: expected 1 to"),
        ("--mode spin --bytes 8 --ranks 99", "is not from 2 to the 2 ranks"),
        ("--mode tree --bytes 8 --rounds 2", "the tree begins at rank 0"),
        ("--mode none --bytes 8 --ranks 2", "not understood"),
    )
    refuses(program, 2, wrong)
