# SPDX-License-Identifier: Apache-2.0
"""Cache of finished runs: an interrupted reproduction continues, and repeats only runs with changed inputs.

The key of a run is a digest of all inputs of its outcome. An entry with another key is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinkit.common._json import parse_json
from spinkit.common._output import write_atomically


@dataclass(frozen=True)
class Entry:
    """The outcome of a run: the program's output and spinrun's report."""

    output: str
    report: Mapping[str, Any]


def load(file: Path, key: str) -> Entry | None:
    """Return the run in a file of the cache, if its key matches."""
    try:
        content = parse_json(file.read_text(encoding="utf-8"))
        return Entry(content["output"], content["report"]) if content["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def save(file: Path, key: str, entry: Entry) -> None:
    """Write a run to a file of the cache, replacing an older one."""
    content = {"key": key, "output": entry.output, "report": entry.report}
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(content).encode())
