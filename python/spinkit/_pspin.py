"""Experiments whose handlers use PsPIN's own interface: what `spinkit pspin` is told to build and to run.

The program is a C source with handlers, which is compiled here, or a folder in the published layout, which
`spinkit pspin run` builds by its Makefile and runs by its driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from spinkit._cache import digest
from spinkit._errors import SpinkitError

Execute = Callable[[list[str], float | None], tuple[int, str, str]]
"""Runs a command within a number of seconds; returns its exit status, output and error output."""


@dataclass(frozen=True)
class Handlers:
    """What handles packets: a source and the flags with which it is compiled, or a folder in the published layout."""

    path: Path
    flags: tuple[str, ...]


class Builder:
    """Builds the handlers of an experiment when a run needs them, each once."""

    def __init__(self, pspin: Path, sdk: Path, out: Path, execute: Execute) -> None:
        self._pspin = pspin
        self._sdk = sdk
        self._out = out
        self._execute = execute
        self._lock = Lock()
        self._locks: dict[Path, Lock] = {}
        self._built: set[Path] = set()

    def digest(self, several: Sequence[Handlers]) -> str:
        """Return a digest of everything of which these handlers are made, and of the command."""
        places = dict.fromkeys([one.path if one.path.is_dir() else one.path.parent for one in several])
        sources = [file for place in places for file in _files(place)]
        words = [word for one in several for word in (str(one.path.name), *one.flags)]
        return digest([self._pspin, *_files(self._sdk / "pspin"), *sources], words)

    def get(self, handlers: Handlers) -> Path:
        """Return what `spinkit pspin run` is given: the program, or a folder."""
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
    """Return the files of a folder, without what is built there."""
    return sorted(
        file for file in folder.rglob("*") if file.is_file() and "build" not in file.relative_to(folder).parts
    )
