# SPDX-License-Identifier: Apache-2.0
"""Writes pspin_nic for a machine as a folder that needs nothing else: sources, constraints, and lists of them.

    make -C rtl package MACHINE=pspin-small

The lists are pspin_nic.core for FuseSoC, Bender.yml for Bender, and files.f. Their order is that of use.
"""

import shutil
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parents[1]
OUT = RTL.parent / "out" / "rtl"
NAME, VERSION = "pspin_nic", "0.1.0"


def sources(machine: str) -> list[Path]:
    """Return all sources in their order."""
    constants = [OUT / "gen" / machine / f"pspin_{name}_pkg.sv" for name in ("abi", "cfg")]
    core = [
        OUT / "core" / Path(line).name for line in (OUT / "core" / "files.f").read_text(encoding="utf-8").splitlines()
    ]
    return [RTL / "src" / "pspin_pkg.sv", *constants, *core, *sorted((RTL / "src").glob("*/*.sv"))]


def fusesoc(files: list[str], constraints: list[str], machine: str) -> str:
    """Return the description of the package for FuseSoC (CAPI 2)."""
    listed = "".join(f"      - {file}\n" for file in files)
    limits = "".join(f"      - {file}: {{file_type: {Path(file).suffix[1:]}}}\n" for file in constraints)
    return (
        f"CAPI=2:\nname: spinkit:pspin:{NAME}:{VERSION}\ndescription: PsPIN of {machine} with a NIC, two clocks\n"
        f"filesets:\n  rtl:\n    files:\n{listed}    file_type: systemVerilogSource\n"
        f"  constraints:\n    files:\n{limits}"
        f"targets:\n  default:\n    filesets: [rtl]\n    toplevel: {NAME}\n"
        f"  vivado:\n    filesets: [rtl, constraints]\n    toplevel: {NAME}\n    flow: generic\n"
        f"  lint:\n    filesets: [rtl]\n    toplevel: {NAME}\n    flow: lint\n    flow_options: {{tool: verilator}}\n"
    )


def bender(files: list[str]) -> str:
    """Return the manifest for Bender."""
    return f"package:\n  name: {NAME}\n\nsources:\n" + "".join(f"  - {file}\n" for file in files)


def write(machine: str, folder: Path) -> list[str]:
    """Write the folder. Return its sources."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "rtl").mkdir(parents=True)
    (folder / "constraints").mkdir()
    files = []
    for source in sources(machine):
        shutil.copy(source, folder / "rtl" / source.name)
        files.append(f"rtl/{source.name}")
    constraints = []
    for source in sorted((RTL / "constraints").iterdir()):
        shutil.copy(source, folder / "constraints" / source.name)
        constraints.append(f"constraints/{source.name}")
    (folder / f"{NAME}.core").write_text(
        fusesoc(files, [name for name in constraints if name.endswith(".xdc")], machine), encoding="utf-8"
    )
    (folder / "Bender.yml").write_text(bender(files), encoding="utf-8")
    (folder / "files.f").write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    return files


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
