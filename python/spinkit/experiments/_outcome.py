# SPDX-License-Identifier: Apache-2.0
"""Outcome of an experiment, read from the output of programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._json import parse_json
from spinkit.experiments._claims import Expected, Measured, Shown, Verdict, inside
from spinkit.experiments._definition import Experiment, Series


@dataclass(frozen=True)
class Point:
    """One measured point."""

    machine: str
    series: Series
    value: float
    measured: float
    data_ok: bool
    line: Mapping[str, Any]
    """All values that the program printed for this point."""


@dataclass(frozen=True)
class Run:
    """One run of the program: its points, by series and the sweep's value, and spinrun's report."""

    machine: str
    series: tuple[Series, ...]
    """The measured series: one, unless they share a run."""
    points: tuple[Point, ...]
    report: Mapping[str, Any]


@dataclass(frozen=True)
class Demonstration:
    """The outcome on one model of a run that shows a reason."""

    expected: Expected
    shown: Shown
    verdict: Verdict
    explained: float | None
    """Share of the difference that the run removes; None if it repeats no point that differs."""

    @property
    def moves_away(self) -> bool:
        """True if the run moves the numbers away from the paper's interval."""
        return self.explained is not None and self.explained < 0

    @property
    def fails(self) -> bool:
        """True if the run does not show its reason."""
        return self.verdict.fails or self.moves_away


@dataclass(frozen=True)
class Results:
    """An experiment's outcome, ordered as the experiment lists machines, series and values."""

    experiment: Experiment
    quick: bool
    runs: tuple[Run, ...]
    verdicts: tuple[Verdict, ...]
    shown: tuple[Demonstration, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the sweep that were run."""
        return self.experiment.values(self.quick)

    @property
    def points(self) -> list[Point]:
        """All points."""
        return [point for run in self.runs for point in run.points]

    def measured(self, model: str) -> Measured:
        """Return the measurements of a model, by the machine's name in the experiment."""
        names = {self.experiment.machine(model, machine): machine for machine in self.experiment.machines}
        runs = [run for run in self.runs if run.machine in names]
        points = {(names[run.machine], one.series.name, one.value): (one, run) for run in runs for one in run.points}
        # On an axis of the machine each point has a run, so that a place in the report is a number of the point.
        of_machine = self.experiment.sweep.of_machine
        return Measured(
            times={place: point.measured for place, (point, _) in points.items()},
            lines={
                place: {**run.report, **point.line} if of_machine else point.line
                for place, (point, run) in points.items()
            },
            reports={(names[run.machine], series.name): run.report for run in runs for series in run.series},
        )

    @property
    def wrong(self) -> list[Point]:
        """Points with wrong data."""
        return [point for point in self.points if not point.data_ok]

    @property
    def unmet(self) -> list[Verdict]:
        """Claims with a number in neither the paper's interval nor the expected one."""
        return [verdict for verdict in self.verdicts if verdict.fails]

    @property
    def not_shown(self) -> list[Demonstration]:
        """Demonstrations that failed to show their reason."""
        return [one for one in self.shown if one.fails]


def judge(experiment: Experiment, quick: bool, runs: Iterable[Run]) -> Results:
    """Test the experiment's claims on its runs."""
    results = Results(experiment, quick, tuple(runs), ())
    measured = {model: results.measured(model) for model in experiment.models}
    verdicts = [
        claim.test(measured[model], results.values, model) for claim in experiment.claims for model in experiment.models
    ]
    return Results(experiment, quick, results.runs, tuple(verdicts))


def read_points(
    experiment: Experiment, machine: str, series: Sequence[Series], values: tuple[float, ...], output: str
) -> tuple[Point, ...]:
    """Read the program's output: for each series one JSON object for each value of the sweep, and nothing else.

    The program does not print the value of a machine's axis: it is the only value of the run.
    """
    found: dict[tuple[str, float], Point] = {}
    for number, text in enumerate(output.splitlines(), 1):
        one = series[min(len(found) // len(values), len(series) - 1)]
        point = _point(experiment, machine, one, number, text, values[0])
        if point.value not in values or (one.name, point.value) in found:
            problem = "occurs twice" if point.value in values else "was not requested"
            raise SpinkitError(f"output line {number}: {experiment.sweep.axis} = {point.value} {problem}")
        found[one.name, point.value] = point
    for one in series:
        missing = [str(value) for value in values if (one.name, value) not in found]
        if missing:
            which = f" of {one.label}" if len(series) > 1 else ""
            raise SpinkitError(f"no result{which} for {experiment.sweep.axis} = {', '.join(missing)}")
    return tuple(found[one.name, value] for one in series for value in values)


def _point(experiment: Experiment, machine: str, series: Series, number: int, text: str, of_machine: float) -> Point:
    try:
        line = parse_json(text)
    except ValueError:
        raise SpinkitError(f"output line {number} is not JSON: {text[:200]}") from None
    if not isinstance(line, dict):
        raise SpinkitError(f"output line {number} is not a JSON object: {text[:200]}")

    def take(key: str, *kinds: type) -> Any:
        value = inside(line, key)
        if type(value) not in kinds or (type(value) is float and not isfinite(value)):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise SpinkitError(f"output line {number}: {key}: expected {expected}, found {value!r}")
        if type(value) is int and abs(value) >= 2**63:
            raise SpinkitError(f"output line {number}: {key}: found an integer of more than 64 bits")
        return value

    measure = experiment.measure
    kinds = (int,) if measure.own_unit is None else (int, float)
    measured, least = take(measure.key, *kinds), 1 if measure.is_time else 0
    if measured < least:
        found = f"expected at least {least}, found {measured}"
        raise SpinkitError(f"output line {number}: {measure.key}: {found}")
    if "mode" in line and line["mode"] != series.mode:
        raise SpinkitError(f"output line {number}: mode: expected {series.mode}, found {line['mode']!r}")
    value = of_machine if experiment.sweep.of_machine else take(experiment.sweep.axis, int)
    return Point(machine, series, value, measured, take("data_ok", bool), line)
