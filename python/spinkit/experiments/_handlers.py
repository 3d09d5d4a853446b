# SPDX-License-Identifier: Apache-2.0
"""Handlers for PsPIN's own interface, built for `spinkit pspin run`.

A C source is compiled here. `spinkit pspin run` builds a folder in the published layout by its Makefile and runs it by
its driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._processes import Execute


@dataclass(frozen=True)
class Handlers:
    """A C source of handlers and its compiler flags, or a folder in the published layout."""

    path: Path
    flags: tuple[str, ...]


class Builder:
    """Compiles each source of handlers once, when a run first needs it."""

    def __init__(self, pspin: Path, sdk: Path, out: Path, execute: Execute) -> None:
        self._pspin = pspin
        self._sdk = sdk
        self._out = out
        self._execute = execute
        self._lock = Lock()
        self._locks: dict[Path, Lock] = {}
        self._built: set[Path] = set()

    def digest(self, several: Sequence[Handlers]) -> str:
        """Return a digest of the command, the SDK, the sources and the flags."""
        places = dict.fromkeys([one.path if one.path.is_dir() else one.path.parent for one in several])
        sources = [file for place in places for file in _files(place)]
        texts = [word for one in several for word in (str(one.path.name), *one.flags)]
        return digest([self._pspin, *_files(self._sdk / "pspin"), *sources], texts)

    def get(self, handlers: Handlers) -> Path:
        """Return the compiled program, or the folder: the argument of `spinkit pspin run`."""
        if handlers.path.is_dir():
            return handlers.path
        name = digest([], [str(handlers.path), *handlers.flags])[:12]
        program = self._out / f"{handlers.path.stem}-{name}.elf"
        with self._lock:
            lock = self._locks.setdefault(program, Lock())
        with lock:
            if program not in self._built:
                command = [str(self._pspin), "cc", "-O3", *handlers.flags, str(handlers.path), "-o", str(program)]
                status, _, errors = self._execute(command, None)
                if status != 0:
                    raise SpinkitError(f"{handlers.path.name} does not compile:\n{errors.strip()}")
                self._built.add(program)
        return program


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder except build results."""
    return sorted(
        file for file in folder.rglob("*") if file.is_file() and "build" not in file.relative_to(folder).parts
    )
