# SPDX-License-Identifier: Apache-2.0
"""The user's cache folder, found and checked as the crate `output` does.

Programs load files from it, so it must belong to the user.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from spinkit._errors import SpinkitError
from spinkit.common._output import write_atomically

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_REMEDY = "set SPIN_CACHE to a folder of your own"


def folder(home: Path, name: str) -> Path:
    """Make a folder in the cache if it is missing, and return it."""
    root, owner = _find(home)
    made = root / name
    try:
        for part in reversed([made, *made.parents]):
            part.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SpinkitError(f"{part}: {error.strerror}; set SPIN_CACHE to a folder that you may write") from None
    for part in (root, *(part for part in (*made.parents, made) if root in part.parents)):
        _check(part, {os.geteuid(), 0, owner})
    # In a checkout, users who may replace the cache may also replace the programs.
    for above in root.resolve().parents if owner is None else ():
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SpinkitError(_open(above, mode))
    if not os.access(made, os.W_OK):
        raise SpinkitError(f"{made}: Permission denied; set SPIN_CACHE to a folder that you may write")
    return made


def _find(home: Path) -> tuple[Path, int | None]:
    """Return the cache, and the owner of the checkout that has it."""
    named = os.environ.get("SPIN_CACHE")
    if named:
        return Path(named).absolute(), None
    if (home / "Cargo.toml").is_file():
        root = home / ".cache" / "zig"
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        if os.access(there, os.W_OK):
            return root, home.stat().st_uid
    # Relative paths count as unset (XDG Base Directory Specification 0.8).
    cache, own, temporary = (
        Path(value) if value and Path(value).is_absolute() else None
        for value in map(os.environ.get, ("XDG_CACHE_HOME", "HOME", "TMPDIR"))
    )
    if cache or own:
        return (cache or Path(own or "") / ".cache") / "spinkit" / "zig", None
    root = (temporary or Path("/tmp")) / f"spinkit-{os.geteuid()}"
    if root.is_symlink():
        # Another user's link would name a folder that this user did not choose.
        raise SpinkitError(_foreign(root, root.lstat().st_uid))
    return root, None


def _check(folder: Path, owners: set[int | None]) -> None:
    there = folder.stat()
    if there.st_uid not in owners:
        raise SpinkitError(_foreign(folder, there.st_uid))
    if there.st_mode & _OTHERS_WRITE:
        raise SpinkitError(_open(folder, there.st_mode))


def _foreign(folder: Path, user: int) -> str:
    return f"{folder} belongs to user {user}, who could change what commands run from this cache; {_REMEDY}"


def _open(folder: Path, mode: int) -> str:
    return (
        f"{folder} may be written by other users (mode {stat.S_IMODE(mode):o}), who could change what commands run "
        "from this cache; take their right away (chmod go-w), or set SPIN_CACHE to another folder"
    )


def seal(file: Path) -> None:
    """Write the checksum for `is_whole` beside a file of the cache."""
    write_atomically(_sum_file(file), _sum(file))


def is_whole(file: Path) -> bool:
    """Return whether a file has the contents that were sealed; a machine that fails may leave a part of it."""
    try:
        return _sum_file(file).read_bytes() == _sum(file)
    except OSError:
        return False


def _sum_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.sum")


def _sum(file: Path) -> bytes:
    return f"{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
