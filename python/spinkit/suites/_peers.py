# SPDX-License-Identifier: Apache-2.0
"""`spinkit peers`: runs a program that others published, from the user's checkout, and writes its numbers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spinkit._errors import SpinkitError
from spinkit._paths import find_command
from spinkit.common._json import parse_json
from spinkit.common._output import write_atomically
from spinkit.common._processes import Processes
from spinkit.common._toml import is_there
from spinkit.common._version import __version__
from spinkit.experiments import _peers
from spinkit.experiments._peers import Peer, PeerRun

_REPORT = "report.json"


def run(home: Path, name: str, checkout: Path, out: Path | None, show: Callable[[str], object]) -> Path:
    """Run all runs of a peer in a copy of its checkout, and write the numbers; `show` gets a line for each run."""
    peer = _peers.read(home, name)
    processes = Processes()
    _check_commands(name, peer)
    _check_checkout(processes, name, peer, checkout)
    runs = []
    with TemporaryDirectory(prefix="spinkit-peers-") as scratch:
        for part in peer.copied:
            _copy(checkout / part, Path(scratch) / part)
        for one in peer.run:
            show(f"{one.name} on {one.machine}")
            points = [_point(processes, peer, one, value, Path(scratch)) for value in one.values]
            runs.append({"name": one.name, "machine": one.machine, "command": " ".join(one.command), "points": points})
    content = {
        "title": peer.title,
        "repository": peer.repository,
        "commit": peer.commit,
        "spinkit": __version__,
        "axis": peer.axis,
        "runs": runs,
    }
    file = out or _peers.numbers(home, name)
    write_atomically(file, (json.dumps(content, indent=1) + "\n").encode())
    return file


def _check_commands(name: str, peer: Peer) -> None:
    for command, remedy in {"git": "apt-get install git", **peer.needs}.items():
        if find_command(command) is None:
            raise SpinkitError(f"{command}: command not found; the peer {name} needs it: {remedy}")


def _check_checkout(processes: Processes, name: str, peer: Peer, checkout: Path) -> None:
    """Raise an error unless the checkout is of the commit whose numbers the peer has, without changes."""
    get = f"git clone {peer.repository} && git -C {Path(peer.repository).name} checkout {peer.commit}"
    if not is_there(checkout, Path.is_dir):
        raise SpinkitError(f"{checkout}: no such folder; get the checkout: {get}")
    for part in peer.copied:
        if not is_there(checkout / part):
            raise SpinkitError(f"{checkout}: no {part}, so it is no checkout of {peer.repository}; get it: {get}")
    commit = _git(processes, checkout, get, "rev-parse", "HEAD").strip()
    if commit != peer.commit:
        remedy = f"git -C {checkout} checkout {peer.commit}"
        raise SpinkitError(f"{checkout}: at commit {commit}, but peers/{name}.toml has {peer.commit}: {remedy}")
    changed = _git(processes, checkout, get, "status", "--porcelain", "--untracked-files=no", "--", *peer.copied)
    if changed:
        first = changed.splitlines()[0][3:]
        raise SpinkitError(f"{checkout}: {first} was changed after commit {commit}: git -C {checkout} stash")


def _git(processes: Processes, checkout: Path, remedy: str, *words: str) -> str:
    status, output, errors = processes.execute(["git", "-C", str(checkout), *words], None)
    if status != 0:
        raise SpinkitError(f"{checkout}: git {words[0]} failed: {errors.strip()}; get a checkout: {remedy}")
    return output


def _copy(source: Path, target: Path) -> None:
    """Copy a part of the checkout, which stays as it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def _point(processes: Processes, peer: Peer, run: PeerRun, value: int, folder: Path) -> dict[str, Any]:
    """Run the command for one value."""
    report = folder / _REPORT
    report.unlink(missing_ok=True)
    words = [_fill(word, {"value": str(value), "machine": run.machine, "report": _REPORT}) for word in run.command]
    where = f"{run.name}: {' '.join(words)}"
    program = find_command(words[0]) if "/" not in words[0] else folder / words[0]
    if program is None or not is_there(program, Path.is_file):
        raise SpinkitError(f"{where}: there is no {words[0]}; build it in the checkout, as its pages explain")
    status, output, errors = processes.execute([str(program), *words[1:]], peer.timeout_s, folder)
    if status != 0:
        raise SpinkitError(f"{where}: ended with status {status}\n{(errors or output).strip()}".rstrip())
    try:
        last = output.strip().rpartition("\n")[2]
        text = report.read_text(encoding="utf-8") if _REPORT in words else last
        content = parse_json(text)
        return {peer.axis: value} | {key: content[key] for key in peer.keep}
    except FileNotFoundError:
        raise SpinkitError(f"{where}: wrote no report") from None
    except (ValueError, TypeError) as error:
        raise SpinkitError(f"{where}: its report is no JSON object: {error}") from None
    except KeyError as error:
        raise SpinkitError(f"{where}: its report has no {error}") from None


def _fill(word: str, fields: Mapping[str, str]) -> str:
    for key, text in fields.items():
        word = word.replace(f"{{{key}}}", text)
    return word
