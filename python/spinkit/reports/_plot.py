# SPDX-License-Identifier: Apache-2.0
"""Draws all figures in one style; the same data gives the same bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from spinkit.reports._curves import CURVE_STYLES, Bar, Curve, Panel, Picture, byte_label

_SIZE = (6.2, 4.1)
"""Size in inches: two such figures fit side by side on a laptop without scaling, so text keeps its size."""

_DPI = 100
"""Pixels of an inch, before anything is scaled."""

_PNG_DPI = 200

_INK = "#22272e"
_FAINT = "#d9dee4"

_TICK_SIZE = 8.5
"""Size of the labels of the x axis, in points."""

_LINEAR = 50
"""Largest ratio of two bars on a linear axis, unless the figure asks for one."""

_NUMBERED = 26
"""Most bars that have their numbers above them."""

_SPREAD = 64
"""From this ratio of the last value of x to the second on, an axis that begins at 0 is linear only up to the second."""

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8b949e",
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.2,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "spinkit",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}

_STAR: Any = {"marker": "*", "markersize": 10, "markerfacecolor": "white", "markeredgewidth": 1.1}
"""Mark of a paper's number."""

_SAME_SVG = {"Date": None, "Creator": None}
"""Neither date nor version: the same data must give the same file."""


@contextmanager
def style() -> Iterator[None]:
    """Set the style that all figures share."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def lines(
    title: str,
    x_label: str,
    y_label: str,
    xs: Sequence[float],
    curves: Sequence[Curve],
    zoom_to: int | None = None,
    in_bytes: bool = True,
    linear: bool = False,
) -> Picture:
    """Draw curves on logarithmic axes, x in bytes or plain; an inset shows x up to `zoom_to` with a linear y axis.

    The x axis is linear if it begins at 0, at least up to its second value; the y axis is linear with `linear`.
    """
    with style():
        figure = Canvas(figsize=_SIZE, dpi=_DPI, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw(axes, xs, curves)
        axes.set(title=title, xlabel=x_label, ylabel=y_label)
        if min(xs):
            axes.set_xscale("log")
        elif len(xs) > 1 and xs[1] * _SPREAD <= xs[-1]:
            axes.set_xscale("symlog", base=2, linthresh=xs[1])
        write = byte_label if in_bytes else "{:g}".format
        axes.set_xticks(_readable(axes, xs, write))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: write(x)))
        axes.tick_params(axis="x", labelsize=_TICK_SIZE)
        if linear:
            axes.set_ylim(bottom=0)
        else:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(_log_ticks(*axes.get_ylim()))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        zoomed = sum(x <= zoom_to for x in xs) if zoom_to else 0
        axes.legend(loc="upper left" if zoomed > 2 else "best")
        if zoomed > 2:
            _inset(axes, xs[:zoomed], [_first(curve, zoomed) for curve in curves])
        return render(figure)


def _first(curve: Curve, count: int) -> Curve:
    """Return the first `count` points of a curve."""
    anchors = [(index, height) for index, height in curve.anchors if index < count]
    return replace(curve, values=curve.values[:count], anchors=anchors)


def _readable(axes: Axes, xs: Sequence[float], write: Callable[[float], str]) -> list[float]:
    """Choose the values of x whose labels do not touch: the last, and of the others those that leave room."""

    def ends(x: float) -> tuple[float, float]:
        middle = float(axes.transData.transform((x, axes.get_ylim()[1]))[0])
        width = (len(write(x)) + 1) * 0.6 * _TICK_SIZE * _DPI / 72
        return middle - width / 2, middle + width / 2

    chosen, right = [], float("-inf")
    last = ends(xs[-1])[0]
    for x in xs[:-1]:
        begin, end = ends(x)
        if begin >= right and end <= last:
            chosen.append(x)
            right = end
    return [*chosen, xs[-1]]


def _log_ticks(low: float, high: float) -> Locator:
    """Choose numbers for a logarithmic axis: few on a long one, and enough on a short one."""
    decades = math.log10(high / low)
    if decades < 0.6:
        return MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
    subs = (1, 1.5, 2, 3, 5, 7) if decades < 1.3 else (1, 2, 5) if decades < 4 else (1,)
    return LogLocator(base=10, subs=subs, numticks=20)


def panels(
    title: str, x_label: str, y_label: str, xs: Sequence[int], several: Sequence[Panel], columns: int
) -> Picture:
    """Draw plots with the same linear axes side by side, in rows of `columns`."""
    with style():
        rows = -(-len(several) // columns)
        figure = Canvas(figsize=(1.2 + 2.4 * columns, 1.0 + 2.0 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for place, panel in enumerate(several):
            axes = grid[place // columns][place % columns]
            _draw(axes, xs, panel.curves)
            axes.set_ylim(bottom=0)
            axes.set_title(panel.title, fontsize=9, pad=4)
        figure.suptitle(title, fontsize=11.5, fontweight="bold")
        figure.supxlabel(x_label, fontsize=9.5)
        figure.supylabel(y_label, fontsize=9.5)
        grid[0][-1].legend(loc="upper right", fontsize=8)
        return render(figure)


def bars(title: str, y_label: str, names: Sequence[str], curves: Sequence[Curve], linear: bool = False) -> Picture:
    """Draw a group of bars for each name, one for each curve, with their numbers if there is room for them.

    The axis is linear if `linear` says so, or the bars are not too different.
    """
    with style():
        figure = Canvas(figsize=_SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        width = 0.8 / len(curves)
        places: list[list[float]] = []
        for place, curve in enumerate(curves):
            color, _, _ = CURVE_STYLES[curve.style]
            middles = [x + (place - (len(curves) - 1) / 2) * width for x in range(len(names))]
            drawn = axes.bar(middles, curve.values, width * 0.92, label=curve.label, color=color)
            if len(names) * len(curves) <= _NUMBERED:
                axes.bar_label(drawn, [f"{value:.2g}" for value in curve.values], padding=1.5, fontsize=6.5)
            places.append(middles)
        _draw_anchors(axes, places, curves)
        heights = [value for curve in curves for value in curve.values]
        if not linear and 0 < _LINEAR * min(heights) < max(heights):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.set(title=title, ylabel=y_label)
        long = sum(map(len, names)) > 80
        axes.set_xticks(range(len(names)), names, rotation=30 if long else 0, ha="right" if long else "center")
        axes.grid(visible=False, axis="x")
        axes.margins(y=0.25)  # room for the legend, which has at most three lines
        axes.legend(loc="upper right", ncols=(len(curves) + 2) // 3)
        return render(figure)


def tornado(title: str, x_label: str, base: float, allowed: tuple[float, float], bars: Sequence[Bar]) -> Picture:
    """Draw the range of a number for each varied parameter, the widest on top, around its present value.

    The shaded part of the axis is the interval of the paper's sentence.
    """
    with style():
        figure = Canvas(figsize=(_SIZE[0], 1.4 + 0.3 * len(bars)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        color, _, _ = CURVE_STYLES[3]
        places = range(len(bars) - 1, -1, -1)
        axes.barh(places, [bar.most - bar.least for bar in bars], 0.6, [bar.least for bar in bars], color=color)
        low, high = axes.get_xlim()
        low, high = min(low, base), max(high, base)
        least, most = max(allowed[0], low), min(allowed[1], high)
        if least < most:
            axes.axvspan(least, most, color=CURVE_STYLES[4][0], alpha=0.15, zorder=0)
        axes.axvline(base, color=_INK, linewidth=1)
        axes.set(title=title, xlabel=x_label, xlim=(low, high))
        axes.set_yticks(places, [bar.label for bar in bars])
        axes.tick_params(axis="y", labelsize=8.5)
        axes.grid(visible=False, axis="y")
        return render(figure)


def _draw(axes: Axes, xs: Sequence[float], curves: Sequence[Curve]) -> None:
    for curve in curves:
        color, marker, dashes = CURVE_STYLES[curve.style]
        axes.plot(xs, curve.values, label=curve.label, color=color, marker=marker, linestyle=dashes)
    _draw_anchors(axes, [xs] * len(curves), curves)


def _draw_anchors(axes: Axes, places: Sequence[Sequence[float]], curves: Sequence[Curve]) -> None:
    """Draw the paper's numbers as stars in the colours of their curves, which have these x."""
    legend = "the paper"
    for xs, curve in zip(places, curves, strict=True):
        if curve.anchors:
            at, heights = zip(*((xs[index], height) for index, height in curve.anchors), strict=True)
            edge = CURVE_STYLES[curve.style][0]
            axes.plot(at, heights, label=legend, linestyle="none", zorder=4, color=edge, **_STAR)
            legend = "_"  # hidden: one entry stands for all


def _inset(axes: Axes, xs: Sequence[float], curves: Sequence[Curve]) -> None:
    """Draw small sizes to the right of the legend, where curves that rise late leave room."""
    inset = axes.inset_axes((0.35, 0.57, 0.30, 0.36))
    _draw(inset, xs, curves)
    inset.set(xscale="log", ylim=(0, None))
    inset.set_title("small messages", fontsize=8.5, fontweight="normal", pad=4)
    inset.set_xticks(xs[::2])
    inset.xaxis.set_minor_locator(NullLocator())
    inset.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    inset.tick_params(labelsize=7.5)


def render(figure: Canvas) -> Picture:
    """Write a figure as PNG and SVG."""
    png, svg = io.BytesIO(), io.BytesIO()
    dpi = figure.dpi
    figure.set_dpi(_PNG_DPI)
    # savefig would lay the figure out by drawing it once more for each file.
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})  # type: ignore[no-untyped-call]
    figure.set_dpi(dpi)
    FigureCanvasSVG(figure).print_svg(svg, metadata=_SAME_SVG)  # type: ignore[no-untyped-call]
    return Picture(svg.getvalue(), png.getvalue())


def render_svg(figure: Canvas) -> bytes:
    """Write a figure as SVG."""
    svg = io.BytesIO()
    figure.savefig(svg, format="svg", metadata=_SAME_SVG)
    return svg.getvalue()
