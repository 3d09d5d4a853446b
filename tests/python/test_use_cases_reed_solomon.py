# SPDX-License-Identifier: Apache-2.0
"""Reed-Solomon storage (experiments/use-cases/reed-solomon): all losses are rebuilt, times by hand, failures."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT
from .use_cases import by_hand

MACHINES = ("sc17-int", "sc17-dis", "pspin-400g")
MODES = ("rdma", "spin")


def compile_program(home: Path, folder: Path) -> Path:
    source = home / "experiments" / "use-cases" / "reed-solomon" / "reed-solomon.c"
    command: list[str | Path] = [_paths.command("spincc"), "-O2", "-Wall", "-Wextra", "-Werror", source]
    environment = os.environ | {"SPINKIT_HOME": str(home)}
    subprocess.run([*command, "-o", folder / "reed-solomon"], check=True, env=environment)
    return folder / "reed-solomon"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(CHECKOUT, tmp_path_factory.mktemp("reed-solomon"))


def run(program: Path, mode: str, options: list[str], arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [_paths.command("spinrun"), "--timeout", "60", "--nic", mode, *options, program]
    return subprocess.run([*command, "--mode", mode, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("machine", MACHINES)
def test_any_two_of_six_nodes_are_rebuilt(program: Path, machine: str, mode: str) -> None:
    done = run(program, mode, ["-n", "7", "--machine", machine], ["--bytes", "64,20000"])
    assert (done.returncode, done.stderr) == (0, "")
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(point["bytes"], point["rebuilt"], point["data_ok"]) for point in points] == [
        (64, 15, True),
        (20000, 15, True),
    ]


@pytest.mark.parametrize(("data", "parities", "sets"), [(1, 1, 2), (4, 1, 5), (6, 3, 84), (2, 4, 15), (15, 4, 3876)])
def test_other_numbers_of_nodes(program: Path, data: int, parities: int, sets: int) -> None:
    arguments = ["--data", str(data), "--parities", str(parities), "--bytes", str(64 * data)]
    done = run(program, "spin", ["-n", str(1 + data + parities)], arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rebuilt"] == sets


@pytest.mark.parametrize("mode", MODES)
def test_packets_meet_in_the_network(program: Path, mode: str) -> None:
    options = ["-n", "7", "--set", "network.model=fabric"]
    first, second = (run(program, mode, options, ["--bytes", "65536"]).stdout for _ in range(2))
    assert json.loads(first)["data_ok"]
    assert first == second


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_a_write_takes_the_time_by_hand(program: Path, machine: str) -> None:
    arguments = ["--data", "1", "--parities", "1", "--bytes", "64"]
    point = json.loads(run(program, "spin", ["-n", "3", "--machine", machine], arguments).stdout)
    assert Decimal(point["time_ps"]) / 1000 == by_hand("reed-solomon", "a write of 64 bytes", machine)["sum"]


@pytest.mark.parametrize("mode", MODES)
def test_lost_packets_only_cost_time(program: Path, mode: str) -> None:
    calm, lossy = (
        json.loads(run(program, mode, ["-n", "7", *drop], ["--bytes", "65536"]).stdout)
        for drop in ([], ["--drop", "*:0.01"])
    )
    assert lossy["data_ok"]
    assert lossy["time_ps"] > calm["time_ps"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
@pytest.mark.parametrize("node", [3, 5])
def test_an_incomplete_write_is_told(program: Path, mode: str, failure: str, node: int) -> None:
    done = run(program, mode, ["-n", "7", failure, f"{node}@1us"], ["--bytes", "65536"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "a node is dead, or messages were lost; the write or rebuild is incomplete" in done.stderr


@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
@pytest.mark.parametrize(("at", "hole"), [(18000, False), (18500, True), (19500, True)])
def test_the_write_hole_is_repaired(program: Path, failure: str, at: int, hole: bool) -> None:
    """Data node 1 dies in mid-write: one parity has its last difference, the other has not.

    The program compares every byte of it with the old and the new ones, and reads the parities again.
    """
    done = run(program, "spin", ["-n", "7", failure, f"2@{at}ns"], ["--bytes", "65536"])
    assert (done.returncode, done.stdout) == (1, "")
    found = re.search(r"node 1 is rebuilt: (\d+) bytes are new, (\d+) are old", done.stderr)
    assert found is not None, done.stderr
    assert sum(map(int, found.groups())) == 16384
    assert f"repair: {int(hole)} of 2 parities had to be computed again; all survivors agree" in done.stderr
    assert "the write or rebuild is incomplete" in done.stderr


def test_what_two_dead_data_nodes_lose_is_told(program: Path) -> None:
    done = run(program, "spin", ["-n", "7", "--fail", "2@18500ns,3@18500ns"], ["--bytes", "65536"])
    assert done.returncode == 1
    assert "repair: bytes 0 to 16383 of the dead data nodes are lost: 2 nodes died" in done.stderr
    done = run(program, "spin", ["-n", "7", "--fail", "2@18500ns,5@18500ns"], ["--bytes", "65536"])
    assert "all survivors agree" in done.stderr, "a data node and a parity"


def test_wrong_numbers_are_told(program: Path) -> None:
    few = run(program, "spin", ["-n", "6"], ["--bytes", "64"])
    assert few.returncode == 1
    assert "6 ranks, --data 4, --parities 2: expected at most 15 and 4" in few.stderr
    odd = run(program, "spin", ["-n", "7"], ["--bytes", "63"])
    assert odd.returncode == 1
    assert "--bytes 63: expected a multiple of 16, at most 1048576" in odd.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("(high >> 7) * 0x1du", "(high >> 7) * 0x1bu", "byte"),
        ("sum[j] ^= product[data[j]]", "sum[j] = product[data[j]]", "rebuilt without the nodes"),
        ("reed_solomon_scale(diff, length, r->node)", "reed_solomon_scale(diff, length - 16, r->node)", "byte"),
    ],
)
def test_the_check_finds_wrong_handlers(tmp_path: Path, right: str, wrong: str, words: str) -> None:
    for folder in ("sdk", "experiments/use-cases/reed-solomon", "experiments/common"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    header = tmp_path / "sdk" / "handlers" / "reed-solomon" / "reed_solomon.h"
    assert header.read_text().count(right) == 1
    lines = [
        "ifdef __SPIN_DEVICE__",
        "define CHOSEN(right, wrong) wrong",
        "else",
        "define CHOSEN(right, wrong) right",
        "endif",
    ]
    only_on_the_card = "".join(f"#{line}\n" for line in lines)
    text = header.read_text().replace(right, f"CHOSEN(({right}), ({wrong}))")
    header.write_text(text.replace("#include <string.h>\n", f"#include <string.h>\n{only_on_the_card}", 1))
    done = run(compile_program(tmp_path, tmp_path), "spin", ["-n", "7"], ["--bytes", "4096"])
    assert done.returncode == 1
    assert words in done.stderr
