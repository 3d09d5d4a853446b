# SPDX-License-Identifier: Apache-2.0
"""A profile as text."""

from __future__ import annotations

from pathlib import Path

from rich.box import Box
from rich.table import Table
from rich.text import Text

from spinkit import _paths
from spinkit.common._terminal import console, print_block, table_box
from spinkit.simulate._profile import Handler, Profile, Spread


def show(profile: Profile, lines: int) -> None:
    """Print a row for each handler, whether the card sustains line rate, and the hottest lines."""
    out = console()
    if not profile.handlers:
        out.print("No handler ran.")
        return
    box = table_box(out)
    title = f"Handlers on {profile.machine}: {profile.hpus} HPUs, {profile.line_gbit_per_s:g} Gbit/s"
    table = Table(title=title, title_justify="left", box=box)
    table.add_column("handler", no_wrap=True)
    columns = ("calls", "instructions", "cycles", "bytes", "DMAs", "puts", "waits ns", "M calls/s", "Gbit/s")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for handler in profile.handlers:
        table.add_row(handler.name, *_cells(handler))
    print_block(out, table)
    out.print()
    out.print("instructions, cycles: mean of a call (least–most); calls/s and Gbit/s: maximum of all HPUs together")
    for handler in profile.handlers:
        if handler.rate is not None:
            style = "green" if handler.rate.sustains_line else "bold red"
            out.print(Text(profile.verdict(handler), style=style))
    for handler in profile.handlers:
        if handler.lines and lines:
            print_block(out, _hottest(handler, lines, box))


def _cells(handler: Handler) -> list[str]:
    rate = handler.rate
    per_s = handler.calls_per_s if rate is None else rate.packets_per_s
    return [
        str(handler.calls) + (f" ({handler.errors} failed)" if handler.errors else ""),
        _spread(handler.per_call),
        _spread(handler.cycles),
        *map(str, (handler.bytes, handler.dmas, handler.puts)),
        f"{handler.mean_wait_ns:.1f}",
        f"{per_s / 1e6:,.1f}",
        "–" if rate is None else f"{rate.gbit_per_s:,.1f}",
    ]


def _spread(spread: Spread) -> str:
    return str(spread.min) if spread.min == spread.max else f"{spread.mean:.1f} ({spread.min}–{spread.max})"


def _hottest(handler: Handler, lines: int, box: Box | None) -> Table:
    table = Table(
        title=f"{handler.name}: where its instructions are", title_justify="left", box=box, expand=box is not None
    )
    table.add_column("instructions", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("place", no_wrap=True)
    table.add_column("source", no_wrap=True, overflow="ellipsis", ratio=1)  # gets the remaining width
    for line in handler.lines[:lines]:
        place = line.place.removeprefix(f"{Path.cwd()}/").removeprefix(f"{_paths.home()}/")
        table.add_row(str(line.instructions), f"{100 * line.share:.1f} %", Text(place), Text(line.text))
    return table
