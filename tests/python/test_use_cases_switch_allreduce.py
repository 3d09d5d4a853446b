# SPDX-License-Identifier: Apache-2.0
"""All-reduce in switches: totals, traffic and time by hand, failures and refusals; the page has sums of runs."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .use_cases import by_hand

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "experiments" / "use-cases" / "switch-allreduce" / "switch-allreduce.c"
PAGE = ROOT / "docs" / "use-cases" / "switch-allreduce.md"
FABRIC = ("--set", "network.model=fabric", "--set", "network.radix=8")
SWITCHES = (*FABRIC, "--set", 'network.switch.handlers=["switch * of level 1", "switch 0 of level 2"]')
SINGLE = (*FABRIC, "--set", "network.topology=single-switch", "--set", 'network.switch.handlers="*"')


def compiled(program: Path, *flags: str) -> Path:
    subprocess.run([_paths.command("spincc"), "-O3", *flags, SOURCE, "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("switch-allreduce") / "program")


def spinrun(
    program: Path, mode: str, sizes: str, *options: str | Path, ranks: int = 16, more: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [_paths.command("spinrun"), "-n", str(ranks), *options, program, "--mode", mode, "--bytes", sizes, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def points(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (4, SINGLE),
        (16, SWITCHES),
        (13, (*SWITCHES, "--set", "network.switch.hpus=2")),
        (10, (*SWITCHES, "--machine", "pspin-400g", "--set", "network.switch.speedup=4")),
        (12, (*SWITCHES, "--machine", "sc17-dis", "--set", "network.fabric.flow=drop")),
    ],
)
def test_totals(program: Path, ranks: int, options: tuple[str, ...]) -> None:
    # 4100 bytes are a chunk and an element; 200 KiB use every slot more than once.
    large = "4100" if "pspin-400g" in options else "4100,204800"
    found = points(spinrun(program, "switch", f"4,{large}", *options, "--fail-on-handler-error", ranks=ranks))
    assert [point["data_ok"] for point in found] == [True] * (2 + large.count(","))


@pytest.mark.parametrize("mode", ["ring", "doubling"])
def test_hosts_have_the_same_totals(program: Path, mode: str) -> None:
    assert all(point["data_ok"] for point in points(spinrun(program, mode, "64,40960", *FABRIC, "--nic", "rdma")))


def test_a_switch_that_adds_wrongly_is_found(tmp_path: Path) -> None:
    source = ROOT / "sdk" / "handlers" / "switch-allreduce" / "switch_allreduce.h"
    text = source.read_text()
    broken = text.replace("sums[i] += data[i];", "sums[i] |= data[i];")
    assert broken != text
    folder = tmp_path / "handlers" / "switch-allreduce"
    folder.mkdir(parents=True)
    (folder / source.name).write_text(broken.replace("../common/", f"{source.parent.parent}/common/"))
    done = spinrun(compiled(tmp_path / "broken", f"-I{tmp_path}"), "switch", "64", *SINGLE, ranks=4)
    assert done.returncode == 1
    assert "the total of 64 bytes is wrong" in done.stderr


def test_traffic_is_that_of_the_page(program: Path, tmp_path: Path) -> None:
    rows = {"switches": ("switch", "spin"), "ring": ("ring", "rdma"), "recursive doubling": ("doubling", "rdma")}
    for name, (mode, nic) in rows.items():
        report = tmp_path / f"{mode}.json"
        options = SWITCHES if mode == "switch" else FABRIC
        points(spinrun(program, mode, "65536", *options, "--nic", nic, "--json", report))
        links = json.loads(report.read_text())["network"]["traffic"]
        of_nodes = [link for link in links if "accelerator" not in link["from"] + link["to"]]
        between = [link for link in of_nodes if "host" not in link["from"] + link["to"]]
        # The vector is reduced three times.
        numbers = [sum(link["bytes"] for link in some) / 3 / 65536 for some in (of_nodes, between)]
        numbers.append(max(link["bytes"] for link in of_nodes) / 3 / 65536)
        row = f"| {name} | " + " | ".join(f"{number:.1f}" for number in numbers) + " |"
        assert row in PAGE.read_text(), row


def test_cards_take_the_times_of_the_page(tmp_path: Path) -> None:
    program = tmp_path / "allreduce"
    source = ROOT / "experiments" / "use-cases" / "allreduce" / "allreduce.c"
    subprocess.run([_paths.command("spincc"), "-O3", source, "-o", program], check=True)
    arguments = ["--mode", "spin", "--algorithm", "best", "--type", "int32", "--ranks", "16", "--bytes", "64,512,4096"]
    command = [_paths.command("spinrun"), "-n", "16", *FABRIC, program, *arguments]
    found = points(subprocess.run(command, capture_output=True, text=True, timeout=100, check=False))
    row = "| handlers on cards, best algorithm | " + " | ".join(f"{point['time_ps'] / 1e6:.2f}" for point in found)
    assert row in PAGE.read_text(), row


def test_the_time_by_hand_is_that_of_a_run(program: Path) -> None:
    (point,) = points(spinrun(program, "switch", "8", *SINGLE, ranks=2))
    assert Decimal(point["time_ps"]) / 1000 == by_hand("switch-allreduce", "two ranks, 8 B", "time")["sum"]


def test_equal_runs_give_equal_bytes_and_losses_only_delay(program: Path, tmp_path: Path) -> None:
    reports, times = [tmp_path / name for name in ("first", "second")], []
    for report in reports:
        found = points(spinrun(program, "switch", "4096,65536", *SWITCHES, "--drop", "*:0.01", "--json", report))
        assert all(point["data_ok"] for point in found)
        times.append([point["time_ps"] for point in found])
    assert reports[0].read_bytes() == reports[1].read_bytes()
    plain = [point["time_ps"] for point in points(spinrun(program, "switch", "4096,65536", *SWITCHES))]
    assert times[0] == times[1]
    assert times[0][1] > plain[1]
    # A lossy link between switches: the accelerators of both send again.
    lossy = "switch 0 of level 1>switch 0 of level 2:0.2"
    done = spinrun(program, "switch", "65536", *SWITCHES, "--drop", lossy)
    assert points(done)[0]["data_ok"]
    assert "packets were lost" in done.stderr


@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
def test_a_dead_rank_is_named(program: Path, failure: str) -> None:
    done = spinrun(program, "switch", "4096,65536,4096,65536", *SWITCHES, failure, "5@20us")
    assert done.returncode == 1
    assert "rank 4: switch 1 has no data from rank 5" in done.stderr
    assert "rank 8: switch 4 has no data from switch 1" in done.stderr


def test_what_a_network_lacks_is_told(program: Path) -> None:
    for options, status, told in [
        ((), 1, "rank 0: no switch runs handlers (network.switch.handlers)"),
        (FABRIC, 1, "rank 0: no switch runs handlers (network.switch.handlers)"),
        ((*FABRIC, "--set", 'network.switch.handlers="switch 9 of level 1"'), 2, 'has no switch "switch 9 of level 1"'),
        (
            (*FABRIC, "--set", 'network.switch.handlers="* of level 1"'),
            1,
            "no other switch with handlers to be the root",
        ),
        (("--set", 'network.switch.handlers="*"'), 2, 'needs network.model = "fabric"'),
        ((*SWITCHES, "--nic", "rdma"), 2, 'needs nic.kind = "spin"'),
        ((*SWITCHES, "--set", "accelerator.memory_bytes=65536"), 1, "has no room for 32 slots: --slots N"),
    ]:
        done = spinrun(program, "switch", "64", *options)
        assert (done.returncode, told in done.stderr) == (status, True), done.stderr
    assert points(
        spinrun(program, "switch", "9000", *SWITCHES, "--set", "accelerator.memory_bytes=65536", more=("--slots", "4"))
    )
