# SPDX-License-Identifier: Apache-2.0
"""Runs that show why a model differs from the paper: each changes only the parameters that a reason names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import floor

from spinkit.common._prose import plain
from spinkit.experiments._claims import Expected, Shown, Verdict, explained
from spinkit.experiments._definition import Experiment
from spinkit.experiments._outcome import Demonstration, Results


@dataclass(frozen=True, eq=False)
class Case:
    """A `[[claim.expected.shown]]` and the variant of its experiment that is run."""

    expected: Expected
    shown: Shown
    variant: Experiment


def cases(experiment: Experiment, quick: bool) -> list[Case]:
    """Return the demonstrations at the points of a full or quick run."""
    values = experiment.values(quick)
    return [
        Case(expected, shown, _variant(experiment, shown))
        for claim in experiment.claims
        for expected in claim.expected
        for shown in expected.shown
        if shown.claim.where(values)
    ]


def _variant(experiment: Experiment, shown: Shown) -> Experiment:
    """Return the experiment with the changed parameters, and only the points that the claim needs."""
    claim = shown.claim
    whole_runs = claim.of_runs and experiment.shared_run
    return replace(
        experiment,
        models=shown.models,
        machines=experiment.machines if claim.all_machines else claim.machines,
        series=tuple(one for one in experiment.series if whole_runs or one.name in claim.series),
        claims=(claim,),
        variant=f"{claim.name} {plain(shown.description)}",
        changes=dict.fromkeys(experiment.machine_files, shown.changes),
        flags=shown.flags,
        chosen=None if claim.all_values else claim.values,
    )


def add(results: Results, ended: Iterable[tuple[Case, Results]]) -> Results:
    """Add demonstrations to an experiment's results."""
    base = {(verdict.claim.name, verdict.model): verdict for verdict in results.verdicts}
    shown = []
    for case, outcome in ended:
        for verdict in outcome.verdicts:
            whole = base[verdict.claim.name, verdict.model]
            share = explained(whole.claim, whole, verdict, case.expected)
            shown.append(Demonstration(case.expected, case.shown, verdict, share))
    return replace(results, shown=tuple(shown))


def by_claim(results: Results) -> Mapping[tuple[str, str], list[Demonstration]]:
    """Return the demonstrations of each claim on each model."""
    found: dict[tuple[str, str], list[Demonstration]] = {}
    for one in results.shown:
        found.setdefault((one.verdict.claim.name, one.verdict.model), []).append(one)
    return found


@dataclass(frozen=True)
class Explanation:
    """Shares of a claim's expected differences that runs remove: the least and the most of its reasons."""

    least: float
    most: float

    @property
    def text(self) -> str:
        """Text of the shares, in whole percent, rounded down."""
        if self.most <= 0:
            return "unexplained"
        if self.least >= 1:
            return "explained"
        least, most = (floor(100 * share) for share in (self.least, self.most))
        return f"{least} % explained" if least == most else f"{least} to {most} % explained"


def explanation(verdict: Verdict, shown: Iterable[Demonstration]) -> Explanation | None:
    """Return how far the runs explain the expected differences of a claim on a model.

    A reason counts by its best run, and as 0 without one. None if nothing differs, or if a quick run left out all runs.
    """
    found = list(shown)
    shares = []
    for expected in {
        id(one.expected): one.expected for one in verdict.tested if not one.holds and one.expected
    }.values():
        runs = [one.explained for one in found if one.expected is expected and one.explained is not None]
        if runs or not expected.shown:
            shares.append(min(1.0, max([0.0, *runs])) if runs else 0.0)
    return Explanation(min(shares), max(shares)) if shares else None
