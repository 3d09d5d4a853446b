# SPDX-License-Identifier: Apache-2.0
"""docs/mpi-calls.md against the tracer, and against all functions of two MPIs."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase

import pytest
from spinkit.simulate import _mpi_trace

from .traced import ROOT, Mpi


def listed() -> tuple[set[str], set[str]]:
    """Names that the tracer wraps, and patterns of those that it passes through."""
    _, lists = (ROOT / "docs" / "mpi-calls.md").read_text().split("\n## In the schedule\n")
    wrapped, passed = lists.split("\n## Passed through\n")
    names, patterns = (re.findall(r"`(MPI_[\w*]+)`", part) for part in (wrapped, passed))
    for all_of in (names, patterns):
        assert len(all_of) == len(set(all_of))
    return set(names), set(patterns)


def base(name: str) -> str:
    return name.removesuffix("_c")


def functions(mpi: Mpi) -> set[str]:
    """Return all functions that an MPI declares."""
    folder = mpi.bin.parent / "include"
    text = "".join(header.read_text() for header in folder.glob("mpi*.h") if header.name != "mpi_abi.h")
    return set(re.findall(r"\bP(MPI_[A-Z]\w*)\s*\(", text))


@pytest.fixture(scope="module")
def symbols(mpi: Mpi) -> set[str]:
    """Return the functions defined by the tracer for an MPI."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", mpi.environment["XDG_CACHE_HOME"])
        library = _mpi_trace.library(ROOT, str(mpi.bin / "mpicc"))
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def test_every_function_is_traced_or_passed_through(mpi: Mpi, symbols: set[str]) -> None:
    names, patterns = listed()
    there = functions(mpi)
    assert {"MPI_Send", "MPI_Win_fence", "MPI_Bcast_init"} <= there
    traced = {name for name in there if base(name) in names}
    assert traced == there & symbols
    unlisted = {name for name in there - traced if not any(fnmatchcase(base(name), one) for one in patterns)}
    assert unlisted == set()
    both = {name for name in traced if any(fnmatchcase(base(name), one) for one in patterns)}
    assert both == set()


def test_all_calls_are_traced_in_fortran(mpi: Mpi, symbols: set[str]) -> None:
    names, _ = listed()
    in_c_alone = {"MPI_Comm_spawn", "MPI_Comm_spawn_multiple", "MPI_Session_init"}
    lower = {name.lower() for name in (names - in_c_alone) & functions(mpi)}
    # MPICH's other Fortran routines call those in C; Open MPI's do not.
    forms = ["{}_", "{}__", "{}", "{}_f08_"] if mpi.name == "openmpi" else ["{}_f08_"]
    assert {name for name in lower for form in forms if form.format(name) not in symbols} == set()


def test_the_lists_name_only_functions_that_exist(mpi: Mpi) -> None:
    names, patterns = listed()
    there = {base(name) for name in functions(mpi)}
    if mpi.name == "mpich":
        assert names - there == set()
        old = {"MPI_Address", "MPI_Keyval_*", "MPI_Attr_*"}
        assert {one for one in patterns - old if not any(fnmatchcase(name, one) for name in there)} == set()
