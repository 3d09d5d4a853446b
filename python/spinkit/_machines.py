"""Machine files, as far as listing and reports need them. `spinrun` is what validates them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from spinkit._toml import parse_toml, read_text

_SECTION = re.compile(r"\[(?P<name>[^]]+)\]")
_ENTRY = re.compile(r"(?P<key>[\w-]+)\s*=\s*(?P<value>\"[^\"]*\"|[^#]*[^#\s])\s*(?:#\s*(?P<comment>.*))?")


@dataclass(frozen=True)
class Parameter:
    """One line of a machine file."""

    section: str
    key: str
    value: str
    comment: str


@dataclass(frozen=True)
class Machine:
    """A machine file: its name, its one-line description and every parameter with the comment beside or above it."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


def load(path: Path) -> Machine:
    """Read a machine file; errors name it."""
    text = read_text(path)
    table = parse_toml(text, path)
    section, above = "", ""
    parameters = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            above = f"{above} {line.lstrip('# ')}".lstrip()
            continue
        if match := _SECTION.match(line):
            section = match["name"]
        elif section and (match := _ENTRY.match(line)):
            parameters.append(Parameter(section, match["key"], match["value"].strip('"'), match["comment"] or above))
        above = ""
    return Machine(str(table.get("name", path.stem)), str(table.get("description", "")), tuple(parameters))


def load_all(home: Path) -> list[Machine]:
    """Read all machines that come with spinkit, by name."""
    return [load(path) for path in sorted((home / "machines").glob("*.toml"))]
