# SPDX-License-Identifier: Apache-2.0
"""Check that the compilers and commands that spinkit needs are installed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from spinkit import _paths
from spinkit._errors import SpinkitError


@dataclass(frozen=True)
class Check:
    """One required program or file: its version or place, or how to install it."""

    name: str
    ok: bool
    detail: str


def _version(name: str, command: list[str], remedy: str) -> Check:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return Check(name, False, remedy)
    except (OSError, subprocess.CalledProcessError) as error:
        return Check(name, False, f"{error}; {remedy}")
    return Check(name, True, done.stdout.partition("\n")[0])


def _command(name: str) -> Check:
    found = _paths.find_command(name)
    remedy = "`make build` or `pip install .` provides it"
    return _version(name, [str(found), "--version"], remedy) if found else Check(name, False, remedy)


def _files() -> Check:
    try:
        return Check("files", True, str(_paths.home()))
    except SpinkitError as error:
        return Check("files", False, str(error))


def examine() -> list[Check]:
    """Check every tool and file."""
    return [
        _version("cc", ["cc", "--version"], "install a C compiler (Debian: gcc)"),
        _version("zig", [sys.executable, "-m", "ziglang", "version"], "pip install ziglang"),
        _command("spincc"),
        _command("spinrun"),
        _files(),
    ]
