# SPDX-License-Identifier: Apache-2.0
"""The points of a sweep over parameters, as options name them.

`dma.L_ns=50,250` lists values, `dma.L_ns=50:500:50` counts from the first to the second in steps of the third, and
`accelerator.hpus=1:64:x2` multiplies. Parameters that change together are joined by slashes, and so are their values:
`network.G_ps_per_byte/network.g_ns=20/6.7,8/1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

from spinkit._errors import SpinkitError
from spinkit.common._values import Value, typed, written

MOST_VALUES = 100_000
"""The largest number of values of a range."""


@dataclass(frozen=True)
class Axis:
    """Parameters that change together, and their values."""

    keys: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    """For each place on the axis the value of each parameter, as the user wrote it."""


@dataclass(frozen=True)
class Point:
    """One combination of values."""

    settings: tuple[str, ...]
    """The changes of the machine: KEY=VALUE."""

    @property
    def values(self) -> dict[str, Value]:
        """The value of each parameter."""
        return {key: typed(value) for key, _, value in (one.partition("=") for one in self.settings)}

    @property
    def description(self) -> str:
        """Text with all values."""
        return ", ".join(one.replace("=", " = ", 1) for one in self.settings)


def parse(text: str) -> Axis:
    """Read an option."""
    key_text, equals, value_text = text.partition("=")
    keys = tuple(key.strip() for key in key_text.split("/"))
    if not (equals and all(keys) and value_text.strip()):
        raise SpinkitError(f"{text}: expected KEY=VALUES, such as accelerator.hpus=1,2,4 or dma.L_ns=50:500:50")
    if len(set(keys)) != len(keys):
        raise SpinkitError(f"{text}: a parameter occurs twice")
    values: list[tuple[str, ...]] = []
    for part in _split(value_text):
        several = [part] if len(keys) == 1 else part.split("/")
        if len(several) != len(keys):
            raise SpinkitError(f"{text}: expected {len(keys)} values with slashes between them, found {part}")
        values += [(one,) for one in _range(part, text)] if len(keys) == 1 else [tuple(several)]
    if len(set(values)) != len(values):
        raise SpinkitError(f"{text}: a value occurs twice")
    return Axis(keys, tuple(values))


def points(axes: Sequence[Axis]) -> list[Point]:
    """Return all combinations; the last axis changes fastest."""
    keys = [key for axis in axes for key in axis.keys]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise SpinkitError(f"{key} is an axis already")
    return [
        Point(
            tuple(
                f"{key}={value}"
                for axis, values in zip(axes, chosen, strict=True)
                for key, value in zip(axis.keys, values, strict=True)
            )
        )
        for chosen in product(*(axis.values for axis in axes))
    ]


def of_mapping(settings: Mapping[str, Value | Sequence[Value]]) -> list[Axis]:
    """Return the axes of parameters with one value or several."""
    axes = []
    for key, values in settings.items():
        several = [values] if isinstance(values, str | bool | int | float) else values
        axes.append(Axis((key,), tuple((written(value),) for value in several)))
    return axes


def _split(text: str) -> list[str]:
    """Split at commas that are not in brackets, which a value such as [4,4] has."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _range(part: str, text: str) -> list[str]:
    """Return the values of a range, or the one value."""
    if ":" not in part:
        if not part:
            raise SpinkitError(f"{text}: a value is missing")
        if span := re.fullmatch(r"(\d+(?:\.\d+)?)(?:-|\.\.+)(\d+(?:\.\d+)?)", part):
            raise SpinkitError(f"{text}: the range from {span[1]} to {span[2]} is written {span[1]}:{span[2]}")
        return [part]
    words = part.split(":")
    factor = len(words) == 3 and words[2].startswith("x")
    try:
        first, last, *rest = (Decimal(word.removeprefix("x")) for word in words)
    except (InvalidOperation, ValueError):
        raise SpinkitError(f"{text}: {part} is no range, such as 50:500:50 or 1:64:x2") from None
    step = rest[0] if rest else Decimal(1)
    grows = first > 0 and step > 1 if factor else step > 0
    if len(rest) > 1 or not all(one.is_finite() for one in (first, last, step)) or not grows or last < first:
        raise SpinkitError(f"{text}: {part} is no range that grows from the first to the second number")
    values = []
    value = first
    while value <= last:
        values.append(_plain(value))
        value = value * step if factor else value + step
        if len(values) > MOST_VALUES:
            raise SpinkitError(f"{text}: {part} has more than {MOST_VALUES} values")
    return values


def _plain(value: Decimal) -> str:
    """Write a number without an exponent and without insignificant zeros."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
