# SPDX-License-Identifier: Apache-2.0
"""Sensitivity: which claims of an experiment depend on parameters that no paper gives.

Each assumed parameter (`[assumed."KEY"]` in a machine file) is set to each end of its range, or to each other value
that it may have, while all others keep theirs. A claim *turns* when the paper's sentence is true at a point before
and not after, or the reverse; that our number leaves the interval in which we expect it is no turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spinkit._errors import SpinkitError
from spinkit.common._values import typed
from spinkit.common._version import __version__
from spinkit.experiments._claims import Claim, Sample, Verdict
from spinkit.experiments._definition import Experiment
from spinkit.experiments._outcome import Results
from spinkit.simulate._machines import Machine, Parameter


@dataclass(frozen=True)
class Change:
    """An assumed parameter with another value that it may have, on the machines that share both values."""

    parameter: Parameter
    value: str
    machines: tuple[str, ...]
    variant: Experiment

    @property
    def what(self) -> str:
        """Description of the change."""
        where = "" if self.machines == self.variant.machine_files else f" on {', '.join(self.machines)}"
        return f"{self.parameter.key} = {self.value} {self.parameter.unit}".rstrip() + where


@dataclass(frozen=True)
class Effect:
    """The number of a claim on one model before and after a change, at the same point."""

    claim: Claim
    model: str
    before: Sample
    after: Sample

    @property
    def turns(self) -> bool:
        """True if the change makes the paper's sentence true or false at this point."""
        return self.before.holds != self.after.holds


@dataclass(frozen=True)
class Tried:
    """A change and its effects, or the error that ended its runs."""

    change: Change
    effects: tuple[Effect, ...]
    """For each claim and model, the effect at the point that stood for it before the change."""
    turned: tuple[Effect, ...] = ()
    """The effects at all points at which a claim turns."""
    changed: bool = False
    """True if the number of some claim changes at some point."""
    error: str | None = None

    @property
    def matters(self) -> bool:
        """True if the change moves a number, or cannot be run."""
        return self.error is not None or self.changed


def changes(experiment: Experiment, describe: Callable[[str], Machine]) -> list[Change]:
    """Return the changes of an experiment's machines, parameter by parameter."""
    machines = [describe(experiment.place(name)) for name in experiment.machine_files]
    found: dict[tuple[str, str, str], dict[str, Parameter]] = {}
    for machine in machines:
        for parameter in machine.parameters:
            for value in _others(parameter):
                found.setdefault((parameter.key, parameter.value, value), {})[machine.name] = parameter
    # Sorted by parameter; its values keep their order.
    ordered = sorted(found.items(), key=lambda one: one[0][0])
    return [_change(experiment, value, of_machines) for (_, _, value), of_machines in ordered]


def _others(parameter: Parameter) -> Iterable[str]:
    """Return the other possible values of an assumed parameter."""
    assumed = parameter.assumed
    if assumed is None:
        return
    for value in assumed.range or ():
        if float(value) != float(parameter.value):
            yield value
    for value in assumed.values or ():
        if value != parameter.value:
            yield value


def _change(experiment: Experiment, value: str, of_machines: dict[str, Parameter]) -> Change:
    parameter = next(iter(of_machines.values()))
    settings = dict.fromkeys(of_machines, (f"{parameter.key}={value}",))
    change = Change(parameter, value, tuple(of_machines), experiment)
    return replace(change, variant=replace(experiment, variant=change.what, changes=settings))


def compare(change: Change, before: Results, after: Results | SpinkitError) -> Tried:
    """Compare the claims of an experiment before and after a change."""
    if isinstance(after, SpinkitError):
        return Tried(change, (), error=str(after))
    pairs = list(zip(before.verdicts, after.verdicts, strict=True))
    effects = [effect for pair in pairs for effect in _effects(*pair)]
    turned = tuple(effect for effect in effects if effect.turns)
    changed = any(effect.before.number != effect.after.number for effect in effects)
    return Tried(change, tuple(_worst_effect(*pair) for pair in pairs), turned, changed)


def _effects(before: Verdict, after: Verdict) -> list[Effect]:
    samples = {sample.point: sample for sample in after.tested}
    return [Effect(before.claim, before.model, sample, samples[sample.point]) for sample in before.tested]


def _worst_effect(before: Verdict, after: Verdict) -> Effect:
    """Return the effect at the point that stands for the claim."""
    return next(effect for effect in _effects(before, after) if effect.before is before.worst)


def to_json(results: Results, tried: Sequence[Tried]) -> bytes:
    """Write every change and its effects."""
    content = {
        "experiment": results.experiment.name,
        "spinkit": __version__,
        "quick": results.quick,
        "changes": [_change_to_json(one) for one in tried],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _change_to_json(one: Tried) -> dict[str, Any]:
    parameter = one.change.parameter
    assumed = parameter.assumed
    return {
        "parameter": parameter.key,
        "value": typed(parameter.value),
        "changed_to": typed(one.change.value),
        "machines": list(one.change.machines),
        "unit": parameter.unit,
        "reason": assumed.reason if assumed else "",
        "anchor": assumed.anchor if assumed else None,
        "error": one.error,
        "claims": [_effect_to_json(effect) for effect in one.effects],
        "turned": [_effect_to_json(effect) for effect in one.turned],
    }


def _effect_to_json(effect: Effect) -> dict[str, Any]:
    return {
        "name": effect.claim.name,
        "model": effect.model,
        "at": effect.before.point,
        "before": effect.before.number,
        "after": effect.after.number,
        "holds": effect.after.holds,
        "turns": effect.turns,
    }
