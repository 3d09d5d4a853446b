# SPDX-License-Identifier: Apache-2.0
"""Draws a timeline as the trace diagrams of App. C.3: rows for the units of each rank, and lines for packets."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure as Canvas

from spinkit.reports import _plot
from spinkit.reports._timeline import CPU, DMA, HANDLER, PACKET, WAIT, WORK, Timeline, packet, rank_of
from spinkit.simulate._perfetto import Slice

_ROW_INCHES, _WIDTH_INCHES, _MARGIN_INCHES = 0.17, 11.0, 1.0
_LETTER = 0.0043
"""Share of the width that a letter needs."""


def draw(title: str, shown: Timeline) -> bytes:
    """Draw a round as SVG, with time in nanoseconds."""
    rows = _rows(shown)
    height = _MARGIN_INCHES + _ROW_INCHES * (len(rows) + 0.6 * len(shown.ranks))
    with _plot.style():
        figure = Canvas(figsize=(_WIDTH_INCHES, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        places = _places(axes, rows)
        _draw_slices(axes, shown, places)
        _draw_packets(axes, shown, places)
        axes.set(title=title, xlabel="time [ns]")
        axes.set_xlim(0, shown.length / 1000)
        axes.set_ylim(max(places.values()) + 1, min(places.values()) - 0.6)
        axes.grid(visible=False, axis="y")
        return _plot.render_svg(figure)


def _row(one: Slice) -> str:
    """Return the row in which a slice is drawn: both directions of the NIC share one."""
    return "NIC" if one.row in ("NIC in", "NIC out") else one.row


def _rows(shown: Timeline) -> list[tuple[int, str]]:
    """Return the rows that have slices, by rank, each rank's in the order of the paper."""
    order = {"CPU": 0, "NIC": 1, "DMA": 2}
    used = {(rank_of(one), _row(one)) for one in shown.slices}
    return sorted(used, key=lambda row: (row[0], order.get(row[1], 3), row[1]))


def _places(axes: Axes, rows: list[tuple[int, str]]) -> dict[tuple[int, str], float]:
    """Place the rows from top to bottom, with a gap between ranks, and label them."""
    places: dict[tuple[int, str], float] = {}
    at = 0.0
    for number, (rank, row) in enumerate(rows):
        if number > 0 and rows[number - 1][0] != rank:
            axes.axhline(at - 0.2, color="#d9dee4", linewidth=0.8)
            at += 0.6
        places[rank, row] = at
        at += 1
    firsts = {rank: next(row for owner, row in rows if owner == rank) for rank, _ in rows}
    labels = [f"rank {rank}  {row}" if firsts[rank] == row else row for rank, row in rows]
    axes.set_yticks(list(places.values()), labels, fontsize=7)
    axes.tick_params(axis="y", length=0)
    return places


def _color(one: Slice) -> str:
    if one.row == "CPU":
        return CPU.get(one.name, WORK)
    if one.row in ("NIC in", "NIC out"):
        return PACKET
    if one.row.startswith("HPU "):
        return WAIT if one.name.startswith("wait") else HANDLER
    return DMA


def _extent(one: Slice, place: float) -> tuple[float, float]:
    """Return the upper and lower edge of a slice: the upper half of a NIC's row is for sent packets."""
    if one.row == "NIC out":
        return place - 0.42, place
    if one.row == "NIC in":
        return place, place + 0.42
    return place - 0.4, place + 0.4


def _draw_slices(axes: Axes, shown: Timeline, places: Mapping[tuple[int, str], float]) -> None:
    boxes, colors = [], []
    for one in shown.slices:
        top, bottom = _extent(one, places[rank_of(one), _row(one)])
        start, end = one.start / 1000, one.end / 1000
        boxes.append([(start, top), (end, top), (end, bottom), (start, bottom)])
        colors.append(_color(one))
        start, end = _free(one, shown)
        if _row(one) != "NIC" and end - start > _LETTER * len(one.name) * shown.length:
            middle = (start + end) / 2000
            axes.text(middle, (top + bottom) / 2, one.name, ha="center", va="center", fontsize=5.5, clip_on=True)
    axes.add_collection(PolyCollection(boxes, facecolors=colors, edgecolors="#22272e", linewidths=0.25))


def _free(one: Slice, shown: Timeline) -> tuple[int, int]:
    """Return the longest part of a slice in which no other slice of its row covers it."""
    cuts = [one.start]
    if one.row.startswith("HPU "):
        for other in shown.of(rank_of(one), one.row):
            if one.start <= other.start and other.end <= one.end and other.end - other.start < one.end - one.start:
                cuts += [other.start, other.end]
    cuts.append(min(one.end, shown.length))
    return max(zip(cuts[::2], cuts[1::2], strict=True), key=lambda part: part[1] - part[0])


def _draw_packets(axes: Axes, shown: Timeline, places: Mapping[tuple[int, str], float]) -> None:
    """Draw a line from the place where a packet leaves to the one where it arrives."""
    arrivals = {(packet(one), one.name): one for rank in shown.ranks for one in shown.received(rank)}
    lines = []
    for rank in shown.ranks:
        for one in shown.sent(rank):
            arrival = arrivals.get((packet(one), one.name))
            if arrival is not None:
                begin = (one.start / 1000, places[rank, "NIC"])
                lines.append([begin, (arrival.start / 1000, places[rank_of(arrival), "NIC"])])
    axes.add_collection(LineCollection(lines, colors="#0072B2", linewidths=0.5, alpha=0.6))
