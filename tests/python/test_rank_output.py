# SPDX-License-Identifier: Apache-2.0
"""The output of ranks is not lost when a run fails, although it goes to a pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from spinkit import _paths

CHECKOUT = Path(__file__).resolve().parents[2]
# `program HOW` prints a line and the beginning of another one, and ends as HOW says. Rank 1 waits in the library.
PROGRAM = r"""
#include <portals4.h>
#include <spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int *volatile nowhere;
int main(int argc, char **argv) {
    char how = argv[argc - 1][0];
    if (PtlInit() != PTL_OK)
        return 2;
    if (how == 'b') { /* bytes as they are */
        fwrite("\r\n\0\xff\x04\x1a\n\r", 1, 8, stdout);
        return 0;
    }
    printf("rank %d: a line\n", spin_rank());
    fprintf(stderr, "rank %d: a warning\n", spin_rank());
    printf("rank %d: unfinished", spin_rank());
    if (spin_rank() == 0 && how == 'c')
        *nowhere = 1;
    if (spin_rank() == 0 && how == 't')
        for (;;)
            sleep(1);
    spin_host_compute(1000);
    if (spin_rank() == 0 && how == 'd') {
        ptl_handle_ni_t ni;
        ptl_handle_ct_t ct;
        ptl_ct_event_t event;
        PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni);
        PtlCTAlloc(ni, &ct);
        PtlCTWait(ct, 1, &event);
    }
    spin_barrier();
    return 0;
}
"""
PYTHON = """
import ctypes, os, sys
print("a line from Python")
rank = int(os.environ["SPIN_RANK"])
ctypes.CDLL(sys.argv[1]).spin_barrier() if rank else os.abort()
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("output")
    (folder / "program.c").write_text(PROGRAM)
    library = _paths.library(_paths.command("spinrun"))
    assert library is not None
    command = ["cc", "-I", CHECKOUT / "sdk" / "include", folder / "program.c", "-o", folder / "program"]
    subprocess.run([*command, "-L", library.parent, f"-Wl,-rpath,{library.parent}", "-lportals"], check=True)
    return folder / "program"


def spinrun(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(_paths.command("spinrun")), *map(str, arguments)], capture_output=True, check=False)


@pytest.mark.parametrize("tag", [False, True])
@pytest.mark.parametrize(("how", "status"), [("deadlock", 1), ("crash", 139), ("timeout", 124)])
def test_output_before_a_failure_is_not_lost(program: Path, how: str, status: int, tag: bool) -> None:
    options = ["--tag-output"] if tag else []
    done = spinrun("-n", 2, "--timeout", 3 if how == "timeout" else 60, *options, program, how)
    assert done.returncode == status, done.stderr
    out, err = done.stdout.decode(), done.stderr.decode()
    mark = "[0] " if tag else ""
    assert f"{mark}rank 0: a line\n" in out
    assert f"{mark}rank 0: a warning\n" in err
    # A rank that waits in the library ends its unfinished line, too.
    assert ("rank 0: unfinished" in out) == (how == "deadlock")
    if how == "deadlock":
        assert "rank 1: unfinished" in out


@pytest.mark.parametrize("tag", [False, True])
def test_output_of_python_is_not_lost(tag: bool) -> None:
    options = ["--tag-output"] if tag else []
    done = spinrun(
        "-n", 2, "--timeout", 60, *options, sys.executable, "-c", PYTHON, _paths.library(_paths.command("spinrun"))
    )
    assert done.returncode == 134, done.stderr
    assert ("[0] " if tag else "") + "a line from Python\n" in done.stdout.decode()


def test_bytes_are_not_translated(program: Path) -> None:
    done = spinrun("-n", 1, program, "bytes")
    assert (done.returncode, done.stdout) == (0, b"\r\n\0\xff\x04\x1a\n\r")


def test_the_user_decides_about_buffering() -> None:
    script = "import os; print(os.environ['PYTHONUNBUFFERED'] == '')"
    done = spinrun("-x", "PYTHONUNBUFFERED=", sys.executable, "-c", script)
    assert done.stdout == b"True\n", done.stderr
