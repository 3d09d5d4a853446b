# SPDX-License-Identifier: Apache-2.0
"""Errors that users see without a traceback."""

from __future__ import annotations

from collections.abc import Collection


class SpinkitError(Exception):
    """A failure that the user can act on; the text names the thing and the place."""


class EndingError(SpinkitError):
    """The command is ending; no further run starts."""


def choice(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown name: a similar name, and the names that exist."""
    from difflib import get_close_matches  # imported here because only errors need it

    like = get_close_matches(name, known, n=1, cutoff=0.7)
    there = f"here are: {', '.join(known) or 'none'}"
    return f"did you mean {like[0]}? T{there}" if like else f"t{there}"
