# SPDX-License-Identifier: Apache-2.0
"""Reports for people: text tables, pictures and one self-contained HTML page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from math import floor
from typing import Any

from spinkit.common._prose import code_spans
from spinkit.common._version import __version__
from spinkit.experiments import _demonstrations
from spinkit.experiments._claims import Claim, Verdict
from spinkit.experiments._definition import Experiment, Figure, Series, Sweep
from spinkit.experiments._outcome import Demonstration, Results, Run
from spinkit.experiments._sensitivity import Effect, Tried
from spinkit.reports._curves import Bar, Curve, Picture, Plot, byte_label, curve_styles
from spinkit.simulate._machines import Machine


@dataclass(frozen=True)
class TimeTable:
    """The times of one machine: a row for each value of the sweep, a column for each series."""

    machine: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def label(sweep: Sweep, value: float) -> str:
    """Write a value of the sweep with its unit, or its name."""
    if sweep.names:
        return sweep.names[sweep.values.index(value)]
    return byte_label(value) if sweep.unit == "B" else f"{value} {sweep.unit}".rstrip()


_FEW_VALUES = 3
"""Maximum number of values that are named individually."""


def labels(sweep: Sweep, values: Sequence[float]) -> str:
    """Name values of the sweep, or the first and the last of many."""
    names = [label(sweep, value) for value in values]
    return ", ".join(names) if len(names) <= _FEW_VALUES or sweep.names else f"{names[0]} to {names[-1]}"


def time_tables(results: Results) -> list[TimeTable]:
    """Lay out all measured numbers; wrong data is marked."""
    experiment = results.experiment
    points = {(point.machine, point.series.name, point.value): point for point in results.points}

    def cell(machine: str, series: str, value: float) -> str:
        point = points[machine, series, value]
        return f"{experiment.measure.text(point.measured)}{'' if point.data_ok else ' (wrong data)'}"

    return [
        TimeTable(
            machine,
            [experiment.sweep.label, *(series.label for series in experiment.series)],
            [
                [label(experiment.sweep, value), *(cell(machine, series.name, value) for series in experiment.series)]
                for value in results.values
            ],
        )
        for machine in experiment.machine_files
    ]


def claim_rows(results: Results) -> list[dict[str, Any]]:
    """Lay out the claims: the paper's statement, and for each model the number here and the verdict."""
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts:
        verdicts.setdefault(verdict.claim.name, []).append(verdict)
    shown = _demonstrations.by_claim(results)
    return [_claim_row(results, of_one, shown) for of_one in verdicts.values()]


def _claim_row(
    results: Results, verdicts: Sequence[Verdict], shown: Mapping[tuple[str, str], Sequence[Demonstration]]
) -> dict[str, Any]:
    experiment, claim = results.experiment, verdicts[0].claim
    # Values of this run: a quick one has fewer.
    values = [] if claim.of_runs else claim.where(results.values)
    at = f", at {labels(experiment.sweep, values)}" if values else ""
    return {
        "text": claim.text,
        "source": claim.source,
        "tested": claim.statement + _bounds(claim) + at,
        "quick": f"quick run{at}" if results.quick and at else "",
        "paper": "–" if claim.paper is None else claim.format(claim.paper),
        "models": [
            _verdict_cells(experiment, verdict, shown.get((claim.name, verdict.model), [])) for verdict in verdicts
        ],
    }


def _verdict_cells(experiment: Experiment, verdict: Verdict, shown: Sequence[Demonstration]) -> dict[str, Any]:
    return {
        "model": verdict.model,
        "at": _where(experiment, verdict),
        "here": _here(verdict),
        "ratio": "–" if verdict.ratio is None else f"{verdict.ratio:.2f}",
        "expected": _expected_bounds(verdict),
        "reason": verdict.reason,
        "shown": [_shown_cells(one) for one in shown],
        "kind": kind(verdict),
        "verdict": _verdict_text(verdict, shown),
    }


def _verdict_text(verdict: Verdict, shown: Sequence[Demonstration]) -> str:
    """Write a verdict, with the share of an expected difference that runs explain."""
    explanation = None if verdict.fails else _demonstrations.explanation(verdict, shown)
    return verdict.word if explanation is None else verdict.with_explanation(explanation.text)


def _here(verdict: Verdict) -> str:
    """Write the number that stands for all, and whether all others are above or below it."""
    numbers = [sample.number for sample in verdict.tested]
    written = verdict.claim.format(verdict.worst.number)
    if verdict.claim.format(min(numbers)) == verdict.claim.format(max(numbers)):
        return written
    if verdict.worst.number == min(numbers):
        return f"at least {written}"
    return f"at most {written}" if verdict.worst.number == max(numbers) else written


def _where(experiment: Experiment, verdict: Verdict) -> str:
    """Describe the point of the number, and the number of points that it stands for."""
    worst = verdict.worst
    place = experiment.machine(verdict.model, worst.machine)
    if not verdict.claim.of_runs:
        # Text after machine and value, such as another series.
        about = worst.point.removeprefix(f"{worst.machine}, {worst.value}")
        place = f"{place}, {label(experiment.sweep, worst.value)}{about}"
    if verdict.samples == 1:
        return place
    if verdict.holds:
        return f"{place}; worst of {verdict.samples} points"
    return f"{place}; worst of {verdict.samples} points, {verdict.failed or verdict.differing} differ"


def _shown_cells(one: Demonstration) -> dict[str, str]:
    numbers = [sample.number for sample in one.verdict.tested]
    return {
        "machines": ", ".join(one.shown.claim.machines),
        "change": one.shown.description,
        "numbers": one.verdict.claim.span(min(numbers), max(numbers)),
        "share": _share(one),
        "kind": "fails" if one.fails else kind(one.verdict),
    }


def _share(one: Demonstration) -> str:
    """Write the share of the difference that a run explains."""
    if one.explained is None:
        return ""
    if one.moves_away:
        return f"which is {floor(-100 * one.explained)} % farther from the paper"
    return f"which explains {floor(100 * one.explained)} % of the difference"


def kind(verdict: Verdict) -> str:
    """Return the class of a verdict: `holds`, `explained` or `fails`."""
    return "holds" if verdict.holds else "fails" if verdict.fails else "explained"


def _expected_bounds(verdict: Verdict) -> str | None:
    expected = verdict.worst.expected
    return None if expected is None else verdict.claim.span(expected.interval.least, expected.interval.most)


def _bounds(claim: Claim) -> str:
    if claim.at_least is not None and claim.at_most is not None:
        return f", {claim.span(claim.at_least, claim.at_most)}"
    if claim.at_least is not None:
        return f", at least {claim.format(claim.at_least)}"
    return "" if claim.at_most is None else f", at most {claim.format(claim.at_most)}"


def plots(results: Results) -> dict[str, Plot]:
    """Return the contents of the experiment's figures, by name."""
    return {figure.name: _plot_of(results, figure) for figure in results.experiment.figures}


def _plot_of(results: Results, figure: Figure) -> Plot:
    experiment = results.experiment
    sweep, measure, values = experiment.sweep, experiment.measure, results.values
    heading = "Time saved [%]" if figure.below else figure.label or measure.heading
    common = {"title": figure.title, "y_label": heading, "curves": curves_of(results, figure)}
    if sweep.names:
        names = [label(sweep, value) for value in values]
        return Plot("bars", {**common, "names": names, "linear": figure.linear or bool(figure.below)})
    axes = {"x_label": sweep.label, "xs": values, "zoom_to": figure.zoom_to, "in_bytes": sweep.unit == "B"}
    return Plot("lines", {**common, **axes, "linear": figure.linear})


@cache
def drawn_by() -> str:
    """Return the versions of the packages that decide how figures look."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("matplotlib", "numpy", "pillow"))


def draw(plot: Plot) -> Picture:
    """Draw a figure."""
    from spinkit.reports import _plot  # imported here because matplotlib takes long to load

    functions: dict[str, Callable[..., Picture]] = {"lines": _plot.lines, "bars": _plot.bars}
    return functions[plot.function](**plot.arguments)


def curves_of(results: Results, figure: Figure) -> list[Curve]:
    """Return the curves of a figure, in the order of the experiment's series."""
    experiment = results.experiment
    measured = results.measured(experiment.models[0] if figure.model is None else figure.model)
    times = measured.times
    shown = [series for series in experiment.series if figure.series is None or series.name in figure.series]
    names = [series.name for series in experiment.series] if figure.series is None else figure.series
    below = dict(zip(names, figure.below, strict=True)) if figure.below else {}

    def number(series: str, value: float) -> float:
        if figure.key is not None:
            return of_key(measured.printed(figure.machine, series, value, figure.key), figure.key)
        return of_time(series, value, times[figure.machine, series, value])

    def of_key(found: float, key: str) -> float:
        return found / 1_000_000 if key.endswith("_ps") else found

    def of_time(series: str, value: float, time: float) -> float:
        if figure.bandwidth:
            return 8 * value / time
        if series in below:
            return 100 * (1 - time / times[figure.machine, below[series], value])
        return experiment.measure.shown(time)

    def anchors(series: str) -> list[tuple[int, float]]:
        """Return the paper's numbers on this curve, if the figure has their unit."""
        found = []
        for claim in experiment.claims:
            anchor = claim.anchor
            if anchor is None or claim.kind == "ours" or anchor.series != series:
                continue
            if figure.machine not in claim.machines or (anchor.key or experiment.measure.key) != drawn:
                continue
            if anchor.is_shown and (figure.bandwidth or figure.below or figure.key is not None):
                continue
            for value in claim.where(results.values):
                raw = anchor.at(measured, figure.machine, value)
                if figure.key is not None:
                    place = of_key(raw, figure.key)
                else:
                    place = raw if anchor.is_shown else of_time(series, value, raw)
                found.append((results.values.index(value), place))
        return found

    drawn = figure.key or experiment.measure.key
    return [
        Curve(series.label, [number(series.name, value) for value in results.values], style, anchors(series.name))
        for series, style in zip(shown, _curve_styles(experiment, shown), strict=True)
    ]


def _curve_styles(experiment: Experiment, shown: Sequence[Series]) -> Sequence[int]:
    """Give each series the style of its kind of card and mode, which is the same in all figures of all experiments."""
    modes: dict[str, list[str]] = {}
    for series in experiment.series:
        of_card = modes.setdefault(series.nic, [])
        if series.mode not in of_card:
            # The modes beside "store" have the same styles in experiments without it.
            of_card.insert(of_card.index("store") if "store" in of_card else len(of_card), series.mode)
    return curve_styles([(series.nic, modes[series.nic].index(series.mode)) for series in shown])


def _handlers(runs: Iterable[Run]) -> list[dict[str, str]]:
    """Lay out the costs of handlers, as spinrun counted them over a whole run."""
    return [
        {
            "machine": run.machine,
            "series": "; ".join(series.label for series in run.series),
            "name": name,
            "calls": str(counted["calls"]),
            **{what: _a_call(counted, what) for what in ("instructions", "cycles")},
        }
        for run in runs
        for name, counted in run.report.get("handlers", {}).items()
        if counted["calls"]
    ]


def _a_call(counted: dict[str, int], what: str) -> str:
    least, most = counted[f"min_{what}"], counted[f"max_{what}"]
    return f"{least}" if least == most else f"{counted[what] / counted['calls']:.1f} ({least}–{most})"


def sensitivity(results: Results, tried: Sequence[Tried]) -> dict[str, Any]:
    """Lay out which claims turn when assumed parameters change, and draw how far each moves them."""
    from spinkit.reports import _plot  # imported here because matplotlib takes long to load

    pictures = []
    for verdict in results.verdicts:
        claim, number = verdict.claim, verdict.worst.number
        bars = _bars(tried, claim, verdict.model)
        if bars:
            model = f", {verdict.model}" if verdict.model else ""
            scale = 100 if claim.unit == "%" else 1
            stated = verdict.worst.stated
            picture = _plot.tornado(
                f"{claim.name}{model}",
                f"{claim.statement}, {verdict.worst.point} [{claim.unit}]",
                scale * number,
                (scale * stated.least, scale * stated.most),
                [Bar(bar.label, scale * bar.least, scale * bar.most) for bar in bars],
            )
            pictures.append({"title": f"{claim.name}{model}", "svg": b64encode(picture.svg).decode()})
    return {"rows": sensitivity_rows(tried), "idle": idle_changes(tried), "pictures": pictures}


def _bars(tried: Sequence[Tried], claim: Claim, model: str) -> list[Bar]:
    """Return the range of a claim's number for each parameter that moves it, the widest first."""
    ranges: dict[str, list[float]] = {}
    ends: dict[str, list[str]] = {}
    for one in tried:
        for effect in one.effects:
            if (effect.claim.name, effect.model) == (claim.name, model):
                key = one.change.parameter.key
                ranges.setdefault(key, [effect.before.number]).append(effect.after.number)
                ends.setdefault(key, []).append(one.change.value)
    found = [
        Bar(f"{key}: {', '.join(dict.fromkeys(ends[key]))}", min(numbers), max(numbers))
        for key, numbers in ranges.items()
    ]
    return sorted((bar for bar in found if bar.most > bar.least), key=lambda bar: bar.least - bar.most)


def sensitivity_rows(tried: Sequence[Tried]) -> list[dict[str, Any]]:
    """Lay out the changes that move a number or cannot be run, and the claims that each turns."""
    return [
        {
            "key": one.change.parameter.key,
            "machines": ", ".join(one.change.machines),
            "from": one.change.parameter.value,
            "to": one.change.value,
            "unit": one.change.parameter.unit,
            "error": one.error,
            "turns": [_turn(effect) for effect in one.turned],
        }
        for one in tried
        if one.matters
    ]


def idle_changes(tried: Sequence[Tried]) -> list[str]:
    """Name the parameters whose changes move no number, such as capacities that are not reached."""
    moving = {one.change.parameter.key for one in tried if one.matters}
    return [key for key in dict.fromkeys(one.change.parameter.key for one in tried) if key not in moving]


def _turn(effect: Effect) -> str:
    write = effect.claim.format
    model = f" ({effect.model})" if effect.model else ""
    now = "holds" if effect.after.holds else "does not hold"
    before, after = write(effect.before.number), write(effect.after.number)
    return f"{effect.claim.name}{model}, {effect.before.point}: {before} → {after}, {now}"


def section(results: Results, drawn: dict[str, Picture], tried: Sequence[Tried] | None = None) -> dict[str, Any]:
    """Lay out an experiment for a page, with its sensitivity if that was tried."""
    experiment, verdicts = results.experiment, results.verdicts
    figures = [
        {"title": figure.title, "paper": figure.paper, "svg": b64encode(drawn[figure.name].svg).decode()}
        for figure in experiment.figures
    ]
    counts = count(verdicts)
    bad = bool(results.wrong or counts["fails"])
    return {
        **_heading(experiment),
        "failure": None,
        "kind": "fails" if bad else "explained" if counts["explained"] else "holds",
        "mark": f"{counts['holds']}/{counts['all']}",
        "points": len(results.points),
        "wrong": len(results.wrong),
        "measure": experiment.measure.label,
        "heading": experiment.measure.heading,
        "axis": experiment.sweep.label,
        "figures": figures,
        "anchored": any(curve.anchors for figure in experiment.figures for curve in curves_of(results, figure)),
        "models": experiment.models,
        "claims": claim_rows(results),
        "counts": counts,
        "tables": time_tables(results),
        "handlers": _handlers(results.runs),
        "sensitivity": None if tried is None else sensitivity(results, tried),
    }


def failed_section(experiment: Experiment, failure: str) -> dict[str, Any]:
    """Lay out an experiment that has no results."""
    return {**_heading(experiment), "failure": failure, "kind": "fails", "mark": "–", "counts": count([])}


def _heading(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "summary": experiment.summary.split("\n\n"),
    }


def count(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count verdicts of each kind, and all."""
    kinds = [kind(verdict) for verdict in verdicts]
    return {"all": len(kinds), **{name: kinds.count(name) for name in ("holds", "explained", "fails")}}


def tally(outcomes: Iterable[Results]) -> str:
    """Count claims by class in one line: regression tests of ours, and sentences of a paper, stand apart."""
    rows = [
        (verdict, shown.get((verdict.claim.name, verdict.model), []))
        for results in outcomes
        for shown in [_demonstrations.by_claim(results)]
        for verdict in results.verdicts
    ]

    def words(chosen: Sequence[tuple[Verdict, Sequence[Demonstration]]], name: str) -> str:
        differing = [
            _demonstrations.explanation(verdict, shown) for verdict, shown in chosen if kind(verdict) == "explained"
        ]
        unexplained = sum(one is not None and one.most <= 0 for one in differing)
        text = f"{sum(verdict.holds for verdict, _ in chosen)} of {len(chosen)} {name} hold"
        if differing:
            text += f", {len(differing)} differ ({unexplained} unexplained)"
        failed = sum(verdict.fails for verdict, _ in chosen)
        return f"{text}, {failed} fail" if failed else text

    groups = [
        ([row for row in rows if row[0].claim.kind == of_class and row[0].claim.regression == regression], name)
        for of_class, regression, name in (
            ("simulated", False, "simulated claims of papers"),
            ("formula", False, "claims of arithmetic"),
            ("frozen", False, "claims of stored data"),
            ("ours", False, "claims of ours"),
            ("ours", True, "regression tests"),
        )
    ]
    return "; ".join(words(chosen, name) for chosen, name in groups if chosen)


def render(template: str, **content: Any) -> bytes:
    """Fill in a template, of HTML or Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # imported here because few commands write pages

    environment = Environment(
        loader=PackageLoader("spinkit"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["code_spans"] = code_spans
    return environment.get_template(template).render(**content, version=__version__).encode()


def page(section: dict[str, Any], machines: Sequence[Machine], quick: bool) -> bytes:
    """Write the page of one experiment."""
    return render("experiment.html.j2", title=section["title"], e=section, machines=machines, quick=quick)


def report(
    sections: Sequence[dict[str, Any]],
    machines: Sequence[Machine],
    versions: dict[str, str],
    quick: bool,
    pages: Mapping[str, str],
) -> bytes:
    """Write one page with everything; `pages` are further pages and their titles."""
    counts = {key: sum(section["counts"][key] for section in sections) for key in count([])}
    return render(
        "report.html.j2",
        title="The experiments of the sPIN papers",
        experiments=sections,
        counts=counts,
        machines=machines,
        versions=versions,
        quick=quick,
        pages=pages,
    )
