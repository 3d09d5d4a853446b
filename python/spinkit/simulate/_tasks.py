# SPDX-License-Identifier: Apache-2.0
"""Tasks: commands of experiments, executed here or by a worker of a Dask cluster, which may share no files with us."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._digest import digest
from spinkit.common._processes import Execute

REPORT = "{report}"
"""A word of a command that stands for the file to which it writes its report."""

MOST_BYTES = 32 << 20
"""The largest file that is sent to a worker; it reads a larger one itself, by its path."""


@dataclass(frozen=True)
class Done:
    """Exit status, output and report of a command."""

    status: int
    output: str
    errors: str
    report: str | None
    """The report, if the command was to write one and did."""


@dataclass(frozen=True)
class Task:
    """A command with its arguments, in which paths are files that it reads."""

    command: str
    arguments: tuple[str | Path, ...]
    machine: tuple[Path, ...]
    """The files of the machine that follows the word `--machine`: its own last, before it those that it is based on."""
    timeout_s: float | None

    def here(self, report: Path) -> list[str]:
        """Return the arguments for a run on this computer."""
        return [str(report) if word == REPORT else str(word) for word in self.arguments]


@dataclass(frozen=True)
class _Sent:
    """A file for a worker."""

    name: str
    """Its name in the folder of the run."""
    content: bytes | None
    """Its bytes; None if it is too large to be sent."""
    path: str
    digest: str
    is_executable: bool


@dataclass(frozen=True)
class Shipped:
    """A task with all that a worker needs for it."""

    command: str
    arguments: tuple[str | _Sent, ...]
    files: tuple[_Sent, ...]
    tools: str
    """The digest of the commands (`tools_digest`): a worker with others would give other results."""
    timeout_s: float | None


_PRELOADED = ("libsimclock.so",)
_FOR_MPI = ("libsimpmix.so", "libpmi.so")
"""Libraries beside `libportals.so` that spinrun loads into every rank, and into those of an MPI."""


def tools_digest(spinrun: Path, library: Path | None, mpi: bool = True) -> str:
    """Return a digest of the simulator and its libraries, which decide the outcome of a run besides its inputs.

    Runs without MPI do not depend on the libraries for an MPI.
    """
    names = (*_PRELOADED, *(_FOR_MPI if mpi else ()))
    libraries = [] if library is None else [library, *(library.with_name(name) for name in names)]
    files = [file for file in (spinrun, *libraries) if file.is_file()]
    return digest(files, [file.name for file in files])


def ship(task: Task, tools: str) -> Shipped:
    """Put a task and its files together."""
    arguments = list(task.arguments)
    machine = [_send(file, f"machine/{file.name}") for file in task.machine]
    at = arguments.index("--machine") + 1
    rest = [_send(word, f"{n}-{word.name}") if isinstance(word, Path) else word for n, word in enumerate(arguments)]
    rest[at] = machine[-1]
    return Shipped(task.command, tuple(rest), tuple(machine), tools, task.timeout_s)


def _send(file: Path, name: str) -> _Sent:
    if file.is_dir():
        raise SpinkitError(f"{file}: a folder cannot be sent to a cluster; run this experiment here")
    small = file.stat().st_size <= MOST_BYTES
    content = file.read_bytes() if small else None
    return _Sent(name, content, str(file.resolve()), digest([file], []), bool(file.stat().st_mode & 0o100))


def perform(shipped: Shipped, execute: Execute | None = None) -> Done:
    """Run a task in this worker."""
    spinrun = _paths.command("spinrun")
    if _own_tools(spinrun) != shipped.tools:
        raise SpinkitError(f"the spinkit of this worker ({spinrun}) is another build than that of the sweep")
    with TemporaryDirectory(prefix="spinkit-") as name:
        folder = Path(name)
        for sent in shipped.files:
            _receive(sent, folder)
        arguments = tuple(_receive(word, folder) if isinstance(word, _Sent) else word for word in shipped.arguments)
        task = Task(shipped.command, arguments, (), shipped.timeout_s)
        return run(task, _paths.command(shipped.command), folder / "report.json", execute or _execute)


@cache
def _own_tools(spinrun: Path) -> str:
    return tools_digest(spinrun, _paths.library(spinrun))


def _receive(sent: _Sent, folder: Path) -> Path:
    """Return the file, written to the folder if it was sent."""
    if sent.content is None:
        file = Path(sent.path)
        if not file.is_file() or digest([file], []) != sent.digest:
            most = f"{MOST_BYTES >> 20} MiB"
            raise SpinkitError(f"{file} is larger than {most}, and the worker does not see the same file at this path")
        return file
    file = folder / sent.name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(sent.content)
    if sent.is_executable:
        file.chmod(0o755)
    return file


def _execute(command: list[str], timeout_s: float | None) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SpinkitError(f"{command[0]} did not end within {timeout_s} s") from None
    return done.returncode, done.stdout, done.stderr


def run(task: Task, command: Path, report: Path, execute: Execute) -> Done:
    """Run a task on this computer, with its report in this file."""
    status, output, errors = execute([str(command), *task.here(report)], task.timeout_s)
    written = report.read_text(encoding="utf-8") if REPORT in task.arguments and report.is_file() else None
    return Done(status, output, errors, written)
