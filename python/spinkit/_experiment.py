"""An experiment as data: what is simulated, how it is run, and what the paper says.

`experiments/NAME/experiment.toml` is read into these types; every mistake in it is an error that names the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spinkit._claims import Claim, Scope, read_claim
from spinkit._errors import SpinkitError
from spinkit._toml import Table

MOST_CURVES = 6
"""Of one figure."""


@dataclass(frozen=True)
class Program:
    """The C program: `args` may hold `{mode}` (of the series) and `{values}` (of the sweep, comma-separated).

    `{max}`, the largest value, may also stand in `ranks`. With `run.together` only a series' own `args` have a mode.
    """

    sources: tuple[str, ...]
    ranks: str
    args: tuple[str, ...]
    schedules: tuple[str, ...] = ()
    """Instead of sources: how `spinkit goal` makes the schedule of each value of the sweep (`gen` or `import`, without
    `-o`; `{folder}` is the experiment's). `args` are then options of `spinkit goal run`."""


@dataclass(frozen=True)
class Sweep:
    """The axis that a run of the program walks through, and the key that names a point of it in the output."""

    axis: str
    label: str
    unit: str
    """`B`, written with binary prefixes, or any other, or none."""
    values: tuple[int, ...]
    names: tuple[str, ...] = ()
    """What each value stands for, when values only number things: these are drawn as bars."""


@dataclass(frozen=True)
class Series:
    """One curve: a card, a mode of the program, and what else sets it apart."""

    name: str
    label: str
    nic: str
    mode: str
    args: tuple[str, ...] = ()
    """More arguments of the program, as those of all series."""
    set: tuple[str, ...] = ()
    """Changed parameters of the machine, `accelerator.hpus=8`; `{max}` as in arguments."""


@dataclass(frozen=True)
class Measure:
    """What each point measures: a key of the program's output, a whole number.

    It is a time in picoseconds if its name ends in `_ps`, else a count.
    """

    key: str
    label: str
    bytes: int | None = None
    """Moved in the measured time, which is then shown as a bandwidth."""

    @property
    def unit(self) -> str:
        """In which it is shown."""
        return "" if not self.key.endswith("_ps") else "µs" if self.bytes is None else "GiB/s"

    @property
    def heading(self) -> str:
        """What it is, with its unit."""
        return f"{self.label} [{self.unit}]" if self.unit else self.label

    def shown(self, raw: int) -> float:
        """Return a measured number as it is shown."""
        if not self.unit:
            return raw
        return raw / 1e6 if self.bytes is None else self.bytes / 2**30 / (raw / 1e12)

    def text(self, raw: int) -> str:
        """Write a measured number, without its unit."""
        return str(raw) if not self.unit else f"{self.shown(raw):.{4 if self.bytes is None else 2}f}"


@dataclass(frozen=True)
class Figure:
    """One plot of series on one machine."""

    name: str
    title: str
    paper: str
    machine: str
    series: tuple[str, ...]
    """Names of the plotted series; all unless it says which."""
    zoom_to: int | None


@dataclass(frozen=True)
class Experiment:
    """Everything in an `experiment.toml`."""

    name: str
    folder: Path
    title: str
    paper: str
    summary: str
    program: Program
    machines: tuple[str, ...]
    sweep: Sweep
    series: tuple[Series, ...]
    measure: Measure
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    timeout_s: int
    quick_values: tuple[int, ...]
    together: bool
    """Whether series of one card share a run, which gets their arguments one after the other, and prints as it goes."""

    def values(self, quick: bool) -> tuple[int, ...]:
        """Return the sweep's values of a whole or a quick run."""
        return self.quick_values if quick else self.sweep.values


def available(home: Path) -> list[str]:
    """Return the names of all experiments."""
    return sorted(file.parent.name for file in (home / "experiments").glob("*/experiment.toml"))


def load(home: Path, name: str) -> Experiment:
    """Read one experiment."""
    names = available(home)
    if name not in names:
        raise SpinkitError(f"{name}: no such experiment; there are: {', '.join(names) or 'none'}")
    return read(home / "experiments" / name / "experiment.toml")


def read(file: Path) -> Experiment:
    """Read and validate an `experiment.toml`."""
    root = Table.read(file)
    machines = root.items("machines", str)
    sweep = _sweep(root.table("sweep"))
    program = _program(root.table("program"), file.parent, sweep)
    series = _series(root)
    measure = _measure(root.table("measure"))
    scope = Scope(machines, tuple(one.name for one in series), sweep.values, measure.unit, measure.shown)
    timeout_s, quick_values, together = _run(root.table("run"), sweep)
    experiment = Experiment(
        name=file.parent.name,
        folder=file.parent,
        title=root.take("title", str),
        paper=root.take("paper", str),
        summary=root.take("summary", str).strip(),
        program=program,
        machines=machines,
        sweep=sweep,
        series=series,
        measure=measure,
        claims=_claims(root, scope, quick_values),
        figures=tuple(_figure(table, scope) for table in root.tables("figure")),
        timeout_s=timeout_s,
        quick_values=quick_values,
        together=together,
    )
    root.close()
    return experiment


def _program(table: Table, folder: Path, sweep: Sweep) -> Program:
    if "schedules" in table:
        program = Program((), "1", table.items("args", str), table.items("schedules", str))
        if len(program.schedules) != len(sweep.values):
            raise table.error("schedules", f"expected one for each of the {len(sweep.values)} values of the sweep")
        table.close()
        return program
    sources, args = table.items("sources", str), table.items("args", str)
    ranks = table.take("ranks", str) if table.is_a("ranks", str) else str(table.take("ranks", int))
    program = Program(sources, ranks, args)
    for index, source in enumerate(program.sources):
        if not (folder / source).is_file():
            raise table.error(f"sources[{index}]", f"no file {source} beside this one")
    if ranks != "{max}" and not (ranks.isdecimal() and int(ranks) >= 1):
        raise table.error("ranks", "expected at least 1, or {max}")
    table.close()
    return program


def _sweep(table: Table) -> Sweep:
    axis, label, unit = table.take("axis", str), table.take("label", str), table.get("unit", str, "B")
    names = table.items("names", str) if "names" in table else ()
    sweep = Sweep(axis, label, unit, table.items("values", int), names)
    if not sweep.values or list(sweep.values) != sorted(set(sweep.values)):
        raise table.error("values", "expected increasing numbers")
    if names and len(names) != len(sweep.values):
        raise table.error("names", f"expected one for each of the {len(sweep.values)} values")
    table.close()
    return sweep


def _series(root: Table) -> tuple[Series, ...]:
    found: list[Series] = []
    for table in root.tables("series"):
        name, label, nic, mode = (table.take(key, str) for key in ("name", "label", "nic", "mode"))
        more = {key: table.items(key, str) for key in ("args", "set") if key in table}
        one = Series(name, label, nic, mode, **more)
        if one.name in (other.name for other in found):
            raise table.error("name", f"{one.name} is there twice")
        table.close()
        found.append(one)
    return tuple(found)


def _measure(table: Table) -> Measure:
    measure = Measure(table.take("key", str), table.take("label", str), table.maybe("bytes", int))
    if measure.bytes is not None and (measure.bytes < 1 or not measure.unit):
        raise table.error("bytes", "expected at least 1, and a key …_ps")
    table.close()
    return measure


def _run(table: Table, sweep: Sweep) -> tuple[int, tuple[int, ...], bool]:
    timeout_s, quick = table.take("timeout_s", int), table.items("quick_values", int)
    together = table.get("together", bool, False)
    for index, value in enumerate(quick):
        if value not in sweep.values:
            raise table.error(f"quick_values[{index}]", f"{value} is not in sweep.values")
    table.close()
    return timeout_s, quick, together


def _claims(root: Table, scope: Scope, quick: Sequence[int]) -> tuple[Claim, ...]:
    found: list[Claim] = []
    for table in root.tables("claim"):
        claim = read_claim(table, scope)
        if claim.name in (other.name for other in found):
            raise table.error("name", f"{claim.name} is there twice")
        if not claim.where(quick):
            raise table.error("values", "run.quick_values leaves nothing to check this claim with")
        found.append(claim)
    return tuple(found)


def _figure(table: Table, scope: Scope) -> Figure:
    name, title, paper, machine = (table.take(key, str) for key in ("name", "title", "paper", "machine"))
    series = table.items("series", str) if "series" in table else scope.series
    figure = Figure(name, title, paper, machine, series, table.maybe("zoom_to", int))
    if figure.machine not in scope.machines:
        raise table.error("machine", f"{figure.machine} is not in machines")
    if len(series) > MOST_CURVES:
        raise table.error("series", f"at most {MOST_CURVES} can be told apart, these are {len(series)}")
    for index, one in enumerate(series):
        if one not in scope.series:
            raise table.error(f"series[{index}]", f"{one} is not a series; there are {', '.join(scope.series)}")
    table.close()
    return figure
