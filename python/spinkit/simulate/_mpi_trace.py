# SPDX-License-Identifier: Apache-2.0
"""Traces MPI programs: builds `libspintrace.so` for an MPI, runs a program with it, and summarizes its ranks' calls."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common import _user_cache
from spinkit.common._output import write_atomically
from spinkit.common._terminal import console, print_block, table_box

_FLAGS = ["-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-D_POSIX_C_SOURCE=200809L"]


@dataclass(frozen=True)
class Rank:
    """Activity of one rank; times in nanoseconds."""

    calls: int
    messages: int
    message_bytes: int
    collectives: int
    collective_bytes: int
    mpi_ns: int
    compute_ns: int
    total_ns: int

    @property
    def compute_share(self) -> float:
        """Share of computation in the time."""
        busy = self.compute_ns + self.mpi_ns
        return self.compute_ns / busy if busy else 0.0


@dataclass(frozen=True)
class Report:
    """Activity of all ranks, and the calls that are missing from a schedule made of their traces."""

    ranks: list[Rank]
    warnings: list[str]


def compiler(launcher: str, named: str | None) -> str:
    """Return the `mpicc` to use: the named one, that beside the launcher, or the one on PATH; for spinrun, MPICH's."""
    if named is not None:
        found = shutil.which(named)
        if found is None:
            raise SpinkitError(f"{named}: no such compiler")
        return found
    if Path(launcher).name == "spinrun":
        return str(_paths.mpicc())
    beside = shutil.which(launcher)
    folders = [str(Path(beside).parent)] if beside else []
    found = shutil.which("mpicc", path=os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise SpinkitError("mpicc: command not found; name the compiler of your MPI with --mpicc")
    return found


def library(home: Path, mpicc: str) -> Path:
    """Build `libspintrace.so` with this compiler, or return the one built earlier."""
    folder = home / "sdk" / "tracer"
    sources = sorted(folder.glob("*.[ch]"))
    shown = subprocess.run([mpicc, "-show"], capture_output=True, text=True, check=False)
    key = hashlib.sha256("\0".join([mpicc, shown.stdout, *_FLAGS]).encode())
    for source in sources:
        key.update(source.read_bytes())
    built = _user_cache.folder(home, f"tracer/{key.hexdigest()[:16]}") / "libspintrace.so"
    with _alone(built.parent):
        if _user_cache.is_whole(built):
            return built
        # A fixed name, so that the next build replaces the remains of a killed one.
        fresh = built.with_name("fresh.so")
        names = [source.name for source in sources if source.suffix == ".c"]
        with listed(fresh) as name:
            # Compilers of MPIs are scripts, and some do not take names with blanks.
            command = [str(Path(mpicc).absolute()) if "/" in mpicc else mpicc, *_FLAGS, *names, "-o", name]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            fresh.unlink(missing_ok=True)
            raise SpinkitError(f"{mpicc} cannot compile the tracer:\n{done.stderr.strip()}")
        fresh.replace(built)
        _user_cache.seal(built)
    return built


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let other processes that want to change a folder wait."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def listed(file: Path) -> Iterator[str]:
    """Give a file a name that may stand in `LD_PRELOAD`: the loader splits that at blanks and colons.

    The name is the file's own, or one that lasts as long as the block.
    """
    if not set(" :$") & set(str(file)):
        yield str(file)
        return
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/{os.getpid()}/fd/{folder}/{file.name}"
    finally:
        os.close(folder)


def command_line(command: tuple[str, ...], variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that give these variables to every rank.

    Open MPI's launcher and spinrun take `-x`, MPICH's takes `-genv`; any other is assumed to pass its environment on.
    """
    try:
        asked = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise SpinkitError(f"{command[0]}: {error.strerror}") from error
    if asked.returncode < 0:
        # Its kind is not known, so neither is how the ranks get the variables.
        raise SpinkitError(f"{command[0]} --version was ended by {signal.Signals(-asked.returncode).name}")
    arguments = [command[0]]
    if any(name in asked.stdout for name in ("Open MPI", "OpenRTE", "PRRTE", "spinrun ")):
        arguments += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    elif any(name in asked.stdout for name in ("HYDRA", "Hydra", "Intel(R) MPI")):
        arguments += [word for name, value in variables.items() for word in ("-genv", name, value)]
    else:
        return [*command], os.environ | variables
    return [*arguments, *command[1:]], dict(os.environ)


def run(home: Path, command: tuple[str, ...], out: Path, mpicc: str | None) -> int:
    """Run an MPI program and record each rank in `out`; return the exit status of its launcher."""
    tracer = library(home, compiler(command[0], mpicc))
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("rank-*.spintrace*"):
        old.unlink()
    before = os.environ.get("LD_PRELOAD")
    with listed(tracer) as name:
        preload = f"{name}:{before}" if before else name
        arguments, environment = command_line(command, {"LD_PRELOAD": preload, "SPINTRACE_DIR": str(out.resolve())})
        return subprocess.run(arguments, env=environment, check=False).returncode


def compress(out: Path) -> None:
    """Compress the traces in a folder; the same trace gives the same file."""
    for trace in sorted(out.glob("rank-*.spintrace")):
        packed = gzip.compress(trace.read_bytes(), compresslevel=9, mtime=0)
        write_atomically(trace.with_name(trace.name + ".gz"), packed)
        trace.unlink()


def report(goal: Path, out: Path) -> Report:
    """Read the traces in a folder."""
    done = subprocess.run([goal, "import", out, "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SpinkitError(done.stderr.strip().removeprefix("spinkit goal: error: "))
    read: dict[str, Any] = json.loads(done.stdout)
    return Report([Rank(**rank) for rank in read["ranks"]], read["warnings"])


def show(found: Report) -> None:
    """Print a row for each rank."""
    out = console()
    table = Table(box=table_box(out))
    for heading in ("rank", "calls", "messages", "bytes sent", "collectives", "MPI s", "computation s", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, rank in enumerate(found.ranks):
        table.add_row(
            str(number),
            f"{rank.calls:,}",
            f"{rank.messages:,}",
            f"{rank.message_bytes:,}",
            f"{rank.collectives:,}",
            f"{rank.mpi_ns / 1e9:.3f}",
            f"{rank.compute_ns / 1e9:.3f}",
            f"{rank.compute_share:.1%}",
        )
    print_block(out, table)
    for warning in found.warnings:
        out.print(f"warning: {warning}", markup=False, soft_wrap=True)
