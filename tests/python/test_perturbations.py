# SPDX-License-Identifier: Apache-2.0
"""The claims can fail: each experiment notices slower HPUs, a longer DMA latency, and the lack of streaming.

An experiment that cannot notice a perturbation says why: `run.insensitive` in its `experiment.toml`.

A parameter that explains a difference from the paper makes it larger when it changes in the other direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.experiments import _demonstrations, _pool, _reader
from spinkit.experiments._claims import Claim, Verdict, explained
from spinkit.experiments._definition import PERTURBATIONS, Experiment, Perturbation, Series
from spinkit.experiments._demonstrations import Case
from spinkit.experiments._outcome import Results, judge
from spinkit.experiments._workshop import Settings
from spinkit.simulate import _machines
from spinkit.simulate._toolchain import toolchain

from .conftest import CHECKOUT

EXPERIMENTS = {name: _reader.load(CHECKOUT, name) for name in _reader.available(CHECKOUT)}


def stores(experiment: Experiment) -> dict[str, Series]:
    """Return, for each series that streams, the one that differs from it only in storing first."""
    return {
        stream.name: store
        for stream in experiment.series
        for store in experiment.series
        if (stream.mode, store.mode) == ("stream", "store")
        and (stream.nic, stream.args, stream.set) == (store.nic, store.args, store.set)
    }


def changed(experiment: Experiment, what: Perturbation, key: str, factor: float) -> Experiment:
    """Return a variant of the experiment with a parameter multiplied on every machine."""
    changes = {}
    for name in experiment.machine_files:
        parameters = _machines.load(_paths.command("spinkit-machines"), name).parameters
        [value] = [float(parameter.value) for parameter in parameters if parameter.key == key]
        changes[name] = (f"{key}={value * factor:g}",)
    return replace(experiment, variant=what, changes=changes)


def without_streaming(results: Results) -> Results:
    """Return the results with the times of storing in place of those of streaming."""
    experiment = results.experiment
    points = {(point.machine, point.series.name, point.value): point for point in results.points}
    store_of = stores(experiment)
    runs = [
        replace(
            run,
            points=tuple(
                replace(points[point.machine, store_of[point.series.name].name, point.value], series=point.series)
                if point.series.name in store_of
                else point
                for point in run.points
            ),
        )
        for run in results.runs
    ]
    return judge(experiment, results.quick, runs)


def narrowed(experiment: Experiment) -> Experiment:
    """Return the experiment on its first model and machine, with the claims that can be tested there."""
    machines = experiment.machines[:1]
    claims = (one for one in experiment.claims if not one.all_machines and set(machines) <= set(one.machines))
    return replace(
        experiment,
        models=experiment.models[:1],
        machines=machines,
        claims=tuple(replace(one, machines=machines) for one in claims),
    )


CHANGES: dict[Perturbation, tuple[str, float]] = {"hpu": ("hpu.clock_ghz", 1 / 5), "dma": ("dma.L_ns", 5)}
"""The parameter of the machine that a perturbation multiplies, and the factor."""


def perturbed(experiment: Experiment, what: Perturbation, claims: Iterable[Claim]) -> Experiment:
    """Return a variant with these claims, and only the series that they need."""
    claims = tuple(claims)
    needed = {name for claim in claims for name in claim.series}
    # A run shared by series contains all of them.
    series = tuple(one for one in experiment.series if experiment.shared_run or one.name in needed)
    return changed(replace(experiment, claims=claims, series=series), what, *CHANGES[what])


def most_sensitive_first(results: Results) -> list[Claim]:
    """Return the claims, that with the smallest distance from its bounds, relative to its number, first."""

    def slack(verdict: Verdict) -> float:
        margin, number = verdict.worst.margin, verdict.worst.number
        return abs(margin / number) if number else abs(margin)

    return [verdict.claim for verdict in sorted(results.verdicts, key=slack)]


Outcomes = dict[tuple[str, str], Results | SpinkitError]


def run(experiments: Iterable[Experiment]) -> Outcomes:
    """Run experiments; the runs are kept in `out`, where those of `make reproduce-quick` are, too."""
    settings = Settings(CHECKOUT, toolchain(), _paths.command("spinkit-machines"), CHECKOUT / "out", quick=True)
    return {
        (one.name, one.variant): outcome for one, outcome in _pool.run_all([*experiments], settings, lambda _: None)
    }


def opposite(machine: str, change: str) -> str | None:
    """Return the change that mirrors a number at the machine's value; None for a rule, or without such a number."""
    key, _, text = change.partition("=")
    parameters = _machines.load(_paths.command("spinkit-machines"), machine).parameters
    [now] = [parameter for parameter in parameters if parameter.key == key]
    try:
        value, to = float(now.value), float(text)
    except ValueError:
        return None
    mirrored = 2 * value - to
    if mirrored <= 0:
        mirrored = value * value / to if to else 0
    if now.unit in {"", "cycles"} and value.is_integer() and to.is_integer():
        mirrored = max(1, round(mirrored))
    return f"{key}={mirrored:.3g}" if 0 < mirrored != value else None


def reversed_changes(experiment: Experiment, case: Case) -> dict[str, tuple[str, ...]] | None:
    """Return for each machine the changes in the other direction, or None if the case has none."""
    if case.shown.one_way:
        return None
    changes = {}
    for model in case.shown.models:
        for machine in case.variant.machines:
            name = experiment.machine(model, machine)
            several = case.shown.reverse or [opposite(name, one) for one in case.shown.changes]
            found = tuple(one for one in several if one is not None)
            if not found or len(found) < len(several):
                return None
            changes[name] = found
    return changes


def is_perturbed(experiment: Experiment, what: Perturbation) -> bool:
    return what not in experiment.insensitive and (what != "streaming" or bool(stores(experiment)))


@pytest.fixture(scope="module")
def noticed() -> set[tuple[str, Perturbation]]:
    """Return the pairs of experiment and perturbation noticed on the first machine.

    The most sensitive claim is tested first, then two, then four, until one notices: most claims need few series.
    """
    wanted = [one for one in EXPERIMENTS.values() if any(is_perturbed(one, what) for what in PERTURBATIONS)]
    before = run(narrowed(experiment) for experiment in wanted)
    found = set[tuple[str, Perturbation]]()
    left = dict[tuple[str, Perturbation], tuple[Results, list[Claim]]]()
    for experiment in wanted:
        results = before[experiment.name, ""]
        assert isinstance(results, Results), str(results)
        if is_perturbed(experiment, "streaming") and failing(without_streaming(results)) - failing(results):
            found.add((experiment.name, "streaming"))
        for what in CHANGES:
            if is_perturbed(experiment, what):
                left[experiment.name, what] = results, most_sensitive_first(results)
    count = 1
    while left:
        after = run(
            perturbed(results.experiment, what, claims[:count]) for (_, what), (results, claims) in left.items()
        )
        found |= {place for place, (results, _) in left.items() if failing(after[place]) - failing(results)}
        left = {place: kept for place, kept in left.items() if place not in found and count < len(kept[1])}
        count *= 2
    return found


def failing(outcome: Results | SpinkitError) -> set[str]:
    assert isinstance(outcome, Results), str(outcome)
    return {verdict.claim.name for verdict in outcome.unmet}


def notices_somewhere(experiment: Experiment, what: Perturbation) -> bool:
    """Run an experiment on all its machines, with and without a perturbation, and return whether a claim notices."""
    model = replace(experiment, models=experiment.models[:1])
    several = [model] if what == "streaming" else [model, changed(model, what, *CHANGES[what])]
    outcomes = run(several)
    before = outcomes[experiment.name, ""]
    assert isinstance(before, Results), str(before)
    after = without_streaming(before) if what == "streaming" else outcomes[experiment.name, what]
    return bool(failing(after) - failing(before))


@pytest.mark.parametrize("what", PERTURBATIONS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_some_claim_notices(name: str, what: Perturbation, noticed: set[tuple[str, Perturbation]]) -> None:
    experiment = EXPERIMENTS[name]
    if what in experiment.insensitive:
        assert experiment.insensitive[what]
    elif is_perturbed(experiment, what):
        # A claim that notices on one machine is one that notices; only without any the other machines are run.
        assert (name, what) in noticed or notices_somewhere(experiment, what)


def test_reasons_work_in_both_directions() -> None:
    cases = [
        (experiment, case, changes)
        for experiment in EXPERIMENTS.values()
        for case in _demonstrations.cases(experiment, quick=True)
        if (changes := reversed_changes(experiment, case)) is not None
    ]
    back = [
        replace(case.variant, variant=f"{number}: {case.variant.variant} in the other direction", changes=changes)
        for number, (_, case, changes) in enumerate(cases)
    ]
    whole = {experiment.name: experiment for experiment, _, _ in cases}
    outcomes = run(
        [*whole.values(), *(replace(case.variant, variant=f"{n}") for n, (_, case, _) in enumerate(cases)), *back]
    )

    def verdicts(name: str, variant: str) -> dict[tuple[str, str], Verdict]:
        outcome = outcomes[name, variant]
        assert isinstance(outcome, Results), str(outcome)
        return {(one.claim.name, one.model): one for one in outcome.verdicts}

    wrong, tested = [], 0
    for number, (experiment, case, changes) in enumerate(cases):
        there, here = verdicts(experiment.name, str(number)), verdicts(experiment.name, back[number].variant)
        base = verdicts(experiment.name, "")
        for place in here:
            # A run that explains nothing has no direction.
            share = explained(base[place].claim, base[place], there[place], case.expected)
            other = explained(base[place].claim, base[place], here[place], case.expected)
            if share and other is not None:
                tested += 1
                if other >= 0:
                    wrong.append(f"{experiment.name}: {place}: {case.shown.changes} {share:.3f}, {changes} {other:.3f}")
    assert not wrong
    assert tested >= 80
