# SPDX-License-Identifier: Apache-2.0
"""Text for a pipe is as wide as its content."""

from __future__ import annotations

import pytest
from rich.table import Table
from spinkit.common import _terminal


def test_tables_are_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    out = _terminal.console()
    table = Table(title="a title", title_justify="left", box=_terminal.table_box(out))
    table.add_column("what is said", max_width=_terminal.PROSE)
    table.add_column("number", no_wrap=True)
    sentence = " ".join(["word"] * 60)
    table.add_row(sentence, "x" * 300)
    _terminal.print_block(out, table)
    lines = capsys.readouterr().out.splitlines()
    assert "x" * 300 in lines[3]
    assert " ".join(" ".join(line.replace("x", "").split()) for line in lines[3:]).strip() == sentence
    assert max(len(line) for line in lines) < 300 + _terminal.PROSE + 10
    assert all(line == line.rstrip() for line in lines)
