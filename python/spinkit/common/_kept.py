# SPDX-License-Identifier: Apache-2.0
"""Files that are made again only when their inputs changed, or when they are no longer as they were made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from spinkit.common._digest import digest, digest_of
from spinkit.common._json import parse_json
from spinkit.common._output import write_atomically

_NOTE = ".made.json"
"""File beside the made ones, with the digests of their inputs and contents."""


class Kept:
    """The made files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = _read(folder / _NOTE)

    def get(self, name: str, inputs: str, make: Callable[[], bytes]) -> bytes:
        """Return a file's content, which is made and written if inputs with this digest did not make it already."""
        file = self._folder / name
        try:
            content = file.read_bytes()
            if self._known.get(name) == [inputs, digest_of(content)]:
                return content
        except OSError:
            pass
        content = make()
        write_atomically(file, content)
        self._known[name] = [inputs, digest_of(content)]
        write_atomically(self._folder / _NOTE, json.dumps(self._known).encode())
        return content


def _read(note: Path) -> dict[str, list[str]]:
    """Return the digests of inputs and content of each file; none if the note is missing or damaged."""
    try:
        content = parse_json(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def sources(folder: Path, *patterns: str) -> str:
    """Return a digest of the files of a folder that match, such as the sources that make a file."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern) if file.is_file())
    return digest(files, [file.name for file in files])
