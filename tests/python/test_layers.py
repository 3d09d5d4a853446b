# SPDX-License-Identifier: Apache-2.0
"""Layers of the Python packages: the docstring of each package lists its modules top-down, and imports only go down."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "python" / "spinkit"
PACKAGES = [ROOT, *sorted(file.parent for file in ROOT.glob("*/__init__.py"))]
ENTRIES = {"__init__", "__main__"}
"""Modules that a user starts: they may import everything."""


def listed(package: Path) -> list[str]:
    """Return the modules in the list of a package's docstring, top-down."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    rows = re.findall(r"^- (`.*?):", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def modules(package: Path) -> set[str]:
    """Return the modules and packages of a package."""
    files = {file.stem for file in package.glob("*.py")}
    folders = {file.parent.name for file in package.glob("*/__init__.py")}
    return (files | folders) - ENTRIES


def imported(file: Path) -> Iterator[tuple[str, ...]]:
    """Yield the modules of spinkit that a file imports anywhere in its text, as paths below the package."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first != "spinkit":
                continue
            place = ROOT
            path: list[str] = []
            for part in rest:
                if part not in modules(place):
                    break
                path.append(part)
                place /= part
            yield tuple(path)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_docstring_lists_all_modules(package: Path) -> None:
    names = listed(package)
    assert sorted(names) == sorted(modules(package))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_imports_go_down(package: Path) -> None:
    """Each module imports only modules below it in its package; deferred imports and those for types count."""
    order = listed(package)
    above = package.relative_to(ROOT).parts
    compared = 0
    for name in order:
        files = [package / f"{name}.py"] if (package / f"{name}.py").exists() else sorted((package / name).glob("*.py"))
        for file in files:
            for path in imported(file):
                # The entry point of the whole package is above all its modules.
                assert path, f"{file.relative_to(ROOT)} imports from spinkit itself"
                if path[: len(above)] != above or len(path) == len(above):
                    assert path != above, f"{file.relative_to(ROOT)} imports from its own package"
                    continue
                other = path[len(above)]
                inside = file.parent != package and other == name
                assert inside or order.index(other) > order.index(name), (
                    f"{file.relative_to(ROOT)} imports {other}, which is not below {name}"
                )
                compared += 1
    assert compared or len(order) < 2, f"{package}: no import was compared"
