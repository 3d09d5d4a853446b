"""An experiment as data: what is simulated, how it is run, and what the paper says.

`experiments/NAME/experiment.toml` is read into these types; every mistake in it is an error that names the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal, get_args

import msgspec

from spinkit._claims import Claim, ClaimTable, Scope, build_claim
from spinkit._errors import SpinkitError, choice
from spinkit._toml import Integer, Number, Place, Table, check_file_name, convert, is_there, parse_toml, read_text

FILE = "experiment.toml"
"""The file of an experiment, in its folder."""

MOST_CURVES = 6
"""Largest number of curves in a figure."""

_MOST_DIGITS = 10_000
"""Numbers below this are written with four digits, others without a fraction."""

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
    """Whether it is an MPI program: it is compiled with `mpicc`, and its clocks and sleeps are in simulated time."""
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
    """Flags with which a source of `pspin` is compiled, with the same placeholders and `{folder}`, the experiment's.

    A folder has its own in its Makefile (`SPIN_CFLAGS`)."""


class Sweep(Table, frozen=True, kw_only=True):
    """The values that a run of the program measures; `axis` is the key of a value in the program's output.

    An axis with a dot, such as `accelerator.hpus`, is a parameter of the machine: each value has a run of its own, with
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
        """Whether the axis is a parameter of the machine."""
        return "." in self.axis


class Axis(Table, frozen=True, kw_only=True):
    """Parameters of the machine that vary besides the sweep: every series becomes one for each of their values.

    Parameters of the same axis change together: the first value of each, the second of each, and so on.
    """

    set: dict[str, tuple[bool | Integer | Number | str, ...]]
    labels: tuple[str, ...] = ()
    """What the labels of the series say of each value; parameters and values if it is not given."""


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
    """The unit of a number that is shown as it is."""

    @property
    def is_time(self) -> bool:
        """Whether it is a time in picoseconds."""
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
    """One series for each of `series`: the share of its time that the plotted one saves is drawn, in percent."""
    zoom_to: Integer | None = None
    """Values up to this one are also drawn in an inset."""
    linear: bool = False
    """Whether the y axis is linear and begins at 0."""
    key: str | None = None
    """Another number of the points, which is drawn in place of the measured one."""
    bandwidth: bool = False
    """Whether Gbit/s are drawn: the bits of the values, which are bytes, in the measured nanoseconds."""
    label: str | None = None
    """What that other number or the bandwidth is, with its unit."""


@dataclass(frozen=True)
class Experiment:
    """Everything in an `experiment.toml`."""

    name: str
    folder: Path
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
    """Whether series of one card share a run, which gets their arguments in order and prints in the same order."""
    axes: tuple[str, ...]
    """The parameters of the machine that vary in the experiment itself."""
    insensitive: Mapping[Perturbation, str]
    """The perturbations (`PERTURBATIONS`) that turn no claim, each with the reason."""
    variant: str = ""
    """What is changed in a variant of the experiment, in words."""
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In a variant, the changed parameters of each machine file; those that a series changes itself stay."""
    point: tuple[str, ...] = ()
    """In a point of a sweep over parameters, their values: they come after what a series changes itself."""
    chosen: tuple[float, ...] | None = None
    """In a variant, those values of the sweep that are run; all if it is not given."""

    def machine(self, model: str, machine: str) -> str:
        """Return the name of the machine file of a model."""
        return f"{model}-{machine}" if model else machine

    def place(self, machine: str) -> str:
        """Return how commands are told of a machine file: its path if it is in this folder, else its name."""
        own = self.folder / f"{machine}.toml"
        return str(own.resolve()) if own.is_file() else machine

    @property
    def machine_files(self) -> tuple[str, ...]:
        """The names of all machine files, model by model."""
        return tuple(self.machine(model, machine) for model in self.models for machine in self.machines)

    def values(self, quick: bool) -> tuple[float, ...]:
        """Return the sweep's values for a full or a quick run."""
        values = self.quick_values if quick else self.sweep.values
        return values if self.chosen is None else tuple(value for value in values if value in self.chosen)


def available(home: Path) -> list[str]:
    """Return the names of all experiments."""
    return sorted(file.parent.name for file in (home / "experiments").glob(f"*/{FILE}"))


def load(home: Path, name: str) -> Experiment:
    """Read one experiment: one of ours by its name, or any folder with an experiment.toml by its path.

    A path has a `/` or begins with a dot. Without one, a folder here is meant if none of ours has the name.
    """
    folder = Path(name)
    names = available(home)
    if "/" in name or name.startswith(".") or (name not in names and (folder / FILE).is_file()):
        if not is_there(folder / FILE, Path.is_file):
            raise SpinkitError(f"{name}: there is no {FILE} in this folder; `spinkit new experiment NAME` makes one")
        return read(folder.resolve() / FILE)
    if name not in names:
        elsewhere = "; an experiment of your own is named by its folder, such as ./my-experiment"
        raise SpinkitError(f"{name}: no such experiment; {choice(name, names)}{elsewhere}")
    return read(home / "experiments" / name / FILE)


class RunTable(Table, frozen=True, kw_only=True):
    """How the program is run."""

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
    program: Program
    sweep: Sweep
    axis: tuple[Axis, ...] = ()
    series: tuple[Series, ...]
    measure: Measure
    run: RunTable
    claim: tuple[ClaimTable, ...] = ()
    figure: tuple[Figure, ...] = ()


def read(file: Path) -> Experiment:
    """Read and validate an `experiment.toml`."""
    place = Place(file)
    table = convert(parse_toml(read_text(file), file), File, place)
    program, sweep, measure, run = table.program, table.sweep, table.measure, table.run
    _check_sweep(sweep, place / "sweep")
    _check_series(table.series, file.parent, place / "series")
    series = _on_axes(table.series, table.axis, sweep, place / "axis")
    quick_values = sweep.values if run.quick_values is None else run.quick_values
    if any(one.script is None for one in series):
        _check_program(program, series, sweep, file.parent, place / "program")
        _check_flags(program, table.series, sweep, file.parent, place)
    if measure.bytes is not None and (measure.bytes < 1 or not measure.is_time):
        raise (place / "measure" / "bytes").error("expected at least 1, and a key …_ps")
    for index, value in enumerate(quick_values):
        if value not in sweep.values:
            raise (place / "run" / "quick_values" / index).error(f"{value} is not in sweep.values")
    names = tuple(one.name for one in series)
    scope = Scope(
        table.machines,
        names,
        sweep.values,
        measure.unit,
        measure.shown,
        table.models,
        run.shared_run,
        program.pspin is not None or sweep.of_machine,
    )
    claims = tuple(build_claim(one, place / "claim" / index, scope) for index, one in enumerate(table.claim))
    _check_names([claim.name for claim in claims], place / "claim")
    for index, claim in enumerate(claims):
        if not claim.where(quick_values):
            problem = "run.quick_values contains no value that this claim tests"
            raise (place / "claim" / index / "values").error(problem)
    _check_names([figure.name for figure in table.figure], place / "figure")
    for index, figure in enumerate(table.figure):
        check_file_name(figure.name, place / "figure" / index / "name")
        _check_figure(figure, scope, place / "figure" / index)
    return Experiment(
        name=file.parent.name,
        folder=file.parent,
        title=table.title,
        paper=table.paper,
        summary=table.summary.strip(),
        program=program,
        models=table.models,
        machines=table.machines,
        sweep=sweep,
        series=series,
        measure=measure,
        claims=claims,
        figures=table.figure,
        timeout_s=run.timeout_s,
        quick_values=quick_values,
        shared_run=run.shared_run,
        axes=(*([sweep.axis] if sweep.of_machine else []), *(key for axis in table.axis for key in axis.set)),
        insensitive=run.insensitive,
    )


def _on_axes(series: tuple[Series, ...], axes: tuple[Axis, ...], sweep: Sweep, place: Place) -> tuple[Series, ...]:
    """Return the series at all combinations of the axes' values, in the order of the first axis."""
    taken = {sweep.axis}
    choices = []
    for index, axis in enumerate(axes):
        choices.append(_choices(axis, place / index))
        for key in axis.set:
            if key in taken:
                raise (place / index / "set").error(f"{key} is an axis already")
            taken.add(key)
    return tuple(
        msgspec.structs.replace(
            one,
            name=f"{one.name}@{','.join(change for changes, _ in several for change in changes)}",
            label=", ".join([one.label, *(label for _, label in several)]),
            set=(*one.set, *(change for changes, _ in several for change in changes)),
        )
        if several
        else one
        for one in series
        for several in product(*choices)
    )


def _choices(axis: Axis, place: Place) -> list[tuple[tuple[str, ...], str]]:
    """Return the changes of the machine at each value of an axis, and what they are called."""
    counts = {len(values) for values in axis.set.values()}
    if len(counts) != 1 or counts == {0}:
        raise (place / "set").error("expected parameters with equally many values, at least one")
    for key in axis.set:
        if "." not in key:
            raise (place / "set").error(f"{key} is no parameter of a machine; they have a dot, such as dma.L_ns")
    if axis.labels and {len(axis.labels)} != counts:
        raise (place / "labels").error(f"expected one for each of the {counts.pop()} values")
    changes = [
        tuple(f"{key}={toml_value(value)}" for key, value in zip(axis.set, values, strict=True))
        for values in zip(*axis.set.values(), strict=True)
    ]
    return list(zip(changes, axis.labels or [", ".join(one).replace("=", " = ") for one in changes], strict=True))


def toml_value(value: bool | float | str) -> str:
    """Write a value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_series(series: tuple[Series, ...], folder: Path, place: Place) -> None:
    _check_names([one.name for one in series], place)
    for index, one in enumerate(series):
        check_file_name(one.name, place / index / "name")
        if one.script is not None and not is_there(folder / one.script, Path.is_file):
            raise (place / index / "script").error(f"there is no file {one.script} in this folder")


def _check_flags(program: Program, series: tuple[Series, ...], sweep: Sweep, folder: Path, place: Place) -> None:
    """Refuse flags that nothing would be compiled with: those of a folder, which is built by its own Makefile."""
    if program.pspin is None:
        places = [place / "program"] if program.flags else []
        places += [place / "series" / index for index, one in enumerate(series) if one.flags]
        for where in places:
            raise (where / "flags").error("only handlers (program.pspin) are compiled with flags: remove them")
        return
    for index, one in enumerate(series):
        for name in sweep.names or ("{name}",):
            named = _named(program.pspin, one, name)
            if one.script is not None or not is_there(folder / named, Path.is_dir):
                continue
            where = place / "series" / index if one.flags else place / "program"
            if one.flags or program.flags:
                makefile = f"{named} is a folder, which its own Makefile builds: put them into SPIN_CFLAGS there"
                raise (where / "flags").error(makefile)


def _named(pspin: str, series: Series, name: str) -> str:
    return pspin.replace("{mode}", series.mode).replace("{name}", name)


def _check_program(program: Program, series: tuple[Series, ...], sweep: Sweep, folder: Path, place: Place) -> None:
    if program.pspin is not None:
        for one in series:
            for name in sweep.names or ("{name}",):
                named = _named(program.pspin, one, name)
                if one.script is None and not is_there(folder / named):
                    raise (place / "pspin").error(f"there is no file or folder {named}")
        return
    if program.schedules:
        needed = 1 if sweep.of_machine else len(sweep.values)
        if len(program.schedules) != needed:
            which = "only one" if sweep.of_machine else f"one for each of the {needed} values of the sweep"
            raise (place / "schedules").error(f"expected {which}")
        return
    if not program.sources:
        problem = "missing: an experiment runs a program (sources), schedules or handlers (pspin)"
        raise (place / "sources").error(problem)
    for index, source in enumerate(program.sources):
        if not is_there(folder / source, Path.is_file):
            raise (place / "sources" / index).error(f"there is no file {source} in this folder")
    ranks = str(program.ranks)
    if ranks != "{max}" and not (ranks.isdecimal() and int(ranks) >= 1):
        raise (place / "ranks").error("expected at least 1, or {max}")


def _check_sweep(sweep: Sweep, place: Place) -> None:
    if not sweep.values or list(sweep.values) != sorted(set(sweep.values)):
        raise (place / "values").error("expected increasing numbers")
    for index, value in enumerate(sweep.values):
        if not sweep.of_machine and not isinstance(value, int):
            raise (place / "values" / index).error("expected an integer, as the axis is no parameter of the machine")
    if sweep.names and len(sweep.names) != len(sweep.values):
        raise (place / "names").error(f"expected one for each of the {len(sweep.values)} values")


def _check_names(names: list[str], place: Place) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise (place / index / "name").error(f"{name} occurs twice")


def _check_figure(figure: Figure, scope: Scope, place: Place) -> None:
    if figure.machine not in scope.machines:
        raise (place / "machine").error(f"{figure.machine} is not in machines")
    if figure.model is not None and figure.model not in scope.models:
        raise (place / "model").error(f"{figure.model} is not in models")
    if (figure.key is None and not figure.bandwidth) != (figure.label is None):
        raise (place / "label").error("a key, or bandwidth, and its label are given together")
    shown = scope.series if figure.series is None else figure.series
    if len(shown) > MOST_CURVES:
        raise (place / "series").error(f"at most {MOST_CURVES} curves can be distinguished, found {len(shown)}")
    if figure.below and len(figure.below) != len(shown):
        raise (place / "below").error(f"expected one for each of the {len(shown)} series")
    for key, names in (("series", shown), ("below", figure.below)):
        for index, one in enumerate(names):
            if one not in scope.series:
                raise (place / key / index).error(f"{one} is not a series; there are {', '.join(scope.series)}")
