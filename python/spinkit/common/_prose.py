# SPDX-License-Identifier: Apache-2.0
"""Prose of experiments, with code between backticks."""

from __future__ import annotations

import re
from collections.abc import Iterator


def code_spans(text: str) -> Iterator[tuple[str, bool]]:
    """Split text into pieces, each with a flag for code."""
    for index, piece in enumerate(re.split(r"`([^`]+)`", text)):
        if piece:
            yield piece, index % 2 == 1


def plain(text: str) -> str:
    """Remove the backticks around code."""
    return "".join(piece for piece, _ in code_spans(text))
