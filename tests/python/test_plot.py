# SPDX-License-Identifier: Apache-2.0
"""Figures: a mode of a card has one colour in all of them, and axes have ticks that can be read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from spinkit.experiments import _reader
from spinkit.experiments._outcome import Point, Results, Run
from spinkit.reports import _curves, _plot, _report

from .conftest import CHECKOUT


def colors(styles: list[int]) -> list[str]:
    return [_curves.CURVE_STYLES[style][0] for style in styles]


def test_cards_have_colours_of_their_own() -> None:
    colors_of_cards = [{_curves.CURVE_STYLES[style][0] for style in styles} for styles in _curves.CARD_STYLES.values()]
    assert sum(map(len, colors_of_cards)) == len(set.union(*colors_of_cards)) == len(_curves.CURVE_STYLES)


def test_a_mode_has_its_colour_wherever_it_is_drawn() -> None:
    all_three = colors(_curves.curve_styles([("rdma", 0), ("portals4", 0), ("spin", 0)]))
    assert all_three == ["#D55E00", "#E69F00", "#0072B2"]
    assert colors(_curves.curve_styles([("spin", 0)])) == all_three[2:]
    assert colors(_curves.curve_styles([("portals4", 0), ("spin", 1), ("spin", 0)]))[2] == all_three[2]


def test_curves_of_a_figure_differ_and_stay_in_the_colours_of_their_card() -> None:
    found = _curves.curve_styles([("spin", 0)] * 6 + [("rdma", 0)])
    assert len(set(found)) == 7
    assert set(found[:6]) <= set(_curves.CARD_STYLES["spin"])
    assert found[6] == _curves.CARD_STYLES["rdma"][0]
    assert _curves.curve_styles([("portals4", 0)] * 4)[3] in _curves.CARD_STYLES["none"]


def test_times_beside_the_measured_one_are_drawn_in_microseconds() -> None:
    experiment = _reader.load(CHECKOUT, "kvstore")
    points = [
        Point("sc17-int", one, value, 1, True, {"p99_ps": 2_500_000, "cpu_ps": 40_000})
        for one in experiment.series
        for value in experiment.values(quick=True)
    ]
    runs = tuple(Run(one.machine, (one.series,), (one,), {}) for one in points)
    results = Results(experiment, True, runs, ())
    figures = {figure.name: figure for figure in experiment.figures}
    assert [curve.values for curve in _report.curves_of(results, figures["tail"])] == [[2.5, 2.5]] * 6
    assert [curve.values for curve in _report.curves_of(results, figures["cpu"])] == [[0.04, 0.04]] * 5


def test_numbers_of_the_paper_are_stars_on_their_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = _reader.load(CHECKOUT, "ping-pong")
    points = [
        Point(machine, series, value, 4_000_000 if series.nic == "rdma" else 2_000_000, True, {})
        for machine in experiment.machine_files
        for series in experiment.series
        for value in experiment.values(quick=False)
    ]
    runs = tuple(Run(one.machine, (one.series,), (one,), {}) for one in points)
    results = Results(experiment, False, runs, ())
    figure = next(one for one in experiment.figures if one.machine == "int")
    curves = {curve.label: curve for curve in _report.curves_of(results, figure)}
    (latency,) = [claim for claim in experiment.claims if claim.name == "latency"]
    (value,) = latency.values
    assert latency.paper is not None
    stars = dict(curves["sPIN (stream)"].anchors)
    assert stars[results.values.index(value)] == pytest.approx(4.0 * (1 - latency.paper))
    (bandwidth,) = [claim for claim in experiment.claims if claim.name == "bandwidth"]
    assert bandwidth.paper is not None
    assert {stars[results.values.index(size)] for size in bandwidth.values} == {4.0 / bandwidth.paper}
    assert not curves["RDMA"].anchors

    drawn = []
    monkeypatch.setattr(_plot, "render", lambda figure: drawn.append(figure.axes[0]) or _curves.Picture(b"", b""))
    two = [_curves.Curve("a", [1.0, 2.0], 0, [(1, 1.5)]), _curves.Curve("b", [2.0, 3.0], 1, [(0, 2.5)])]
    _plot.lines("title", "x", "y", [8, 16], two)
    _plot.bars("title", "y", ["x", "y"], two)
    for axes, places in zip(drawn, ([16, 8], [0.8, 0.2]), strict=True):
        shown = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "*"]
        assert shown == [[[pytest.approx(places[0]), 1.5]], [[pytest.approx(places[1]), 2.5]]]
        assert [text.get_text() for text in axes.get_legend().get_texts()].count("the paper") == 1


def test_streaming_has_one_colour_in_all_experiments() -> None:
    seen = set()
    for name in _reader.available(CHECKOUT):
        experiment = _reader.load(CHECKOUT, name)
        streams = [series for series in experiment.series if (series.nic, series.mode) == ("spin", "stream")]
        for series in streams:
            seen.add(_curves.CURVE_STYLES[_report._curve_styles(experiment, [series])[0]][0])
    assert seen == {"#0072B2"}


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.6), (0.9, 3.1), (1, 9), (0.2, 8), (3, 4000), (1e-3, 1e6)])
def test_logarithmic_axes_have_enough_ticks_and_not_too_many(low: float, high: float) -> None:
    ticks = [tick for tick in _plot._log_ticks(low, high).tick_values(low, high) if low <= tick <= high]
    assert 4 <= len(ticks) <= 13, ticks


def test_labels_that_would_touch_are_left_out() -> None:
    figure = Figure(figsize=_plot._SIZE, dpi=_plot._DPI)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    xs = [8, 64, 335, 345, 4096]
    axes.plot(xs, xs)
    axes.set_xscale("log")
    assert _plot._readable(axes, xs, _curves.byte_label) == [8, 64, 335, 4096]
    assert _plot._readable(axes, [8], _curves.byte_label) == [8]


def verdict(numbers: list[float], worst: float) -> SimpleNamespace:
    tested = tuple(SimpleNamespace(number=number) for number in numbers)
    claim = SimpleNamespace(format=lambda number: f"{number:.1f}")
    return SimpleNamespace(tested=tested, worst=SimpleNamespace(number=worst), claim=claim)


def test_the_number_that_stands_for_many_says_whether_the_others_are_above_or_below() -> None:
    assert _report._here(verdict([0.5, 2.0, 3.0], 0.5)) == "at least 0.5"  # type: ignore[arg-type]
    assert _report._here(verdict([0.5, 2.0, 3.0], 3.0)) == "at most 3.0"  # type: ignore[arg-type]
    assert _report._here(verdict([0.5, 2.0, 3.0], 2.0)) == "2.0"  # type: ignore[arg-type]
    assert _report._here(verdict([2.0, 2.01], 2.0)) == "2.0"  # type: ignore[arg-type]


def test_savings_are_drawn_on_a_linear_axis_with_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(_plot, "render", lambda figure: drawn.append(figure.axes[0]) or _curves.Picture(b"", b""))
    curves = [_curves.Curve("a", [0.05, 4.0], 0), _curves.Curve("b", [1.0, 3.2], 1)]
    for linear in (True, False):
        _plot.bars("title", "saved", ["x", "y"], curves, linear=linear)
    assert [axes.get_yscale() for axes in drawn] == ["linear", "log"]
    assert {text.get_text() for text in drawn[0].texts} == {"0.05", "4", "1", "3.2"}
