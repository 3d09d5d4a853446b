# SPDX-License-Identifier: Apache-2.0
"""Peers: programs that others published, and the numbers that `spinkit peers` got from them.

`peers/NAME.toml` defines the runs of a peer, `peers/NAME.json` has their numbers. The program itself stays in the
user's checkout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spinkit._errors import SpinkitError, choice
from spinkit.common._json import parse_json
from spinkit.common._toml import Integer, Place, Table, convert, is_there, parse_toml, read_text

FOLDER = "peers"
"""Folder of all definitions and numbers."""


class PeerRun(Table, frozen=True, kw_only=True):
    """Runs of one command, one for each value."""

    name: str
    machine: str
    """Machine whose numbers they are, such as `pspin-400g`."""
    command: tuple[str, ...]
    """Words of the command, which runs in a copy of the checkout. They may contain `{value}`, `{machine}` and
    `{report}`, a file for a JSON object; without that the last line of the output is the object."""
    values: tuple[Integer, ...]


class Peer(Table, frozen=True, kw_only=True):
    """A `peers/NAME.toml`."""

    title: str
    repository: str
    commit: str
    axis: str
    """Key of the values in the points."""
    copied: tuple[str, ...]
    """Folders and files of the checkout that the runs need."""
    keep: tuple[str, ...]
    """Keys of the reports that the points keep."""
    timeout_s: Integer
    needs: dict[str, str] = msgspec.field(default_factory=dict)
    """Commands that the runs need, each with a way to install it."""
    run: tuple[PeerRun, ...]


@dataclass(frozen=True)
class Published:
    """Numbers of one run of a peer."""

    machine: str
    points: Mapping[float, Mapping[str, Any]]
    """Points by value of the axis."""


def names(home: Path) -> list[str]:
    """Return the names of all peers."""
    return sorted(file.stem for file in (home / FOLDER).glob("*.toml"))


def read(home: Path, name: str) -> Peer:
    """Read the definition of a peer."""
    if name not in names(home):
        raise SpinkitError(f"{name}: no such peer; {choice(name, names(home))}")
    file = home / FOLDER / f"{name}.toml"
    peer = convert(parse_toml(read_text(file), file), Peer, Place(file))
    for index, run in enumerate(peer.run):
        if run.name in [other.name for other in peer.run[:index]]:
            raise (Place(file) / "run" / index / "name").error(f"{run.name} occurs twice")
    return peer


def numbers(home: Path, name: str) -> Path:
    """Return the file with the numbers of a peer."""
    return home / FOLDER / f"{name}.json"


def published(home: Path, reference: str) -> Published:
    """Return the numbers of `NAME/RUN`."""
    name, _, run = reference.partition("/")
    file = numbers(home, name)
    remedy = f"`spinkit peers {name} FOLDER` writes it from a checkout"
    if not is_there(file, Path.is_file):
        raise SpinkitError(f"{file}: no such file; {remedy}")
    try:
        content = parse_json(read_text(file))
        runs = {one["name"]: one for one in content["runs"]}
        if run not in runs:
            raise SpinkitError(f"{file}: no run {run}; {choice(run, runs)}; {remedy}")
        return Published(runs[run]["machine"], {one[content["axis"]]: one for one in runs[run]["points"]})
    except (ValueError, KeyError, TypeError) as error:
        raise SpinkitError(f"{file}: {error!r}: not the numbers of a peer; {remedy}") from None


def lines(home: Path, reference: str, machine: str, axis: str, values: tuple[float, ...]) -> str:
    """Return the points of `NAME/RUN` at the values, as a program prints them."""
    found = published(home, reference)
    if found.machine != machine:
        raise SpinkitError(f"peer {reference} has numbers of {found.machine}, not of {machine}")
    for value in values:
        if value not in found.points:
            raise SpinkitError(f"peer {reference} has no point at {axis} = {value}; add it to its values")
    points = ({axis: value, "data_ok": True, **found.points[value]} for value in values)
    return "".join(f"{json.dumps(point)}\n" for point in points)
