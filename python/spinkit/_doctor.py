# SPDX-License-Identifier: Apache-2.0
"""Check that the compilers and commands that spinkit needs are installed, and which parts this computer limits."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spinkit import _paths
from spinkit._errors import SpinkitError

_PTRACE_SEIZE = 0x4206
_NET_ADMIN, _NET_RAW = 12, 13
"""Numbers of capabilities, `capabilities(7)`."""
_GIB = 1 << 30


@dataclass(frozen=True)
class Check:
    """A program, file or permission: its version or place, or the loss without it and the remedy."""

    name: str
    ok: bool
    detail: str
    required: bool = True

    @property
    def state(self) -> str:
        """Return the word of the result."""
        return "ok" if self.ok else "missing" if self.required else "limited"


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


def _optional(name: str, found: str | None, without: str) -> Check:
    """Return a check of something that only some commands need; `without` states the loss and the remedy."""
    return Check(name, found is not None, without if found is None else found, required=False)


def _ptrace() -> Check:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        allowed = libc.ptrace(_PTRACE_SEIZE, child.pid, None, None) == 0
        reason = "" if allowed else os.strerror(ctypes.get_errno())
        child.kill()
    return _optional(
        "ptrace",
        "spinrun inspects waiting ranks" if allowed else None,
        f"{reason}: a run does not advance while a rank waits in a loop on memory; set kernel.yama.ptrace_scope to 1, "
        "or start the container with --cap-add SYS_PTRACE",
    )


def _network() -> Check:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [effective] = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    lacking = [
        name
        for number, name in ((_NET_ADMIN, "CAP_NET_ADMIN"), (_NET_RAW, "CAP_NET_RAW"))
        if not int(effective, 16) >> number & 1
    ]
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        lacking.append("/dev/net/tun")
    return _optional(
        "network",
        None if lacking else "TAP and packet sockets",
        f"no {', '.join(lacking)}: `spinkit pspin serve` has only --socket; run it as root",
    )


def _memory() -> Check:
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    least = 2 * _GIB
    found = f"{size / _GIB:.0f} GiB, {os.cpu_count()} processors"
    return _optional(
        "memory", found if size >= least else None, f"{found}: runs of 65,536 cards and `make build` need 2 GiB"
    )


def _disk(name: str, folder: Path, need: str) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{free / _GIB:.0f} GiB free in {folder}"
    return _optional(name, found if free >= _GIB else None, f"{found}: {need} need 1 GiB")


def _mpi() -> str | None:
    try:
        return str(_paths.mpicc())
    except SpinkitError:
        return None


def examine() -> list[Check]:
    """Check every tool, file and permission: first those that all commands need."""
    otf2 = importlib.util.find_spec("otf2")
    return [
        _version("cc", ["cc", "--version"], "install a C compiler (Debian: gcc)"),
        _version("zig", [sys.executable, "-m", "ziglang", "version"], "pip install ziglang"),
        _command("spincc"),
        _command("spinrun"),
        _files(),
        _ptrace(),
        _network(),
        _optional(
            "mpicc", _mpi(), "MPI programs cannot be compiled; `make .venv/.mpi`, or install MPICH (Debian: mpich)"
        ),
        _optional("c++", shutil.which("c++"), "`--engine rtl` and `make rtl` have no compiler (Debian: g++)"),
        _optional("gdb", shutil.which("gdb-multiarch"), "`spinrun --gdb` has no debugger (Debian: gdb-multiarch)"),
        _optional(
            "otf2",
            otf2.origin if otf2 else None,
            "OTF2 traces are not read; pip install 'spinkit[otf2]'",
        ),
        _memory(),
        _disk("results", Path.cwd(), "results of `spinkit reproduce --all`"),
        _disk("temporary", Path(tempfile.gettempdir()), "large schedules"),
    ]
