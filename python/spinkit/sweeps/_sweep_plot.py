# SPDX-License-Identifier: Apache-2.0
"""`spinkit sweep --plot X,Y[,SERIES][,COLUMN=VALUE]…`: a figure of the rows of a sweep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

from spinkit._errors import SpinkitError, choice
from spinkit.reports._curves import CURVE_STYLES, Curve, Picture, Plot
from spinkit.reports._report import draw
from spinkit.sweeps._sweep import Outcome, Row

_KINDS = ("machine", "series")
"""Columns that name a curve besides the parameters."""


@dataclass(frozen=True)
class Wanted:
    """The columns of a figure: `x`, `y`, and those that distinguish curves, or None for all that vary."""

    x: str
    y: str
    series: tuple[str, ...] | None
    only: tuple[tuple[str, str], ...]
    """Columns with the text of the value that drawn rows have."""

    @property
    def name(self) -> str:
        """Return the name of the figure's file, without its ending."""
        only = (f"{column}={value}" for column, value in self.only)
        return re.sub(r"[^\w.+-]", "_", "-".join(("sweep", self.y, "over", self.x, *(self.series or ()), *only)))


def parse(text: str) -> Wanted:
    """Read `X,Y`, `X,Y,COLUMN+COLUMN`, and `COLUMN=VALUE` after either."""
    parts = text.split(",")
    plain = [part for part in parts if "=" not in part]
    if len(plain) not in (2, 3) or not all(plain) or "=" in "".join(parts[:2]):
        raise SpinkitError(f"expected X,Y[,COLUMN+COLUMN][,COLUMN=VALUE]…, found {text!r}")
    only = tuple((column, value) for column, equals, value in (part.partition("=") for part in parts) if equals)
    return Wanted(plain[0], plain[1], tuple(plain[2].split("+")) if len(plain) == 3 else None, only)


def check(wanted: Wanted, columns: Sequence[str]) -> None:
    """Raise an error for a column that the table does not have."""
    for name in (wanted.x, wanted.y, *(wanted.series or ()), *(column for column, _ in wanted.only)):
        if name not in columns:
            raise SpinkitError(f"--plot: the table has no column {name}; {choice(name, list(columns))}")


def plot(outcome: Outcome, wanted: Wanted) -> Picture:
    """Draw `y` over `x`, with a curve for each combination of the columns that distinguish curves."""
    check(wanted, list(outcome.rows[0]))
    rows = [row for row in outcome.rows if all(str(row[column]) == value for column, value in wanted.only)]
    if not rows:
        only = " and ".join(f"{column} = {value}" for column, value in wanted.only)
        raise SpinkitError(f"--plot: no row has {only}")
    for row in rows:
        if not _is_number(row[wanted.y]):
            raise SpinkitError(f"--plot: {wanted.y} is no number: {row[wanted.y]!r}")
    varied = [key for axis in outcome.axes for key in axis.keys] + [outcome.experiment.sweep.axis]
    several = [key for key in (*_KINDS, *varied) if key != wanted.x and len({row[key] for row in rows}) > 1]
    keys = several if wanted.series is None else list(wanted.series)
    xs = list(dict.fromkeys(row[wanted.x] for row in rows))
    groups: dict[tuple[Any, ...], dict[Any, Row]] = {}
    for row in rows:
        group = groups.setdefault(tuple(row[key] for key in keys), {})
        if row[wanted.x] in group:
            differing = [key for key in several if key not in keys and group[row[wanted.x]][key] != row[key]]
            remedy = f"name {' or '.join(differing)} among the columns of curves" if differing else "omit the columns"
            raise SpinkitError(f"--plot: a curve has several points at {wanted.x} = {row[wanted.x]}; {remedy}")
        group[row[wanted.x]] = row
    if len(groups) > len(CURVE_STYLES):
        problem = f"{len(groups)} curves are more than {len(CURVE_STYLES)}"
        raise SpinkitError(
            f"--plot: {problem}; choose rows by COLUMN=VALUE, as in {wanted.x},{wanted.y},{keys[0]}={rows[0][keys[0]]}"
        )
    if all(map(_is_number, xs)):
        xs.sort()
    measure = outcome.experiment.measure
    is_measured = wanted.y == measure.key
    in_us = not is_measured and wanted.y.endswith("_ps")

    def shown(row: Row) -> float:
        return measure.shown(row[wanted.y]) if is_measured else row[wanted.y] / (1e6 if in_us else 1)

    labels = {one.name: one.label for one in outcome.experiment.series}

    def label(group: tuple[Any, ...]) -> str:
        words = (
            labels[value] if key == "series" else str(value) if key in _KINDS else f"{key} = {value}"
            for key, value in zip(keys, group, strict=True)
        )
        return ", ".join(words) or wanted.y

    curves = [
        Curve(label(group), [shown(of_x[x]) if x in of_x else nan for x in xs], style)
        for style, (group, of_x) in enumerate(groups.items())
    ]
    y_label = measure.heading if is_measured else f"{wanted.y.removesuffix('_ps')} [µs]" if in_us else wanted.y
    chosen = ", ".join(value if column in _KINDS else f"{column} = {value}" for column, value in wanted.only)
    title = f"{outcome.experiment.title}: {chosen}" if chosen else outcome.experiment.title
    common = {"title": title, "y_label": y_label, "curves": curves}
    if not all(map(_is_number, xs)):
        return draw(Plot("bars", {**common, "names": list(map(str, xs))}))
    sweep = outcome.experiment.sweep
    is_axis = wanted.x == sweep.axis
    linear = min(value for curve in curves for value in curve.values if value == value) <= 0
    x_label = sweep.label if is_axis else wanted.x
    in_bytes = is_axis and sweep.unit == "B"
    return draw(Plot("lines", {**common, "x_label": x_label, "xs": xs, "in_bytes": in_bytes, "linear": linear}))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
