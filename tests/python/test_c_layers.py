# SPDX-License-Identifier: Apache-2.0
"""Files of sdk/ofi and sdk/tracer call each other in no circle, and the floors of sdk/ofi only use those below them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OFI = ROOT / "sdk" / "ofi"
TRACER = ROOT / "sdk" / "tracer"
# Floors of sdk/ofi from the lowest; tx and rx stand side by side.
FLOORS = {"base": 0, "core": 1, "tx": 2, "rx": 2, "fi": 3}
PREFIX = "spin_ofi_"
# libfabric looks for this name.
ENTRY_POINT = "fi_prov_ini"
MPIS = ("mpich", "openmpi")

Files = dict[Path, tuple[set[str], set[str]]]
"""External names that each source defines and uses."""


def external_names(objects: Path) -> tuple[set[str], set[str]]:
    done = subprocess.run(["nm", "-g", "-P", objects], capture_output=True, text=True, check=True)
    rows = [line.split()[:2] for line in done.stdout.splitlines()]
    used = {name for name, kind in rows if kind in "Uvw"}
    return {name for name, _ in rows} - used, used


def compiled(compiler: str | Path, folder: Path, out: Path, *flags: str) -> Files:
    """Compile each source of a folder, and return its external names."""
    files: Files = {}
    for index, source in enumerate(sorted(folder.rglob("*.c"))):
        target = out / f"{index}.o"
        subprocess.run([compiler, *flags, "-O0", "-w", "-c", source, "-o", target], check=True)
        files[source.relative_to(folder)] = external_names(target)
    return files


def calls(files: Files) -> Iterator[tuple[Path, Path, str]]:
    """Yield each use of a name of another file: user, owner, name."""
    owners = {name: file for file, (defined, _) in files.items() for name in defined}
    for file, (_, used) in files.items():
        for name in sorted(used & owners.keys()):
            yield file, owners[name], name


def circle(files: Files) -> list[str]:
    """Return the files of a circle, or nothing."""
    graph: dict[Path, set[Path]] = {file: set() for file in files}
    for user, owner, _ in calls(files):
        graph[user].add(owner)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(file) for file in error.args[1]]
    return []


def may_use(user: str, owner: str) -> bool:
    return user == owner or FLOORS[owner] < FLOORS[user]


@pytest.fixture(scope="module")
def ofi(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return compiled("cc", OFI, tmp_path_factory.mktemp("objects"), "-std=gnu11", f"-I{ROOT / 'sdk' / 'include'}")


def test_the_provider_has_no_circle(ofi: Files) -> None:
    assert len(ofi) > 20
    assert sum(1 for _ in calls(ofi)) > 100
    assert circle(ofi) == []


def test_floors_of_the_provider_use_those_below(ofi: Files) -> None:
    upward = [
        f"{user} uses {name} of {owner}"
        for user, owner, name in calls(ofi)
        if not may_use(user.parts[0], owner.parts[0])
    ]
    assert upward == []


def test_floors_of_the_provider_include_headers_from_below() -> None:
    checked, upward = 0, []
    for file in sorted(OFI.rglob("*.[ch]")):
        floor = file.relative_to(OFI).parts[0]
        for name in re.findall(r'^#include "(.+)"', file.read_text(), re.MULTILINE):
            owner = (file.parent / name).resolve().relative_to(OFI).parts[0]
            checked += 1
            if not may_use(floor, owner):
                upward.append(f"{file.relative_to(OFI)} includes {name}")
    assert checked > 50
    assert upward == []


def test_external_names_of_the_provider_have_its_prefix(ofi: Files) -> None:
    names = {name for defined, _ in ofi.values() for name in defined}
    assert {name for name in names if not name.startswith(PREFIX)} == {ENTRY_POINT}


@pytest.mark.parametrize("mpi", MPIS)
def test_the_tracer_has_no_circle(mpi: str, tmp_path: Path) -> None:
    compiler = Path(sys.prefix) / "mpi" / mpi / "bin" / "mpicc"
    assert compiler.is_file(), "`make test` installs the MPIs of requirements-mpi.txt"
    files = compiled(compiler, TRACER, tmp_path, "-std=gnu99", "-fPIC")
    assert sum(1 for _ in calls(files)) > 50
    assert circle(files) == []


def test_a_circle_and_an_upward_use_are_found() -> None:
    a, b, c = Path("core/a.c"), Path("core/b.c"), Path("fi/c.c")
    files: Files = {a: ({"f"}, {"g"}), b: ({"g"}, {"f"}), c: ({"h"}, set())}
    assert set(circle(files)) == {str(a), str(b)}
    assert circle({a: ({"f"}, set()), b: ({"g"}, {"f"})}) == []
    assert list(calls({a: ({"f"}, {"h"}), c: ({"h"}, set())})) == [(a, c, "h")]
    assert not may_use("core", "fi")
    assert not may_use("tx", "rx")
    assert may_use("fi", "tx")
