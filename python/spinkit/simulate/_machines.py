# SPDX-License-Identifier: Apache-2.0
"""Machines, as the command `spinkit-machines` describes them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from spinkit._errors import SpinkitError


@dataclass(frozen=True)
class Assumed:
    """Other possible values of a parameter that no paper gives, with the reason: a range or a list."""

    reason: str
    range: tuple[str, str] | None = None
    values: tuple[str, ...] | None = None
    anchor: str | None = None
    """The sentence or number of a paper that the value should meet."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a machine."""

    key: str
    """Section and name, joined by a dot."""
    value: str
    unit: str
    """The unit; empty for a name and for a plain number."""
    source: str
    """The comment next to the value in its file, or the option that set it."""
    assumed: Assumed | None = None


@dataclass(frozen=True)
class Machine:
    """A machine with its name, its one-line description, its files and all parameters."""

    name: str
    description: str
    files: tuple[Path, ...]
    """Its own file and those that it is based on."""
    parameters: tuple[Parameter, ...]


def load(command: Path, name: str, changes: Sequence[str] = ()) -> Machine:
    """Describe one machine, with changed parameters such as `network.radix=16`."""
    return load_all(command, [name], changes)[0]


def load_all(command: Path, names: Sequence[str], changes: Sequence[str] = ()) -> list[Machine]:
    """Describe machines, in this order, in one process."""
    if not names:
        return []
    arguments = [str(command), "--json", *(word for change in changes for word in ("--set", change)), "--", *names]
    done = subprocess.run(arguments, capture_output=True, check=False)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().removeprefix("spinkit machines: error: ")
        raise SpinkitError(message or f"{command.name} ended with status {done.returncode}")
    try:
        found = msgspec.json.decode(done.stdout, type=list[Machine], dec_hook=_path)
    except msgspec.DecodeError as error:
        raise SpinkitError(f"{command.name}: {error}") from None
    if len(found) != len(names):
        raise SpinkitError(f"{command.name}: {len(found)} machines for {len(names)} names")
    return found


def _path(kind: type, value: str) -> object:
    """Convert a string to a path, the only type of a machine that msgspec does not convert itself."""
    return kind(value)
