# SPDX-License-Identifier: Apache-2.0
"""Jobs: the single runs of an experiment, with the settings and arguments of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.experiments._definition import Experiment, Series
from spinkit.simulate._machines import Machine

Describe = Callable[[str, tuple[str, ...]], Machine]
"""Describes a machine with changed parameters."""

_FIELD = re.compile(r"\{([^{}]*)\}")
"""A placeholder in an argument: `{values}`, `{network.radix}`."""


@dataclass(frozen=True, eq=False)
class Job:
    """One run of an experiment's program."""

    experiment: Experiment
    machine: str
    series: tuple[Series, ...]
    """Measured series: one, unless several share a run."""
    quick: bool
    describe: Describe
    value: float | None = None
    """Value of an axis of the machine."""

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the sweep that the run measures."""
        return self.experiment.values(self.quick) if self.value is None else (self.value,)

    @property
    def name(self) -> str:
        """Name of the run; equal names within an experiment mean the same run."""
        name = f"{self.machine}.{self.series[0].name}.{'quick' if self.quick else 'all'}"
        varied = [
            *self.settings(self.series[0].set),
            *self.experiment.flags,
            *map(str, self.experiment.chosen or ()),
        ]
        return (f"{name}.{digest([], varied)[:16]}" if varied else name).replace("/", "-")

    @property
    def key(self) -> tuple[str, str]:
        """Experiment and name; equal keys mean the same run."""
        return self.experiment.name, self.name

    @property
    def title(self) -> str:
        """Description of the run for messages."""
        variant = f", {self.experiment.variant}" if self.experiment.variant else ""
        axis = self.experiment.sweep.axis
        at = "" if self.value is None else f", {axis} = {self.value}"
        return f"{'; '.join(series.label for series in self.series)} on {self.machine}{variant}{at}"

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.fill(str(self.experiment.program.ranks)))

    @property
    def changes(self) -> tuple[str, ...]:
        """Changed parameters of the machine; later ones replace earlier ones.

        First the variant's parameters that the series leaves alone, then those of the series, last those of the point.
        """
        return self.settings(tuple(self.fill(change, changes=()) for change in self.series[0].set))

    def settings(self, own: tuple[str, ...]) -> tuple[str, ...]:
        """Combine the changes `own` of the series with those of the variant and of the point."""
        keys = {change.partition("=")[0] for change in own}
        # Cards without handlers have HPUs that are never used.
        unused = () if self.series[0].nic == "spin" else ("hpu.", "accelerator.")
        varied = self.experiment.changes.get(self.machine, ())
        before = (one for one in varied if one.partition("=")[0] not in keys and not one.startswith(unused))
        after = (one for one in self.experiment.point if not one.startswith(unused))
        at = () if self.value is None else (f"{self.experiment.sweep.axis}={self.value}",)
        return (*before, *own, *after, *at)

    def fill(self, text: str, value: float | None = None, changes: tuple[str, ...] | None = None, **more: str) -> str:
        """Fill in placeholders; parameters are those of the machine with `changes`, by default those of the run."""
        of_value = {} if value is None else {"value": str(value)}
        fields = {"values": ",".join(map(str, self.values)), "max": str(max(self.values)), **of_value, **more}

        def field(match: re.Match[str]) -> str:
            name = match[1]
            if name in fields:
                return fields[name]
            if "." in name:
                made = self.changes if changes is None else changes
                for parameter in self.describe(self.experiment.place(self.machine), made).parameters:
                    if parameter.key == name:
                        return parameter.value
            known = ", ".join(f"{{{field}}}" for field in fields)
            problem = f"{text!r} may contain only {known} and parameters of the machine"
            raise SpinkitError(f"{self.experiment.name}: {problem}")

        return _FIELD.sub(field, text)


def jobs(experiment: Experiment, quick: bool, describe: Describe) -> list[Job]:
    """Return the runs of an experiment."""
    groups: dict[object, list[Series]] = {}
    for series in experiment.series:
        groups.setdefault(
            (series.nic, series.set, series.noise, series.noise_ranks) if experiment.shared_run else series, []
        ).append(series)
    values = experiment.values(quick) if experiment.sweep.of_machine else (None,)
    return [
        Job(experiment, machine, tuple(group), quick, describe, value)
        for machine in experiment.machine_files
        for group in groups.values()
        for value in values
    ]
