# SPDX-License-Identifier: Apache-2.0
"""The commands that compile and simulate programs."""

from __future__ import annotations

from dataclasses import dataclass
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
