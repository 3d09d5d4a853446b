"""The claims can fail: each experiment notices slower HPUs, a longer DMA latency, and the lack of streaming.

An experiment that cannot notice a perturbation says why: `run.insensitive` in its `experiment.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from spinkit import _experiment, _machines, _paths, _pool
from spinkit._errors import SpinkitError
from spinkit._experiment import PERTURBATIONS, Experiment, Perturbation, Series
from spinkit._pool import Settings
from spinkit._run import Results, judge, toolchain

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


def variants(experiment: Experiment) -> Iterator[Experiment]:
    """Return an experiment and the variants that are run; streaming is left out of its results."""
    if {"hpu", "dma"} <= experiment.insensitive.keys() and not stores(experiment):
        return
    yield experiment
    if "hpu" not in experiment.insensitive:
        yield changed(experiment, "hpu", "hpu.clock_ghz", 1 / 5)
    if "dma" not in experiment.insensitive:
        yield changed(experiment, "dma", "dma.L_ns", 5)


Outcomes = dict[tuple[str, str], Results | SpinkitError]


def run(experiments: Iterable[Experiment]) -> Outcomes:
    """Run all variants of experiments; the runs are kept in `out`, where those of `make reproduce-quick` are, too."""
    settings = Settings(CHECKOUT, toolchain(), _paths.command("spinkit-machines"), CHECKOUT / "out", quick=True)
    several = [variant for experiment in experiments for variant in variants(experiment)]
    return {(one.name, one.variant): outcome for one, outcome in _pool.run_all(several, settings, lambda _: None)}


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """Run all experiments on their first machine."""
    return run(narrowed(experiment) for experiment in EXPERIMENTS.values())


def failing(outcome: Results | SpinkitError) -> set[str]:
    assert isinstance(outcome, Results), str(outcome)
    return {verdict.claim.name for verdict in outcome.unmet}


def noticing(name: str, what: Perturbation, outcomes: Outcomes) -> set[str]:
    """Return the claims that fail with a perturbation and do not without."""
    before = outcomes[name, ""]
    assert isinstance(before, Results), str(before)
    after = without_streaming(before) if what == "streaming" else outcomes[name, what]
    return failing(after) - failing(before)


@pytest.mark.parametrize("what", PERTURBATIONS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_some_claim_notices(name: str, what: Perturbation, outcomes: Outcomes) -> None:
    experiment = EXPERIMENTS[name]
    if what in experiment.insensitive:
        assert experiment.insensitive[what]
    elif what != "streaming" or stores(experiment):
        # A claim that notices on one machine is one that notices; only without any the other machines are run.
        model = replace(experiment, models=experiment.models[:1])
        assert noticing(name, what, outcomes) or noticing(name, what, run([model]))
