"""The one kind of error that users see without a traceback."""

from __future__ import annotations


class SpinkitError(Exception):
    """Something failed that the user can act on; the text names the thing and the place."""


class EndingError(SpinkitError):
    """The command is ending; nothing more is run."""
