# SPDX-License-Identifier: Apache-2.0
"""Data of pictures and the styles of curves, without the library that draws them, which takes long to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# Okabe and Ito's palette is safe for every common colour blindness; markers and dashes repeat the distinction. The
# further colours are darker and lighter ones of the same hues.
CURVE_STYLES = (
    ("#D55E00", "s", (0, ())),
    ("#E69F00", "^", (0, (6, 1.5))),
    ("#56B4E9", "D", (0, (3, 1.5))),
    ("#0072B2", "o", (0, ())),
    ("#009E73", "v", (0, (1, 1))),
    ("#CC79A7", "P", (0, (5, 1, 1, 1))),
    ("#8C3D00", "s", (0, (6, 1.5))),
    ("#F0A576", "s", (0, (1, 1))),
    ("#8F6300", "^", (0, (1, 1))),
    ("#F3CE77", "^", (0, (3, 1.5))),
    ("#003A5D", "o", (0, (6, 1.5))),
    ("#66C2A5", "v", (0, ())),
    ("#7B4B73", "P", (0, (3, 1.5))),
    ("#6E7781", "X", (0, (2, 2))),
)
CARD_STYLES = {"rdma": (0, 6, 7), "portals4": (1, 8, 9), "spin": (3, 2, 4, 5, 10, 11, 12), "none": (13,)}
"""Styles of the curves of each kind of card: the first is that of its first mode, in all figures."""


@dataclass(frozen=True)
class Curve:
    """A named sequence of values, one for each x."""

    label: str
    values: Sequence[float]
    style: int
    """Index of the colour, marker and dashes, from 0; see `curve_styles`."""
    anchors: Sequence[tuple[int, float]] = ()
    """Numbers of a paper, each with the index of its x."""


@dataclass(frozen=True)
class Panel:
    """One of several plots with the same axes."""

    title: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Bar:
    """A named range of numbers."""

    label: str
    least: float
    most: float


@dataclass(frozen=True)
class Picture:
    """A drawn figure."""

    svg: bytes
    png: bytes


@dataclass(frozen=True)
class Plot:
    """Everything that a picture shows: a function of `_plot` and its arguments."""

    function: Literal["lines", "bars"]
    arguments: Mapping[str, Any]


def curve_styles(kinds: Sequence[tuple[str, int]]) -> list[int]:
    """Choose the styles of a figure's curves, each given by kind of card and number of the mode.

    A mode of a card has the same style in all figures. A mode that is drawn again takes a free style of its card, else
    grey, else any free style.
    """
    chosen: list[int] = []
    for card, mode in kinds:
        of_card = CARD_STYLES[card]
        wanted = of_card[mode % len(of_card)]
        free = (
            style
            for style in (wanted, *of_card, *CARD_STYLES["none"], *range(len(CURVE_STYLES)))
            if style not in chosen
        )
        chosen.append(next(free, wanted))
    return chosen


def byte_label(size: float) -> str:
    """Write a number of bytes with binary prefixes: 262144 is `256 KiB`."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size:g} B"
