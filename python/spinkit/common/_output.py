# SPDX-License-Identifier: Apache-2.0
"""Writes files completely or not at all, and replaces only regular files, like the crate `output`."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from spinkit._errors import SpinkitError


def write_atomically(file: Path, content: bytes) -> None:
    """Write a file completely or not at all; a pipe, a device or any other special file is written in place.

    A regular file keeps its permissions, and a symbolic link its place: the file behind it is replaced. `-` is standard
    output. Errors name the file.
    """
    try:
        _write(file, content)
    except OSError as error:
        raise SpinkitError(f"cannot write {file}: {error.strerror}") from None


def is_replaced(file: Path) -> bool:
    """Return whether writing a file again replaces its previous content.

    It does not for pipes and devices, nor for standard output, where the one text would follow the other.
    """
    if file == Path("-"):
        return False
    try:
        there = file.stat()
    except OSError:
        return True
    return stat.S_ISREG(there.st_mode) and _stream(there) is None


def check_writable(file: Path) -> None:
    """Raise an error now for a file that could not be written at the end of a long run."""
    if file == Path("-"):
        return
    place = file if file.exists() else file.parent
    if not place.exists():
        raise SpinkitError(f"cannot write {file}: there is no folder {place}")
    if not os.access(place, os.W_OK):
        raise SpinkitError(f"cannot write {file}: {place} is not writable")


def _write(file: Path, content: bytes) -> None:
    if file == Path("-"):
        sys.stdout.flush()
        _write_all(os.dup(1), content)
        return
    try:
        there = file.stat()
    except FileNotFoundError:
        if file.is_symlink():
            raise
        _replace(file, content, None)
        return
    stream = _stream(there)
    if stream is not None:
        # Opening it again would overwrite it from its start.
        _write_all(os.dup(stream), content)
        return
    # The system decides here whether the user may write this file, and whether it follows the link.
    target = os.open(file, os.O_WRONLY)
    there = os.fstat(target)
    if not stat.S_ISREG(there.st_mode):
        _write_all(target, content)
        return
    os.close(target)
    _replace(file.resolve(), content, there)


def _stream(there: os.stat_result) -> int | None:
    """Return the output stream of this process that a file is, if it is one."""
    for stream in (1, 2):
        with suppress(OSError):
            if os.path.samestat(there, os.fstat(stream)):
                return stream
    return None


def _replace(file: Path, content: bytes, there: os.stat_result | None) -> None:
    """Give a file, or its replacement, its name when it is complete."""
    import tempfile  # imported here because every command starts with this module

    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".")
    temporary = Path(name)
    try:
        if there is None:
            os.fchmod(handle, 0o666 & ~_mask())
        else:
            with suppress(PermissionError):  # only root may give files away
                os.fchown(handle, there.st_uid, there.st_gid)
            os.fchmod(handle, stat.S_IMODE(there.st_mode))
        _write_all(handle, content)
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_all(handle: int, content: bytes) -> None:
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)


def _mask() -> int:
    """Return the user's file mode mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
