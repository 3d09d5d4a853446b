# SPDX-License-Identifier: Apache-2.0
"""The parts that use cases share (sdk/handlers/common), used by many handlers at once in tests/programs/common.c."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

PROGRAM = Path(__file__).parents[1] / "programs" / "common.c"
MACHINES = ["sc17-int", "pspin-400g"]
CLIENT = re.compile(r"client (\d+): (\d+) taken, (\d+) without slot, (\d+) without room, sum (\d+)\n")
SERVER = re.compile(r"server: (\d+) records, (\d+) slots kept\n")


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> str:
    program = str(tmp_path_factory.mktemp("common") / "common")
    subprocess.run([_paths.command("spincc"), "-Wall", "-Wextra", "-Werror", PROGRAM, "-o", program], check=True)
    return program


def run(program: str, ranks: int, machine: str, capacity: int) -> str:
    options = ["-n", str(ranks), "--machine", machine, "--fail-on-handler-error", "--timeout", "60"]
    command: list[str | Path] = [_paths.command("spinrun"), *options, program, str(capacity)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("machine", MACHINES)
def test_a_full_queue_refuses_records(common: str, machine: str) -> None:
    """The CPU takes nothing meanwhile: 16 of 100 requests find room. Six of the numbers 0 to 15 are multiples of 3."""
    expected = "client 1: 16 taken, 0 without slot, 84 without room, sum 5050\nserver: 16 records, 10 slots kept\n"
    assert run(common, 2, machine, 16) == expected


def test_slots_run_out(common: str) -> None:
    """Two of three requests keep their slot: 96 requests take all 64 slots, and four find none."""
    expected = "client 1: 96 taken, 4 without slot, 0 without room, sum 5050\nserver: 96 records, 64 slots kept\n"
    assert run(common, 2, "sc17-int", 1024) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("capacity", [64, 1024])
def test_many_handlers_at_once_lose_nothing(common: str, machine: str, capacity: int) -> None:
    """Each of four clients adds 1 + 2 + … + 100 under the lock; every record and every slot is seen once."""
    output = run(common, 5, machine, capacity)
    assert output == run(common, 5, machine, capacity)
    clients = [[int(number) for number in line] for line in CLIENT.findall(output)]
    assert sorted(client[0] for client in clients) == [1, 2, 3, 4]
    assert all(taken + no_slot + no_room == 100 for _, taken, no_slot, no_room, _ in clients)
    assert max(client[4] for client in clients) == 4 * 5050
    [[records, kept]] = [[int(number) for number in line] for line in SERVER.findall(output)]
    assert records == sum(client[1] for client in clients)
    assert CLIENT.sub("", SERVER.sub("", output)) == "", "no slot is taken twice, no record is wrong"
    if capacity == 64:
        assert records == 64
    else:
        # One after the other, 96 requests take all slots, as a third of them gives its slot back. At once, some of that
        # third find all slots taken.
        assert kept == 64
        assert records >= 80
