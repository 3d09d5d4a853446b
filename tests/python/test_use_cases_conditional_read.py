# SPDX-License-Identifier: Apache-2.0
"""Conditional reads: SQLite judges the rows, broken handlers are found, failures are reported; the page has sums of
runs.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .use_cases import by_hand

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "experiments" / "use-cases" / "conditional-read" / "conditional-read.c"
MACHINES = ("sc17-int", "sc17-dis", "pspin-400g")
NICS = {"rdma": "rdma", "served": "rdma", "spin": "spin"}
COLUMNS = "id INTEGER, department INTEGER, salary INTEGER, year INTEGER, account INTEGER, name TEXT"


def compiled(program: Path, *flags: str) -> Path:
    subprocess.run([_paths.command("spincc"), "-O3", *flags, SOURCE, "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("conditional-read") / "program")


def spinrun(
    program: Path, mode: str, *arguments: str | Path, options: tuple[str, ...] = (), ranks: int = 3
) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        _paths.command("spinrun"),
        "-n",
        str(ranks),
        "--nic",
        NICS[mode],
        *options,
        program,
        "--mode",
        mode,
    ]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=100, check=False)


def kept(rows: range, discarded: int) -> int:
    return sum(row * 7919 % 10000 >= discarded * 100 for row in rows)


def points(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "where",
    [
        "salary >= 8000",
        "salary < 2000 OR salary > 9000",
        "department = 7 AND NOT year <= 2000",
        "NOT (department <> 7 OR year < 1990) OR name >= 'X'",
        "account > -900000000000 AND account <= 500000000000",
        "name < 'B' AND (id = 1 OR id != 1)",
        "name = 'AAAAAAAA'",
        "NOT NOT salary = -1",
        "((salary > 100 AND salary < 200) OR (year = 1999 AND department > 50)) AND NOT name > 'M''s'",
    ],
)
def test_rows_are_those_of_sqlite(where: str, program: Path, tmp_path: Path) -> None:
    done = spinrun(
        program,
        "spin",
        "--discarded",
        "50",
        "--rows",
        "700",
        "--piece",
        "300",
        "--where",
        where,
        "--save",
        tmp_path / "t",
    )
    assert (done.returncode, done.stderr) == (0, "")
    table, rows = (
        [line.split(",") for line in (tmp_path / f"t.{suffix}").read_text().splitlines()]
        for suffix in ("table", "rows")
    )
    assert len(table) == 1400
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE employees ({COLUMNS})")
    database.executemany("INSERT INTO employees VALUES (?, ?, ?, ?, ?, ?)", table)
    wanted = [
        [str(value) for value in row] for row in database.execute(f"SELECT * FROM employees WHERE {where} ORDER BY id")
    ]
    assert rows == wanted
    assert points(done)[0]["rows"] == len(wanted)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("mode", NICS)
def test_all_modes_get_the_same_rows_twice(machine: str, mode: str, program: Path) -> None:
    """The last piece is shorter, and so is its last block; the third run is on the other model of the network."""
    arguments = ("--discarded", "0,80,100", "--rows", "130", "--piece", "100")
    outputs = []
    for model in ("latency", "latency", "fabric"):
        options = ("--machine", machine, "--set", f"network.model={model}", "--fail-on-drop", "--fail-on-handler-error")
        done = spinrun(program, mode, *arguments, options=options)
        assert done.returncode == 0, done.stderr
        assert [point["rows"] for point in points(done)] == [260, kept(range(260), 80), 0]
        assert {point["data_ok"] for point in points(done)} == {True}
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("correct", "broken"),
    [
        ("*(const type *)column < value", "*(const type *)column <= value"),
        ("words[i] = ~masks", "words[i] = masks"),
        ("count++", "count += row == 0"),
        ("held[j] = from[i + j]", "held[j] = from[i]"),
    ],
)
def test_a_broken_filter_is_found(correct: str, broken: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sdk" / "handlers", tmp_path / "handlers")
    file = tmp_path / "handlers" / "conditional-read" / "filter.h"
    text = file.read_text()
    assert text.count(correct) == 1
    file.write_text(text.replace(correct, broken))
    done = spinrun(compiled(tmp_path / "program", f"-I{tmp_path}"), "spin", "--discarded", "0,80", "--rows", "500")
    assert done.returncode == 1
    assert re.search(r"row \d+ is missing or wrong|rows that do not match", done.stderr)


@pytest.mark.parametrize("mode", NICS)
def test_lost_packets_cost_only_time(mode: str, program: Path) -> None:
    done = spinrun(program, mode, "--discarded", "50", "--rows", "2048", options=("--drop", "*:0.01"), ranks=5)
    assert done.returncode == 0, done.stderr
    assert [(point["rows"], point["data_ok"]) for point in points(done)] == [(kept(range(8192), 50), True)]
    assert "packets were lost, as --drop" in done.stderr


@pytest.mark.parametrize("mode", NICS)
@pytest.mark.parametrize("failure", [("--fail", "2@2us"), ("--kill-card", "2@2us"), ("--kill-card", "2@0us")])
def test_a_dead_server_is_named_and_the_rows_of_the_others_are_right(
    mode: str, failure: tuple[str, str], program: Path
) -> None:
    done = spinrun(program, mode, "--discarded", "50", "--rows", "1024", options=failure, ranks=4)
    assert done.returncode == 1
    assert "server 2 does not answer: rows from 1024 on are missing" in done.stderr
    [point] = points(done)
    expected = kept(range(1024), 50) + kept(range(2048, 3072), 50)
    assert (point["rows"], point["data_ok"]) == (expected, False)


@pytest.mark.parametrize("mode", NICS)
@pytest.mark.parametrize("failure", ["--fail", "--kill-card"])
def test_servers_end_when_the_client_is_dead(mode: str, failure: str, program: Path) -> None:
    done = spinrun(program, mode, "--discarded", "50", "--rows", "1024", options=(failure, "0@2us"))
    assert done.stdout == ""
    assert ("the client is dead" in done.stderr) == (mode == "served")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--room", "10"), 1, "rows match in piece 0; the request has room for 10"),
        (("--where", "salary"), 2, '--where: expected a comparison, at ""'),
        (("--where", "wage > 3"), 2, '--where: expected a column, at "wage > 3"'),
        (("--where", "salary > 3 salary"), 2, 'expected AND, OR or the end, at "salary"'),
        (("--where", "salary > 3000000000"), 2, "the number does not fit its column"),
        (("--where", "salary > 'A'"), 2, "expected a whole number"),
        (("--where", "name > 3"), 2, "expected a text in '…'"),
        (("--where", "name > 'A"), 2, "the text has no end"),
        (("--where", f"name > '{'A' * 41}'"), 2, "the text is longer than its column"),
        (("--where", "(salary > 3"), 2, "expected )"),
        (("--where", " AND ".join(["name > 'A'"] * 30)), 2, "the filter is too long"),
        (("--where", "(salary = 1 OR " * 8 + "salary = 1" + ")" * 8), 2, "too many results wait to be combined"),
    ],
)
def test_limits_are_told(arguments: tuple[str, ...], status: int, message: str, program: Path) -> None:
    done = spinrun(program, "spin", "--discarded", "50", "--rows", "512", *arguments)
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr


@pytest.mark.parametrize("machine", ["sc17-int", "sc17-dis"])
def test_the_sum_of_the_page_is_that_of_a_run(machine: str, program: Path) -> None:
    options = ("--machine", machine)
    [point] = points(spinrun(program, "spin", "--discarded", "100", "--rows", "64", options=options, ranks=2))
    assert point["time_ps"] == int(by_hand("conditional-read", "term", machine)["sum"] * 1000)
