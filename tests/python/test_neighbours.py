# SPDX-License-Identifier: Apache-2.0
"""Attacks of another user of the same machine on a spinkit user: all fail."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common import _user_cache

from .neighbours import Machine, User, machine

CHECKOUT = Path(__file__).resolve().parents[2]
HELLO = "#include <portals4.h>\n#include <spin.h>\nint main(void) { return 0; }\n"
HANDLER = HELLO + "__handler int pay(ptl_payload_t p, void *state) { return SUCCESS; }\n"


@pytest.fixture(scope="module")
def users() -> Iterator[Machine]:
    with machine() as made:
        yield made


@pytest.fixture(scope="module")
def debugging(users: Machine) -> Path:
    """Compile a program with handlers that both users may run."""
    program = users.temporary.parent / "debugging"
    source = CHECKOUT / "tests" / "programs" / "debugging.c"
    subprocess.run([_paths.command("spincc"), "-O2", "-g", source, "-o", program], check=True)
    return program


def test_a_cache_of_another_user_is_refused(users: Machine) -> None:
    """The victim has no home: its cache is in the folder for temporary files, where the attacker was first."""
    victim, attacker = users.victim, users.attacker
    source = victim.home / "prog.c"
    source.write_text(HANDLER)
    old = users.temporary / "spinkit"
    own = users.temporary / f"spinkit-{victim.number}"
    for planted in (old, own):
        planted.mkdir()
        planted.chmod(0o777)
        users.give(planted, attacker)
    compile_it = (_paths.command("spincc"), source, "-o", victim.home / "prog")
    without = {"home": False, "TMPDIR": str(users.temporary)}
    done = victim.run(*compile_it, **without)
    assert done.returncode == 1
    assert f"{own} belongs to user {attacker.number}, who could change what commands run from this cache" in done.stderr
    assert done.stderr.rstrip().endswith("set SPIN_CACHE to a folder of your own")
    assert "FI_PROVIDER_PATH" not in victim.run(_paths.command("spinrun"), "-n", 1, "env", **without).stdout
    # A link to a folder of the victim's is not chosen by the victim either.
    own.rmdir()
    own.symlink_to(victim.home)
    os.lchown(own, attacker.number, attacker.number)
    done = victim.run(*compile_it, **without)
    assert f"{own} belongs to user {attacker.number}" in done.stderr
    own.unlink()
    # Without an attacker it is a folder that only the victim can enter.
    done = victim.run(*compile_it, **without)
    assert done.returncode == 0, done.stderr
    there = own.stat()
    assert (stat.S_IMODE(there.st_mode), there.st_uid) == (0o700, victim.number)
    assert list(old.iterdir()) == []
    shown = victim.run(_paths.command("spinrun"), "-n", 1, "env", **without).stdout
    assert f"FI_PROVIDER_PATH={own}/ofi/" in shown


def test_a_checkout_of_another_user_is_used_with_the_users_own_cache(users: Machine) -> None:
    """The checkout is root's: its cache cannot be written, so that of the user is, or is named."""
    victim = users.victim
    source = victim.home / "own.c"
    source.write_text(HANDLER)
    compile_it = (_paths.command("spincc"), source, "-o", victim.home / "own")
    done = victim.run(*compile_it, XDG_CACHE_HOME="")
    assert (done.returncode, done.stderr) == (0, "")
    cache = victim.home / ".cache" / "spinkit" / "zig"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert not (victim.home / "spinkit").exists()
    done = victim.run(*compile_it, XDG_CACHE_HOME="/proc/nowhere")
    assert done.returncode == 1
    assert "/proc/nowhere/spinkit/zig: " in done.stderr
    assert "set SPIN_CACHE to a folder that you may write" in done.stderr
    named = victim.home / "named"
    assert victim.run(*compile_it, XDG_CACHE_HOME="/proc/nowhere", SPIN_CACHE=str(named)).returncode == 0
    assert any(named.iterdir())


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_other_user_reaches_a_debugger(users: Machine, debugging: Path, signal_number: signal.Signals) -> None:
    """The attacker finds neither a port nor a file of a victim that waits for gdb, and nothing of it stays."""
    before = set(users.temporary.iterdir())
    words = (_paths.command("spinrun"), "-n", 2, "--gdb", "1:pay", debugging, 1000)
    with users.victim.start(*words, TMPDIR=str(users.temporary)) as running:
        assert running.stderr is not None
        said = ""
        while (found := re.search(r"'target remote (\S+)' (\S+)", said)) is None:
            line = running.stderr.readline()
            assert line, said
            said += line
        path, program = Path(found[1]), Path(found[2])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert program.read_bytes()[:4] == b"\x7fELF"
        assert ports(users.victim.number) == []
        assert set(users.temporary.iterdir()) == before
        with as_user(users.attacker), pytest.raises(PermissionError), socket.socket(socket.AF_UNIX) as line:
            line.connect(str(path))
        assert "Permission denied" in users.attacker.run("cat", program).stderr
        running.send_signal(signal_number)
        _, errors = running.communicate(timeout=60)
        killed = signal_number == signal.SIGKILL
        assert running.returncode == (-signal_number if killed else 128 + signal_number), errors
        assert killed or "spinrun: a signal ends the run" in errors
    assert set(users.temporary.iterdir()) == before


@contextmanager
def as_user(user: User) -> Iterator[None]:
    """Let this process have only the rights of a user."""
    os.setegid(user.number)
    os.seteuid(user.number)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def ports(user: int) -> list[str]:
    """Return the addresses at which a user's processes listen (proc_net_tcp, fields `local_address`, `st`, `uid`)."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return [line[1] for line in lines if line[3] == "0A" and line[7] == str(user)]


def test_no_other_user_reaches_a_sweep(users: Machine) -> None:
    victim = users.victim
    packages = next(folder for folder in sys.path if folder.endswith("site-packages"))
    # The interpreter of this environment may be in a home.
    pythons = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
    paths = {"PYTHONPATH": f"{packages}:{CHECKOUT / 'python'}", "PYTHONDONTWRITEBYTECODE": "1"}
    python = next((one for one in pythons if victim.can_run(one, "-m", "spinkit", "--version", **paths)), None)
    if python is None:
        pytest.skip("another user cannot run this Python")
    made = victim.run(python, "-m", "spinkit", "new", "experiment", "answers", **paths)
    assert made.returncode == 0, made.stderr
    words = ("sweep", "./answers", "--set", "dma.L_ns=50", "--quick", "--scheduler", "local", "--jobs", 1)
    with victim.start(python, "-m", "spinkit", *words, **paths) as running:
        heard = []
        while running.poll() is None:
            heard += ports(victim.number)
            time.sleep(0.01)
        _, errors = running.communicate()
    assert (running.returncode, heard) == (0, []), errors


def test_python_finds_the_cache_by_the_same_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "installed"
    home.mkdir()
    for name in ("SPIN_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    root = tmp_path / f"spinkit-{os.geteuid()}"
    assert _user_cache.folder(home, "x") == root / "x"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    for name, value, folder in (
        ("HOME", str(tmp_path), tmp_path / ".cache" / "spinkit" / "zig"),
        ("XDG_CACHE_HOME", "relative", tmp_path / ".cache" / "spinkit" / "zig"),
        ("XDG_CACHE_HOME", str(tmp_path / "xdg"), tmp_path / "xdg" / "spinkit" / "zig"),
        ("SPIN_CACHE", "named", tmp_path / "named"),
    ):
        monkeypatch.setenv(name, value)
        assert _user_cache.folder(home, "x/y") == folder / "x" / "y"
    assert not (tmp_path / "relative").exists()
    (tmp_path / "named" / "x").chmod(0o777)
    with pytest.raises(SpinkitError, match=r"named/x may be written by other users \(mode 777\).*\(chmod go-w\)"):
        _user_cache.folder(home, "x/y")
    (tmp_path / "named" / "x").chmod(0o755)
    tmp_path.chmod(0o777)
    with pytest.raises(SpinkitError, match=rf"{re.escape(str(tmp_path))} may be written by other users \(mode 777\)"):
        _user_cache.folder(home, "x")
    # A checkout has its own, trusting its owner and all users who could replace it.
    (home / "Cargo.toml").touch()
    monkeypatch.setenv("SPIN_CACHE", "")
    assert _user_cache.folder(home, "x") == home / ".cache" / "zig" / "x"
    file = _user_cache.folder(home, "x") / "library.so"
    file.write_bytes(b"all")
    assert not _user_cache.is_whole(file)
    _user_cache.seal(file)
    assert _user_cache.is_whole(file)
    file.write_bytes(b"")
    assert not _user_cache.is_whole(file)
    shutil.rmtree(home)
