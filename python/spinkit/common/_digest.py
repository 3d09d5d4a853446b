# SPDX-License-Identifier: Apache-2.0
"""Digests of files and options, which identify the inputs of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

_LAYOUT = 1
"""Version of the layout of cached files; part of every digest."""


def digest(files: Iterable[Path], texts: Iterable[str]) -> str:
    """Return a digest of the contents of files, in order, and of texts."""
    total = hashlib.sha256(json.dumps([_LAYOUT, *texts]).encode())
    for file in files:
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


def digest_of(content: bytes) -> str:
    """Return a digest of bytes."""
    return hashlib.sha256(content).hexdigest()
