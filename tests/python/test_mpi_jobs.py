"""MPI programs under spinrun: those that cannot use the simulated card are refused with a message before they hang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from spinkit import _paths

MPI = Path(sys.prefix) / "mpi"
SOURCE = """
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""
MPICH = "links {}, an MPI that cannot use the simulated card: its ranks would wait for each other for ever"
OPEN_MPI = "links libmpi.so.40, an Open MPI without components for Portals 4 (mca_mtl_portals4.so)"


def spinrun(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinrun")), "--timeout", "120", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)


@pytest.fixture(params=["mpich", "openmpi"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Compile a program of one of the MPIs, which is the name of its folder."""
    home = MPI / request.param
    assert home.is_dir(), "`make test` installs the MPIs of requirements-mpi.txt"
    folder = tmp_path / request.param
    folder.mkdir()
    (folder / "program.c").write_text(SOURCE)
    subprocess.run([home / "bin" / "mpicc", folder / "program.c", "-o", folder / "program"], check=True)
    return folder / "program"


def test_a_program_that_links_an_mpi_without_portals_is_refused(program: Path) -> None:
    done = spinrun("-n", 2, program)
    says = OPEN_MPI if program.parent.name == "openmpi" else MPICH.format("libmpi.so.12")
    assert done.returncode == 1
    assert done.stderr.startswith(f"spinrun: error: {program} {says}")
    # A single rank communicates with no other.
    assert spinrun("-n", 1, "/bin/true").stderr == ""


def test_an_mpi_that_is_loaded_later_is_refused_when_it_speaks_pmi() -> None:
    library = MPI / "mpich" / "lib" / "libmpi.so.12"
    script = f"import ctypes; ctypes.CDLL({str(library)!r}).MPI_Init(None, None)"
    done = spinrun("-n", 2, sys.executable, "-c", script)
    assert done.returncode == 1
    assert f"{sys.executable}: rank 0: {MPICH.format('libmpi.so.12')}" in done.stderr


def test_ranks_that_run_as_separate_copies_cause_a_warning() -> None:
    done = spinrun("-n", 3, "/bin/true")
    told = "no rank has used Portals or PMI: 3 copies of /bin/true have run, each by itself"
    assert (done.returncode, done.stderr) == (0, f"spinrun: warning: {told} (for MPI programs see docs/mpi.md)\n")
    assert spinrun("-n", 3, "/bin/false").returncode == 1
    assert spinrun("-n", 1, "/bin/true").stderr == ""


def test_an_open_mpi_with_components_for_portals_is_not_refused(program: Path, tmp_path: Path) -> None:
    components = tmp_path / "components"
    components.mkdir()
    (components / "mca_mtl_portals4.so").touch()
    done = spinrun("-n", 2, "-x", f"OMPI_MCA_mca_base_component_path=system:{components}", program)
    refused = program.parent.name == "mpich"
    assert (done.returncode == 1) == refused
    assert ("cannot use the simulated card" in done.stderr) == refused
