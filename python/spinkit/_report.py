"""What people look at: text tables, pictures and one self-contained HTML page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from spinkit import __version__, _plot
from spinkit._claims import Verdict
from spinkit._machines import Machine
from spinkit._plot import Curve, Picture
from spinkit._run import Results, Run

_PS_PER_US = 1_000_000


@dataclass(frozen=True)
class TimeTable:
    """The times of one machine: a row for each value of the sweep, a column for each series."""

    machine: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def time_tables(results: Results) -> list[TimeTable]:
    """Lay out all times in µs; wrong data is marked."""
    experiment = results.experiment
    points = {(point.machine, point.series.name, point.value): point for point in results.points}

    def cell(machine: str, series: str, value: int) -> str:
        point = points[machine, series, value]
        return f"{point.time_ps / _PS_PER_US:.4f}{'' if point.data_ok else ' (wrong data)'}"

    return [
        TimeTable(
            machine,
            [experiment.sweep.label, *(series.label for series in experiment.series)],
            [
                [_plot.byte_label(value), *(cell(machine, series.name, value) for series in experiment.series)]
                for value in results.values
            ],
        )
        for machine in experiment.machines
    ]


def claim_cells(verdict: Verdict) -> dict[str, Any]:
    """Lay out one claim: paper, here, ratio, verdict."""
    claim = verdict.claim
    return {
        "text": claim.text,
        "source": claim.source,
        "tested": claim.statement + _bounds(verdict),
        "at": verdict.worst.point,
        "samples": verdict.samples,
        "paper": "–" if claim.paper is None else claim.format(claim.paper),
        "here": claim.format(verdict.worst.number),
        "ratio": "–" if verdict.ratio is None else f"{verdict.ratio:.2f}",
        "holds": verdict.holds,
        "verdict": "holds" if verdict.holds else f"fails ({verdict.failed} of {verdict.samples})",
    }


def _bounds(verdict: Verdict) -> str:
    claim = verdict.claim
    if claim.at_least is not None and claim.at_most is not None:
        return f", {claim.format(claim.at_least)} to {claim.format(claim.at_most)}"
    if claim.at_least is not None:
        return f", at least {claim.format(claim.at_least)}"
    return "" if claim.at_most is None else f", at most {claim.format(claim.at_most)}"


def pictures(results: Results) -> dict[str, Picture]:
    """Draw the experiment's figures, by name."""
    experiment, times = results.experiment, results.times
    return {
        figure.name: _plot.lines(
            figure.title,
            experiment.sweep.label,
            f"{experiment.measure.label} [µs]",
            results.values,
            [
                Curve(
                    series.label,
                    [times[figure.machine, series.name, value] / _PS_PER_US for value in results.values],
                )
                for series in experiment.series
            ],
            figure.zoom_to,
        )
        for figure in experiment.figures
    }


def _handlers(runs: Iterable[Run]) -> list[dict[str, str]]:
    """Lay out what handlers cost, as spinrun counted over a whole run."""
    return [
        {
            "machine": run.machine,
            "series": run.series.label,
            "name": name,
            "calls": str(counted["calls"]),
            **{what: _a_call(counted, what) for what in ("instructions", "cycles")},
        }
        for run in runs
        for name, counted in run.report["handlers"].items()
        if counted["calls"]
    ]


def _a_call(counted: dict[str, int], what: str) -> str:
    least, most = counted[f"min_{what}"], counted[f"max_{what}"]
    return f"{least}" if least == most else f"{counted[what] / counted['calls']:.1f} ({least}–{most})"


def html(results: Results, drawn: dict[str, Picture], machines: Sequence[Machine]) -> bytes:
    """Write the page."""
    experiment = results.experiment
    environment = Environment(
        loader=PackageLoader("spinkit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    figures = [
        {"title": figure.title, "paper": figure.paper, "svg": b64encode(drawn[figure.name].svg).decode()}
        for figure in experiment.figures
    ]
    page = environment.get_template("report.html.j2").render(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        summary=experiment.summary,
        quick=results.quick,
        points=len(results.points),
        wrong=len(results.wrong),
        unmet=len(results.unmet),
        measure=experiment.measure.label,
        axis=experiment.sweep.label,
        figures=figures,
        claims=[claim_cells(verdict) for verdict in results.verdicts],
        tables=time_tables(results),
        handlers=_handlers(results.runs),
        machines=machines,
        version=__version__,
    )
    return page.encode()
