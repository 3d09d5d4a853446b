# SPDX-License-Identifier: Apache-2.0
"""Breadth-first search and shortest paths (experiments/use-cases/graph): values, times by hand, failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT
from .use_cases import by_hand

MACHINES = ("sc17-int", "sc17-dis", "pspin-400g")
NICS = {"rdma": "rdma", "atomic": "portals4", "spin": "spin"}
RANKS = 8


def compile_program(source: Path, folder: Path, home: Path = CHECKOUT) -> Path:
    command: list[str | Path] = [_paths.command("spincc"), "-O2", "-Wall", "-Wextra", "-Werror"]
    environment = os.environ | {"SPINKIT_HOME": str(home)}
    subprocess.run([*command, source, "-o", folder / source.stem], check=True, env=environment)
    return folder / source.stem


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(
        CHECKOUT / "experiments" / "use-cases" / "graph" / "graph.c", tmp_path_factory.mktemp("graph")
    )


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(CHECKOUT / "tests" / "programs" / "graph.c", tmp_path_factory.mktemp("handlers"))


def spinrun(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [_paths.command("spinrun"), "--timeout", "60", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def search(program: Path, kernel: str, mode: str, *options: str, scale: int = 8, more: tuple[str, ...] = ()) -> str:
    arguments = ["--kernel", kernel, "--mode", mode, "--scales", str(scale), *more]
    done = spinrun("-n", str(RANKS), "--nic", NICS[mode], *options, program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("machine", ["sc17-int", "pspin-400g"])
def test_the_first_update_of_a_vertex_passes(handlers: Path, machine: str) -> None:
    done = spinrun("-n", "2", "--machine", machine, handlers, "visit", "100", "16", "1:5,2:6,1:7,99:1", "1:8,3:9,99:4")
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == ["passed 1:5", "passed 2:6", "passed 99:1", "passed 3:9"]


@pytest.mark.parametrize("machine", ["sc17-int", "pspin-400g"])
def test_shorter_paths_pass(handlers: Path, machine: str) -> None:
    done = spinrun(
        "-n", "2", "--machine", machine, handlers, "relax", "100", "8", "1:5,2:6,1:7,1:3", "1:4,2:5,2:5,99:0"
    )
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == ["passed 1:5", "passed 2:6", "passed 1:3", "passed 2:5", "passed 99:0"]


def test_the_ring_goes_round_and_says_when_it_is_full(handlers: Path) -> None:
    six, nine = ",".join(f"{i}:1" for i in range(6)), ",".join(f"{i}:1" for i in range(20, 29))
    # Six and two updates fill the ring; the CPU takes them; six more wrap around its end; nine never fit.
    messages = [six, "6:1,7:1", six.replace(":1", ":0"), "8:0,9:0", nine, "9:9"]
    done = spinrun("-n", "2", handlers, "relax", "100", "8", *messages)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if "after" in line] == ["made", "made", "made", "made", "failed", "made"]
    first, second = [f"passed {i}:1" for i in range(8)], [f"passed {i}:0" for i in [*range(6), 8, 9]]
    assert [line for line in lines if line.startswith("passed")] == first + second
    assert "payload handler 'graph_relax' returned FAIL" in done.stderr


def test_a_vertex_that_does_not_exist_fails(handlers: Path) -> None:
    done = spinrun("-n", "2", handlers, "visit", "100", "8", "99:1", "100:1")
    assert [line.split()[0] for line in done.stdout.splitlines() if "after" in line] == ["made", "failed"]


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_updates_in_host_memory(handlers: Path, machine: str) -> None:
    """The card has eight bounds; the vertices 1, 9 and 97 share one, and 70 updates are more than it reads together."""
    same = ",".join(f"{vertex}:{value}" for value in (7, 8) for vertex in range(1, 36))
    for kernel, messages, expected in (
        ("visit", ("1:5,2:6,1:7,97:1,9:3", "1:4,3:9,97:4,9:1"), ["1:5", "2:6", "97:1", "9:3", "3:9"]),
        (
            "relax",
            ("1:5,2:6,1:7,1:3,9:9,97:1", "1:4,2:5,2:5,97:0,9:8,1:3,4:2000000,4:1999999"),
            ["1:5", "2:6", "1:3", "9:9", "97:1", "2:5", "97:0", "9:8", "4:2000000", "4:1999999"],
        ),
        ("visit", (same, same), [f"{vertex}:7" for vertex in range(1, 36)]),
        ("relax", (same, same), [f"{vertex}:7" for vertex in range(1, 36)]),
    ):
        done = spinrun("-n", "2", "--machine", machine, handlers, f"{kernel}-host", "100", "128", *messages)
        passed = [line.removeprefix("passed ") for line in done.stdout.splitlines() if line.startswith("passed")]
        assert passed == expected, kernel
    missing = spinrun("-n", "2", handlers, "relax-host", "100", "8", "99:1", "1:1,100:1,2:1")
    assert [line.split()[0] for line in missing.stdout.splitlines() if "after" in line] == ["made", "failed"]
    assert "passed 1:1" not in missing.stdout


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_a_message_takes_the_time_by_hand(handlers: Path, machine: str) -> None:
    total = by_hand("bfs", "a packet of updates", machine)["sum"]
    done = spinrun("-n", "2", "--machine", machine, handlers, "visit", "8000", "8", "1:1", "1:1", *["512x1:1"] * 4)
    measured = [int(line.split()[2]) for line in done.stdout.splitlines() if line.startswith("made")]
    assert abs(Decimal(measured[-1]) / 1000 - total) <= Decimal("0.001")


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
@pytest.mark.parametrize("mode", NICS)
def test_results_are_those_of_a_serial_run_on_all_machines(graph: Path, kernel: str, mode: str) -> None:
    for machine in MACHINES:
        point = json.loads(search(graph, kernel, mode, "--machine", machine))
        assert (point["data_ok"], point["edges"]) == (True, 4096)
        assert point["updates"] > point["passed"] or mode == "rdma"
    fabric = search(graph, kernel, mode, "--set", "network.model=fabric", more=("--filter", "yes"))
    assert json.loads(fabric)["data_ok"]


@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
@pytest.mark.parametrize("cache", [0, 4, 12])
def test_the_state_may_be_in_host_memory(graph: Path, kernel: str, cache: int) -> None:
    """A card with 4 KiB has room for few bounds; CPU and handlers change the same words."""
    more = ("--state", "host", "--cache", str(cache))
    options = () if cache > 8 else ("--set", "accelerator.memory_bytes=4096")
    host, again = (search(graph, kernel, "spin", *options, scale=10, more=more) for _ in range(2))
    assert host == again
    assert json.loads(host)["data_ok"]
    assert json.loads(search(graph, kernel, "spin", "--drop", "*:0.01", *options, more=more))["data_ok"]


def test_senders_that_filter_may_be_charged_for_their_look_ups(graph: Path) -> None:
    """Both ends of 4,096 edges lead to other ranks in 7 of 8 cases; each of eight CPUs looks up an eighth of these.

    A round takes as long as that CPU which looks up most.
    """
    free, charged = (
        json.loads(search(graph, "bfs", "rdma", more=("--filter", "yes", "--look-ns", ns))) for ns in ("0", "100")
    )
    assert (free["data_ok"], charged["data_ok"], free["updates"]) == (True, True, charged["updates"])
    mean_ns = 100 * 2 * 4096 * 7 / 8 / RANKS
    assert mean_ns * 0.9 < (charged["time_ps"] - free["time_ps"]) / 1000 < mean_ns * 4


def test_cards_without_atomics_in_host_memory_say_so(graph: Path) -> None:
    arguments = ["--kernel", "bfs", "--mode", "spin", "--state", "host", "--scales", "8"]
    done = spinrun("-n", str(RANKS), "--machine", "pspin-400g", graph, *arguments)
    assert done.returncode == 1
    assert "atomic operation on host memory, which PsPIN cards do not have" in done.stderr


def test_two_runs_are_the_same(graph: Path) -> None:
    assert search(graph, "sssp", "spin", scale=10) == search(graph, "sssp", "spin", scale=10)


@pytest.mark.parametrize("mode", NICS)
def test_lost_packets_only_cost_time(graph: Path, mode: str) -> None:
    calm, lossy = (json.loads(search(graph, "bfs", mode, *drop)) for drop in ([], ["--drop", "*:0.01"]))
    assert lossy["data_ok"]
    assert lossy["time_ps"] > calm["time_ps"]


@pytest.mark.parametrize("mode", [*NICS, "spin --state host"])
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
def test_a_dead_rank_is_named(graph: Path, mode: str, failure: str) -> None:
    arguments = ["--kernel", "sssp", "--scales", "8", "--mode", *mode.split()]
    mode = mode.split()[0]
    done = spinrun("-n", str(RANKS), "--nic", NICS[mode], failure, "3@10us", graph, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    lost = ("rank 3 is silent", "rank 3 does not take updates", "are missing: the results of their vertices are lost")
    assert any(words in done.stderr for words in lost)
    assert "results" in done.stderr


def test_limits_are_told(graph: Path) -> None:
    arguments = ["--kernel", "sssp", "--mode", "spin", "--scales", "10"]
    full = spinrun("-n", str(RANKS), graph, *arguments, "--ring", "64")
    assert full.returncode == 1
    assert "the ring of 64 is full (--ring)" in full.stderr
    small = spinrun("-n", "2", "--set", "accelerator.memory_bytes=4096", graph, *arguments[:-1], "12")
    assert small.returncode == 1
    assert "the card has no memory for the state of 2048 vertices" in small.stderr
    wrong = spinrun("-n", "2", graph, *arguments[:-1], "21")
    assert wrong.returncode != 0
    assert "--scales: from 2 to 20" in wrong.stderr


@pytest.mark.parametrize(
    ("kernel", "state", "right", "wrong"),
    [
        ("bfs", "card", "bit = 1u << update.vertex % 32", "bit = 1u << update.vertex % 31"),
        ("sssp", "card", "while (~update.value > known)", "while (~update.value > known && known == 0)"),
        ("sssp", "host", "while (is_tried && known[i] != before[i] &&", "while (false &&"),
        ("bfs", "host", "bound >> GRAPH_BOUND_BITS == update.vertex >> graph->cache_bits &&", ""),
    ],
)
def test_the_check_finds_wrong_handlers(tmp_path: Path, kernel: str, state: str, right: str, wrong: str) -> None:
    for folder in ("sdk", "experiments/use-cases/graph", "experiments/common"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    header = tmp_path / "sdk" / "handlers" / "graph" / "graph.h"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    program = compile_program(tmp_path / "experiments" / "use-cases" / "graph" / "graph.c", tmp_path, tmp_path)
    arguments = ["--kernel", kernel, "--mode", "spin", "--state", state, "--cache", "2", "--scales", "8"]
    done = spinrun("-n", str(RANKS), program, *arguments)
    assert done.returncode == 1
    assert "the distance of vertex" in done.stderr
