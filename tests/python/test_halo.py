# SPDX-License-Identifier: Apache-2.0
"""The experiment on the halo exchange: every way to pack and unpack, and the times by hand."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

SERIES = {
    "rdma": ("rdma", "cpu", "cpu"),
    "iovec": ("portals4", "iovec", "iovec"),
    "spin-list": ("spin", "iovec", "handler"),
}


@pytest.fixture(scope="module")
def halo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("halo") / "halo"
    source = CHECKOUT / "experiments" / "sc17" / "halo" / "halo.c"
    subprocess.run([_paths.command("spincc"), "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True)
    return program


def start(
    program: Path, nic: str, send: str, receive: str, edges: str, options: Sequence[str] = ("-n", "8")
) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [_paths.command("spinrun"), *options, "--nic", nic, program]
    command += ["--send", send, "--receive", receive, "--edges", edges]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def run(
    program: Path, nic: str, send: str, receive: str, edges: str, options: Sequence[str] = ("-n", "8")
) -> list[dict[str, Any]]:
    done = start(program, nic, send, receive, edges, options)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("nic", "send", "receive"),
    [*SERIES.values(), ("spin", "cpu", "handler"), ("spin", "handler", "handler"), ("portals4", "cpu", "iovec")],
)
def test_every_ghost_cell_arrives(halo: Path, nic: str, send: str, receive: str) -> None:
    """The program compares all cells; with one rank along an axis each face goes to the rank itself."""
    for ranks in ("1", "8", "27"):
        lines = run(halo, nic, send, receive, "1,2,9", ["-n", ranks])
        assert [line["data_ok"] for line in lines] == [True] * 3
        assert all(line["cpu_ps"] - line["marshal_ps"] == 6 * 65_000 for line in lines)
        copies = "cpu" in (send, receive)
        assert [line["marshal_ps"] > 0 for line in lines] == [False, copies, copies], "one cell is contiguous"


def test_more_ranks_take_no_longer(halo: Path) -> None:
    """Each rank has six neighbours behind one switch, or the same one twice along each axis."""
    [[eight], [more]] = [run(halo, *SERIES["rdma"], "16", ["-n", ranks]) for ranks in ("8", "27")]
    assert eight == more


@pytest.mark.parametrize("name", SERIES)
def test_the_sum_by_hand_is_that_of_a_run(halo: Path, name: str) -> None:
    validation = (CHECKOUT / "docs" / "validation.md").read_text()
    _, _, rest = validation.partition(f"| sc17-int, N = 16 | {' | '.join(SERIES)} |\n")
    rows = [[cell.strip() for cell in line.split("|")[2:-1]] for line in rest.partition("\n\n")[0].splitlines()[1:]]
    *terms, total = [Decimal(row[list(SERIES).index(name)].strip("*").replace("–", "0")) for row in rows]
    assert sum(terms) == total
    [line] = run(halo, *SERIES[name], "16", ["-n", "8", "--machine", "sc17-int"])
    assert line["time_ps"] == total * 1000


@pytest.mark.parametrize(
    ("send", "receive", "ranks", "problem"),
    [("cpu", "cpu", "9", "needs 8, 27, 64, … ranks, not 9"), ("handler", "cpu", "8", "--send handler needs")],
)
def test_mistakes_are_named(halo: Path, send: str, receive: str, ranks: str, problem: str) -> None:
    done = start(halo, "spin", send, receive, "4", ["-n", ranks])
    assert (done.returncode, done.stdout) == (1, "")
    assert problem in done.stderr
