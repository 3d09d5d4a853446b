# SPDX-License-Identifier: Apache-2.0
"""Broadcasts over a chain, a binomial tree and two trees take the sums of docs/validation.md."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

MACHINES = ("sc17-int", "sc17-dis")
RANKS_16_4_MIB = "2"  # the case of the program
PACKET_NS = Decimal("81.92")


def by_hand(heading: str, machine: str) -> Decimal:
    """Add up a column of the table with this heading, and compare it with the sum that is written there."""
    page = (CHECKOUT / "docs" / "validation.md").read_text()
    _, _, rest = page.partition(f"| {heading} | {' | '.join(MACHINES)} |\n")
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in rest.partition("\n\n")[0].splitlines()[1:]]
    *terms, total = [Decimal(row[1 + MACHINES.index(machine)]) for row in rows]
    assert sum(terms) == total
    return total


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("trees") / "trees"
    source = CHECKOUT / "experiments" / "beyond" / "broadcast-trees" / "trees.c"
    subprocess.run([_paths.command("spincc"), "-Wall", "-Wextra", "-Werror", source, "-o", program], check=True)
    return program


def time_ns(program: Path, machine: str, tree: str, segment: str) -> Decimal:
    command: list[str | Path] = [
        _paths.command("spinrun"),
        "-n",
        "16",
        "--machine",
        machine,
        program,
        "--cases",
        RANKS_16_4_MIB,
    ]
    done = subprocess.run(
        [*command, "--mode", "stream", "--tree", tree, "--segments", segment],
        capture_output=True,
        text=True,
        check=True,
    )
    return Decimal(json.loads(done.stdout)["time_ps"]) / 1000


@pytest.mark.parametrize("machine", MACHINES)
def test_a_long_message_passes_a_tree_in_the_time_by_hand(trees: Path, machine: str) -> None:
    chain = by_hand("chain of 16 ranks, 4 MiB", machine)
    # Times are rounded up to a picosecond, at the ends of some transfers.
    assert 0 <= time_ns(trees, machine, "chain", "0") - chain < Decimal("0.01")
    binomial = by_hand("binomial tree of 16 ranks, 4 MiB", machine)
    assert 0 <= time_ns(trees, machine, "binomial", "65536") - binomial < Decimal("0.01")
    # Eleven hops of the chain less, and each of three ranks sends to another child first; then packets wait for the
    # other tree's.
    two = chain - 11 * (12 + PACKET_NS + Decimal("146.8")) + 3 * PACKET_NS
    assert 0 <= time_ns(trees, machine, "double", "4096") - two < 10 * PACKET_NS


def test_a_card_that_sends_more_than_it_receives_loses_packets(trees: Path) -> None:
    command: list[str | Path] = [_paths.command("spinrun"), "-n", "16", trees, "--cases", RANKS_16_4_MIB]
    done = subprocess.run(
        [*command, "--mode", "stream", "--tree", "binomial", "--segments", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no packet buffer was free because packets arrive faster than handlers process them" in done.stderr


def test_a_portals_4_tree_needs_logarithmic_space(tmp_path: Path) -> None:
    """The card of the root's first child holds log2 P - 1 triggered puts, and no other card holds more."""
    program, report = tmp_path / "broadcast", tmp_path / "report.json"
    source = CHECKOUT / "experiments" / "sc17" / "broadcast" / "broadcast.c"
    subprocess.run([_paths.command("spincc"), source, "-o", program], check=True)
    for ranks, children in ((4, 1), (16, 3), (64, 5)):
        command: list[str | Path] = [_paths.command("spinrun"), "-n", str(ranks), "--nic", "portals4", "--json", report]
        arguments = ["--ranks", str(ranks), "--mode", "triggered", "--bytes", "8"]
        done = subprocess.run([*command, program, *arguments], capture_output=True, text=True, check=True)
        peaks = [card["triggered_peak"] for card in json.loads(report.read_text())["cards"]]
        assert max(peaks) == peaks[ranks // 2] == json.loads(done.stdout)["triggered_puts"] == children
