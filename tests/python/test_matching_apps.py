# SPDX-License-Identifier: Apache-2.0
"""Experiments that run schedules instead of programs, tested with that of the paper's Table 5c."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.experiments import _definition, _reader
from spinkit.experiments._outcome import Results
from spinkit.experiments._pool import run_all
from spinkit.experiments._workshop import Settings
from spinkit.reports import _report
from spinkit.simulate._toolchain import Toolchain

HOME = Path(__file__).parents[2]


def outcome(experiment: _definition.Experiment, out: Path) -> Results | SpinkitError:
    tools = Toolchain(*(_paths.command(name) for name in ("spincc", "spinrun", "spinkit-goal", "spinkit-pspin")))
    ((_, result),) = run_all(
        [experiment], Settings(HOME, tools, _paths.command("spinkit-machines"), out, quick=True), lambda _: None
    )
    return result


def test_applications_gain_less_than_they_communicate(tmp_path: Path) -> None:
    results = outcome(_reader.load(HOME, "matching-apps"), tmp_path)
    assert isinstance(results, Results)
    assert results.unmet == []
    assert results.wrong == []
    # Computation alone: steps of 60 + 15, 44, 85 and 70 µs.
    alone = [results.measured("sc17").times["dis", "computation", value] for value in (1, 2, 3, 4)]
    assert alone == [10**6 * us for us in (100 * 75_000 // 1000, 44_000, 42_500, 35_000)]
    # In a periodic grid of d dimensions each rank sends 2 d messages in each step.
    messages = {point.value: point.line["messages"] for point in results.points if point.series.name == "spin"}
    assert [messages[value] for value in (1, 2, 3, 4)] == [64 * 8 * 100, 64 * 4 * 1000, 72 * 6 * 500, 72 * 4 * 500]

    # The figure shows the time saved by sPIN, once with copies by one core and once by all.
    figure = results.experiment.figures[0]
    one, all_cores = _report.curves_of(results, figure)
    times = results.measured("sc17").times
    for curve, spin, rdma in ((one, "spin", "rdma"), (all_cores, "spin-dram", "rdma-dram")):
        saved = [1 - times["int", spin, value] / times["int", rdma, value] for value in results.values]
        assert curve.values == [100 * share for share in saved]
    # A message beyond 8 KiB is never copied, so the speed of copies does not matter to MILC.
    assert one.values[0] == all_cores.values[0]


def test_a_schedule_that_cannot_be_made(tmp_path: Path) -> None:
    real = _reader.load(HOME, "matching-apps")
    program = msgspec.structs.replace(
        real.program, schedules=("gen halo --ranks 3 --dims 2x2", *real.program.schedules[1:])
    )
    result = outcome(dataclasses.replace(real, program=program), tmp_path)
    assert isinstance(result, SpinkitError)
    assert "a grid of [2, 2] is 4 ranks, not 3" in str(result)


def test_there_is_a_schedule_for_each_value(tmp_path: Path) -> None:
    text = (HOME / "experiments" / "sc17" / "matching" / "matching-apps.toml").read_text()
    file = tmp_path / "experiment.toml"
    file.write_text(text.replace('    "import {folder}/../../mpi/traces/hpcc",\n', ""))
    with pytest.raises(SpinkitError, match="schedules: expected one for each of the 13 values of the sweep"):
        _reader.read(file)
