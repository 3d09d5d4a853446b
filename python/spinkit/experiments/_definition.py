# SPDX-License-Identifier: Apache-2.0
"""An experiment as data: its program, its runs, and the statements of the paper.

`_reader` reads an `experiment.toml` into these types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import msgspec

from spinkit.common._toml import Integer, Number, Table
from spinkit.experiments._claims import Claim, ClaimTable, Data

FILE = "experiment.toml"
"""File of a user's experiment, which is named by its folder."""

MOST_CURVES = 6
"""Largest number of curves in a figure."""

_MOST_DIGITS = 10_000
"""Numbers below this are written with four digits, others without a fraction."""

ProgramKey = tuple[str, tuple[str, ...]]
"""Name of an experiment, and the further flags of its program."""

Perturbation = Literal["hpu", "dma", "streaming"]
"""A change that some claim of an experiment must notice: HPUs at a fifth of their clock, five times the DMA latency,
and the times of store-and-forward in place of those of streaming. `tests/python/test_perturbations.py` makes them."""

PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)


class Program(Table, frozen=True, kw_only=True):
    """The C program: `args` may contain `{mode}` (of the series) and `{values}` (of the sweep, comma-separated).

    `ranks` may contain `{max}`, the largest value, and any argument may contain parameters of the machine such as
    `{network.radix}`. With `run.shared_run` only a series' own `args` may contain a mode.
    """

    args: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    ranks: Integer | str = 1
    mpi: bool = False
    """True for an MPI program: `mpicc` compiles it, and its clocks and sleeps are in simulated time."""
    schedules: tuple[str, ...] = ()
    """Given instead of sources: the arguments of `spinkit goal` that make the schedule of each value of the sweep
    (`gen` or `import`, without `-o`; `{folder}` is the experiment's). `args` are then options of `spinkit goal run`."""
    pspin: str | None = None
    """Given instead of sources: handlers for PsPIN's own interface, a C source or a folder in the published layout.

    It may contain `{mode}` and `{name}`, the name of a value (`sweep.names`). The handlers run once for each value;
    `args` are then options of `spinkit pspin run`, and these and a series' `set` may contain `{value}`. Numbers are
    places in its report, such as `request_ns.min`.
    """
    flags: tuple[str, ...] = ()
    """Flags with which the sources are compiled; for a source of `pspin` with the same placeholders and `{folder}`, the
    experiment's. A folder of `pspin` has its own in its Makefile (`SPIN_CFLAGS`)."""


class Sweep(Table, frozen=True, kw_only=True):
    """The values that a run of the program measures; `axis` is the key of a value in the program's output.

    An axis with a dot, such as `accelerator.hpus`, is a parameter of the machine: each value has a separate run, with
    that parameter, and the program measures one point.
    """

    axis: str
    label: str
    values: tuple[Integer | Number, ...]
    unit: str = "B"
    """Unit of the values: `B`, which is shown with binary prefixes, any other, or none."""
    names: tuple[str, ...] = ()
    """Names of the values, if these only number things. Such a sweep is drawn as bars."""

    @property
    def of_machine(self) -> bool:
        """True if the axis is a parameter of the machine."""
        return "." in self.axis


class Axis(Table, frozen=True, kw_only=True):
    """Parameters of the machine that vary besides the sweep: every series becomes one for each of their values.

    Parameters of the same axis change together: the first value of each, the second of each, and so on.
    """

    set: dict[str, tuple[bool | Integer | Number | str, ...]]
    labels: tuple[str, ...] = ()
    """Text of each value in the labels of the series; by default the parameters and values."""


class Series(Table, frozen=True, kw_only=True):
    """One curve: a card, a mode of the program, further arguments, and changed parameters."""

    name: str
    label: str
    nic: str = "spin"
    mode: str
    args: tuple[str, ...] = ()
    """Further arguments of the program, with the same placeholders as `program.args`."""
    flags: tuple[str, ...] = ()
    """Further flags for a source of `program.pspin`; a folder has its own in its Makefile (`SPIN_CFLAGS`)."""
    script: str | None = None
    """Given instead of a simulation: a Python script of the experiment's folder, which gets only the series' own
    `args` and prints its points as a program does. It computes a formula, holds numbers that others published, or runs
    the program itself, in its own way: its arguments may contain `{program}` and `{machine}`."""
    peer: str | None = None
    """Given instead of a simulation: `NAME/RUN`, numbers in `peers/NAME.json` of a program that others published. The
    label then ends in “(published)”."""
    data: Data | None = None
    """Origin of a script's numbers; `frozen` if it is not given and the script runs nothing."""
    set: tuple[str, ...] = ()
    """Changed parameters of the machine, such as `accelerator.hpus=8`; they may contain `{max}`."""
    noise: str | None = None
    """Detours of the CPUs, as in `spinrun --noise`."""
    noise_ranks: str | None = None
    """The ranks that have noise; all if it is not given."""


class Measure(Table, frozen=True, kw_only=True):
    """The quantity that is measured: a key of the program's output.

    Without a unit it is a whole number: a time in picoseconds if its name ends in `_ps`, else a count.
    """

    key: str
    label: str
    bytes: Integer | None = None
    """Number of bytes moved in the measured time, which is then shown as a bandwidth."""
    own_unit: str | None = msgspec.field(name="unit", default=None)
    """Unit of a number that is shown unchanged."""

    @property
    def is_time(self) -> bool:
        """True for a time in picoseconds."""
        return self.own_unit is None and self.key.endswith("_ps")

    @property
    def unit(self) -> str:
        """The unit in which it is shown."""
        if self.is_time:
            return "µs" if self.bytes is None else "GiB/s"
        return self.own_unit or ""

    @property
    def heading(self) -> str:
        """The label, with the unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    def shown(self, raw: float) -> float:
        """Return a measured number as it is shown."""
        if not self.is_time:
            return raw
        return raw / 1e6 if self.bytes is None else self.bytes / 2**30 / (raw / 1e12)

    def text(self, raw: float) -> str:
        """Write a measured number, without its unit."""
        if self.is_time:
            return f"{self.shown(raw):.{4 if self.bytes is None else 2}f}"
        return str(raw) if isinstance(raw, int) else f"{raw:.4g}" if abs(raw) < _MOST_DIGITS else f"{raw:.0f}"


class Figure(Table, frozen=True, kw_only=True):
    """One plot of series on one machine."""

    name: str
    title: str
    paper: str = ""
    machine: str
    model: str | None = None
    """The model whose numbers are plotted; the first if it is not given."""
    series: tuple[str, ...] | None = None
    """Names of the plotted series; all if it is not given."""
    below: tuple[str, ...] = ()
    """One reference series for each of `series`: the figure shows the saved share of its time, in percent."""
    zoom_to: Integer | None = None
    """Values up to this one are also drawn in an inset."""
    linear: bool = False
    """True for a linear y axis that begins at 0."""
    key: str | None = None
    """Another number of the points, which is drawn in place of the measured one."""
    bandwidth: bool = False
    """True to draw Gbit/s: the bits of the values, which are bytes, in the measured nanoseconds."""
    label: str | None = None
    """Label of that other number or of the bandwidth, with its unit."""


@dataclass(frozen=True)
class Experiment:
    """Everything in the file of an experiment."""

    name: str
    file: Path
    title: str
    paper: str
    summary: str
    program: Program
    models: tuple[str, ...]
    """The models that are compared; one without a name where machines are named as a whole."""
    machines: tuple[str, ...]
    """The machines as claims and figures name them: those of each model, without its name."""
    sweep: Sweep
    series: tuple[Series, ...]
    measure: Measure
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    timeout_s: int
    quick_values: tuple[float, ...]
    shared_run: bool
    """True if series of one card share a run, which gets their arguments in order and prints in the same order."""
    axes: tuple[str, ...]
    """The parameters of the machine that vary in the experiment itself."""
    insensitive: Mapping[Perturbation, str]
    """The perturbations (`PERTURBATIONS`) that turn no claim, each with the reason."""
    variant: str = ""
    """Description of the changes in a variant of the experiment."""
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In a variant, the changed parameters of each machine file; those that a series changes itself stay."""
    point: tuple[str, ...] = ()
    """Changed parameters of a sweep's point; they follow those of the series."""
    flags: tuple[str, ...] = ()
    """Further flags with which a variant's program is compiled."""
    chosen: tuple[float, ...] | None = None
    """Values of the sweep that a variant runs; by default all."""
    kinds: tuple[str, ...] = ()
    """HPU kinds for which programs are compiled (`spincc --hpu`); by default those of spincc."""

    @property
    def program_key(self) -> ProgramKey:
        """Experiment and flags; variants with equal keys have the same program."""
        return self.name, self.flags

    def machine(self, model: str, machine: str) -> str:
        """Return the name of the machine file of a model."""
        return f"{model}-{machine}" if model else machine

    def place(self, machine: str) -> str:
        """Return the argument that names a machine: the path of its file if this folder has it, else its name."""
        own = self.folder / f"{machine}.toml"
        return str(own.resolve()) if own.is_file() else machine

    @property
    def machine_files(self) -> tuple[str, ...]:
        """The names of all machine files, model by model."""
        return tuple(self.machine(model, machine) for model in self.models for machine in self.machines)

    @property
    def folder(self) -> Path:
        """Folder with the program."""
        return self.file.parent

    def is_definition(self, file: Path) -> bool:
        """Return whether a file of the folder defines an experiment."""
        return file.name == FILE if self.file.name == FILE else file.suffix == self.file.suffix

    def values(self, quick: bool) -> tuple[float, ...]:
        """Return the sweep's values for a full or a quick run."""
        values = self.quick_values if quick else self.sweep.values
        return values if self.chosen is None else tuple(value for value in values if value in self.chosen)


class RunTable(Table, frozen=True, kw_only=True):
    """Settings of all runs."""

    timeout_s: Integer
    quick_values: tuple[Integer | Number, ...] | None = None
    shared_run: bool = False
    insensitive: dict[Perturbation, str] = msgspec.field(default_factory=dict)


class File(Table, frozen=True, kw_only=True):
    """An `experiment.toml`."""

    title: str
    paper: str = ""
    summary: str = ""
    machines: tuple[str, ...]
    models: tuple[str, ...] = ("",)
    other_models: tuple[str, ...] = ()
    program: Program
    sweep: Sweep
    axis: tuple[Axis, ...] = ()
    series: tuple[Series, ...]
    measure: Measure
    run: RunTable
    claim: tuple[ClaimTable, ...] = ()
    figure: tuple[Figure, ...] = ()
