# SPDX-License-Identifier: Apache-2.0
"""Experiments on the machines of another model, such as sc17-arm in place of sc17."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from spinkit._errors import SpinkitError
from spinkit.experiments._claims import Claim, Expected
from spinkit.experiments._definition import Experiment
from spinkit.simulate import _machines


def on_model(experiment: Experiment, model: str, machines: Path) -> Experiment:
    """Return an experiment that runs on the machines of `model` in place of its first model, the paper's.

    Claims and figures of the first model are those of `model`; the other models are left out. So are its known
    differences, unless a claim states those of `model`.
    `machines` is the command `spinkit-machines`.
    """
    first = experiment.models[0]
    if not first:
        raise SpinkitError(f"{experiment.name} names whole machines: --model cannot replace them")
    figures = [figure for figure in experiment.figures if figure.model in (None, first)]
    changed = replace(
        experiment,
        name=f"{experiment.name}-{model}",
        models=(model,),
        claims=tuple(_claim(claim, first, model) for claim in experiment.claims),
        figures=tuple(msgspec.structs.replace(figure, model=None) for figure in figures),
    )
    described = _machines.load_all(machines, [changed.place(name) for name in changed.machine_files])
    kinds = {
        str(parameter.value) for machine in described for parameter in machine.parameters if parameter.key == "hpu.kind"
    }
    return replace(changed, kinds=tuple(sorted(kinds)))


def _claim(claim: Claim, first: str, model: str) -> Claim:
    stated = [one for one in claim.elsewhere if model in one.models]
    of, known = (model, stated) if stated else (first, [one for one in claim.expected if first in one.models])
    return replace(claim, expected=tuple(_difference(one, of, model) for one in known), elsewhere=())


def _difference(one: Expected, of: str, model: str) -> Expected:
    """Return a known difference of the model `of` as one of `model`."""
    shown = (replace(run, models=(model,)) for run in one.shown if of in run.models)
    return replace(one, models=(model,), shown=tuple(shown))


def on_models(experiments: Sequence[Experiment], model: str | None, machines: Path) -> list[Experiment]:
    """Return experiments on the machines of `model`, or unchanged without one."""
    return list(experiments) if model is None else [on_model(one, model, machines) for one in experiments]
