# SPDX-License-Identifier: Apache-2.0
"""`spinkit page`: the page of one run, made of the report and the timeline that `spinrun --report` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json
from spinkit.common._output import write_atomically
from spinkit.reports import _view
from spinkit.reports._report import render
from spinkit.simulate import _perfetto
from spinkit.simulate._perfetto import Slice
from spinkit.simulate._profile import Line

REPORT, TIMELINE, PAGE, VIEW = "report.json", "timeline.pftrace", "index.html", "timeline.html"

_MOST_RANKS = 64
"""Ranks with separate rows and cells."""
_MOST_LINES = 12
_MOST_TRACE_BYTES = 64 << 20
"""Size of a timeline up to which its messages are counted."""


def write(folder: Path) -> list[Path]:
    """Write the pages of a run's folder; return them, the run's page first."""
    report, timeline = folder / REPORT, folder / TIMELINE
    if not report.is_file():
        raise SpinkitError(f"{report}: no such file; `spinrun --report {folder} …` writes it")
    try:
        content = parse_json(report.read_text())
        parts = _parts(content)
    except (KeyError, TypeError, ValueError) as error:
        raise SpinkitError(
            f"{report}: no report of spinrun: {error!r}; `spinrun --report {folder} …` writes it"
        ) from None
    written = [folder / PAGE]
    matrix = None
    if timeline.is_file():
        written.append(folder / VIEW)
        write_atomically(folder / VIEW, _view.page([timeline]))
        if timeline.stat().st_size <= _MOST_TRACE_BYTES:
            matrix = _matrix(_perfetto.read(timeline), content["ranks"])
    view = VIEW if len(written) > 1 else None
    page = render("run.html.j2", title=_title(content), matrix=matrix, view=view, **parts)
    write_atomically(folder / PAGE, page)
    return written


def _title(report: Mapping[str, Any]) -> str:
    return f"{report['ranks']} ranks on {report['machine']}, {report['nic']}"


def _parts(report: Mapping[str, Any]) -> dict[str, Any]:
    """Lay out the parts of the page."""
    cards, end = report["cards"], max(report["end_ps"], 1)
    handlers = report["handlers"]
    errors = sum(one["errors"] for one in handlers.values())
    return {
        "end": report["end"],
        "facts": _facts(report),
        "errors": errors,
        "drops": _drops(report["drops"]),
        "use": _use(report, end),
        "left_out": max(0, len(cards) - _MOST_RANKS),
        "handlers": _handlers(handlers),
        "lines": _lines(report.get("profile") or {}),
        "counts": _counts(cards),
        "network": report.get("network"),
        "parameters": [{"key": key, **one} for key, one in report["parameters"].items()],
        "report": REPORT,
        "timeline": TIMELINE,
    }


def time(ps: float) -> str:
    """Write a time with a fitting unit."""
    for scale, unit in ((1e12, "s"), (1e9, "ms"), (1e6, "µs"), (1e3, "ns")):
        if ps >= scale:
            return f"{ps / scale:.4g} {unit}"
    return f"{ps:g} ps"


def _facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    cards = report["cards"]

    def total(key: str) -> int:
        return sum(card[key] for card in cards)

    return [
        ("simulated time", time(report["end_ps"])),
        ("messages", f"{total('messages_sent'):,}"),
        ("packets", f"{total('packets_sent'):,}"),
        ("sent", f"{total('bytes_sent'):,} B"),
        ("through DMA", f"{total('dma_bytes'):,} B"),
        ("handler calls", f"{sum(one['calls'] for one in report['handlers'].values()):,}"),
    ]


def _drops(drops: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "reason": reason.replace("_", " "),
            **{key: f"{one[key]:,}" for key in ("messages", "packets", "bytes")},
            "first": f"{one['first']['operation']} from rank {one['first']['source']} to {one['first']['target']}, "
            f"{one['first']['length']:,} B, at {time(one['first']['at_ps'])}",
        }
        for reason, one in drops.items()
    ]


def _use(report: Mapping[str, Any], end: int) -> list[dict[str, Any]]:
    """Lay out the shares of time for which the units of each rank are busy."""
    hpus = int(float(report["parameters"].get("accelerator.hpus", {"value": 1})["value"]))
    units = [
        ("out", "tx_busy_ps", 1),
        ("in", "rx_busy_ps", 1),
        ("DMA", "dma_busy_ps", 1),
        (f"{hpus} HPUs", "hpu_busy_ps", hpus),
    ]
    if report["nic"] != "spin":
        units = units[:3]
    return [
        {
            "rank": rank,
            "end": time(ended),
            "shares": [(name, min(1.0, card[key] / end / count)) for name, key, count in units],
            "dropped": card["packets_dropped"],
        }
        for rank, (card, ended) in enumerate(zip(report["cards"], report["rank_end_ps"], strict=True))
    ][:_MOST_RANKS]


def _handlers(handlers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lay out the handlers that ran, the one with the longest time first."""
    called = [(name, one) for name, one in handlers.items() if one["calls"]]
    return [
        {
            "name": name,
            "calls": f"{one['calls']:,}",
            "errors": one["errors"],
            "instructions": _mean(one, "instructions"),
            "cycles": _mean(one, "cycles"),
            "time": time(one["occupancy_ps"]),
            "bytes": f"{one['bytes']:,}",
            "dmas": f"{one['dmas']:,}",
            "puts": f"{one['puts']:,}",
        }
        for name, one in sorted(called, key=lambda both: -both[1]["occupancy_ps"])
    ]


def _mean(one: Mapping[str, Any], key: str) -> str:
    least, most = one[f"min_{key}"], one[f"max_{key}"]
    return f"{least:,}" if least == most else f"{one[key] / one['calls']:,.1f} ({least:,}–{most:,})"


def _lines(profile: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Lay out the lines with the most instructions of all handlers together."""
    found = [(name, line) for name, several in profile.items() for line in several]
    total = sum(line["instructions"] for _, line in found)
    hottest = sorted(found, key=lambda both: -both[1]["instructions"])[:_MOST_LINES]
    rows = []
    for name, line in hottest:
        share = line["instructions"] / max(total, 1)
        place = Line(line["function"], line["file"], line["line"], line["instructions"], share)
        short = f"{Path(place.file).name}:{place.line}" if place.file else place.place
        rows.append(
            {"handler": name, "place": short, "text": place.text, "share": share, "count": f"{place.instructions:,}"}
        )
    return rows


def _matrix(slices: Iterable[Slice], ranks: int) -> dict[str, Any] | None:
    """Count the bytes that arrive at each rank from each other, in groups of ranks if there are many."""
    group = ceil(ranks / _MOST_RANKS)
    size = ceil(ranks / group)
    sums = [[0] * size for _ in range(size)]
    for one in slices:
        if one.row.startswith("NIC in") and "sender" in one.arguments and one.process.startswith("rank "):
            rank = int(one.process.removeprefix("rank "))
            sums[one.arguments["sender"] // group][rank // group] += one.arguments.get("bytes", 0)
    most = max(map(max, sums))
    if most == 0:
        return None

    def label(number: int) -> str:
        first, last = number * group, min(ranks, (number + 1) * group) - 1
        return f"rank {first}" if first == last else f"ranks {first}–{last}"

    cells = [
        {
            "x": target,
            "y": source,
            "share": round(count / most, 3),
            "text": f"{label(source)} to {label(target)}: {count:,} B",
        }
        for source, row in enumerate(sums)
        for target, count in enumerate(row)
        if count
    ]
    return {"size": size, "group": group, "most": f"{most:,} B", "cells": cells, "ranks": ranks}


def _counts(cards: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Lay out the counters of the cards: sum, least, most, and the rank with the most."""
    rows = []
    for key, first in cards[0].items():
        if not isinstance(first, int) or key.endswith("_ps"):
            continue
        values = [card[key] for card in cards]
        if any(values):
            most = max(values)
            cells = {"sum": sum(values), "least": min(values), "most": most, "rank": values.index(most)}
            rows.append({"name": key.replace("_", " "), **{name: f"{value:,}" for name, value in cells.items()}})
    return rows
