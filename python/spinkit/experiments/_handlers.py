# SPDX-License-Identifier: Apache-2.0
"""Handlers for PsPIN's own interface, built for `spinkit pspin run`.

A C source is compiled here. `spinkit pspin run` builds a folder in the published layout by its Makefile and runs it by
its driver.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._processes import Execute
from spinkit.experiments._includes import Includes, files_below, named_by_makefiles
from spinkit.simulate._toolchain import compilers


@dataclass(frozen=True)
class Handlers:
    """A C source of handlers and its compiler flags, or a folder in the published layout."""

    path: Path
    flags: tuple[str, ...]


class Builder:
    """Compiles each source of handlers once, when a run first needs it."""

    def __init__(self, pspin: Path, library: Path | None, sdk: Path, out: Path, execute: Execute) -> None:
        self._pspin = pspin
        self._library = library
        """`libpspin.so`"""
        self._sdk = sdk
        self._out = out
        self._execute = execute
        self._lock = Lock()
        self._locks: dict[Path, Lock] = {}
        self._built: set[Path] = set()
        self._includes = Includes()
        self._digests: dict[Handlers, str] = {}

    @cached_property
    def _common(self) -> str:
        """Digest of the command with everything that it may use for any handlers."""
        files = files_below(self._sdk / "pspin", self._sdk / "device")
        return digest([self._pspin, *files], [*compilers(), *(str(file.relative_to(self._sdk)) for file in files)])

    def digest(self, several: Sequence[Handlers]) -> str:
        """Return a digest of the command, the SDK, the sources with their headers, and the flags."""
        parts = [word for one in several for word in (one.path.name, *one.flags, self._sources(one))]
        return digest([], [self._common, *parts])

    def _sources(self, handlers: Handlers) -> str:
        """Return a digest of the files of handlers."""
        if handlers not in self._digests:
            path = handlers.path.resolve()
            if path.is_dir():
                outside = named_by_makefiles(path)
                files = [*files_below(path), *outside]
                headers = self._includes.closure(
                    [file for file in files if file.suffix in (".c", ".h")], sorted({file.parent for file in outside})
                )
                files = list(dict.fromkeys([*files, *(headers or [])]))
                # The driver of a folder is linked with this library.
                files += [] if self._library is None or not self._library.is_file() else [self._library]
            else:
                folders, forced = _included_by(handlers.flags)
                found = self._includes.closure([path, *forced], folders)
                files = files_below(path.parent, *folders) if found is None else found
            start = path if path.is_dir() else path.parent
            self._digests[handlers] = digest(files, [os.path.relpath(file, start) for file in files])
        return self._digests[handlers]

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


def _included_by(flags: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the folders of headers that flags name, and the files that they include."""
    pairs = list(zip(flags, (*flags[1:], ""), strict=True))
    options = ("-isystem", "-iquote", "-idirafter", "-I")
    folders = [
        Path(flag.removeprefix(option) or following)
        for flag, following in pairs
        for option in options
        if flag.startswith(option)
    ]
    files = [Path(following) for flag, following in pairs if flag in ("-include", "-imacros")]
    return folders, [file for file in files if file.is_file()]
