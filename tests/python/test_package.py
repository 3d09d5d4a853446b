# SPDX-License-Identifier: Apache-2.0
"""An installation: Portals programs in C and C++, built as pkg-config says, run under its spinrun wherever it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from spinkit import _doctor, _paths
from spinkit.cli import main

CHECKOUT = Path(__file__).resolve().parents[2]
PKG_CONFIG = (sys.executable, "-m", "pkgconf")
PROGRAM = """
#include <portals4.h>
#include <spin.h>
int main(void) {
    ptl_handle_ni_t ni;
    ptl_process_t id;
    if (PtlInit() != PTL_OK) return 1;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni)) return 2;
    if (PtlGetPhysId(ni, &id) != PTL_OK || (int)id.phys.nid != spin_rank() || spin_size() != 2) return 3;
    PtlFini();
    return 0;
}
"""


def test_a_tool_that_is_there_and_fails_is_not_taken_for_a_missing_one() -> None:
    missing = _doctor._version("zig", ["nowhere-zig"], "pip install ziglang")
    assert (missing.ok, missing.detail) == (False, "pip install ziglang")
    failing = _doctor._version("zig", ["false"], "pip install ziglang")
    assert not failing.ok
    assert "returned non-zero exit status 1" in failing.detail
    assert failing.detail.endswith("; pip install ziglang")


def test_a_limit_of_the_computer_names_loss_and_remedy_and_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {check.name: check for check in _doctor.examine()}
    assert [name for name, check in found.items() if check.required] == ["cc", "zig", "spincc", "spinrun", "files"]
    which = shutil.which
    optional = ("c++", "gdb-multiarch")
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name in optional else which(name, **more))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != "/dev/net/tun" and access(path, mode))
    monkeypatch.setattr(os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 1 << 18)
    limited = {check.name: check for check in _doctor.examine()}
    assert all(limited[name].state == "limited" for name in ("c++", "gdb", "network", "memory"))
    assert "/dev/net/tun: `spinkit pspin serve` has only --socket; run it as root" in limited["network"].detail
    assert limited["memory"].detail.startswith("1 GiB, ")
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "limited  gdb        `spinrun --gdb` has no debugger (Debian: gdb-multiarch)" in done.output


def test_without_a_capability_the_doctor_names_it() -> None:
    words = ["setpriv", "--bounding-set=-net_raw", _paths.command("spinkit"), "doctor"]
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs setpriv and root")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    [line] = [line for line in done.stdout.splitlines() if " network " in line]
    assert line.startswith("limited")
    assert "no CAP_NET_RAW" in line


# Open MPI 4 finds PMI like this program: it loads the library that a variable names.
LOADS_PMI = """
import ctypes, os
int(os.environ["FLUX_JOB_ID"])
pmi = ctypes.CDLL(os.environ["FLUX_PMI_LIBRARY_PATH"], mode=os.RTLD_NOW | os.RTLD_GLOBAL)
number = ctypes.c_int()
assert pmi.PMI_Init(ctypes.byref(number)) == 0
assert pmi.PMI_Get_size(ctypes.byref(number)) == 0 and number.value == 3
assert pmi.PMI_Barrier() == 0 and pmi.PMI_Finalize() == 0
"""


def run(*command: object, **environment: str) -> str:
    words = [str(word) for word in command]
    # Nothing refers to the checkout.
    inherited = {name: value for name, value in os.environ.items() if name not in ("SPINKIT_HOME", "SPIN_LIBDIR")}
    done = subprocess.run(words, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an installation, and move it."""
    first = tmp_path_factory.mktemp("package") / "first"
    script = "import pathlib, sys; sys.path.append(sys.argv[1])\n"
    script += "import spinkit_build; spinkit_build.lay_out(pathlib.Path(sys.argv[2]))"
    run(sys.executable, "-c", script, CHECKOUT / "python" / "build_backend", first)
    (first / "bin").mkdir()
    shutil.copy2(_paths.command("spinrun").resolve(), first / "bin")
    return first.rename(first.with_name("moved"))


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "-std=c99"), ("c++", "-std=c++11")])
def test_programs_build_by_pkg_config_and_run(prefix: Path, tmp_path: Path, compiler: str, standard: str) -> None:
    source, program = tmp_path / ("program.c" if compiler == "cc" else "program.cpp"), tmp_path / "program"
    source.write_text(PROGRAM)
    options = run(*PKG_CONFIG, "--cflags", "--libs", "portals4", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig").split()
    run(compiler, standard, "-pedantic", "-Wall", "-Werror", source, "-o", program, *options)
    needed = run("readelf", "-d", program)
    assert "[libportals.so.4]" in needed
    run(prefix / "bin" / "spinrun", "-n", 2, "--clock", "simulated", program)


def test_every_export_has_a_version(prefix: Path) -> None:
    lines = run("nm", "-D", "--defined-only", prefix / "lib" / "libportals.so.4.3.0").splitlines()
    names = {line.split()[2] for line in lines if line.split()[1] == "T"}
    assert {"PtlPut@@PORTALS_4.3", "spin_rank@@SPIN_1"} <= names
    other = [name for name in names if not (name.startswith("Ptl") and name.endswith("@@PORTALS_4.3"))]
    assert all(name.startswith("spin_") and name.endswith("@@SPIN_1") for name in other)


def test_ranks_find_the_library_of_pmi(prefix: Path) -> None:
    run(prefix / "bin" / "spinrun", "-n", 3, sys.executable, "-c", LOADS_PMI)
    assert (prefix / "include" / "pmi.h").is_file()


def test_drivers_of_pspin_run_on_the_library(prefix: Path, tmp_path: Path) -> None:
    shutil.copy2(_paths.command("spinkit-pspin").resolve(), prefix / "bin")
    for source in (CHECKOUT / "tests/pspin/reverse", CHECKOUT / "sdk/handlers/pspin/generic_driver"):
        shutil.copytree(source, tmp_path / source.name)
    script = 'eval "$("$1" env)" && cd "$2" && make deploy driver && exec env -i ./sim_reverse'
    words = ("sh", "-c", script, "sh", prefix / "bin" / "spinkit-pspin", tmp_path / "reverse")
    assert run(*words, XDG_CACHE_HOME=str(tmp_path)).endswith("32 packets came back, 0 wrong bytes\n")
    assert f"[{prefix}/lib/libpspin.so]" in run("readelf", "-d", tmp_path / "reverse" / "sim_reverse")
