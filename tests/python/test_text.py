# SPDX-License-Identifier: Apache-2.0
"""Text for a pipe is as wide as its content."""

from __future__ import annotations

import pytest
from rich.table import Table
from spinkit import _text


def test_tables_are_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    out = _text.console()
    table = Table(title="a title", title_justify="left", box=_text.table_box(out))
    table.add_column("what is said", max_width=_text.PROSE)
    table.add_column("number", no_wrap=True)
    sentence = " ".join(["word"] * 60)
    table.add_row(sentence, "x" * 300)
    _text.print_block(out, table)
    lines = capsys.readouterr().out.splitlines()
    assert "x" * 300 in lines[3]
    assert " ".join(" ".join(line.replace("x", "").split()) for line in lines[3:]).strip() == sentence
    assert max(len(line) for line in lines) < 300 + _text.PROSE + 10
    assert all(line == line.rstrip() for line in lines)
