# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the use cases' tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from spinkit import _paths

from .conftest import CHECKOUT


def by_hand(page: str, heading: str, column: str) -> dict[str, Decimal]:
    """Return the terms of a time that a page of docs/use-cases adds up, in ns; the last one, "sum", must be their sum.

    The table's first heading is given, and that of the column with the numbers. Of terms with the same name the last
    one is returned.
    """
    text = (CHECKOUT / "docs" / "use-cases" / f"{page}.md").read_text()
    _, begin, rest = text.partition(f"| {heading} | ")
    assert begin, f"{page} has no table of {heading}"
    lines = (begin + rest).partition("\n\n")[0].splitlines()
    names, _, *rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    terms = [(row[0], Decimal(row[names.index(column)].replace("–", "0"))) for row in rows]
    name, total = terms.pop()
    assert (name, total) == ("sum", sum(number for _, number in terms))
    return dict(terms) | {"sum": total}


def refuses(program: Path, ranks: int, wrong: Iterable[tuple[str, str]]) -> None:
    """Check that a program refuses each of these arguments with the message beside it."""
    for arguments, message in wrong:
        command = [_paths.command("spinrun"), "-n", str(ranks), program, *arguments.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0, arguments
        assert message in done.stderr, done.stderr
