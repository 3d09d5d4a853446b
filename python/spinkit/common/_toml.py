# SPDX-License-Identifier: Apache-2.0
"""Strict reading of TOML files: every error names the file and the key, and unknown keys are errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from spinkit._errors import SpinkitError

T = TypeVar("T")

Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of 64 bits; TOML guarantees no larger ones."""

Number = Annotated[float, msgspec.Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
"""A number that is neither infinite nor NaN."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A TOML table with these keys and no others."""


def read_text(file: Path) -> str:
    """Read a UTF-8 file; an error names it, and the line of a byte that is not UTF-8."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SpinkitError(f"{file}: {error.strerror}") from None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpinkitError(f"{file}:{line}: byte 0x{content[error.start]:02x} is not UTF-8") from None


def parse_toml(text: str, file: Path) -> dict[str, Any]:
    """Parse TOML; an error names the file."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for integers with thousands of digits
        raise SpinkitError(f"{file}: {error}") from None
    except RecursionError:
        raise SpinkitError(f"{file}: arrays or tables are nested too deeply") from None


class Place:
    """A file and a table in it, for messages."""

    def __init__(self, file: Path, path: str = ""):
        self._file = file
        self._path = path

    def __truediv__(self, key: str | int) -> Place:
        """Return the place of a key of this table, or of an item of this list."""
        if isinstance(key, int):
            return Place(self._file, f"{self._path}[{key}]")
        return Place(self._file, f"{self._path}.{key}" if self._path else key)

    def error(self, message: str) -> SpinkitError:
        """Make an error that names the place."""
        return SpinkitError(f"{self._file}: {self._path}: {message}" if self._path else f"{self._file}: {message}")


_LONGEST = 200
"""Largest number of bytes of a name, to which folders of results add a suffix for each file."""


def check_file_name(name: str, place: Place) -> None:
    """Raise an error for a name that would be a file in another folder, a hidden one, or none."""
    if "/" in name or "\0" in name or name.startswith(".") or not 0 < len(name.encode()) <= _LONGEST:
        problem = f"files are named by it: expected 1 to {_LONGEST} bytes without /, of which the first is no dot"
        raise place.error(f"{problem}, found {name[:_LONGEST]!r}")


def is_there(file: Path, test: Callable[[Path], bool] = Path.exists) -> bool:
    """Return whether a file passes a test of the system; a name that the system refuses passes none."""
    try:
        return test(file)
    except (OSError, ValueError):
        return False


def convert(values: object, kind: type[T], place: Place) -> T:
    """Check TOML values against a type; an error names the place of the value that is wrong."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise _error(str(error), place) from None


_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<key>.*)`", re.DOTALL)
_TYPES = re.compile(r"`(?P<kinds>[a-z |]+)`")
_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)


def _error(message: str, place: Place) -> SpinkitError:
    """Rewrite a message of msgspec: put the place first and use TOML's terms."""
    match = _MESSAGE.fullmatch(message)
    what, path = (match["what"], match["path"]) if match else (message, None)
    if path:
        place = place / path
    for pattern, problem in ((_MISSING, "missing"), (_UNKNOWN, "unknown key")):
        if found := pattern.fullmatch(what):
            return (place / found["key"]).error(problem)
    what = _TYPES.sub(_words, what[:1].lower() + what[1:])
    return place.error(what.replace(", got ", ", found "))


def _words(match: re.Match[str]) -> str:
    """Name types as in TOML: `int | null` is an integer."""
    kinds = [kind for kind in match["kinds"].split(" | ") if kind != "null"]
    return " or ".join(_NAMES.get(kind, kind) for kind in kinds)
