"""The claims can fail: each experiment notices slower HPUs, a longer DMA latency, and the lack of streaming.

An experiment that cannot notice a perturbation says why: `run.insensitive` in its `experiment.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from spinkit import _experiment, _machines, _paths, _pool
from spinkit._errors import SpinkitError
from spinkit._experiment import PERTURBATIONS, Experiment, Perturbation, Series
from spinkit._pool import Settings
from spinkit._run import Results, judge
from spinkit.cli import _tools

from .conftest import CHECKOUT

EXPERIMENTS = {name: _experiment.load(CHECKOUT, name) for name in _experiment.available(CHECKOUT)}


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


def variants(name: str) -> Iterator[Experiment]:
    """Return an experiment on its first model and the variants that are run; streaming is left out of its results."""
    experiment = replace(EXPERIMENTS[name], models=EXPERIMENTS[name].models[:1])
    if {"hpu", "dma"} <= experiment.insensitive.keys() and not stores(experiment):
        return
    yield experiment
    if "hpu" not in experiment.insensitive:
        yield changed(experiment, "hpu", "hpu.clock_ghz", 1 / 5)
    if "dma" not in experiment.insensitive:
        yield changed(experiment, "dma", "dma.L_ns", 5)


Outcomes = dict[str, Results | SpinkitError]


@pytest.fixture(scope="module", params=EXPERIMENTS)
def name(request: pytest.FixtureRequest) -> str:
    """Name each experiment."""
    return str(request.param)


@pytest.fixture(scope="module")
def outcomes(name: str) -> Outcomes:
    """Run all variants of an experiment; the runs are kept in `out`, where the next test finds them."""
    command = _paths.command("spinkit-machines")
    settings = Settings(CHECKOUT, _tools(), command, CHECKOUT / "out" / "perturbed", quick=True)
    ended = _pool.run_all(list(variants(name)), settings, lambda _: None)
    return {experiment.variant: outcome for experiment, outcome in ended}


def failing(outcome: Results | SpinkitError) -> set[str]:
    assert isinstance(outcome, Results), str(outcome)
    return {verdict.claim.name for verdict in outcome.unmet}


@pytest.mark.parametrize("what", PERTURBATIONS)
def test_some_claim_notices(name: str, what: Perturbation, outcomes: Outcomes) -> None:
    experiment = EXPERIMENTS[name]
    if what in experiment.insensitive:
        assert experiment.insensitive[what]
    elif what != "streaming":
        assert failing(outcomes[what]) - failing(outcomes[""])
    elif stores(experiment):
        before = outcomes[""]
        assert isinstance(before, Results), str(before)
        assert failing(without_streaming(before)) - failing(before)
