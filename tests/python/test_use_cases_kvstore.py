# SPDX-License-Identifier: Apache-2.0
"""The key-value store: histories are linearizable, broken ones are found, failures reported; the page has sums of
runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .use_cases import by_hand

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "use-cases" / "kvstore"
MODES = {
    "rdma": ("--nic", "rdma"),
    "cpu": ("--nic", "portals4"),
    "spin": ("--nic", "spin"),
}
SMALL = ("--records", "32", "--operations", "60", "--levels", "3,8", "--steps", "3", "--mixes", "7")

Checked = tuple[subprocess.CompletedProcess[str], dict[str, Any], subprocess.CompletedProcess[str]]


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / "kvstore"
    subprocess.run([_paths.command("spincc"), *flags, FOLDER / "kvstore.c", "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("kvstore"))


def check(*histories: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FOLDER / "linearizability.py", *histories]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(
    program: Path, folder: Path, mode: str, *arguments: str, options: tuple[str, ...] = (), ranks: int = 9
) -> Checked:
    """Run the store with a history; return the run, its last result, and the checker's verdict."""
    command = [_paths.command("spinrun"), "-n", str(ranks), *MODES[mode], *options, program, "--mode", mode, *arguments]
    prefix = folder / "history"
    done = subprocess.run([*command, "--history", prefix], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    return done, json.loads(lines[-1]) if lines else {}, check(*sorted(folder.glob("history.*")))


# ---- The checker ----


def history(*lines: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "history.1"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


@pytest.mark.parametrize(
    "lines",
    [
        history("1 insert 5 10 0 10 0", "2 get 5 10 5 20 0"),
        history("1 insert 5 10 0 10 0", "2 get 5 99 5 20 2", "3 get 5 10 5 8 0"),  # one before, one after it
        history("1 insert 5 10 0 10 0", "2 insert 5 11 20 30 1", "1 delete 5 0 40 50 0", "2 get 5 0 60 70 2"),
        history("1 insert 5 10 0 10 0", "2 update 5 11 20 20 7", "1 get 5 10 30 40 0", "1 get 5 11 50 60 0"),
        history("1 insert 5 10 0 10 0", "2 update 5 11 20 20 7", "1 get 5 10 90 99 0"),  # lost, and never done
        history("1 insert 5 10 0 0 7", "1 insert 5 10 0 10 0", "1 insert 5 11 20 30 3"),  # the second line counts
    ],
)
def test_good_histories_are_linearizable(lines: Callable[[Path], Path], tmp_path: Path) -> None:
    found = check(lines(tmp_path))
    assert (found.returncode, found.stdout.endswith("linearizable\n")) == (0, True)


@pytest.mark.parametrize(
    "lines",
    [
        history("1 insert 5 10 0 10 0", "2 get 5 99 20 30 2"),  # the insert is forgotten
        history("2 get 5 10 0 5 0", "1 insert 5 10 10 20 0"),  # the value precedes its insert
        history("1 insert 5 10 0 10 0", "1 update 5 11 20 30 0", "2 get 5 10 40 50 0"),  # an old value
        history("1 insert 5 10 0 10 0", "2 insert 5 11 0 10 0"),  # both succeed
        history("1 insert 5 10 0 10 0", "1 delete 5 0 20 30 0", "2 update 5 11 40 50 0"),  # an update revives it
        history(  # the new value, then the old one, while the update is under way
            "1 insert 5 10 0 10 0", "1 update 5 11 20 90 0", "2 get 5 11 30 40 0", "2 get 5 10 50 60 0"
        ),
        history("1 insert 5 10 0 10 0", "2 delete 5 0 5 20 0", "3 delete 5 0 5 20 0"),  # deleted twice
    ],
)
def test_broken_histories_are_found(lines: Callable[[Path], Path], tmp_path: Path) -> None:
    found = check(lines(tmp_path))
    assert (found.returncode, "not linearizable: records [5]" in found.stdout) == (1, True)


# ---- The store ----


@pytest.mark.parametrize(
    ("mode", "arguments", "options"),
    [
        ("spin", (), ("--machine", "sc17-int")),
        ("spin", (), ("--machine", "sc17-dis", "--set", "network.model=fabric")),
        ("spin", ("--index", "card"), ("--machine", "sc17-dis")),
        ("spin", ("--index", "card"), ("--machine", "pspin-400g")),
        ("spin", ("--servers", "2"), ()),
        ("spin", ("--value", "10000"), ()),
        ("rdma", (), ("--set", "network.model=fabric")),
        ("rdma", ("--value", "10000"), ("--machine", "sc17-dis")),
        ("cpu", (), ()),
        ("cpu", ("--cores", "2"), ()),
    ],
)
def test_stores_are_linearizable_while_they_grow(
    mode: str, arguments: tuple[str, ...], options: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    done, point, found = run(program, tmp_path, mode, *SMALL, *arguments, options=options)
    assert (done.returncode, found.stdout.split(":")[-1]) == (0, " linearizable\n"), done.stderr
    assert (point["lost"], point["data_ok"]) == (0, True)
    assert point["done"] == 60 * (7 if "--servers" in arguments else 8)


def test_two_runs_are_equal(program: Path, tmp_path: Path) -> None:
    outputs = []
    for name in "ab":
        (tmp_path / name).mkdir()
        done, _, _ = run(program, tmp_path / name, "spin", *SMALL)
        outputs.append((done.stdout, [path.read_bytes() for path in sorted((tmp_path / name).glob("history.*"))]))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("mix", range(1, 7))
def test_mixes_of_ycsb(mix: int, program: Path, tmp_path: Path) -> None:
    arguments = ("--records", "64", "--operations", "30", "--mixes", str(mix), "--thetas", "120")
    done, point, found = run(program, tmp_path, "spin", *arguments, ranks=5)
    kinds = {line.split()[1] for path in tmp_path.glob("history.*") for line in path.read_text().splitlines()}
    assert (done.returncode, found.returncode, point["done"]) == (0, 0, 120)
    assert kinds == {"insert"} | {1: {"get", "update"}, 2: {"get", "update"}, 6: {"get", "update"}}.get(mix, {"get"})


def test_a_broken_store_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sdk" / "handlers", tmp_path / "handlers")
    table = tmp_path / "handlers" / "kvstore" / "table.h"
    correct = "if (head == place->head)\n"
    assert table.read_text().count(correct) == 1
    table.write_text(table.read_text().replace(correct, "if (true)\n"))  # the loser of the swap acts as the winner
    done, _, found = run(compiled(tmp_path, f"-I{tmp_path}"), tmp_path, "spin", *SMALL)
    assert (done.returncode, found.returncode) == (1, 1)
    assert re.search(r"the store has \d+ records, not \d+", done.stderr)
    assert "not linearizable" in found.stdout


# ---- Limits and failures ----


@pytest.mark.parametrize("mode", MODES)
def test_a_full_store_says_so(mode: str, program: Path, tmp_path: Path) -> None:
    done, _, _ = run(program, tmp_path, mode, *SMALL, "--slots", "16")
    assert done.returncode == 1
    assert "the store is full: give it more --slots" in done.stderr


def test_clients_ask_again_when_the_queue_to_the_cpu_is_full(program: Path, tmp_path: Path) -> None:
    """A handler may take one step, so that most requests are the CPU's; one of them may wait, or all."""
    work = ("--records", "32", "--operations", "60", "--levels", "3,8", "--steps", "1", "--mixes", "7")
    retries = []
    for queued in ("1", "256"):
        folder = tmp_path / queued
        folder.mkdir()
        done, point, found = run(program, folder, "spin", *work, "--queued", queued)
        assert (done.returncode, found.returncode) == (0, 0), done.stderr
        assert (point["done"], point["lost"], point["data_ok"]) == (8 * 60, 0, True)
        retries.append(point["retries"])
    assert retries[0] > 0
    assert retries[1] == 0


def test_long_values_stop_the_entry_and_the_server_enables_it(program: Path, tmp_path: Path) -> None:
    arguments = ("--value", "65536", "--slots", "512", "--records", "32", "--operations", "20")
    options = ("--set", "accelerator.hpus=1", "--set", "accelerator.packet_buffer_bytes=65536")
    done, point, found = run(program, tmp_path, "spin", *arguments, options=options)
    assert (done.returncode, found.returncode, point["lost"]) == (0, 0, 0)
    assert point["retries"] > 0
    assert "flow control disabled portal table entries" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_lost_packets_cost_only_time(mode: str, program: Path, tmp_path: Path) -> None:
    done, point, found = run(program, tmp_path, mode, *SMALL, options=("--drop", "*:0.01"))
    assert (done.returncode, found.returncode, point["lost"]) == (0, 0, 0)
    assert "packets were lost, as --drop" in done.stderr


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
def test_a_dead_client_is_named_and_the_others_go_on(failure: str, mode: str, program: Path, tmp_path: Path) -> None:
    done, point, found = run(program, tmp_path, mode, *SMALL, options=(failure, "3@60us"))
    assert (done.returncode, found.returncode) == (1, 0)
    assert (point["done"], point["lost"], point["data_ok"]) == (7 * 60, 60, False)
    assert "rank 3 does not report: its 60 operations are lost" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_records_of_a_client_that_dies_early_are_missing(mode: str, program: Path, tmp_path: Path) -> None:
    """A client dies while the records are inserted that all others take for granted."""
    arguments = ("--records", "256", "--operations", "60", "--mixes", "3")
    done, point, found = run(program, tmp_path, mode, *arguments, options=("--kill-card", "3@5us"))
    assert (done.returncode, found.returncode) == (1, 0), done.stderr
    assert (point["done"], point["lost"], point["data_ok"]) == (7 * 60, 60, False)
    assert re.search(r"[1-9]\d* operations found no record: a lost client has not inserted it", done.stderr)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
def test_a_dead_server_is_named_by_all_clients(failure: str, mode: str, program: Path, tmp_path: Path) -> None:
    done, _, found = run(program, tmp_path, mode, *SMALL, options=(failure, "0@60us"))
    assert found.returncode == 0
    for rank in range(1, 9):
        assert f"rank {rank}: a server does not answer: 60 of 60 operations are lost" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mixes", "8"), "expected --ranks from 2 to 9, --mixes from 1 to 7, --thetas up to 1000"),
        (("--levels", "9,3"), "--levels: expected two numbers from 3 to 20"),
        (("--records", "33"), "--records, --cores and --queued: expected powers of two"),
        (("--index", "disk"), "disk: not understood"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str, program: Path, tmp_path: Path) -> None:
    done, _, _ = run(program, tmp_path, "spin", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


# ---- The page ----


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_a_get_takes_the_time_by_hand(machine: str, program: Path, tmp_path: Path) -> None:
    total = by_hand("kvstore", "a get", machine)["sum"]
    arguments = ("--mixes", "3", "--records", "1", "--operations", "4")
    run(program, tmp_path, "spin", *arguments, options=("--machine", machine), ranks=2)
    start, end = map(int, (tmp_path / "history.1").read_text().splitlines()[-1].split()[4:6])
    assert abs(Decimal(end - start) / 1000 - total) <= Decimal("0.01")


def test_the_page_shows_the_handler_as_it_is() -> None:
    page = (ROOT / "docs" / "use-cases" / "kvstore.md").read_text()
    handler = page.partition("```c\n")[2].partition("```")[0]
    assert handler in (ROOT / "sdk" / "handlers" / "kvstore" / "kvstore.h").read_text()
