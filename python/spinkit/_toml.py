"""Strict reading of TOML tables: every error names the file and the key, and unknown keys are errors."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from spinkit._errors import SpinkitError

T = TypeVar("T")

_INTEGERS = range(-(2**63), 2**63)
"""TOML promises no others."""

_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


def read_text(file: Path) -> str:
    """Read a UTF-8 file; an error names it, and the line of a byte that is no UTF-8."""
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
    except ValueError as error:  # also of integers with thousands of digits
        raise SpinkitError(f"{file}: {error}") from None
    except RecursionError:
        raise SpinkitError(f"{file}: arrays or tables are nested too deeply") from None


def _found(value: object) -> str:
    """Show a value in a message."""
    if isinstance(value, int) and value not in _INTEGERS:
        return "an integer of more than 64 bits"
    if isinstance(value, list | dict):
        return _NAMES[type(value)]
    return repr(value)


class Table:
    """A TOML table of which each key is taken once; `close` complains about what is left."""

    def __init__(self, values: dict[str, Any], file: Path, place: str = ""):
        self._left = dict(values)
        self._file = file
        self._place = place

    @classmethod
    def read(cls, file: Path) -> Table:
        """Parse a file."""
        return cls(parse_toml(read_text(file), file), file)

    def error(self, key: str, message: str) -> SpinkitError:
        """Make an error about a key of this table."""
        return SpinkitError(f"{self._file}: {self._path(key)}: {message}")

    def _path(self, key: str) -> str:
        return f"{self._place}.{key}" if self._place else key

    def _check(self, key: str, value: object, kind: type[T]) -> T:
        accepted = (int, float) if kind is float else (kind,)
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"expected {_NAMES[kind]}, found {_found(value)}")
        if isinstance(value, int) and value not in _INTEGERS:
            raise self.error(key, f"found {_found(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(key, f"expected a finite number, found {value}")
        return kind(value)  # type: ignore[call-arg]  # every kind converts from itself

    def take(self, key: str, kind: type[T]) -> T:
        """Take a key that must be there."""
        if key not in self._left:
            raise self.error(key, "missing")
        return self._check(key, self._left.pop(key), kind)

    def get(self, key: str, kind: type[T], default: T) -> T:
        """Take a key that may be absent."""
        return self.take(key, kind) if key in self._left else default

    def maybe(self, key: str, kind: type[T]) -> T | None:
        """Take a key that may be absent and then means nothing."""
        return self.take(key, kind) if key in self._left else None

    def items(self, key: str, kind: type[T]) -> tuple[T, ...]:
        """Take a list of one type."""
        values = self.take(key, list)
        return tuple(self._check(f"{key}[{index}]", value, kind) for index, value in enumerate(values))

    def table(self, key: str) -> Table:
        """Take a table."""
        return Table(self.take(key, dict), self._file, self._path(key))

    def tables(self, key: str) -> Iterator[Table]:
        """Take a list of tables."""
        for index, values in enumerate(self.items(key, dict)):
            yield Table(values, self._file, self._path(f"{key}[{index}]"))

    def close(self) -> None:
        """Complain about keys that nothing asked for."""
        for key in self._left:
            raise self.error(key, "unknown key")

    def is_a(self, key: str, kind: type) -> bool:
        """Tell whether a key is there and holds a value of this type."""
        return isinstance(self._left.get(key), kind)

    def __contains__(self, key: str) -> bool:
        return key in self._left
