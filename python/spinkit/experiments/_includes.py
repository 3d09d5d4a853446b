# SPDX-License-Identifier: Apache-2.0
"""Finds the files on which a compiled program or a script depends, by the texts of its sources.

A file that may be included counts even if a condition leaves it out, and where several folders have the name, all of
them count. So a new file that would be found before the present one changes the result, which a compiler's list of
dependencies would not notice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

_NAME = r"""[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>|)"""
_INCLUDE = re.compile(
    r"(?:#|%:|\?\?=)[ \t]*(?:include_next|include|import|embed)\b" + _NAME + "|"
    r"__has_(?:include_next|include|embed)[ \t]*\(" + _NAME
)
_ASSEMBLER = ".incbin"


class Includes:
    """Reads sources, each once."""

    def __init__(self) -> None:
        self._known: dict[Path, set[str | None]] = {}

    def closure(
        self, sources: Iterable[Path], folders: Sequence[Path], covered: Sequence[Path] = ()
    ) -> list[Path] | None:
        """Return sources and the files that they include, directly or not, in a fixed order.

        `folders` are searched besides that of the including file. System headers are left out. `None` if a macro or the
        assembler names a file, except in `covered` folders: the caller counts all that their files may name.
        """
        left = [source.resolve() for source in sources]
        found = dict.fromkeys(left)
        while left:
            file = left.pop()
            names = self._names(file)
            if None in names and not any(folder.resolve() in file.parents for folder in covered):
                return None
            for name in filter(None, names):
                for folder in (file.parent, *folders):
                    place = (folder / name).resolve()
                    if place not in found and place.is_file():
                        found[place] = None
                        left.append(place)
        return sorted(found)

    def _names(self, file: Path) -> Collection[str | None]:
        """Return the names of the included files, and `None` if some are unknown."""
        if file not in self._known:
            text = file.read_bytes().decode("latin-1").replace("\r\n", "\n").replace("\\\n", "")
            self._known[file] = set(_included(text)) | ({None} if _ASSEMBLER in text else set())
        return self._known[file]


def _included(text: str) -> Iterator[str | None]:
    for match in _INCLUDE.finditer(text):
        yield next((name for name in match.groups() if name is not None), None)


def files_below(*folders: Path) -> list[Path]:
    """Return the files of folders except build results and documentation, in a fixed order."""
    return [
        file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "build" not in file.relative_to(folder).parts and file.suffix != ".md"
    ]


_ABOVE = re.compile(r"\.\./[\w./-]*")


def named_by_makefiles(folder: Path) -> list[Path]:
    """Return the files outside a folder that its Makefile may use: those of named folders, and beside named files.

    Of a folder above this one only its own files count.
    """
    folder = folder.resolve()
    found: dict[Path, None] = {}
    left = sorted([*folder.glob("Makefile"), *folder.glob("*.mk")])
    while left:
        text = left.pop().read_bytes().decode("latin-1")
        for name in dict.fromkeys(_ABOVE.findall(text)):
            named = (folder / name).resolve()
            place = named if named.is_dir() else named.parent
            if place in folder.parents:
                files = [file for file in place.iterdir() if file.is_file()]
            else:
                files = files_below(place) if place.is_dir() else []
            for file in files:
                if file not in found:
                    found[file] = None
                    left += [file] if file.suffix == ".mk" else []
    return sorted(found)


_PACKAGE = Path(__file__).resolve().parents[1]


def imported_from_package(script: Path) -> list[Path]:
    """Return the modules of this package that a script imports, itself or by modules beside it, in a fixed order.

    The package itself imports its public names when they are used: a script that may use them depends on all modules.
    """
    left, read, found = [script], set(), set()
    while left:
        file = left.pop()
        if file in read:
            continue
        read.add(file)
        for name in _modules(file):
            first, *rest = name.split(".")
            if first != _PACKAGE.name:
                left += [place for place in [file.parent / f"{first}.py"] if place.is_file()]
                continue
            module = _module(rest)
            if module is None:
                return sorted(_PACKAGE.rglob("*.py"))
            found.add(module)
            left.append(module)
    return sorted(found)


def _module(names: Sequence[str]) -> Path | None:
    """Return the module of this package that a dotted name names, or has the named thing; `None` for the package."""
    for count in range(len(names), 0, -1):
        file = _PACKAGE.joinpath(*names[:count]).with_suffix(".py")
        if file.is_file():
            return file
    return None


def _modules(file: Path) -> list[str]:
    """Return the dotted names that a Python file imports anywhere in its text."""
    try:
        parsed = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # the script will say so
        return []
    names = []
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names
