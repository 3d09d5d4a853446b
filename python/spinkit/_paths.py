# SPDX-License-Identifier: Apache-2.0
"""Paths of spinkit's files and commands, installed or in a checkout."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterator
from pathlib import Path

from spinkit._errors import SpinkitError

_LANDMARK = Path("sdk", "include", "portals4.h")


def _candidates() -> Iterator[Path]:
    for prefix in (sys.prefix, site.getuserbase()):
        yield Path(prefix) / "share" / "spinkit"
    yield from Path(__file__).resolve().parents


def home() -> Path:
    """Return the folder that holds `sdk`, `machines` and `experiments`."""
    named = os.environ.get("SPINKIT_HOME")
    if named:
        if not (Path(named) / _LANDMARK).is_file():
            raise SpinkitError(f"SPINKIT_HOME={named}: this folder has no {_LANDMARK}")
        return Path(named)
    for folder in _candidates():
        if (folder / _LANDMARK).is_file():
            return folder
    raise SpinkitError(f"spinkit's files were not found (no {_LANDMARK}); set SPINKIT_HOME to the folder that has them")


def find_command(name: str) -> Path | None:
    """Return the command beside this Python, else the one on PATH."""
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=os.pathsep.join([str(beside), os.environ.get("PATH", os.defpath)]))
    return Path(found) if found else None


def command(name: str) -> Path:
    """Return the command, or say that it is missing."""
    found = find_command(name)
    if found is None:
        raise SpinkitError(f"{name}: command not found; `make build` or `pip install .` provides it")
    return found


def mpicc() -> Path:
    """Return the compiler of the MPI for experiments: that of this environment (`make build`), else the one on PATH."""
    ours = Path(sys.prefix) / "mpi" / "mpich" / "bin" / "mpicc"
    found = ours if ours.is_file() else find_command("mpicc")
    if found is None:
        raise SpinkitError("mpicc: command not found; install an MPICH, such as that of `pip install mpich`")
    return found


def library(spinrun: Path) -> Path | None:
    """Return the `libportals.so` that programs use, found as `spincc` finds it."""
    named = os.environ.get("SPIN_LIBDIR")
    root = home().resolve()
    places = [root / "target" / "release", root.parent.parent / "lib"]
    folders = [Path(named)] if named else [spinrun.resolve().parent, *places]
    return next((folder / "libportals.so" for folder in folders if (folder / "libportals.so").is_file()), None)
