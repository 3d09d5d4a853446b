# SPDX-License-Identifier: Apache-2.0
"""`spinkit sweep`: rows, repeated runs, and refusals; with tools that only print times (conftest.py)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from spinkit.cli import main
from spinkit.reports._curves import Plot
from spinkit.sweeps import _sweep_plot

from .conftest import TIMES, Program

FILE = Path("out/ping-pong/sweep.json")


@pytest.fixture
def one_machine(home: Path) -> Path:
    """Run the experiment on one of its machines, without claims and figures."""
    file = home / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    text = file.read_text().partition("[[claim]]")[0]
    file.write_text(text.replace('machines = ["sc17-int", "sc17-dis"]', 'machines = ["sc17-int"]'))
    return home


def sweep(*words: str) -> Result:
    return CliRunner().invoke(main, ["sweep", "ping-pong", *words])


def slower(of: dict[str, dict[str, list[int]]], by: int) -> dict[str, dict[str, list[int]]]:
    """Return times with a later start."""
    return {machine: {mode: [t[0] + by, *t[1:]] for mode, t in modes.items()} for machine, modes in of.items()}


def test_rows_are_all_points_in_order(home: Path, program: Program) -> None:
    changed = {
        f"dma.L_ns={latency},nic.match_cam_ns={cam}": slower(TIMES, latency + cam)
        for latency in (50, 60)
        for cam in (1, 2)
    }
    program(changed=changed)
    result = sweep("--quick", "--set", "dma.L_ns=50:60:10", "--set", "nic.match_cam_ns=1,2", "--parquet", "t.parquet")
    assert result.exit_code == 0, result.output
    rows = json.loads(FILE.read_text())
    names = {"rdma": "rdma", "portals4": "triggered", "spin-store": "store", "spin-stream": "stream"}
    expected = [
        (machine, series, latency, cam, size)
        for latency in (50, 60)
        for cam in (1, 2)
        for machine in ("sc17-int", "sc17-dis")
        for series in names
        for size in (8, 64, 4096, 8192, 262144)
    ]
    keys = ("machine", "series", "dma.L_ns", "nic.match_cam_ns", "bytes")
    assert [tuple(row[key] for key in keys) for row in rows] == expected
    assert rows[1] == {
        "machine": "sc17-int",
        "series": "rdma",
        "nic": "rdma",
        "mode": "rdma",
        "dma.L_ns": 50,
        "nic.match_cam_ns": 1,
        "bytes": 64,
        "half_rtt_ps": 1_000_000 + 20 * 64 + 51,
        "data_ok": True,
    }
    assert [line.split()[0] for line in result.stderr.splitlines()] == [f"{n}/32" for n in range(1, 33)]
    # The table on standard output names the ends: the discrete card's RDMA takes longest with the largest latency.
    assert "dma.L_ns = 60, nic.match_cam_ns = 2, bytes = 262144" in result.stdout
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet("t.parquet")
    assert frame.to_dict("records") == rows
    assert pandas.read_json(FILE).to_dict("records") == rows


def test_cards_without_handlers_run_once_for_all_numbers_of_hpus(one_machine: Path, program: Program) -> None:
    program(changed={"accelerator.hpus=1": slower(TIMES, 7), "accelerator.hpus=2": slower(TIMES, 9)})
    result = sweep("--quick", "--set", "accelerator.hpus=1,2", "--column", "handlers.pong.calls")
    assert result.exit_code == 0, result.output
    rows = json.loads(FILE.read_text())
    found = {
        (row["series"], row["accelerator.hpus"]): row
        for row in rows
        if (row["machine"], row["bytes"]) == ("sc17-int", 8)
    }
    assert {place: row["half_rtt_ps"] for place, row in found.items() if place[0] in ("rdma", "spin-stream")} == {
        ("rdma", 1): 1_000_160,
        ("rdma", 2): 1_000_160,
        ("spin-stream", 1): 600_127,
        ("spin-stream", 2): 600_129,
    }
    assert [found[series, 1]["handlers.pong.calls"] for series in ("rdma", "spin-store")] == [None, 4]
    # Two series of cards without handlers, and two with, at two points.
    assert len(result.stderr.splitlines()) == 2 + 2 * 2


def test_what_is_swept_replaces_what_a_series_sets(one_machine: Path, program: Program) -> None:
    file = one_machine / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    file.write_text(file.read_text().replace('mode = "stream"', 'mode = "stream"\nset = ["dma.L_ns=1"]', 1))
    program(changed={"dma.L_ns=1,dma.L_ns=60": slower(TIMES, 3)})
    assert sweep("--quick", "--set", "dma.L_ns=60").exit_code == 0
    [row] = [
        row
        for row in json.loads(FILE.read_text())
        if (row["series"], row["bytes"], row["machine"]) == ("spin-stream", 8, "sc17-int")
    ]
    assert row["half_rtt_ps"] == 600_123


def test_a_failed_run_is_named_and_only_it_is_made_again(one_machine: Path, program: Program, tmp_path: Path) -> None:
    program(changed={"dma.L_ns=60": "refused"})
    words = ("--quick", "--set", "dma.L_ns=50,60", "--jobs", "1")
    result = sweep(*words)
    assert result.exit_code == 1
    assert (
        "ping-pong: RDMA on sc17-int, dma.L_ns = 60 failed and is run again: spinrun ended with status 1"
        in result.stderr
    )
    assert result.stderr.count("failed and is run again") == 4
    assert (
        "RDMA on sc17-int, dma.L_ns = 60: spinrun ended with status 1\nspinrun: error: dma.L_ns=60: refused"
        in result.stderr
    )
    assert "4 runs failed; the table has all others, and the same command makes only what failed again" in result.stderr
    assert {row["dma.L_ns"] for row in json.loads(FILE.read_text())} == {50}
    # The program is part of what a result depends on. Another one that fails once is given a second try.
    (tmp_path / "once").touch()
    program(once=str(tmp_path / "once"))
    result = sweep(*words)
    assert result.exit_code == 0, result.output
    assert (
        result.stderr.count("failed and is run again: spinrun ended with status 1\nspinrun: error: only this once") == 1
    )
    rows = FILE.read_bytes()
    assert {row["dma.L_ns"] for row in json.loads(rows)} == {50, 60}
    again = sweep(*words)
    assert again.stderr.count("(from the cache)") == 8
    assert FILE.read_bytes() == rows
    # A further value runs only what is new.
    assert sweep("--quick", "--set", "dma.L_ns=50,60,70").stderr.count("(from the cache)") == 8
    (tmp_path / "once").touch()
    assert sweep(*words, "--fresh", "--retries", "0").exit_code == 1


def test_wrong_data_is_an_error_with_its_place(one_machine: Path, program: Program) -> None:
    program(fault={"data_ok": False}, fault_mode="store")
    result = sweep("--quick", "--set", "dma.L_ns=50")
    assert result.exit_code == 1
    assert "wrong data: spin-store on sc17-int, dma.L_ns = 50, bytes = 8" in result.stderr
    assert len(json.loads(FILE.read_text())) == 20


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--set", "dma.L_ns"], 2, "dma.L_ns: expected KEY=VALUES"),
        (["--set", "dma.L_ns=1", "--set", "dma.L_ns=2"], 1, "dma.L_ns is an axis already"),
        (["--set", "dma.l=1"], 1, "--set dma.l=1: unknown key"),
        (["--set", "dma.L_ns=1", "--cluster-option", "x"], 2, "expected NAME=VALUE"),
        (["--set", "dma.L_ns=1", "--cluster-option", "x=1"], 1, "--cluster-option has no meaning without --scheduler"),
        (["--set", "dma.L_ns=1", "--quick", "--column", "handlers"], 1, "--column handlers: is no number or text"),
        (["--set", "dma.L_ns=1", "--json", "/nowhere/x"], 1, "cannot write /nowhere/x"),
        ([], 2, "Missing option '--set'"),
    ],
)
def test_mistakes_are_told(one_machine: Path, program: Program, words: list[str], status: int, message: str) -> None:
    result = sweep(*words)
    assert (result.exit_code, message in result.stderr) == (status, True), result.stderr


def test_axes_of_the_experiment_cannot_be_swept(one_machine: Path, program: Program) -> None:
    file = one_machine / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml"
    axis = '[[axis]]\nset = { "dma.L_ns" = [1, 2] }\n\n[measure]'
    text: Any = file.read_text().partition("[[claim]]")[0].replace("[measure]", axis)
    file.write_text(text)
    result = sweep("--set", "dma.L_ns=1")
    assert "dma.L_ns is an axis of ping-pong already" in result.stderr


@pytest.mark.usefixtures("one_machine")
def test_columns_are_drawn_and_written_as_csv(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program(changed={f"dma.L_ns={latency}": slower(TIMES, latency * 1_000_000) for latency in (50, 60)})
    drawn: list[Plot] = []
    draw = _sweep_plot.draw
    monkeypatch.setattr(_sweep_plot, "draw", lambda plot: (drawn.append(plot), draw(plot))[1])
    of_latency = "dma.L_ns,half_rtt_ps,series,bytes=64"
    words = ("--set", "dma.L_ns=50,60", "--csv", "t.csv", "--plot", of_latency)
    result = sweep("--quick", *words, "--plot", "series,half_rtt_ps,bytes=64,dma.L_ns=60")
    assert result.exit_code == 0, result.output
    rows = json.loads(FILE.read_text())
    with Path("t.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{key: str(value) for key, value in row.items()} for row in rows]
    lines, bars = drawn
    assert (lines.function, lines.arguments["xs"], lines.arguments["x_label"]) == ("lines", [50, 60], "dma.L_ns")
    expected = [row["half_rtt_ps"] / 1e6 for row in rows if row["series"] == "rdma" and row["bytes"] == 64]
    assert lines.arguments["curves"][0].values == expected
    assert lines.arguments["curves"][0].label == "RDMA"
    assert lines.arguments["title"].endswith(": bytes = 64")
    assert (bars.function, len(bars.arguments["names"]), len(bars.arguments["curves"])) == ("bars", 4, 1)
    picture = Path("out/ping-pong/sweep-half_rtt_ps-over-dma.L_ns-series-bytes_64.svg")
    assert str(picture) in result.stdout.splitlines()
    assert picture.read_bytes().startswith(b"<?xml")
    assert picture.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("one_machine", "program")
@pytest.mark.parametrize(
    ("plot", "status", "message"),
    [
        ("bytes", 2, "expected X,Y[,COLUMN+COLUMN][,COLUMN=VALUE]"),
        ("bytes=8,half_rtt_ps", 2, "expected X,Y[,COLUMN+COLUMN][,COLUMN=VALUE]"),
        ("byte,half_rtt_ps", 1, "the table has no column byte; did you mean bytes?"),
        ("bytes,nic", 1, "nic is no number: 'rdma'"),
        ("bytes,half_rtt_ps,series,bytes=9", 1, "no row has bytes = 9"),
        ("dma.L_ns,half_rtt_ps,series", 1, "several points at dma.L_ns = 50; name bytes among the columns of curves"),
        ("dma.L_ns,half_rtt_ps", 1, "20 curves are more than 14; choose rows by COLUMN=VALUE, as in dma.L_ns,"),
    ],
)
def test_a_figure_that_cannot_be_drawn(plot: str, status: int, message: str) -> None:
    result = sweep("--quick", "--set", "dma.L_ns=50", "--plot", plot)
    assert result.exit_code == status
    assert message in result.stderr
    assert FILE.is_file() == (status == 1)  # the table is written before figures
