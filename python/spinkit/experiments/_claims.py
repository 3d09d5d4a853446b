# SPDX-License-Identifier: Apache-2.0
"""Claims of a paper about an experiment: relations between measured times that are tested at every named point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, get_args

import msgspec

from spinkit._errors import SpinkitError
from spinkit.common._toml import Integer, Number, Place, Table

Data = Literal["formula", "published", "frozen"]
"""Origin of the numbers of a script that simulates nothing: a formula, measurements of a paper's authors, or stored
measurements of ours."""

Kind = Literal["simulated", "formula", "frozen", "ours"]
"""Class of a claim: a sentence of a paper about numbers that this run simulates, arithmetic on a paper's numbers, a
comparison with stored measurements, or a sentence of ours. Only `simulated` counts as reproduction."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Times = Mapping[tuple[str, str, float], float]
"""Measured numbers, most of them times in ps or counts, by (machine, series, value of the sweep)."""


@dataclass(frozen=True)
class Measured:
    """Measurements of the runs of one model."""

    times: Times
    lines: Mapping[tuple[str, str, float], Mapping[str, Any]] = field(default_factory=dict)
    """Line that the program printed for each point."""
    reports: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Report of each run by spinrun, by (machine, series)."""

    def printed(self, machine: str, series: str, value: float, key: str) -> float:
        """Return a number that the program printed for a point, or one in its report: a key, or several with dots."""
        found = inside(self.lines.get((machine, series, value), {}), key)
        return _number(found, key, f"{series} on {machine}, {value}")

    def reported(self, machine: str, series: str, path: str) -> float:
        """Return a number of a run's report, such as `cards.1.dma_bytes`: names and indices, joined by dots."""
        return _number(inside(self.reports.get((machine, series), {}), path), path, f"{series} on {machine}")

    def summed(self, machine: str, series: str, key: str) -> float:
        """Return the sum of a number that the program printed over all points of a run."""
        values = [value for of, name, value in self.lines if (of, name) == (machine, series)]
        return sum(self.printed(machine, series, value, key) for value in values)


def inside(table: Any, path: str) -> Any:
    """Return the entry of nested tables and lists at a path of names and indices, joined by dots, or None."""
    return reduce(_inside, path.split("."), table)


def _inside(table: Any, name: str) -> Any:
    """Return an entry of a table or list; None if it is missing."""
    if isinstance(table, Mapping):
        return table.get(name)
    return table[int(name)] if isinstance(table, Sequence) and name.isdecimal() and int(name) < len(table) else None


def _number(found: Any, key: str, where: str) -> float:
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise SpinkitError(f"{where}: {key} is {'not there' if found is None else f'no number but {found!r}'}")
    return found


@dataclass(frozen=True)
class Scope:
    """The names that claims may use."""

    machines: tuple[str, ...]
    series: tuple[str, ...]
    values: tuple[float, ...]
    unit: str = "µs"
    """Unit in which measured numbers are shown; empty for a count."""
    shown: Callable[[float], float] = lambda time_ps: time_ps / 1_000_000
    """Converts a measured number to that unit."""
    models: tuple[str, ...] = ("",)
    """The models that are compared; one without a name where an experiment has one model only."""
    other_models: tuple[str, ...] = ()
    """Models that are not compared, and of which differences are known."""
    shared_run: bool = False
    """True if series share a run, and thus its report."""
    run_per_value: bool = False
    """True if each value has a separate run, and thus a report."""
    data: Mapping[str, Data] = field(default_factory=dict)
    """Origin of the numbers of the series that nothing simulates."""


@dataclass(frozen=True)
class Interval:
    """The numbers from `least` to `most`, both included."""

    least: float
    most: float

    def margin(self, number: float) -> float:
        """Return the distance from the nearest bound; negative outside."""
        return min(number - self.least, self.most - number)

    def distance(self, number: float) -> float:
        """Return the distance of a number outside from the interval; 0 inside."""
        return max(0.0, -self.margin(number))


@dataclass(frozen=True)
class Expected:
    """Known difference of a model from the paper: the interval of its numbers, and the reason."""

    models: tuple[str, ...]
    machines: tuple[str, ...]
    values: tuple[float, ...]
    interval: Interval
    reason: str
    shown: tuple[Shown, ...] = ()
    """Runs that show the reason."""

    def covers(self, model: str, machine: str, value: float) -> bool:
        """Return whether it speaks of this point."""
        return model in self.models and machine in self.machines and value in self.values


@dataclass(frozen=True)
class Shown:
    """A run that shows why a model differs: it changes only these parameters of the machine."""

    changes: tuple[str, ...]
    models: tuple[str, ...]
    claim: Claim
    """The claim at the points that are run again, with the interval in which its numbers then lie."""
    reverse: tuple[str, ...] | None = None
    """Changes in the other direction, if they are not those that mirror `changes` at the machine's values."""
    one_way: str = ""
    """Reason why no change in the other direction makes the difference larger."""
    flags: tuple[str, ...] = ()
    """Further flags with which the program is compiled."""

    @property
    def description(self) -> str:
        """Description of the change."""
        return f"with {changes_in_words(self.changes, self.flags)}"


def changes_in_words(changes: Sequence[str], flags: Sequence[str] = ()) -> str:
    """Write changed parameters and flags as code: `a = 1`, `b = 2` and `-fc`."""
    *first, last = [*(f"`{change.replace('=', ' = ')}`" for change in changes), *(f"`{flag}`" for flag in flags)]
    return f"{', '.join(first)} and {last}" if first else last


@dataclass(frozen=True)
class Sample:
    """One tested number of a claim, and the point at which it was measured."""

    machine: str
    value: float
    point: str
    """Description of the point."""
    number: float
    stated: Interval
    """Interval that the paper's sentence allows."""
    expected: Expected | None
    """Known difference at this point."""

    @property
    def holds(self) -> bool:
        """True if the paper's sentence allows the number."""
        return self.stated.margin(self.number) >= 0

    @property
    def fails(self) -> bool:
        """True if the number lies in neither the paper's interval nor the expected one, or in both."""
        if self.expected is None:
            return not self.holds
        return self.holds or self.expected.interval.margin(self.number) < 0

    @property
    def margin(self) -> float:
        """Distance from the nearest bound of the interval that decides; negative when it fails."""
        if self.expected is None:
            return self.stated.margin(self.number)
        margin = self.expected.interval.margin(self.number)
        return min(margin, -self.stated.margin(self.number)) if self.holds else margin


@dataclass(frozen=True)
class Verdict:
    """Result for a claim on one model.

    One sample stands for all: one that fails, else one that differs, else any; of these, the one nearest to its bounds,
    or farthest beyond them.
    """

    claim: Claim
    model: str
    worst: Sample
    tested: tuple[Sample, ...]
    """All samples, in the order of machines and values."""
    failed: int
    differing: int
    """Number of samples that differ from the paper as expected."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.tested)

    @property
    def holds(self) -> bool:
        """True if the paper's sentence holds at every point."""
        return self.failed == 0 and self.differing == 0

    @property
    def fails(self) -> bool:
        """True if some number lies in neither the paper's interval nor the expected one."""
        return self.failed > 0

    @property
    def word(self) -> str:
        """Text of the verdict."""
        return self.with_explanation("expected")

    def with_explanation(self, explanation: str) -> str:
        """Return the text of the verdict; `explanation` describes an expected difference."""
        if self.holds:
            return "holds"
        if self.fails and self.worst.holds:
            return "holds, though expected to differ"
        count = self.failed or self.differing
        notes = [f"{count} of {self.samples} points"] if self.samples > 1 else []
        notes += [] if self.fails else [explanation]
        return f"differs ({'; '.join(notes)})" if notes else "differs"

    @property
    def reason(self) -> str | None:
        """Reason for the difference, if it is known."""
        return None if self.worst.expected is None else self.worst.expected.reason

    @property
    def ratio(self) -> float | None:
        """The number measured here divided by the paper's, if the paper gives one."""
        return self.worst.number / self.claim.paper if self.claim.paper else None


def explained(claim: Claim, base: Verdict, changed: Verdict, expected: Expected) -> float | None:
    """Return the share of an expected difference that a run with changed parameters removes.

    The difference is the sum of the distances from the sentence's interval, over the points of the run: 1 if all its
    numbers lie inside, negative if it moves away. None if the run repeats no point that differs.
    """

    def places(verdict: Verdict) -> dict[tuple[str, float | None, int], Sample]:
        found: dict[tuple[str, float | None, int], Sample] = {}
        for sample in verdict.tested:
            place = (sample.machine, None if claim.of_runs else sample.value)
            found[*place, sum(other[:2] == place for other in found)] = sample
        return found

    before, after = places(base), places(changed)
    pairs = [
        (one.stated.distance(one.number), one.stated.distance(after[place].number))
        for place, one in before.items()
        if place in after and one.expected is expected and not one.holds
    ]
    whole = sum(there for there, _ in pairs)
    return None if whole == 0 else 1 - sum(here for _, here in pairs) / whole


@dataclass(frozen=True)
class Anchor:
    """Place of a paper's number in a figure with the curve of `series`."""

    series: str
    key: str | None
    """Number of the points; the measured one if it is not given."""
    is_shown: bool
    """True if the number has the unit in which measured numbers are shown, false if it is a raw one."""
    number: float
    against: str | None = None
    """Series whose measured number is multiplied by `number`, for a ratio."""

    def at(self, measured: Measured, machine: str, value: float) -> float:
        """Return the number at a (machine, value)."""
        return self.number if self.against is None else self.number * measured.times[machine, self.against, value]


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper and the relation that tests it."""

    name: str
    text: str
    source: str
    paper: float | None
    at_least: float | None
    at_most: float | None
    one_sided: str | None
    """Reason for a single bound."""
    expected: tuple[Expected, ...]
    machines: tuple[str, ...]
    values: tuple[float, ...]
    unit: str
    statement: str
    """Description of the tested relation."""
    numbers: Callable[[Measured, str, float], Iterable[tuple[str, float, float]]] = field(repr=False, compare=False)
    """The numbers of a (machine, value), each with a description and its least permitted value."""
    series: tuple[str, ...] = ()
    """The series that it compares."""
    of_runs: bool = False
    """True if the numbers are those of whole runs, with all values."""
    all_machines: bool = False
    """True if the number of a machine depends on other machines."""
    all_values: bool = False
    """True if the number of a value depends on other values."""
    kind: Kind = "simulated"
    regression: bool = False
    """True if the bounds lie around our result: such a claim notices changes and validates nothing."""
    anchor: Anchor | None = None
    """Place of `paper` in a figure, if it is a number of a single curve."""
    elsewhere: tuple[Expected, ...] = ()
    """Known differences of models that the experiment does not compare."""

    @property
    def known(self) -> tuple[Expected, ...]:
        """The known differences, also of models that the experiment does not compare."""
        return (*self.expected, *self.elsewhere)

    def where(self, values: Sequence[float]) -> list[float]:
        """Return those of the given values to which the claim applies."""
        return [value for value in values if value in self.values]

    def test(self, measured: Measured, values: Sequence[float], model: str = "") -> Verdict:
        """Test the claim on the measurements of a model, which must have every point that it names."""
        tested = self.where(values)
        try:
            samples = [
                Sample(
                    machine,
                    value,
                    machine if self.of_runs else f"{machine}, {value}{about}",
                    number,
                    self._stated(least),
                    self._expected(model, machine, value),
                )
                for machine in self.machines
                for value in (tested[:1] if self.of_runs else tested)
                for about, number, least in self.numbers(measured, machine, value)
            ]
        except SpinkitError as error:
            raise SpinkitError(f"claim {self.name}: {error}") from None
        failed = [sample for sample in samples if sample.fails]
        differing = [sample for sample in samples if not sample.fails and not sample.holds]
        worst = min(failed or differing or samples, key=lambda sample: sample.margin)
        return Verdict(self, model, worst, tuple(samples), len(failed), len(differing))

    def _stated(self, least: float) -> Interval:
        return Interval(least, _INFINITY if self.at_most is None else self.at_most)

    def _expected(self, model: str, machine: str, value: float) -> Expected | None:
        return next((one for one in self.expected if one.covers(model, machine, value)), None)

    def format(self, number: float) -> str:
        """Write a number of this claim with its unit."""
        if self.unit == "%":
            return f"{100 * number:.1f} %"
        if self.unit == "×":
            return f"{number:.3g}×"
        if abs(number) < _MOST_DIGITS:
            return f"{number:.4g} {self.unit}".rstrip()
        return f"{number / 1000:.1f} kB" if self.unit == "B" else f"{number:,.0f} {self.unit}".rstrip()

    def span(self, least: float, most: float) -> str:
        """Write the numbers from one to another, with their unit once; only one if they are written alike."""
        first, last = self.format(least), self.format(most)
        if first == last:
            return first
        unit = self.unit if self.unit == "×" else f" {self.unit}"
        return f"{first.removesuffix(unit) if last.endswith(unit) else first} to {last}"


class _WhereTable(Table, frozen=True, kw_only=True):
    """A selection of points."""

    machines: tuple[str, ...] | None = None
    values: tuple[Integer | Number, ...] | None = None
    first: Integer | Number | None = msgspec.field(name="from", default=None)
    to: Integer | Number | None = None


class _ShownTable(_WhereTable, frozen=True, kw_only=True):
    """A `[[claim.expected.shown]]`: the numbers of the claim when only these parameters of the machine change."""

    set: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    reverse: tuple[str, ...] | None = None
    one_way: str = ""
    models: tuple[str, ...] | None = None
    at_least: Number
    at_most: Number


class _ExpectedTable(_WhereTable, frozen=True, kw_only=True):
    """A `[[claim.expected]]`: where a model differs from the paper, by how much, and why."""

    models: tuple[str, ...] | None = None
    at_least: Number
    at_most: Number
    reason: str
    shown: tuple[_ShownTable, ...] = ()


class _ClaimTable(_WhereTable, tag_field="relation", frozen=True, kw_only=True):
    """A `[[claim]]`, without the keys of its relation."""

    name: str
    text: str
    source: str
    paper: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    one_sided: str | None = None
    kind: Kind | None = msgspec.field(name="class", default=None)
    regression: bool = False
    expected: tuple[_ExpectedTable, ...] = ()


class _PairTable(_ClaimTable, frozen=True, kw_only=True):
    """A relation between two series."""

    of: str
    against: str


class _Reduction(_PairTable, tag="reduction", frozen=True, kw_only=True):
    """1 − of / against: the saved share of time."""


class _Speedup(_PairTable, tag="speedup", frozen=True, kw_only=True):
    """The quotient against / of: the factor by which the series is faster, or has more bandwidth."""


class _Order(_ClaimTable, tag="order", frozen=True, kw_only=True):
    """Series > series >= series: each is slower than the next; `>=` permits a relative `tolerance`."""

    order: str
    tolerance: Number = 0.0


class _Largest(_PairTable, tag="largest", frozen=True, kw_only=True):
    """1 − of / against at this point, divided by the largest such reduction at any other point."""


class _Wider(_PairTable, tag="wider", frozen=True, kw_only=True):
    """The difference against − of is larger on machine `on` than on machine `than`."""

    on: str
    than: str


class _Close(_PairTable, tag="close", frozen=True, kw_only=True):
    """|of / against − 1|: the relative distance, at most `at_most`."""


class _Value(_ClaimTable, tag="value", frozen=True, kw_only=True):
    """The value of `of` itself, in the unit in which it is shown."""

    of: str


class _Reported(_ClaimTable, tag="reported", frozen=True, kw_only=True):
    """A number of the report or the output of `of`, divided by another one (`per`), or by that of another series.

    A key with dots is a place in spinrun's report of the run (`handlers.NAME.min_instructions`, `cards.1.dma_bytes`),
    which is tested once for each machine; a key without dots is what the program prints for each point. Several keys
    joined by ` + ` are their sum.
    """

    of: str
    key: str
    per: str | None = None
    """A key of either form; the sum over the points of the run, if `key` has dots and this has none."""
    against: str | None = None


ClaimTable = _Reduction | _Speedup | _Order | _Largest | _Wider | _Close | _Value | _Reported
"""A `[[claim]]`."""


def build_claim(table: ClaimTable, place: Place, scope: Scope) -> Claim:
    """Check a claim against the names that it may use."""
    machines = _machines(table, place, scope)
    unit, bounds = _BOUNDS[type(table)]
    if isinstance(table, _Reported):
        unit = _reported_unit(table, scope)
    statement, numbers, machines = _relation(table, place, scope, machines)
    _check_bounds(table, place, bounds)
    values = _values(table, place, scope, scope.values)
    of_runs = isinstance(table, _Reported) and _is_of_runs(table.key, scope)
    claim = Claim(
        name=table.name,
        text=table.text,
        source=table.source,
        paper=table.paper,
        at_least=table.at_least,
        at_most=table.at_most,
        one_sided=table.one_sided,
        expected=(),
        machines=machines,
        values=values,
        unit=scope.unit if unit is None else unit,
        statement=statement,
        numbers=numbers,
        series=_series(table),
        of_runs=of_runs,
        all_machines=isinstance(table, _Largest | _Wider),
        all_values=of_runs or isinstance(table, _Largest),
        kind=table.kind or _kind(table, scope),
        regression=table.regression,
        anchor=None if table.paper is None or of_runs else _anchor(table, table.paper),
    )
    if claim.regression and claim.kind != "ours":
        raise (place / "regression").error(f"only a claim of ours has such bounds, and this one is {claim.kind}")
    differences = [_expected(one, place / "expected" / n, scope, claim) for n, one in enumerate(table.expected)]
    compared = frozenset(scope.models)
    return replace(
        claim,
        expected=tuple(one for one in differences if compared.issuperset(one.models)),
        elsewhere=tuple(one for one in differences if compared.isdisjoint(one.models)),
    )


def _kind(table: ClaimTable, scope: Scope) -> Kind:
    """Return the class of a claim: that of the numbers it compares, unless all are simulated and its source is ours."""
    origins = [scope.data.get(name) for name in _series(table)]
    if "frozen" in origins:
        return "frozen"
    if None not in origins:
        return "formula"
    return "ours" if _OURS.search(table.source) or not _OF_A_PAPER.search(table.source) else "simulated"


def _anchor(table: ClaimTable, paper: float) -> Anchor | None:
    match table:
        case _Value(of=of):
            return Anchor(of, None, True, paper)
        case _Speedup(of=of, against=against) if paper > 0:
            return Anchor(of, None, False, 1 / paper, against)
        case _Reduction(of=of, against=against) if paper < 1:
            return Anchor(of, None, False, 1 - paper, against)
        case _Reported(of=of, key=key, per=None, against=None):
            return Anchor(of, key, False, 1000 * paper if _last_word(key) == "ps" else paper)
    return None


def _series(table: ClaimTable) -> tuple[str, ...]:
    if isinstance(table, _Order):
        return tuple(table.order.split()[::2])
    return tuple(name for name in (table.of, getattr(table, "against", None)) if name is not None)


def _check_bounds(table: ClaimTable, place: Place, bounds: frozenset[str]) -> None:
    """Check that a claim has the bounds that its relation takes: all of them, or one and a reason."""
    for key in sorted(_BOTH - bounds):
        if getattr(table, key) is not None:
            raise (place / key).error(f"has no meaning for the relation {table.__struct_config__.tag}")
    # An order and similar relations imply their lower bound.
    needed = bounds - {"at_least"} if isinstance(table, _Order | _Largest | _Wider) else bounds
    missing = sorted(key for key in needed if getattr(table, key) is None)
    if table.one_sided is not None and not missing:
        raise (place / "one_sided").error("the claim has all its bounds")
    if len(missing) == len(bounds) or (missing and table.one_sided is None):
        raise (place / missing[0]).error("missing; a sentence with only one bound says why in one_sided")
    if table.at_least is not None and table.at_most is not None and table.at_least > table.at_most:
        raise (place / "at_most").error(f"must be at least {table.at_least}, is {table.at_most}")


def _expected(table: _ExpectedTable, place: Place, scope: Scope, claim: Claim) -> Expected:
    others = table.models is not None and not set(scope.models) & set(table.models)
    known = scope.other_models if others and scope.other_models else scope.models
    models, machines, interval = _covered(table, place, known, claim.machines)
    values = _values(table, place, scope, claim.values)
    return Expected(
        models=models,
        machines=machines,
        values=values,
        interval=interval,
        reason=table.reason,
        shown=tuple(
            _demonstration(
                one, place / "shown" / index, scope, models, replace(claim, machines=machines, values=values)
            )
            for index, one in enumerate(table.shown)
        ),
    )


def _demonstration(table: _ShownTable, place: Place, scope: Scope, among: tuple[str, ...], claim: Claim) -> Shown:
    if table.reverse is not None and table.one_way:
        raise (place / "one_way").error("cannot stand beside reverse")
    for name, changes in (("set", table.set), ("reverse", table.reverse)):
        if changes is None:
            continue
        if not (changes or (name == "set" and table.flags)):
            raise (place / name).error("expected at least one change")
        for index, change in enumerate(changes):
            key, equals, value = change.partition("=")
            if not (key and equals and value):
                raise (place / name / index).error(f"expected KEY=VALUE, found {change!r}")
    models, machines, interval = _covered(table, place, among, claim.machines)

    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        for about, number, _ in claim.numbers(measured, machine, value):
            yield about, number, interval.least

    shown = replace(
        claim,
        at_least=interval.least,
        at_most=interval.most,
        machines=machines,
        values=_values(table, place, scope, claim.values),
        numbers=numbers,
    )
    return Shown(table.set, models, shown, table.reverse, table.one_way, table.flags)


def _covered(
    table: _ExpectedTable | _ShownTable, place: Place, models: tuple[str, ...], machines: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], Interval]:
    """Return the models, machines and interval that a table names; all models and machines if it names none."""
    if table.at_least > table.at_most:
        raise (place / "at_most").error(f"must be at least {table.at_least}, is {table.at_most}")
    for key, named, known in (("models", table.models, models), ("machines", table.machines, machines)):
        for index, name in enumerate(named or ()):
            if name not in known:
                raise (place / key / index).error(f"{name} is not among {', '.join(known)}")
    return (
        models if table.models is None else table.models,
        machines if table.machines is None else table.machines,
        Interval(table.at_least, table.at_most),
    )


def _machines(table: ClaimTable, place: Place, scope: Scope) -> tuple[str, ...]:
    if table.machines is None:
        return scope.machines
    for index, one in enumerate(table.machines):
        if one not in scope.machines:
            raise (place / "machines" / index).error(f"{one} is not among {', '.join(scope.machines)}")
    return table.machines


def _values(table: _WhereTable, place: Place, scope: Scope, among: tuple[float, ...]) -> tuple[float, ...]:
    low, high = table.first, table.to
    if table.values is not None:
        if low is not None or high is not None:
            raise (place / "values").error("give values, or from and to")
        for index, value in enumerate(table.values):
            if value not in scope.values:
                raise (place / "values" / index).error(f"{value} is not in sweep.values")
            if value not in among:
                raise (place / "values" / index).error(f"{value} is no value that the claim is about")
        return table.values
    chosen = tuple(v for v in among if (low is None or v >= low) and (high is None or v <= high))
    if not chosen:
        raise (place / "from").error("no value of the sweep is in this range")
    return chosen


def _check_series(name: str, place: Place, scope: Scope) -> None:
    if name not in scope.series:
        raise place.error(f"{name} is not a series; there are {', '.join(scope.series)}")


def _relation(table: ClaimTable, place: Place, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """Return the description of the relation, its numbers, and the machines that it is tested on."""
    for key in ("of", "against"):
        if getattr(table, key, None) is not None:
            _check_series(getattr(table, key), place / key, scope)
    match table:
        case _Reduction(of=of, against=against):
            return f"time of {of} below {against}", _reduction(of, against, _at_least(table, -_INFINITY)), machines
        case _Speedup(of=of, against=against):
            return f"time of {against} over {of}", _speedup(of, against, _at_least(table, -_INFINITY)), machines
        case _Largest(of=of, against=against):
            numbers = _largest(of, against, _at_least(table, 1.0))
            words = f"reduction of the time of {of} below {against}, over the largest elsewhere"
            return words, numbers, machines
        case _Close(of=of, against=against):
            return f"distance of {of} from {against}", _close(of, against), machines
        case _Wider(of=of, against=against, on=on, than=than):
            for key, machine in (("on", on), ("than", than)):
                if machine not in machines:
                    raise (place / key).error(f"{machine} is not among {', '.join(machines)}")
            words = f"{against} − {of} on {on} over the same on {than}"
            return words, _wider(of, against, than, _at_least(table, 1 + 2**-52)), (on,)
        case _Order():
            return f"time of {table.order}", _order(table, place, scope), machines
        case _Value(of=of):
            return of, _value(of, scope, _at_least(table, -_INFINITY)), machines
        case _Reported():
            return *_reported(table, place, scope), machines


_Numbers = Callable[[Measured, str, float], Iterable[tuple[str, float, float]]]
_Built = tuple[str, _Numbers, tuple[str, ...]]
_INFINITY = float("inf")


def _ratio(times: Times, of: tuple[str, str, float], against: tuple[str, str, float]) -> float:
    """Divide the number measured at one point by that at another, which may be a count of 0."""
    if times[against] == 0:
        machine, series, value = against
        raise SpinkitError(f"{series} on {machine}, {value}: the measured number is 0, which allows no comparison")
    return times[of] / times[against]


def _reduction(of: str, against: str, least: float) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        yield "", 1 - _ratio(measured.times, (machine, of, value), (machine, against, value)), least

    return numbers


def _speedup(of: str, against: str, least: float) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        yield "", _ratio(measured.times, (machine, against, value), (machine, of, value)), least

    return numbers


def _order(table: _Order, place: Place, scope: Scope) -> _Numbers:
    words = table.order.split()
    names, signs = words[::2], words[1::2]
    if len(names) != len(signs) + 1 or not signs or any(sign not in (">", ">=") for sign in signs):
        raise (place / "order").error(f"expected series joined by > or >=, found {table.order!r}")
    for name in names:
        _check_series(name, place / "order", scope)

    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        for (slow, fast), sign in zip(pairwise(names), signs, strict=True):
            ratio = _ratio(measured.times, (machine, slow, value), (machine, fast, value))
            # Strictly greater: times are integers below 2^52, so a quotient of unequal ones is never 1.
            least = 1 - table.tolerance if sign == ">=" else _at_least(table, 1 + 2**-52)
            yield f", {slow} / {fast}", ratio, least

    return numbers


def _at_least(table: ClaimTable, least: float) -> float:
    """Return a claim's lower bound, or that of its relation where it gives none."""
    return least if table.at_least is None else table.at_least


def _largest(of: str, against: str, least: float) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        points = [(m, v) for m, series, v in measured.times if series == of]
        reductions = {(m, v): 1 - _ratio(measured.times, (m, of, v), (m, against, v)) for m, v in points}
        here = reductions.pop((machine, value))
        most = max(reductions.values(), default=0.0)
        yield "", here / most if most > 0 else _INFINITY, least

    return numbers


def _wider(of: str, against: str, than: str, least: float) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        times = measured.times
        wide = times[machine, against, value] - times[machine, of, value]
        narrow = times[than, against, value] - times[than, of, value]
        # Without a difference on the other machine, the relation is meaningless.
        yield f", against {than}", wide / narrow if narrow > 0 else 0.0, least

    return numbers


def _close(of: str, against: str) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        yield "", abs(_ratio(measured.times, (machine, of, value), (machine, against, value)) - 1), -_INFINITY

    return numbers


def _value(of: str, scope: Scope, least: float) -> _Numbers:
    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        yield "", scope.shown(measured.times[machine, of, value]), least

    return numbers


def _is_of_runs(key: str, scope: Scope) -> bool:
    """Return whether a key is a place in the report of a run with all values."""
    return "." in key and not scope.run_per_value


def _reported(table: _Reported, place: Place, scope: Scope) -> tuple[str, _Numbers]:
    of_runs = _is_of_runs(table.key, scope)
    if not of_runs and table.per is not None and _is_of_runs(table.per, scope):
        raise (place / "per").error("is a number of the run, but key is one of each point")
    if of_runs:
        for key in ("values", "first", "to"):
            if getattr(table, key) is not None:
                name = "from" if key == "first" else key
                raise (place / name).error(f"has no meaning for {table.key}, which is a number of the whole run")
        if scope.shared_run and table.per is not None and "." not in table.per:
            raise (place / "per").error("names a number of points, but series share the run")

    def one(measured: Measured, machine: str, series: str, value: float, key: str) -> float:
        if " + " in key:
            return sum(one(measured, machine, series, value, part) for part in key.split(" + "))
        if _is_of_runs(key, scope):
            return measured.reported(machine, series, key)
        if of_runs:
            return measured.summed(machine, series, key)
        return measured.printed(machine, series, value, key)

    def number(measured: Measured, machine: str, series: str, value: float) -> float:
        found = one(measured, machine, series, value, table.key)
        return (
            found if table.per is None else _divide(found, one(measured, machine, series, value, table.per), table.per)
        )

    def numbers(measured: Measured, machine: str, value: float) -> Iterable[tuple[str, float, float]]:
        found = number(measured, machine, table.of, value) / scale
        if table.against is not None:
            found = _divide(found, number(measured, machine, table.against, value), f"{table.key} of {table.against}")
        yield "", found, _at_least(table, -_INFINITY)

    scale = 1000 if _last_word(table.key) == "ps" and table.per is None and table.against is None else 1
    words = f"{table.key} of {table.of}" + (f", against {table.against}" if table.against else "")
    return words + (f", per {table.per}" if table.per else ""), numbers


def _divide(number: float, by: float, what: str) -> float:
    if by == 0:
        raise SpinkitError(f"{what} is 0, which allows no comparison")
    return number / by


def _last_word(name: str) -> str:
    return name.rpartition(".")[2].rpartition("_")[2]


def _reported_unit(table: _Reported, scope: Scope) -> str:
    """Return the unit that the last word of the key names; a quotient of two series is a factor.

    In reports of PsPIN's runs the table may name it: `request_ns.min`.
    """
    if table.against is not None:
        return "×"
    if table.per is not None:
        return ""
    units = {"ps": "ns", "bytes": "B", "instructions": "instructions", "cycles": "cycles"}
    if not scope.run_per_value:
        return units.get(_last_word(table.key), "")
    if table.key.endswith("gbit_s"):
        return "Gbit/s"
    words = [_last_word(name) for name in reversed(table.key.split("."))]
    return next((unit for word in words if (unit := (units | {"ns": "ns"}).get(word))), "")


_OURS = re.compile(r"\bours?\b|^sPIN\b|^expected\b")
"""Words of a source that adds to the paper's sentence; `sPIN §` names a sentence that is tested on PsPIN's card."""
_OF_A_PAPER = re.compile(r"§|\btalk\b|\bApp\.|\bFig\.|\bTable\b|\bmeasured\b|\bdocumentation\b")
"""Words of a claim's source that name a paper, or the published hardware."""

_MOST_DIGITS = 10_000
"""Numbers from here on are written with separators, or with the next larger unit."""

_BOTH = frozenset({"at_least", "at_most"})

_BOUNDS: dict[type, tuple[str | None, frozenset[str]]] = {
    _Reduction: ("%", _BOTH),
    _Speedup: ("×", _BOTH),
    _Order: ("×", _BOTH),
    _Largest: ("×", _BOTH),
    _Wider: ("×", _BOTH),
    _Close: ("%", frozenset({"at_most"})),
    _Value: (None, _BOTH),
    _Reported: (None, _BOTH),
}
"""For each relation the unit of its number (None: that of the measured number), and the bounds that a claim gives."""
