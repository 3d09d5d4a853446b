# SPDX-License-Identifier: Apache-2.0
"""Transactions: histories are judged, broken validators and logs are found, and the dead are named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .use_cases import by_hand

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "use-cases" / "transactions"
NICS = {"rdma": "rdma", "served": "rdma", "spin": "spin"}

Done = subprocess.CompletedProcess[str]


def compiled(program: Path, *arguments: str | Path) -> Path:
    subprocess.run([_paths.command("spincc"), "-O3", *arguments, "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("transactions") / "program", FOLDER / "transactions.c")


def spinrun(program: Path, mode: str, *arguments: str, options: tuple[str, ...] = (), ranks: int = 12) -> Done:
    command: list[str | Path] = [_paths.command("spinrun"), "-n", str(ranks), "--nic", NICS[mode], *options, program]
    return subprocess.run(
        [*command, "--mode", mode, *arguments], capture_output=True, text=True, timeout=100, check=False
    )


def points(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("machine", "model"),
    [("sc17-int", "latency"), ("sc17-int", "fabric"), ("sc17-dis", "latency"), ("pspin-400g", "fabric")],
)
@pytest.mark.parametrize("mode", NICS)
def test_histories_are_serializable(machine: str, model: str, mode: str, program: Path) -> None:
    options = ("--machine", machine, "--set", f"network.model={model}")
    done = spinrun(program, mode, "--clients", "8", "--accounts", "3", "--count", "15", options=options)
    assert (done.returncode, done.stderr.count("warning")) == (0, 0), done.stderr
    [point] = points(done)
    assert (point["committed"], point["data_ok"]) == (120, True)
    assert point["aborted"] > 10, "transactions meet"


@pytest.mark.parametrize("mode", NICS)
def test_a_run_is_the_same_each_time(mode: str, program: Path) -> None:
    """Also with hosts whose threads get their slots for calls in another order in each run."""
    runs = [spinrun(program, mode, "--clients", "1,16", "--accounts", "3", "--count", "15", ranks=20) for _ in range(3)]
    assert len({run.stdout for run in runs}) == 1
    assert runs[0].returncode == 0


HISTORIES = r"""
#include "history.h"
#define A(record, writer, before, after) {writer, {before, before}, {after, after}, record, after != before}
int main(void) {
    struct transaction all[] = {%s};
    struct value final[] = {%s};
    struct history history = {all, sizeof all / sizeof *all, sizeof all / sizeof *all};
    const char *problem = judge(&history, 10, final, 2, %s);
    puts(problem == NULL ? "serializable" : problem);
    return 0;
}
"""


@pytest.mark.parametrize(
    ("transactions", "final", "verdict"),
    [
        # 1 reads record 0 and changes record 1; 2 changes record 0 afterwards.
        (
            "{1, 2, {A(0, 0, 10, 10), A(1, 0, 10, 11)}}, {2, 1, {A(0, 0, 10, 12)}}",
            "{{12, 12}, 2}, {{11, 11}, 1}",
            "serializable",
        ),
        # Write skew: each has read what the other replaces.
        (
            "{1, 2, {A(0, 0, 10, 10), A(1, 0, 10, 11)}}, {2, 2, {A(0, 0, 10, 12), A(1, 0, 10, 10)}}",
            "{{12, 12}, 2}, {{11, 11}, 1}",
            "2 transactions precede themselves, or others that do; one is 1",
        ),
        (
            "{1, 1, {A(0, 0, 10, 11)}}, {2, 1, {A(0, 0, 10, 12)}}",
            "{{12, 12}, 2}, {{10, 10}, 0}",
            "transactions 1 and 2 replace the same value of record 0: an update is lost",
        ),
        (
            "{1, 1, {A(0, 7, 11, 12)}}",
            "{{12, 12}, 1}, {{10, 10}, 0}",
            "transaction 1 has read record 0 from 7, which did not commit",
        ),
        ("{1, 1, {A(0, 0, 9, 12)}}", "{{12, 12}, 1}, {{10, 10}, 0}", "transaction 1 has read other values in record 0"),
        ("{1, 1, {A(0, 0, 10, 12)}}", "{{10, 10}, 0}, {{10, 10}, 0}", "record 0 has other values in the end"),
    ],
)
def test_the_judge_finds_broken_histories(transactions: str, final: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "judge.c").write_text(HISTORIES % (transactions, final, "false"))
    include = ("-Wno-unused", f"-I{FOLDER}", f"-I{ROOT / 'sdk'}", f"-I{ROOT / 'sdk' / 'include'}")
    judge = compiled(tmp_path / "judge", *include, tmp_path / "judge.c")
    done = subprocess.run([_paths.command("spinrun"), "-n", "1", judge], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(verdict), done.stderr


@pytest.mark.parametrize(
    ("correct", "broken", "log"),
    [
        ("host->version[client->read[i].record] != client->read[i].version ||", "", 4096),
        ("host->version[client->held_write[i]] += has_committed;", "", 4096),
        ("transaction_note(host, access);\n", ";\n", 4096),
        ("return DROP;", "return PROCEED;", 4),
        ("has_committed && client->held_writes > 0 ? transaction_drain(host) : 0", "0", 4096),
    ],
)
def test_a_broken_validator_is_found(correct: str, broken: str, log: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sdk" / "handlers", tmp_path / "handlers")
    file = tmp_path / "handlers" / "transactions" / "transactions.h"
    text = file.read_text()
    assert text.count(correct) == 1
    file.write_text(text.replace(correct, broken))
    broken_program = compiled(tmp_path / "program", f"-I{tmp_path}", FOLDER / "transactions.c")
    done = spinrun(broken_program, "spin", "--clients", "16", "--accounts", "2", "--log", str(log), ranks=20)
    assert (done.returncode, "not serializable" in done.stderr) == (1, True), done.stdout + done.stderr


def test_a_full_log_is_told_and_loses_nothing(program: Path) -> None:
    [point] = points(spinrun(program, "spin", "--clients", "8", "--log", "2"))
    assert point["log_full"] > 0
    assert (point["committed"], point["data_ok"]) == (320, True)


@pytest.mark.parametrize("mode", NICS)
def test_lost_packets_cost_only_time(mode: str, program: Path) -> None:
    done = spinrun(program, mode, "--clients", "8", "--accounts", "64", options=("--drop", "*:0.01"))
    assert (done.returncode, points(done)[0]["committed"]) == (0, 320), done.stderr
    assert "packets were lost, as --drop" in done.stderr


@pytest.mark.parametrize("mode", NICS)
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
@pytest.mark.parametrize(
    ("rank", "told"),
    [(2, "host 2 is dead: its records are lost"), (6, "client 6 is dead: its transactions are not known")],
)
def test_the_dead_are_named(mode: str, failure: str, rank: int, told: str, program: Path) -> None:
    done = spinrun(program, mode, "--clients", "4", "--accounts", "64", options=(failure, f"{rank}@8us"), ranks=8)
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr
    [point] = points(done)
    assert (0 < point["committed"] < 160, point["data_ok"]) == (True, False)


def test_arguments_are_checked(program: Path) -> None:
    for arguments, message in (
        (("--clients", "9"), "--clients: 9 are not 1 to 64, or this needs more ranks"),
        (("--clients", "1", "--log", "3"), "--log is a power of two"),
        (("--clients", "1", "--count", "0"), "--count and --accounts are at least 1"),
    ):
        done = spinrun(program, "spin", *arguments)
        assert (done.returncode, message in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_the_sum_of_the_page_is_that_of_a_run(machine: str, program: Path) -> None:
    text = (ROOT / "docs" / "use-cases" / "transactions.md").read_text()
    [count] = re.findall(r"--count (\d+)", text[: text.index("**sum**")])
    done = spinrun(program, "spin", "--clients", "1", "--count", count, options=("--machine", machine), ranks=5)
    assert points(done)[0]["time_ps"] == int(by_hand("transactions", "term", machine)["sum"] * 1000)
