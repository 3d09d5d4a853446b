# SPDX-License-Identifier: Apache-2.0
"""Consensus: its time is that of the page, and no schedule of failures makes clients or hosts disagree."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from spinkit import _paths

from .conftest import CHECKOUT
from .use_cases import by_hand, refuses

SOURCE = CHECKOUT / "experiments" / "use-cases" / "consensus" / "consensus.c"
SCHEDULES = CHECKOUT / "experiments" / "use-cases" / "consensus"
NICS = {"rdma": "rdma", "cpu": "rdma", "spin": "spin"}


def compiled(folder: Path, *flags: str) -> Path:
    command = [_paths.command("spincc"), "-O3", "-Wall", "-Wextra", "-Werror", *flags, SOURCE, "-o", folder / "program"]
    subprocess.run(command, check=True)
    return folder / "program"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("consensus"))


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("linearizability", SCHEDULES / "linearizability.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["linearizability"] = module
    spec.loader.exec_module(module)
    return module


def run(program: Path, mode: str, options: str, arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Return the lines of a run, and spinrun's messages."""
    command = [_paths.command("spinrun"), "--nic", NICS[mode], *options.split(), program, "--mode", mode]
    done = subprocess.run([*command, *arguments.split()], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    is_right = all(line.get("data_ok", True) for line in lines)
    assert done.returncode == (0 if is_right else 1), done.stderr
    return lines, done.stderr


def schedules(program: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, SCHEDULES / "schedules.py", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_sum_by_hand_is_that_of_a_run(program: Path) -> None:
    [point], _ = run(program, "spin", "-n 4", "--replicas 3 --requests 20 --clients 1")
    total = by_hand("consensus", "one client, three replicas", "sc17-int")["sum"]
    assert total == Decimal(point["time_ps"]) / 1000


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis", "pspin-400g"])
def test_all_modes_carry_out_each_command_once(program: Path, machine: str) -> None:
    """The program compares the sum of all results, which are different numbers from 0 on."""
    for mode in NICS:
        for network in ("latency", "fabric"):
            options = f"-n 10 --machine {machine} --set network.model={network} --fail-on-drop --fail-on-handler-error"
            points, _ = run(program, mode, options, "--replicas 3 --requests 3 --clients 1,7")
            assert [(point["commands"], point["data_ok"]) for point in points] == [(5, True), (35, True)], mode


def test_five_replicas_serve_sixteen_clients_on_slow_cards(program: Path) -> None:
    """A second group of clients finds thousands of events far ahead: watchdogs and time limits of the first."""
    points, _ = run(program, "spin", "-n 21 --machine pspin-400g", "--replicas 5 --requests 20 --clients 8,16")
    assert [(point["commands"], point["data_ok"]) for point in points] == [(176, True), (352, True)]


def test_a_full_log_is_refused_and_named(program: Path) -> None:
    arguments = "--replicas 3 --clients 2 --slots 32 --requests"
    [point], _ = run(program, "spin", "-n 5", f"{arguments} 14")
    assert (point["commands"], point["data_ok"]) == (32, True), "the last command has the last slot"
    for mode, problem in (
        ("spin", "the log is full after 32 commands: command 17 is refused"),
        ("cpu", "34 commands do not fit into a log of 32 slots"),
    ):
        command = [_paths.command("spinrun"), "--nic", NICS[mode], "-n", "5", program, "--mode", mode]
        done = subprocess.run([*command, *arguments.split(), "15"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert problem in done.stderr


def test_hosts_shorten_the_log(program: Path, checker: ModuleType) -> None:
    """120 commands go through a log of 8 slots, also when its leader dies; all hosts have the same snapshots."""
    for death in ("", "--kill-card 0@3ms"):
        lines, _ = run(program, "spin", f"-n 5 {death}", "--replicas 3 --requests 60 --until 40 --slots 8")
        history = [checker.Command(*one) for line in lines for one in line.get("history", ())]
        assert len(history) == 120
        assert all(one.end is not None for one in history)
        assert checker.is_linearizable(history)
        chosen = {slot for line in lines for _, slot, _, _ in line.get("chosen", ())}
        assert len(chosen) >= 120
        snapshots = {line["replica"]: dict(line["snapshots"]) for line in lines if "replica" in line}
        last = max(snapshots[1])
        assert last > len(chosen) - 8
        assert snapshots[2][last] == snapshots[1][last]


@pytest.mark.parametrize("mode", NICS)
def test_measuring_ends_under_losses_and_deaths(program: Path, mode: str) -> None:
    arguments = "--replicas 3 --requests 3 --clients 2"
    [point], _ = run(program, mode, "-n 5 --drop *:0.01", arguments)
    assert point["data_ok"]
    [point], _ = run(program, mode, "-n 5 --kill-card 2@0ns", arguments)
    assert point["data_ok"], "two of three replicas are a majority"
    [point], told = run(program, mode, "-n 5 --kill-card 0@0ns", arguments)
    assert not point["data_ok"]
    assert "rank 0: its card dies" in told


def test_a_quorum_of_one_is_found_without_failures(tmp_path: Path) -> None:
    """At the end of the measured run the program asks a leader whose followers have stopped."""
    program = compiled(tmp_path, "-DQUORUM_OF_ONE")
    points, told = run(program, "spin", "-n 10", "--replicas 3 --requests 3 --clients 1,7")
    assert [point["data_ok"] for point in points] == [False, False]
    assert "the leader answers without a majority of the replicas" in told


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("(record->slot ^ (c->rank == 2))", r"slot \d: replicas 0 and 2 have different commands"),
        ("(record->slot + 16 * c->rank)", r"a majority of the replicas has 0 of the 5 commands that were answered"),
    ],
)
def test_logs_that_differ_are_found(place: str, problem: str, tmp_path: Path) -> None:
    """The cards of followers that write to other slots of their logs vote and answer as before."""
    header = (CHECKOUT / "sdk" / "handlers" / "consensus" / "consensus.h").read_text()
    assert header.count("(record->slot & (c->slots - 1))") == 1
    broken = tmp_path / "handlers" / "consensus" / "consensus.h"
    broken.parent.mkdir(parents=True)
    broken.write_text(header.replace("(record->slot & (c->slots - 1))", f"({place} & (c->slots - 1))"))
    points, told = run(compiled(tmp_path, "-I", str(tmp_path)), "spin", "-n 4", "--replicas 3 --requests 3 --clients 1")
    assert [point["data_ok"] for point in points] == [False]
    assert re.search(problem, told), told


def test_a_leader_that_dies_is_replaced(program: Path, checker: ModuleType) -> None:
    for death in ("--kill-card 0@8ms", "--fail 0@8ms"):
        lines, _ = run(program, "spin", f"-n 5 {death}", "--replicas 3 --requests 60 --until 30")
        history = [checker.Command(*one) for line in lines for one in line.get("history", ())]
        assert len(history) == 120
        assert all(one.end is not None for one in history)
        assert checker.is_linearizable(history)
        terms = {line["replica"]: line["terms"] for line in lines if "replica" in line}
        assert sum(terms[rank] for rank in (1, 2)) >= 1


def test_two_runs_are_the_same(program: Path) -> None:
    options = "-n 7 --drop *:0.1 --kill-card 0@4ms --set network.retries=1"
    one, other = (run(program, "spin", options, "--replicas 5 --requests 9 --until 20 --seed 3") for _ in range(2))
    assert one == other


def test_schedules_are_safe(program: Path) -> None:
    points = schedules(program, "--dead", "0,1,2,3", "--schedules", "5")
    assert [(point["dead"], point["violations"]) for point in points] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert all(point["answered"] > 0 and point["snapshots"] > 0 for point in points)


@pytest.mark.parametrize("flag", ["-DQUORUM_OF_ONE", "-DCONSENSUS_NO_TERM_CHECK", "-DSNAPSHOT_WITHOUT_NUMBERS"])
def test_broken_protocols_are_found(flag: str, tmp_path: Path) -> None:
    [point] = schedules(compiled(tmp_path, flag), "--dead", "0", "--schedules", "4", "--first", "7")
    assert point["violations"] > 0


@pytest.mark.parametrize(
    ("file", "correct", "broken", "dead", "first"),
    [
        # A card promises a term, but still takes commands of the term before.
        (
            "sdk/handlers/consensus/consensus.h",
            "    consensus_learn(c, term);\n    promise.promised = c->host.promised;",
            "    if (candidate == c->rank)\n        consensus_learn(c, term);\n    promise.promised = term;",
            0,
            7,
        ),
        # A card that leads uses slots again whose commands are not in its host's snapshot.
        (
            "sdk/handlers/consensus/consensus.h",
            "if (c->next - c->host.base == c->slots)\n",
            "if (false)\n",
            1,
            10,
        ),
        # A card takes a command for a slot whose place another command has that its host's snapshot has not.
        (
            "sdk/handlers/consensus/consensus.h",
            "    if (m->slot >= c->host.base + c->slots)\n        return 0;\n",
            "",
            1,
            22,
        ),
        # A host that begins to lead reads its own log only.
        (
            "experiments/use-cases/consensus/consensus.c",
            "(set >> from & 1) && slot < promises",
            "from == rank && slot < promises",
            0,
            3,
        ),
    ],
)
def test_errors_in_the_protocol_are_found(
    file: str, correct: str, broken: str, dead: int, first: int, tmp_path: Path
) -> None:
    for folder in ("sdk", "experiments/common", "experiments/use-cases/consensus"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    text = (tmp_path / file).read_text()
    assert text.count(correct) == 1
    (tmp_path / file).write_text(text.replace(correct, broken))
    command = [
        _paths.command("spincc"),
        "-O3",
        tmp_path / "experiments/use-cases/consensus/consensus.c",
        "-o",
        tmp_path / "program",
    ]
    subprocess.run(command, check=True, env=os.environ | {"SPINKIT_HOME": str(tmp_path)})
    [point] = schedules(tmp_path / "program", "--dead", str(dead), "--schedules", "2", "--first", str(first))
    assert point["violations"] > 0


CARD = """\
command of term 1 for slot 0: kind 3, term 1, slot 0;
for slot 4, whose place slot 0 has:
the host's snapshot has slot 0:
again for slot 4: kind 3, term 1, slot 4;
for slot 5, whose place slot 1 may have:
promise term 3:
command of term 1 for slot 1: kind 4, term 3, slot 0;
lead in term 3:
propose slot 1: kind 2, term 3, slot 1;
promise term 6:
lead in term 6:
propose another command: kind 2, term 6, slot 1;
vote of term 3 for slot 1:
vote of term 6 for slot 1: command 3 is answered;
place 0: slot 4, term 1
place 1: slot 1, term 6
place 2: slot 0, term 0
place 3: slot 0, term 0
chosen: 2, promised: 6
"""


def message_of(tmp_path: Path, correct: str = "", broken: str = "", *options: str) -> str:
    """Return what tests/programs/consensus_card.c prints, with a changed protocol."""
    for folder in ("sdk", "experiments/common", "tests/programs"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    header = tmp_path / "sdk/handlers/consensus/consensus.h"
    text = header.read_text()
    assert correct == "" or text.count(correct) == 1
    header.write_text(text.replace(correct, broken) if correct else text)
    program = tmp_path / "program"
    command = [_paths.command("spincc"), "-O2", "-Wall", "-Wextra", "-Werror"]
    command += [tmp_path / "tests/programs/consensus_card.c", "-o", program]
    subprocess.run(command, check=True, env=os.environ | {"SPINKIT_HOME": str(tmp_path)})
    done = subprocess.run([_paths.command("spinrun"), "-n", "3", *options, program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("machine", ["sc17-int", "pspin-400g"])
def test_a_card_takes_no_message_that_comes_too_late(machine: str, tmp_path: Path) -> None:
    """A vote of an old term would have to be under way for two leaderships, which hosts that wait for 3 ms do not let
    happen, since a message lives for less than a fifth of a millisecond. So no schedule shows what the card does with
    it. Here it is sent."""
    assert message_of(tmp_path, "", "", "--machine", machine) == CARD


@pytest.mark.parametrize(
    ("correct", "broken", "line"),
    [
        ("c->leading == m->term ? consensus_count", "c->leading != 0 ? consensus_count", "vote of term 3 for slot 1:"),
        (
            "if (m->slot >= c->host.base + c->slots)\n        return 0;\n",
            "",
            "for slot 4, whose place slot 0 has:",
        ),
        ("return term >= c->host.promised;", "return term > 0;", "command of term 1 for slot 1: kind 4"),
    ],
)
def test_a_card_that_takes_such_messages_is_found(correct: str, broken: str, line: str, tmp_path: Path) -> None:
    """The first wrong line is that of the message."""
    lines = zip(CARD.splitlines(), message_of(tmp_path, correct, broken).splitlines(), strict=True)
    right, wrong = next((right, wrong) for right, wrong in lines if right != wrong)
    assert right.startswith(line), wrong


def test_the_checker_of_histories(checker: ModuleType) -> None:
    """Histories by hand: (operation, key, value, expected, result, start, end)."""

    def explained(*history: tuple[int | None, ...]) -> bool:
        return bool(checker.is_linearizable([checker.Command(*one) for one in history]))

    write, add, swap, read = checker.WRITE, checker.ADD, checker.SWAP, checker.READ
    assert explained((write, 0, 5, 0, 0, 0, 10), (read, 0, 0, 0, 5, 11, 12))
    assert not explained((write, 0, 5, 0, 0, 0, 10), (read, 0, 0, 0, 0, 11, 12)), "a read misses what came before"
    assert explained((write, 0, 5, 0, 0, 0, 10), (read, 0, 0, 0, 0, 9, 12)), "they overlap"
    assert explained((write, 0, 5, 0, 0, 0, 10), (read, 1, 0, 0, 0, 11, 12)), "another number"
    assert explained((add, 0, 2, 0, None, 0, None), (read, 0, 0, 0, 2, 50, 60)), "it has come late"
    assert explained((add, 0, 2, 0, None, 0, None), (read, 0, 0, 0, 0, 50, 60)), "or never"
    assert not explained((add, 0, 2, 0, None, 55, None), (read, 0, 0, 0, 2, 50, 54)), "not before its start"
    assert not explained((add, 0, 1, 0, 0, 0, 9), (add, 0, 1, 0, 0, 1, 8)), "both cannot be first"
    assert explained((swap, 0, 7, 1, 0, 0, 9), (read, 0, 0, 0, 0, 10, 11)), "it expected another number"
    assert not explained((write, 0, 1, 0, 0, 0, 1), (read, 0, 0, 0, 1, 2, 5), (read, 0, 0, 0, 0, 6, 7)), (
        "a number does not come back"
    )


def test_wrong_arguments_are_refused(program: Path) -> None:
    wrong = (
        ("--mode spin --replicas 3 --requests 1 --clients 1", "--replicas: expected 1 to 8"),
        ("--mode spin --replicas 2 --requests 0 --clients 1", "--requests: expected"),
        ("--mode spin --replicas 2 --requests 1 --clients 2", "--clients: expected"),
        ("--mode spin --replicas 2 --requests 1 --clients 1 --slots 12", "--slots: expected a power of two"),
        ("--mode cpu --replicas 2 --requests 1 --until 5", "--until: expected milliseconds"),
    )
    refuses(program, 3, wrong)
