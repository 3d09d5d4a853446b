"""Claims of a paper about an experiment: relations between measured times that are tested at every named point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from spinkit._errors import SpinkitError
from spinkit._toml import Integer, Number, Place, Table

Times = Mapping[tuple[str, str, int], int]
"""Measured numbers, times in ps or counts, by (machine, series, value of the sweep)."""


@dataclass(frozen=True)
class Scope:
    """The names that claims may use."""

    machines: tuple[str, ...]
    series: tuple[str, ...]
    values: tuple[int, ...]
    unit: str = "µs"
    """Unit in which measured numbers are shown; empty for a count."""
    shown: Callable[[int], float] = lambda time_ps: time_ps / 1_000_000
    """Converts a measured number to that unit."""


@dataclass(frozen=True)
class Sample:
    """One tested number of a claim, and the point at which it was measured."""

    point: str
    number: float
    margin: float
    """Distance of the number from its nearest bound; negative outside the bounds."""


@dataclass(frozen=True)
class Verdict:
    """Result for a claim. The sample nearest to its bounds, or farthest beyond them, represents all samples."""

    claim: Claim
    holds: bool
    worst: Sample
    samples: int
    failed: int

    @property
    def fails(self) -> bool:
        """Whether the claim does not hold and no reason is documented."""
        return not self.holds and self.claim.why is None

    @property
    def word(self) -> str:
        """The verdict in words."""
        if self.holds:
            return "holds" if self.claim.why is None else "holds, but marked as different"
        count = f" at {self.failed} of {self.samples}" if self.samples > 1 else ""
        return f"differs{count}" if self.claim.why is None else f"differs{count} (explained)"

    @property
    def ratio(self) -> float | None:
        """The number measured here divided by the paper's, if the paper gives one."""
        return self.worst.number / self.claim.paper if self.claim.paper else None


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper and the relation that tests it."""

    name: str
    text: str
    source: str
    why: str | None
    """The documented reason why it is known not to hold here."""
    paper: float | None
    at_least: float | None
    at_most: float | None
    machines: tuple[str, ...]
    values: tuple[int, ...]
    unit: str
    statement: str
    """The tested relation in words."""
    numbers: Callable[[Times, str, int], Iterable[tuple[str, float, float]]] = field(repr=False, compare=False)
    """The numbers of a (machine, value), each with a description and its least permitted value."""

    def where(self, values: Sequence[int]) -> list[int]:
        """Return those of the given values to which the claim applies."""
        return [value for value in values if value in self.values]

    def test(self, times: Times, values: Sequence[int]) -> Verdict:
        """Test the claim on measured times, which must include every point that it names."""
        try:
            samples = [
                Sample(f"{machine}, {value}{about}", number, self._margin(number, least))
                for machine in self.machines
                for value in self.where(values)
                for about, number, least in self.numbers(times, machine, value)
            ]
        except SpinkitError as error:
            raise SpinkitError(f"claim {self.name}: {error}") from None
        worst = min(samples, key=lambda sample: sample.margin)
        failed = sum(sample.margin < 0 for sample in samples)
        return Verdict(self, failed == 0, worst, len(samples), failed)

    def _margin(self, number: float, least: float) -> float:
        above = number - (least if self.at_least is None else self.at_least)
        return above if self.at_most is None else min(above, self.at_most - number)

    def format(self, number: float) -> str:
        """Write a number of this claim with its unit."""
        if self.unit == "%":
            return f"{100 * number:.1f} %"
        return f"{number:.3g}×" if self.unit == "×" else f"{number:.4g} {self.unit}".rstrip()


class _ClaimTable(Table, tag_field="relation", frozen=True, kw_only=True):
    """A `[[claim]]`, without the keys of its relation."""

    name: str
    text: str
    source: str
    why: str | None = None
    paper: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    machines: tuple[str, ...] | None = None
    values: tuple[Integer, ...] | None = None
    first: Integer | None = msgspec.field(name="from", default=None)
    to: Integer | None = None


class _PairTable(_ClaimTable, frozen=True, kw_only=True):
    """A relation between two series."""

    of: str
    against: str


class _Reduction(_PairTable, tag="reduction", frozen=True, kw_only=True):
    """1 − of / against: the share of time that is saved."""


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


ClaimTable = _Reduction | _Speedup | _Order | _Largest | _Wider | _Close | _Value
"""A `[[claim]]`."""


def build_claim(table: ClaimTable, place: Place, scope: Scope) -> Claim:
    """Check a claim against the names that it may use."""
    machines = _machines(table, place, scope)
    unit, bounds = _BOUNDS[type(table)]
    statement, numbers, machines = _relation(table, place, scope, machines)
    given = {key for key in ("at_least", "at_most") if getattr(table, key) is not None}
    if bounds and not given & bounds:
        raise (place / min(bounds)).error(f"missing: {' or '.join(sorted(bounds))} says when the claim holds")
    for key in given - bounds:
        raise (place / key).error(f"has no meaning for the relation {table.__struct_config__.tag}")
    return Claim(
        name=table.name,
        text=table.text,
        source=table.source,
        why=table.why,
        paper=table.paper,
        at_least=table.at_least,
        at_most=table.at_most,
        machines=machines,
        values=_values(table, place, scope),
        unit=scope.unit if unit is None else unit,
        statement=statement,
        numbers=numbers,
    )


def _machines(table: ClaimTable, place: Place, scope: Scope) -> tuple[str, ...]:
    if table.machines is None:
        return scope.machines
    for index, one in enumerate(table.machines):
        if one not in scope.machines:
            raise (place / "machines" / index).error(f"{one} is not among {', '.join(scope.machines)}")
    return table.machines


def _values(table: ClaimTable, place: Place, scope: Scope) -> tuple[int, ...]:
    low, high = table.first, table.to
    if table.values is not None:
        if low is not None or high is not None:
            raise (place / "values").error("give values, or from and to")
        for index, value in enumerate(table.values):
            if value not in scope.values:
                raise (place / "values" / index).error(f"{value} is not in sweep.values")
        return table.values
    chosen = tuple(v for v in scope.values if (low is None or v >= low) and (high is None or v <= high))
    if not chosen:
        raise (place / "from").error("no value of the sweep is in this range")
    return chosen


def _check_series(name: str, place: Place, scope: Scope) -> None:
    if name not in scope.series:
        raise place.error(f"{name} is not a series; there are {', '.join(scope.series)}")


def _relation(table: ClaimTable, place: Place, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """Return the relation in words, its numbers, and the machines that it is tested on."""
    for key in ("of", "against"):
        if hasattr(table, key):
            _check_series(getattr(table, key), place / key, scope)
    match table:
        case _Reduction(of=of, against=against):
            return f"time of {of} below {against}", _reduction(of, against), machines
        case _Speedup(of=of, against=against):
            return f"time of {against} divided by that of {of}", _speedup(of, against), machines
        case _Largest(of=of, against=against):
            words = f"reduction of the time of {of} below {against}, divided by the largest elsewhere"
            return words, _largest(of, against), machines
        case _Close(of=of, against=against):
            return f"distance of {of} from {against}", _close(of, against), machines
        case _Wider(of=of, against=against, on=on, than=than):
            for key, machine in (("on", on), ("than", than)):
                if machine not in machines:
                    raise (place / key).error(f"{machine} is not among {', '.join(machines)}")
            words = f"{against} − {of} on {on}, divided by this difference on {than}"
            return words, _wider(of, against, than), (on,)
        case _Order():
            return f"time of {table.order}", _order(table, place, scope), machines
        case _Value(of=of):
            return (
                of,
                lambda times, machine, value: [("", scope.shown(times[machine, of, value]), -_INFINITY)],
                machines,
            )


_Numbers = Callable[[Times, str, int], Iterable[tuple[str, float, float]]]
_Built = tuple[str, _Numbers, tuple[str, ...]]
_INFINITY = float("inf")


def _ratio(times: Times, of: tuple[str, str, int], against: tuple[str, str, int]) -> float:
    """Divide the number measured at one point by that at another, which may be a count of 0."""
    if times[against] == 0:
        machine, series, value = against
        raise SpinkitError(f"{series} on {machine}, {value}: the measured number is 0, which allows no comparison")
    return times[of] / times[against]


def _reduction(of: str, against: str) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", 1 - _ratio(times, (machine, of, value), (machine, against, value)), -_INFINITY

    return numbers


def _speedup(of: str, against: str) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", _ratio(times, (machine, against, value), (machine, of, value)), -_INFINITY

    return numbers


def _order(table: _Order, place: Place, scope: Scope) -> _Numbers:
    words = table.order.split()
    names, signs = words[::2], words[1::2]
    if len(names) != len(signs) + 1 or not signs or any(sign not in (">", ">=") for sign in signs):
        raise (place / "order").error(f"expected series joined by > or >=, found {table.order!r}")
    for name in names:
        _check_series(name, place / "order", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        for (slow, fast), sign in zip(pairwise(names), signs, strict=True):
            ratio = _ratio(times, (machine, slow, value), (machine, fast, value))
            # Strictly greater: times are integers below 2^52, so a quotient of unequal ones is never 1.
            least = 1 - table.tolerance if sign == ">=" else 1 + 2**-52
            yield f", {slow} / {fast}", ratio, least

    return numbers


def _largest(of: str, against: str) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        points = [(m, v) for m, series, v in times if series == of]
        reductions = {(m, v): 1 - _ratio(times, (m, of, v), (m, against, v)) for m, v in points}
        here = reductions.pop((machine, value))
        most = max(reductions.values(), default=0.0)
        yield "", here / most if most > 0 else _INFINITY, 1.0

    return numbers


def _wider(of: str, against: str, than: str) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        wide = times[machine, against, value] - times[machine, of, value]
        narrow = times[than, against, value] - times[than, of, value]
        # Without a difference on the other machine there is nothing that could be wider.
        yield f", against {than}", wide / narrow if narrow > 0 else 0.0, 1 + 2**-52

    return numbers


def _close(of: str, against: str) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", abs(_ratio(times, (machine, of, value), (machine, against, value)) - 1), -_INFINITY

    return numbers


def _value(of: str, scope: Scope) -> _Numbers:
    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", scope.shown(times[machine, of, value]), -_INFINITY

    return numbers


_EITHER = frozenset({"at_least", "at_most"})
_NONE: frozenset[str] = frozenset()

_BOUNDS: dict[type, tuple[str | None, frozenset[str]]] = {
    _Reduction: ("%", _EITHER),
    _Speedup: ("×", _EITHER),
    _Order: ("×", _NONE),
    _Largest: ("×", _NONE),
    _Wider: ("×", _NONE),
    _Close: ("%", frozenset({"at_most"})),
    _Value: (None, _EITHER),
}
"""For each relation the unit of its number (None: the unit of the measured number), and the bounds that a claim may
give; if there are any, the claim must give one."""
