"""Finished runs, kept so that a reproduction goes on where it was interrupted and computes only what has changed.

A run is known by a digest of all that its outcome depends on; anything else that lies there is computed anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinkit._errors import SpinkitError
from spinkit._output import write_atomically
from spinkit._run import parse_json
from spinkit._toml import parse_toml, read_text

_LAYOUT = 1
"""Of kept files; part of every digest."""


@dataclass(frozen=True)
class Kept:
    """What a run left: the program's output and spinrun's report."""

    output: str
    report: Mapping[str, Any]


def digest(files: Iterable[Path], words: Iterable[str]) -> str:
    """Digest the content of files, in order, and words."""
    total = hashlib.sha256(json.dumps([_LAYOUT, *words]).encode())
    for file in files:
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def machine_files(home: Path, machine: str) -> list[Path]:
    """Return a machine's file and those that it builds on; of those that are there, for spinrun tells of the others."""
    found: list[Path] = []
    name: object = machine
    while isinstance(name, str) and (file := home / "machines" / f"{name}.toml").is_file() and file not in found:
        found.append(file)
        try:
            name = parse_toml(read_text(file), file).get("base")
        except SpinkitError:
            break
    return found


def load(file: Path, key: str) -> Kept | None:
    """Return the run that is kept in a file, if it has this digest."""
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
        return Kept(content["output"], content["report"]) if content["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def save(file: Path, key: str, kept: Kept) -> None:
    """Keep a run, in place of any other of the same name."""
    content = {"key": key, "output": kept.output, "report": kept.report}
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(content).encode())
