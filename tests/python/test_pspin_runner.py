# SPDX-License-Identifier: Apache-2.0
"""Experiments whose handlers use PsPIN's interface: `spinkit pspin run` for each value, and scripts beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from spinkit.cli import main
from spinkit.experiments import _reader
from spinkit.experiments._definition import Measure
from spinkit.experiments._outcome import Point, Results, Run
from spinkit.reports import _report

NS = {
    "pspin-400g": {"64": 26, "512": 33.5, "1024": 40},
    "pspin-published": {"64": 27, "512": 34, "1024": 42},
}

TEXT = """\
title = "Latency"
paper = "PsPIN"
summary = "A test."
models = ["pspin"]
machines = ["400g", "published"]

[program]
pspin = "{mode}.c"
args = ["--size", "{value}"]
flags = ["-DX={value}"]

[sweep]
axis = "size"
label = "Packet size"
values = [64, 512, 1024]

[measure]
key = "request_ns.min"
label = "Latency"
unit = "ns"

[[series]]
name = "model"
label = "model"
mode = "empty"

[[series]]
name = "paper"
label = "paper"
mode = "paper"
script = "paper.py"
args = ["{values}", "{accelerator.clusters}"]

[run]
timeout_s = 60
quick_values = [64]

[[claim]]
name = "latency"
text = "26 ns for 64 B"
source = "§IV-B1"
relation = "value"
of = "model"
values = [64]
paper = 26
at_least = 26
at_most = 26

[[claim.expected]]
machines = ["published"]
at_least = 27
at_most = 27
reason = "One cycle more."

[[claim.expected.shown]]
set = ["accelerator.cluster.feedback_cycles=1"]
at_least = 25.75
at_most = 26.25

[[claim]]
name = "mean"
text = "The mean"
source = "ours"
relation = "reported"
of = "model"
key = "request_ns.mean"
at_least = 20
at_most = 50

[[claim]]
name = "close"
text = "As the paper"
source = "§IV-B1"
relation = "close"
of = "model"
against = "paper"
at_most = 0.05

[[figure]]
name = "latency"
title = "Latency"
paper = "none"
machine = "400g"
linear = true

[[figure]]
name = "mean"
title = "Mean"
paper = "none"
machine = "400g"
series = ["model"]
key = "request_ns.mean"
label = "Mean [ns]"

[[figure]]
name = "bandwidth"
title = "Bandwidth"
paper = "none"
machine = "400g"
bandwidth = true
label = "Bandwidth [Gbit/s]"
"""

SCRIPT = """\
import json, sys
values, clusters = sys.argv[1:]
for value in values.split(","):
    point = {"size": int(value), "data_ok": True, "request_ns": {"min": 23.0 + int(value) / 64 + int(clusters) - 2}}
    print(json.dumps(point))
"""

Write = Callable[..., Path]


@pytest.fixture
def pspin(home: Path) -> Write:
    """Return what writes the experiment, with changes of its text, and its program."""
    folder = home / "experiments" / "pspin" / "pspin-test"
    folder.mkdir(parents=True)
    (home / "sdk" / "pspin").mkdir()

    def write(*changes: tuple[str, str], program: str = "", **content: Any) -> Path:
        text = TEXT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        (folder / "pspin-test.toml").write_text(text)
        (folder / "empty.c").write_text(program or json.dumps({"ns": NS} | content))
        (folder / "paper.py").write_text(SCRIPT)
        return folder

    return write


def spinkit(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def reproduce(*args: str) -> Result:
    return spinkit("reproduce", "pspin-test", *args)


PUBLISHED = ('machines = ["400g", "published"]', 'machines = ["400g"]')


def test_each_value_is_a_run_with_its_report(pspin: Write) -> None:
    pspin()
    result = reproduce("--check")
    assert result.exit_code == 0, result.output
    written = json.loads(Path("out/pspin-test/results.json").read_text())
    points = {(one["machine"], one["series"], one["size"]): one for one in written["points"]}
    assert len(points) == 2 * 2 * 3
    model = points["pspin-published", "model", 512]
    assert (model["request_ns.min"], model["request_ns"]["mean"], model["ipc"]) == (34, 34.5, 0.75)
    # The script gets a parameter of the machine: 23 + 512 / 64 + 4 - 2.
    assert points["pspin-400g", "paper", 512]["request_ns.min"] == 33.0
    numbers = {one["name"]: [sample["number"] for sample in one["numbers"]] for one in written["claims"]}
    assert numbers["latency"] == [26, 27]
    assert numbers["mean"] == [26.5, 34.0, 40.5, 27.5, 34.5, 42.5]
    assert numbers["close"][1] == 33.5 / 33.0 - 1
    for name in ("latency.svg", "mean.svg", "index.html"):
        assert (Path("out/pspin-test") / name).stat().st_size > 0
    assert "Latency [ns]" in Path("out/pspin-test/index.html").read_text()


def test_reasons_are_shown_by_runs_with_a_changed_machine(pspin: Write) -> None:
    pspin()
    result = reproduce("--quick", "--check")
    assert result.exit_code == 0, result.output
    written = json.loads(Path("out/pspin-test/results.json").read_text())
    assert [sample["number"] for sample in written["claims"][0]["shown"][0]["numbers"]] == [26]
    pspin(("at_least = 25.75", "at_least = 26.5"), ("at_most = 26.25", "at_most = 26.75"))
    assert reproduce("--quick", "--check").exit_code == 1


def test_finished_runs_are_cached_until_source_or_header_changes(pspin: Write, home: Path) -> None:
    folder = pspin(PUBLISHED, ('machines = ["published"]', 'machines = ["400g"]'))

    def fresh() -> int:
        output = reproduce("--quick", "-v").stderr
        return sum("from the cache" not in line for line in output.splitlines() if line[:1].isdecimal())

    assert [fresh(), fresh()] == [3, 0]
    (home / "sdk" / "pspin" / "handler.h").touch()
    assert [fresh(), fresh()] == [2, 0]
    # Only the script changes with itself, and it may read what lies beside it.
    (folder / "paper.py").write_text(SCRIPT + "\n")
    assert [fresh(), fresh()] == [1, 0]
    (folder / "measured.json").write_text("[1]")
    assert [fresh(), fresh()] == [1, 0]
    (folder / "measured.json").write_text("[2]")
    assert [fresh(), fresh()] == [1, 0]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "crash",
            "model on pspin-400g: spinkit pspin run ended with status 1 at size = 64\nspinkit pspin run: error: the",
        ),
        ("slow", "did not end within 1 s"),
        ("no report", "the report of spinkit pspin run: "),
        ("no key", "output line 1: request_ns.min: expected int or float, found None"),
        ("no number", "output line 1: request_ns.min: expected int or float, found None"),
    ],
)
def test_failed_runs_are_named(pspin: Write, fault: str, message: str) -> None:
    pspin(("timeout_s = 60", f"timeout_s = {1 if fault == 'slow' else 60}"), fault=fault)
    result = reproduce("--quick")
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("out/pspin-test/results.json").exists()


def test_handlers_that_do_not_compile_and_scripts_that_fail(pspin: Write) -> None:
    folder = pspin(program="#error")
    (folder / "paper.py").write_text("import sys\nsys.exit('no numbers')")
    result = reproduce("--quick")
    assert result.exit_code == 1
    assert "empty.c does not compile:\n" in result.stderr
    assert "paper.py ended with status 1\nno numbers" in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"{mode}.c"', '"{mode}.s"', "program.pspin: there is no file or folder empty.s"),
        (
            'pspin = "{mode}.c"',
            'sources = ["empty.c"]',
            "program.flags[0]: the sources are compiled once for all values: a flag cannot contain a placeholder",
        ),
        ('"paper.py"', '"law.py"', "series[1].script: there is no file law.py in this folder"),
        ('label = "Mean [ns]"\n', "", "figure[1].label: a key, or bandwidth, and its label are given together"),
        ('axis = "size"', 'axis = "ipc"', "ipc is a key of the report"),
    ],
)
def test_mistakes_name_their_place(pspin: Write, old: str, new: str, message: str) -> None:
    pspin((old, new))
    result = reproduce("--quick")
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_folder_is_a_program_too(pspin: Write, home: Path) -> None:
    flags = 'flags = ["-DX={value}"]\n'
    folder = pspin(
        PUBLISHED, ('machines = ["published"]', 'machines = ["400g"]'), ('"{mode}.c"', '"{mode}"'), (flags, "")
    )
    (folder / "empty").mkdir()
    (folder / "empty.c").rename(folder / "empty" / "handlers.c")
    assert reproduce("--quick").exit_code == 0


FLAGS = "flags: {} is a folder, which its own Makefile builds: put them into SPIN_CFLAGS there"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "program." + FLAGS.format("empty")),
        (
            [('flags = ["-DX={value}"]\n', ""), ('mode = "empty"', 'mode = "empty"\nflags = ["-DX=1"]')],
            "series[0]." + FLAGS.format("empty"),
        ),
        (
            [
                ('"{mode}"', '"{name}"'),
                ("values = [64, 512, 1024]", 'values = [64, 512, 1024]\nnames = ["small", "middle", "empty"]'),
            ],
            "program." + FLAGS.format("empty"),
        ),
    ],
)
def test_a_folder_has_no_flags(pspin: Write, changes: list[tuple[str, str]], message: str) -> None:
    folder = pspin(('"{mode}.c"', '"{mode}"'), *changes)
    (folder / "empty").mkdir()
    (folder / "empty.c").rename(folder / "empty" / "handlers.c")
    for name in ("small", "middle"):
        (folder / name).write_text("")
    result = reproduce("--quick")
    assert result.exit_code == 1
    assert message in result.stderr


def test_the_name_of_a_value_may_be_that_of_the_program(pspin: Write) -> None:
    names = ("values = [64, 512, 1024]", 'values = [64, 512, 1024]\nnames = ["small", "middle", "large"]')
    folder = pspin(names, ('"{mode}.c"', '"{name}.c"'), ("-DX={value}", "-I{folder}"))
    for name, ns in (("small", 26), ("middle", 30), ("large", 38.5)):
        of_machine = dict.fromkeys(("64", "512", "1024"), ns)
        (folder / f"{name}.c").write_text(json.dumps({"ns": dict.fromkeys(NS, of_machine)}))
    assert reproduce().exit_code == 0
    written = json.loads(Path("out/pspin-test/results.json").read_text())
    assert [one["request_ns.min"] for one in written["points"][:3]] == [26, 30, 38.5]


def test_a_figure_may_show_a_bandwidth_or_another_number(pspin: Write) -> None:
    experiment = _reader.read(pspin() / "pspin-test.toml")
    lines = [{"request_ns": {"min": 26, "mean": 27}, "size": 64, "data_ok": True}]
    points = tuple(Point("pspin-400g", one, 64, 26, True, lines[0]) for one in experiment.series)
    results = Results(experiment, True, tuple(Run(one.machine, (one.series,), (one,), {}) for one in points), ())
    drawn = [[curve.values for curve in _report.curves_of(results, figure)] for figure in experiment.figures]
    assert drawn == [[[26], [26]], [[27]], [[8 * 64 / 26], [8 * 64 / 26]]]


def test_several_keys_are_added(pspin: Write) -> None:
    pspin(('key = "request_ns.mean"\nat_least', 'key = "request_ns.mean + ipc + size"\nat_least'))
    assert reproduce("--quick").exit_code == 0
    [claim] = [
        one for one in json.loads(Path("out/pspin-test/results.json").read_text())["claims"] if one["name"] == "mean"
    ]
    assert [sample["number"] for sample in claim["numbers"]] == [26.5 + 0.75 + 64, 27.5 + 0.75 + 64]


def test_numbers_of_a_report_are_shown_as_they_are() -> None:
    measure = Measure(key="request_ns.min", label="Latency", own_unit="ns")
    assert (measure.heading, measure.shown(26), measure.text(26), measure.text(33.25)) == (
        "Latency [ns]",
        26,
        "26",
        "33.25",
    )


def test_the_unit_of_a_number_is_that_of_its_place(pspin: Write) -> None:
    folder = pspin()
    claims = {claim.name: claim for claim in _reader.read(folder / "pspin-test.toml").claims}
    assert claims["mean"].unit == "ns"
    assert not claims["mean"].of_runs
