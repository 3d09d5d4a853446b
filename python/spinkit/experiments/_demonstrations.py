# SPDX-License-Identifier: Apache-2.0
"""Runs that show why a model differs from the paper: each changes only the parameters that a reason names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spinkit.common._prose import plain
from spinkit.experiments._claims import Expected, Shown
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
        chosen=None if claim.all_values else claim.values,
    )


def add(results: Results, ended: Iterable[tuple[Case, Results]]) -> Results:
    """Add demonstrations to an experiment's results."""
    shown = [
        Demonstration(case.expected, case.shown, verdict) for case, outcome in ended for verdict in outcome.verdicts
    ]
    return replace(results, shown=tuple(shown))


def by_claim(results: Results) -> Mapping[tuple[str, str], list[Demonstration]]:
    """Return the demonstrations of each claim on each model."""
    found: dict[tuple[str, str], list[Demonstration]] = {}
    for one in results.shown:
        found.setdefault((one.verdict.claim.name, one.verdict.model), []).append(one)
    return found
