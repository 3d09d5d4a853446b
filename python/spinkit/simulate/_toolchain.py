# SPDX-License-Identifier: Apache-2.0
"""The commands that compile and simulate programs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from spinkit import _paths


@dataclass(frozen=True)
class Toolchain:
    """The commands that compile and run a program."""

    spincc: Path
    spinrun: Path
    goal: Path
    """`spinkit-goal`."""
    pspin: Path
    """`spinkit-pspin`."""
    library: Path | None = None
    """`libportals.so`; None if it was not found."""


def toolchain() -> Toolchain:
    """Return the installed commands, or raise an error that names the missing one."""
    spinrun = _paths.command("spinrun")
    goal, pspin = _paths.command("spinkit-goal"), _paths.command("spinkit-pspin")
    return Toolchain(_paths.command("spincc"), spinrun, goal, pspin, _paths.library(spinrun))


_VARIABLES = ("SPIN_HOST_CC", "SPIN_HOST_CXX", "SPIN_ZIG", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
"""Variables that choose the compilers behind `spincc` and their headers."""


def compilers() -> list[str]:
    """Return texts that identify the compilers behind `spincc` and `spinkit pspin cc`."""
    try:
        zig = metadata.version("ziglang")
    except metadata.PackageNotFoundError:
        zig = ""
    return [f"ziglang={zig}", *(f"{name}={os.environ.get(name, '')}" for name in _VARIABLES)]
