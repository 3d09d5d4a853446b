# SPDX-License-Identifier: Apache-2.0
"""`spinkit view`: one self-contained HTML page that shows timelines.

The page holds the compressed Perfetto files and reads them in the browser, where a million slices take seconds.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from spinkit._errors import SpinkitError
from spinkit.reports._report import render

_PARTS = Path(__file__).parents[1] / "templates" / "view"
_FIRST = b"\x0a"
"""First byte of a trace: the key of its first packet."""


def page(files: Sequence[Path]) -> bytes:
    """Return the page of timelines; a file that is no timeline is an error."""
    from markupsafe import Markup  # imported here because few commands write pages

    parts = {name: Markup((_PARTS / name).read_text()) for name in ("view.css", "model.js", "view.js")}
    packed = [{"name": file.name, "packed": b64encode(zlib.compress(_read(file), 6)).decode()} for file in files]
    title = " and ".join(file.name for file in files)
    return render(
        "view.html.j2",
        title=title,
        files=packed,
        css=parts["view.css"],
        model=parts["model.js"],
        view=parts["view.js"],
    )


def _read(file: Path) -> bytes:
    content = file.read_bytes()
    if not content.startswith(_FIRST) or not _is_framed(content):
        raise SpinkitError(
            f"{file}: is no timeline; write one with `spinrun --trace FILE`, `spinkit goal run --trace FILE` or "
            "`spinkit pspin run --trace FILE`"
        )
    return content


def _is_framed(content: bytes) -> bool:
    """Return true if the file is a sequence of whole packets."""
    at, end = 0, len(content)
    while at < end:
        if content[at] != _FIRST[0]:
            return False
        at += 1
        length = shift = 0
        while at < end and content[at] & 0x80:
            length |= (content[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        if at >= end:
            return False
        at += 1 + (length | content[at] << shift)
    return at == end
