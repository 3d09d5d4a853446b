# SPDX-License-Identifier: Apache-2.0
"""Two ordinary users on one machine; root runs commands as them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from spinkit import _paths

VARIABLES = {"PATH": f"{_paths.command('spinrun').parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class User:
    """User of the machine, without an entry in its list of users."""

    number: int
    home: Path

    def start(self, *words: object, home: bool = True, **variables: str) -> subprocess.Popen[str]:
        """Start a command with an environment that has only a path, these variables and perhaps a home."""
        own = {"HOME": str(self.home)} if home else {}
        return subprocess.Popen(
            [str(word) for word in words],
            env=VARIABLES | own | variables,
            cwd=self.home,
            user=self.number,
            group=self.number,
            extra_groups=[],
            umask=0o022,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: object, home: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
        with self.start(*words, home=home, **variables) as running:
            out, errors = running.communicate(timeout=300)
        return subprocess.CompletedProcess(running.args, running.returncode, out, errors)

    def can_run(self, *words: object, **variables: str) -> bool:
        """Return whether a command can be started, and ends with status 0."""
        try:
            return self.run(*words, **variables).returncode == 0
        except OSError:
            return False


@dataclass(frozen=True)
class Machine:
    """Two users, and a folder for temporary files writable by both."""

    victim: User
    attacker: User
    temporary: Path

    def give(self, file: Path, user: User) -> Path:
        os.chown(file, user.number, user.number)
        return file


@contextmanager
def machine() -> Iterator[Machine]:
    """Make a machine with two users; skip the test where that cannot be done."""
    if os.geteuid() != 0:
        pytest.skip("only root can run commands as two other users")
    room = Path(tempfile.mkdtemp(prefix="spinkit-neighbours-"))
    try:
        room.chmod(0o755)
        temporary = room / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        users = []
        for number in (61001, 61002):
            home = room / str(number)
            home.mkdir(mode=0o700)
            os.chown(home, number, number)
            users.append(User(number, home))
        made = Machine(*users, temporary)
        if not made.victim.can_run(_paths.command("spinrun"), "--version"):
            pytest.skip("another user cannot run the commands of this checkout")
        yield made
    finally:
        shutil.rmtree(room)
