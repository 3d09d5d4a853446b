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

from spinkit import __version__
from spinkit._claims import Claim, Sample, Verdict
from spinkit._errors import SpinkitError
from spinkit._experiment import Experiment
from spinkit._machines import Machine, Parameter
from spinkit._plot import Bar
from spinkit._run import Results


@dataclass(frozen=True)
class Change:
    """An assumed parameter with another value that it may have."""

    parameter: Parameter
    values: tuple[str, ...]
    """The value; several if machines have different ranges."""
    variant: Experiment

    @property
    def what(self) -> str:
        """The change in words."""
        return f"{self.parameter.key} = {' or '.join(self.values)} {self.parameter.unit}".rstrip()


@dataclass(frozen=True)
class Effect:
    """The number of a claim on one model before and after a change, at the same point."""

    claim: Claim
    model: str
    before: Sample
    after: Sample

    @property
    def turns(self) -> bool:
        """Whether the change makes the paper's sentence true or false at this point."""
        return self.before.holds != self.after.holds


@dataclass(frozen=True)
class Tried:
    """A change and its effects, or the error that ended its runs."""

    change: Change
    effects: tuple[Effect, ...]
    """For each claim and model, the effect at the point that stood for it before the change."""
    turned: tuple[Effect, ...] = ()
    """The effects at all points at which a claim turns."""
    error: str | None = None


def changes(experiment: Experiment, describe: Callable[[str], Machine]) -> list[Change]:
    """Return the changes of an experiment's machines, parameter by parameter."""
    machines = [describe(name) for name in experiment.machine_files]
    found: dict[tuple[str, object], dict[str, tuple[Parameter, str]]] = {}
    for machine in machines:
        for parameter in machine.parameters:
            for end, value in _others(parameter):
                found.setdefault((parameter.key, end), {})[machine.name] = (parameter, value)
    return [_change(experiment, key, of_machines) for (key, _), of_machines in sorted(found.items(), key=_key)]


def _key(found: tuple[tuple[str, object], object]) -> str:
    """Sort by parameter; its values keep their order."""
    return found[0][0]


def _others(parameter: Parameter) -> Iterable[tuple[object, str]]:
    """Return the values that an assumed parameter may have instead of its own, each with its end or name."""
    assumed = parameter.assumed
    if assumed is None:
        return
    if assumed.range is not None:
        for end, value in enumerate(assumed.range):
            if float(value) != float(parameter.value):
                yield end, value
    for value in assumed.values or ():
        if value != parameter.value:
            yield value, value


def _change(experiment: Experiment, key: str, of_machines: dict[str, tuple[Parameter, str]]) -> Change:
    parameter = next(iter(of_machines.values()))[0]
    values = tuple(dict.fromkeys(value for _, value in of_machines.values()))
    settings = {name: (f"{key}={value}",) for name, (_, value) in of_machines.items()}
    change = Change(parameter, values, experiment)
    return replace(change, variant=replace(experiment, variant=change.what, changes=settings))


def compare(change: Change, before: Results, after: Results | SpinkitError) -> Tried:
    """Compare the claims of an experiment before and after a change."""
    if isinstance(after, SpinkitError):
        return Tried(change, (), error=str(after))
    pairs = list(zip(before.verdicts, after.verdicts, strict=True))
    turned = [effect for pair in pairs for effect in _effects(*pair) if effect.turns]
    return Tried(change, tuple(_shown(*pair) for pair in pairs), tuple(turned))


def _effects(before: Verdict, after: Verdict) -> list[Effect]:
    samples = {sample.point: sample for sample in after.tested}
    return [Effect(before.claim, before.model, sample, samples[sample.point]) for sample in before.tested]


def _shown(before: Verdict, after: Verdict) -> Effect:
    """Return the effect at the point that stands for the claim."""
    return next(effect for effect in _effects(before, after) if effect.before is before.worst)


def bars(tried: Sequence[Tried], claim: Claim, model: str) -> list[Bar]:
    """Return the range of a claim's number for each parameter that moves it, the widest first."""
    ranges: dict[str, list[float]] = {}
    ends: dict[str, list[str]] = {}
    for one in tried:
        for effect in one.effects:
            if (effect.claim.name, effect.model) == (claim.name, model):
                key = one.change.parameter.key
                ranges.setdefault(key, [effect.before.number]).append(effect.after.number)
                ends.setdefault(key, []).extend(one.change.values)
    found = [Bar(f"{key}: {', '.join(ends[key])}", min(numbers), max(numbers)) for key, numbers in ranges.items()]
    return sorted((bar for bar in found if bar.most > bar.least), key=lambda bar: bar.least - bar.most)


def to_json(results: Results, tried: Sequence[Tried]) -> bytes:
    """Write every change and its effects."""
    content = {
        "experiment": results.experiment.name,
        "spinkit": __version__,
        "quick": results.quick,
        "changes": [_tried(one) for one in tried],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _tried(one: Tried) -> dict[str, Any]:
    parameter = one.change.parameter
    assumed = parameter.assumed
    return {
        "parameter": parameter.key,
        "value": parameter.value,
        "changed_to": list(one.change.values),
        "unit": parameter.unit,
        "reason": assumed.reason if assumed else "",
        "anchor": assumed.anchor if assumed else None,
        "error": one.error,
        "claims": [_told(effect) for effect in one.effects],
        "turned": [_told(effect) for effect in one.turned],
    }


def _told(effect: Effect) -> dict[str, Any]:
    return {
        "name": effect.claim.name,
        "model": effect.model,
        "at": effect.before.point,
        "before": effect.before.number,
        "after": effect.after.number,
        "holds": effect.after.holds,
        "turns": effect.turns,
    }
