# SPDX-License-Identifier: Apache-2.0
"""The wheel: its tag names the C library that its files need, and spincc works without a C compiler."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "python" / "build_backend"))
spinkit_build = pytest.importorskip("spinkit_build")


def test_a_wheel_gets_its_tag_and_entry_point(tmp_path: Path) -> None:
    name = "spinkit-0.1.0-py3-none-linux_x86_64.whl"
    elf = b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0"
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("spinkit-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\n")
        archive.writestr("spinkit-0.1.0.data/scripts/spinrun", elf)
        archive.writestr("spinkit/text", b"\0GLIBC_2.99\0")
        archive.writestr("spinkit-0.1.0.dist-info/RECORD", "old")
    new = spinkit_build.finish(tmp_path, name)
    assert new == "spinkit-0.1.0-py3-none-manylinux_2_34_x86_64.whl"
    assert [file.name for file in tmp_path.iterdir()] == [new]
    with zipfile.ZipFile(tmp_path / new) as archive:
        assert b"Tag: py3-none-manylinux_2_34_x86_64\n" in archive.read("spinkit-0.1.0.dist-info/WHEEL")
        assert b"spinkit = spinkit.cli:main" in archive.read("spinkit-0.1.0.dist-info/entry_points.txt")
        rows = list(csv.reader(archive.read("spinkit-0.1.0.dist-info/RECORD").decode().splitlines()))
        assert {row[0] for row in rows} == set(archive.namelist())
        for file, digest, size in rows[:-1]:
            content = archive.read(file)
            expected = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={expected}", str(len(content)))


def test_the_source_distribution_has_the_files_of_a_wheel(tmp_path: Path) -> None:
    name = spinkit_build.build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        archive.extractall(tmp_path, filter="data")
    [folder] = tmp_path.glob("spinkit-*/")
    used = ("crates", "python", *spinkit_build.FOLDERS, *spinkit_build.HARDWARE)
    listed = subprocess.run(["git", "ls-files", "-z", *used], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("needs a git checkout")
    files = listed.stdout.split("\0")[:-1]
    assert len(files) > 1000
    assert [file for file in files if (CHECKOUT / file).is_file() and not (folder / file).is_file()] == []
    assert not [*folder.rglob("__pycache__"), *folder.rglob(".pytest_cache")]
    metadata = ("cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline")
    described = subprocess.run(metadata, cwd=folder, capture_output=True, text=True, check=True).stdout
    here = subprocess.run(metadata, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    assert [one["name"] for one in json.loads(described)["packages"]] == [
        one["name"] for one in json.loads(here)["packages"]
    ]


def test_spincc_works_without_a_c_compiler(tmp_path: Path) -> None:
    """Only the shell is on PATH: zig's Clang compiles for the host, too."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPIN_HOST")}
    environment["PATH"] = str(folder)
    program = tmp_path / "hello"
    for flags in ([], ["-O3"]):
        command = [str(_paths.command("spincc")), *flags, str(CHECKOUT / "examples" / "hello.c"), "-o", str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        told = subprocess.run(
            [_paths.command("spinrun"), "-n", "2", program], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        assert sorted(told.splitlines()) == ["rank 0: HELLO FROM RANK 1", "rank 1: HELLO FROM RANK 0"]
