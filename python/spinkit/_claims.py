"""What a paper says about an experiment, as relations between measured times that are tested at every named point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spinkit._errors import SpinkitError
from spinkit._toml import Table

Times = Mapping[tuple[str, str, int], int]
"""What is measured, a time in ps or a count, by (machine, series, value of the sweep)."""


@dataclass(frozen=True)
class Scope:
    """The names that claims may use."""

    machines: tuple[str, ...]
    series: tuple[str, ...]
    values: tuple[int, ...]
    unit: str = "µs"
    """Of what is measured, as people read it; none for a count."""
    shown: Callable[[int], float] = lambda time_ps: time_ps / 1_000_000
    """What is measured, in that unit."""


@dataclass(frozen=True)
class Sample:
    """One tested number of a claim, and the point it belongs to."""

    point: str
    number: float
    margin: float
    """How far inside the bounds the number is; negative: outside."""


@dataclass(frozen=True)
class Verdict:
    """What came out for a claim: the sample closest to (or farthest beyond) its bounds stands for all."""

    claim: Claim
    holds: bool
    worst: Sample
    samples: int
    failed: int

    @property
    def fails(self) -> bool:
        """Whether it does not hold and nothing explains that."""
        return not self.holds and self.claim.why is None

    @property
    def word(self) -> str:
        """The verdict in words."""
        if self.holds:
            return "holds" if self.claim.why is None else "holds, though marked"
        count = f" at {self.failed} of {self.samples}" if self.samples > 1 else ""
        return f"differs{count}" if self.claim.why is None else f"differs{count} (explained)"

    @property
    def ratio(self) -> float | None:
        """Here / paper, where the paper gives a number."""
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
    """The numbers of a (machine, value), each with what it is about and the least value it may have."""

    def where(self, values: Sequence[int]) -> list[int]:
        """Return those of the given values that the claim is about."""
        return [value for value in values if value in self.values]

    def test(self, times: Times, values: Sequence[int]) -> Verdict:
        """Test the claim on measured times; every point it names must be there."""
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


def read_claim(table: Table, scope: Scope) -> Claim:
    """Read a `[[claim]]`."""
    relation = table.take("relation", str)
    if relation not in _RELATIONS:
        raise table.error("relation", f"expected one of {', '.join(sorted(_RELATIONS))}, found {relation!r}")
    unit, bounds, build = _RELATIONS[relation]
    machines = _subset(table, "machines", str, scope.machines)
    statement, numbers, machines = build(table, scope, machines)
    claim = Claim(
        name=table.take("name", str),
        text=table.take("text", str),
        source=table.take("source", str),
        why=table.maybe("why", str),
        paper=table.maybe("paper", float),
        at_least=table.maybe("at_least", float),
        at_most=table.maybe("at_most", float),
        machines=machines,
        values=_values(table, scope),
        unit=scope.unit if unit is None else unit,
        statement=statement,
        numbers=numbers,
    )
    given = {key for key in ("at_least", "at_most") if getattr(claim, key) is not None}
    if bounds and not given & bounds:
        raise table.error(min(bounds), f"missing: {' or '.join(sorted(bounds))} says when the claim holds")
    for key in given - bounds:
        raise table.error(key, f"has no meaning for the relation {relation}")
    table.close()
    return claim


def _subset(table: Table, key: str, kind: type[str], known: tuple[str, ...]) -> tuple[str, ...]:
    if key not in table:
        return known
    chosen = table.items(key, kind)
    for index, one in enumerate(chosen):
        if one not in known:
            raise table.error(f"{key}[{index}]", f"{one} is not among {', '.join(known)}")
    return chosen


def _values(table: Table, scope: Scope) -> tuple[int, ...]:
    low, high = table.maybe("from", int), table.maybe("to", int)
    if "values" in table:
        if low is not None or high is not None:
            raise table.error("values", "give values, or from and to")
        chosen = table.items("values", int)
        for index, value in enumerate(chosen):
            if value not in scope.values:
                raise table.error(f"values[{index}]", f"{value} is not in sweep.values")
        return chosen
    chosen = tuple(v for v in scope.values if (low is None or v >= low) and (high is None or v <= high))
    if not chosen:
        raise table.error("from", "no value of the sweep is in this range")
    return chosen


def _name(table: Table, key: str, scope: Scope) -> str:
    name = table.take(key, str)
    if name not in scope.series:
        raise table.error(key, f"{name} is not a series; there are {', '.join(scope.series)}")
    return name


_Numbers = Callable[[Times, str, int], Iterable[tuple[str, float, float]]]
_Built = tuple[str, _Numbers, tuple[str, ...]]


def _ratio(times: Times, of: tuple[str, str, int], against: tuple[str, str, int]) -> float:
    """Divide what is measured at one point by what is measured at another, which may be a count of 0."""
    if times[against] == 0:
        machine, series, value = against
        raise SpinkitError(f"{series} on {machine}, {value}: 0 is measured, and nothing can be compared with it")
    return times[of] / times[against]


def _reduction(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """1 − of / against: how much less time."""
    of, against = _name(table, "of", scope), _name(table, "against", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", 1 - _ratio(times, (machine, of, value), (machine, against, value)), -float("inf")

    return f"time of {of} below {against}", numbers, machines


def _speedup(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """Against / of: how many times faster, or as much more bandwidth."""
    of, against = _name(table, "of", scope), _name(table, "against", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", _ratio(times, (machine, against, value), (machine, of, value)), -float("inf")

    return f"time of {against} over {of}", numbers, machines


def _order(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """Series > series >= series: each slower than the next; `>=` forgives `tolerance`, a part of one."""
    text = table.take("order", str)
    tolerance = table.get("tolerance", float, 0.0)
    words = text.split()
    names, signs = words[::2], words[1::2]
    if len(names) != len(signs) + 1 or not signs or any(sign not in (">", ">=") for sign in signs):
        raise table.error("order", f"expected series joined by > or >=, found {text!r}")
    for name in names:
        if name not in scope.series:
            raise table.error("order", f"{name} is not a series; there are {', '.join(scope.series)}")

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        for (slow, fast), sign in zip(pairwise(names), signs, strict=True):
            ratio = _ratio(times, (machine, slow, value), (machine, fast, value))
            # Strictly greater: times are integers below 2^52, so a quotient of unequal ones is never 1.
            least = 1 - tolerance if sign == ">=" else 1 + 2**-52
            yield f", {slow} / {fast}", ratio, least

    return f"time of {text}", numbers, machines


def _largest(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """1 − of / against here, over the largest such reduction anywhere else."""
    of, against = _name(table, "of", scope), _name(table, "against", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        points = [(m, v) for m, series, v in times if series == of]
        reductions = {(m, v): 1 - _ratio(times, (m, of, v), (m, against, v)) for m, v in points}
        here = reductions.pop((machine, value))
        most = max(reductions.values(), default=0.0)
        yield "", here / most if most > 0 else float("inf"), 1.0

    return f"reduction of the time of {of} below {against}, over the largest elsewhere", numbers, machines


def _wider(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """Against − of is more on machine `on` than on machine `than`."""
    of, against = _name(table, "of", scope), _name(table, "against", scope)
    on, than = table.take("on", str), table.take("than", str)
    for key, machine in (("on", on), ("than", than)):
        if machine not in machines:
            raise table.error(key, f"{machine} is not among {', '.join(machines)}")

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        wide = times[machine, against, value] - times[machine, of, value]
        narrow = times[than, against, value] - times[than, of, value]
        # Without a difference on the other machine there is nothing that could be wider.
        yield f", against {than}", wide / narrow if narrow > 0 else 0.0, 1 + 2**-52

    return f"{against} − {of} on {on} over the same on {than}", numbers, (on,)


def _close(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """|of / against − 1|: how far apart, at most `at_most`."""
    of, against = _name(table, "of", scope), _name(table, "against", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", abs(_ratio(times, (machine, of, value), (machine, against, value)) - 1), -float("inf")

    return f"distance of {of} from {against}", numbers, machines


def _value(table: Table, scope: Scope, machines: tuple[str, ...]) -> _Built:
    """`of` itself, in the unit in which it is shown."""
    of = _name(table, "of", scope)

    def numbers(times: Times, machine: str, value: int) -> Iterable[tuple[str, float, float]]:
        yield "", scope.shown(times[machine, of, value]), -float("inf")

    return of, numbers, machines


_EITHER = frozenset({"at_least", "at_most"})
_AT_MOST = frozenset({"at_most"})
_NONE: frozenset[str] = frozenset()

_RELATIONS: dict[str, tuple[str | None, frozenset[str], Callable[[Table, Scope, tuple[str, ...]], _Built]]] = {
    "reduction": ("%", _EITHER, _reduction),
    "speedup": ("×", _EITHER, _speedup),
    "order": ("×", _NONE, _order),
    "largest": ("×", _NONE, _largest),
    "wider": ("×", _NONE, _wider),
    "close": ("%", _AT_MOST, _close),
    "value": (None, _EITHER, _value),
}
"""By name: unit of the number (None: of what is measured), bounds that the claim must (in part) and may give, and what
builds the relation."""
