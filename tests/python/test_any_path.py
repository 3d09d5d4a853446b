# SPDX-License-Identifier: Apache-2.0
"""Installations, caches and folders whose names have blanks, colons, quotes, dollar signs, commas or umlauts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT
from .traced import OPEN_MPI

NAMES = ["two words", "käse: 'x' \"y\" $LIB, \\z"]
SLEEPS = """
#include <spin.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
__handler int pay(ptl_payload_t p, void *state) { return SUCCESS; }
int main(void)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    sleep(1000000);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%ld\\n", (long)(to.tv_sec - from.tv_sec));
    return PtlInit();
}
"""


class Installation:
    """Commands and libraries of `make build` in a folder of any name, with a cache there."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        for folder in ("bin", "lib", "share/spinkit"):
            (prefix / folder).mkdir(parents=True)
        for name in ("sdk", "machines"):
            (prefix / "share" / "spinkit" / name).symlink_to(CHECKOUT / name)
        release = _paths.command("spinrun").resolve().parent
        commands = [release / name for name in ("spincc", "spinrun", "spinkit-pspin")]
        for folder, files in (("bin", commands), ("lib", release.glob("lib*.so*"))):
            for file in files:
                shutil.copy2(file, prefix / folder)
        python = prefix / "lib" / "python3" / "site-packages"
        python.mkdir(parents=True)
        (python / "ziglang").symlink_to(next((CHECKOUT / ".venv" / "lib").glob("python*/site-packages/ziglang")))
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(prefix), "SPIN_CACHE": str(prefix / "cache")}

    def run(self, command: str, *words: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(self.prefix / "bin" / command), *map(str, words)],
            env=self.variables,
            cwd=self.prefix,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done


@pytest.fixture(scope="module", params=NAMES)
def installation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation(tmp_path_factory.mktemp("any") / request.param)


@pytest.mark.parametrize("start", ["exec", "fork"])
def test_clocks_are_simulated(installation: Installation, start: str) -> None:
    """A million seconds pass only in simulated time."""
    program = installation.prefix / "sleeps"
    if not program.is_file():
        (installation.prefix / "sleeps.c").write_text(SLEEPS)
        assert installation.run("spincc", "sleeps.c", "-o", program).stderr == ""
    done = installation.run("spinrun", "-n", 2, "--start", start, "--clock", "simulated", program)
    assert (done.stdout, done.stderr) == ("1000000\n" * 2, "")


def test_folders_for_pspin_run(installation: Installation) -> None:
    programs = installation.prefix / "programs"
    if not programs.is_dir():
        shutil.copytree(CHECKOUT / "tests" / "pspin" / "reverse", programs / "reverse")
        shutil.copytree(CHECKOUT / "sdk" / "handlers" / "pspin" / "generic_driver", programs / "generic_driver")
    done = installation.run("spinkit-pspin", "run", programs / "reverse")
    assert "32 packets came back, 0 wrong bytes\n" in done.stdout


def test_the_provider_of_mpi_is_found(installation: Installation, mpich_program: Path) -> None:
    done = installation.run("spinrun", "-n", 2, mpich_program)
    assert done.stdout == "3 of 2\n"


@pytest.fixture(scope="module")
def mpich_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mpi") / "sum"
    source = program.with_suffix(".c")
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(void)\n{\n    int rank, sum, size;\n    MPI_Init(NULL, NULL);\n"
        "    MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n    MPI_Comm_size(MPI_COMM_WORLD, &size);\n    rank++;\n"
        "    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);\n"
        '    if (rank == 1) printf("%d of %d\\n", sum, size);\n    return MPI_Finalize();\n}\n'
    )
    subprocess.run([_paths.mpicc(), source, "-o", program], check=True)
    return program


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_programs_are_traced(name: str, mpi: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "program.c").write_text(
        "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n"
    )
    commands = Path(sys.prefix) / "mpi" / mpi / "bin"
    subprocess.run([commands / "mpicc", "program.c", "-o", "program"], cwd=folder, check=True)
    launch = [commands / "mpirun", "-n", "1", "./program"]
    done = subprocess.run(
        [sys.executable, "-m", "spinkit", "trace", "-o", folder / "trace", *launch],
        env=os.environ | OPEN_MPI | {"SPIN_CACHE": str(folder / "cache")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [file.name for file in (folder / "trace").iterdir()] == ["rank-0.spintrace"]
    assert len(list((folder / "cache" / "tracer").glob("*/libspintrace.so"))) == 1
