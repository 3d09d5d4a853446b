# SPDX-License-Identifier: Apache-2.0
"""One run of a program of an MPI test suite, and its outcome."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SPINRUN = "spinrun: "
"""Prefix of every message of spinrun itself."""
WARNING = f"{SPINRUN}warning: "

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Case:
    """One run of a test program."""

    name: str
    folder: Path
    """Working directory."""
    command: tuple[str, ...]
    ranks: int
    nic: str
    timeout_s: int
    environment: tuple[str, ...] = ()
    """`NAME=VALUE`."""
    rule: str = ""
    """Judgement of its output, by its name in the list."""
    lock: str = ""
    """Runs with the same lock do not run at the same time."""
    without: str = ""
    """Reason why it cannot run."""

    @property
    def what(self) -> str:
        return f"{self.name} on {self.nic}, {self.ranks} {'rank' if self.ranks == 1 else 'ranks'}"


@dataclass(frozen=True)
class Ended:
    """Exit status and output of a run."""

    status: int
    output: str
    errors: str
    is_native: bool = False
    """True if the MPI's own mpiexec started it."""

    @property
    def printed(self) -> list[str]:
        """Lines of the program on both streams, without those of spinrun."""
        lines = [*self.output.splitlines(), *self.errors.splitlines()]
        return [line for line in lines if not line.startswith(SPINRUN)]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of spinrun."""
        return tuple(line.removeprefix(WARNING) for line in self.errors.splitlines() if line.startswith(WARNING))

    @property
    def reason(self) -> str:
        """The first message of spinrun about a failure, or else the last line of the program."""
        message = re.search(rf"{SPINRUN}.*", self.errors) if self.status != 0 else None
        text = (self.errors.strip() if self.status != 0 else "") or self.output.strip() or "nothing was printed"
        return f"status {self.status}: {message[0] if message else text.splitlines()[-1].strip()}"


@dataclass(frozen=True)
class Outcome:
    """Judgement of a run."""

    case: Case
    status: Status
    tests: int = 0
    """Number of tests of the program that a rank has run."""
    skipped: int = 0
    """Number of them that did not apply."""
    reason: str = ""
    """Reason for which it has failed or was skipped."""
    skips_itself: bool = False
    """The program ran and said, or showed, that it does not apply here."""
    warnings: tuple[str, ...] = ()
    """Warnings of spinrun in a run that did not fail."""
    native: Status | None = None
    """Outcome with the MPI's own mpiexec, for tests that did not pass under spinrun."""
    native_reason: str = ""


@dataclass(frozen=True)
class Suite:
    """The programs of a folder, and the judge of their output."""

    cases: tuple[Case, ...]
    judge: Callable[[Case, Ended], Outcome]
    owner: str
    """Whose failures are those that occur natively, too."""
