# SPDX-License-Identifier: Apache-2.0
"""Text for terminals, and as plain text for files and pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import HEAVY_HEAD, Box
from rich.console import Console, RenderableType
from rich.text import Text

from spinkit.common._prose import code_spans

if TYPE_CHECKING:
    from rich.progress import Progress

_PLAIN_WIDTH = 100_000
"""Columns of output to a file or pipe: tables are as wide as their cells, and nothing is cut."""

PROSE = 76
"""Columns of sentences in a table that goes to a file or pipe."""


def console(stderr: bool = False) -> Console:
    """Open standard output or standard error."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, width=None if terminal else _PLAIN_WIDTH, highlight=False)


def note(text: str) -> None:
    """Print a note on standard error."""
    console(stderr=True).print(f"spinkit: note: {text}", markup=False, soft_wrap=True)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress on standard error, if that is a terminal, until the work is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    log = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=log, transient=True, disable=not log.is_terminal) as bar:
        yield bar


def table_box(console: Console) -> Box | None:
    """Return the box style of a table; none when the output goes to a file."""
    return HEAVY_HEAD if console.is_terminal else None


def print_block(console: Console, content: RenderableType) -> None:
    """Print after an empty line; omit rich's padding at line ends when the output goes to a file."""
    console.print()
    if console.is_terminal:
        console.print(content)
        return
    with console.capture() as captured:
        console.print(content)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    console.file.flush()


def styled(text: str) -> Text:
    """Show code without backticks, in colour if the output has colours."""
    return Text.assemble(*((piece, "cyan" if is_code else "") for piece, is_code in code_spans(text)))
