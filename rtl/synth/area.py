# SPDX-License-Identifier: Apache-2.0
"""Area and longest path of each unit of all machines: area.py FILE MACHINE...

Each unit is synthesized alone, with its parameters in the machine, and without subunits that have their own row.
Memories are only counted. A unit equal in several machines is one row.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gates
import netlist
from machine import CELLS, MEMORIES, UNITS, YOSYS, Flow, Unit, elaborate, run_all

# The passes of abc that prove equivalences (fraig, scorr, dch) take most of an hour for a queue engine and save little.
ABC = """
strash
&get -n
&dc2
&dc2
&b
&nf
&put
buffer -c
topo
"""
FLOW = Flow(
    passes="""synth -flatten -noabc -top TOP
dfflibmap -liberty gates.lib
abc -liberty gates.lib -script abc.script
opt_clean -purge
write_json netlist.json
""",
    result="netlist.json",
    files={"abc.script": ABC, "gates.lib": gates.library()},
    boxes=(*CELLS, *MEMORIES),
)

# The core without its extensions: CORE-V, and RV32A.
CORE = "pspin_core"
ATOMIC = "localparam A_EXTENSION = 1;"
VARIANTS = {
    "with both": ("1'b1", ATOMIC),
    "without CORE-V": ("1'b0", ATOMIC),
    "without both": ("1'b0", ATOMIC.replace("1", "0")),
}


def synthesize(unit: Unit, machine: str, change: Callable[[str], str] = str) -> dict[str, Any]:
    """Return area in gate equivalents, flip-flops and the longest path of a unit."""
    return netlist.measure(FLOW.run(unit, machine, change) / FLOW.result, unit.name)


def row_of(job: tuple[Unit, str]) -> dict[str, Any]:
    """Return the row of a machine's unit."""
    unit, machine = job
    return {
        "unit": unit.name,
        "part": UNITS[unit.name],
        "parameters": unit.parameters,
        **synthesize(unit, machine),
        "memory_bits": sum(rows * width * number for (rows, width), number in unit.memories.items()),
        "memories": [[number, rows, width] for (rows, width), number in sorted(unit.memories.items())],
    }


def variant(job: tuple[str, str]) -> dict[str, Any]:
    """Return the row of a variant of the core in a machine."""
    name, machine = job
    core_v, atomic = VARIANTS[name]
    result = synthesize(Unit(CORE, {"CoreV": core_v}), machine, lambda text: text.replace(ATOMIC, atomic))
    return {"variant": name, **result}


def main(target: Path, machines: list[str]) -> None:
    """Write the table of these machines."""
    jobs = [(unit, machine) for machine in machines for unit in elaborate(machine)]
    rows: list[dict[str, Any]] = []
    for (unit, machine), row in zip(jobs, run_all(row_of, jobs), strict=True):
        known = next((other for other in rows if {**row, "number": other["number"]} == other), None)
        if known is None:
            known = {**row, "number": {}}
            rows.append(known)
        known["number"][machine] = unit.count
    rows.sort(key=lambda row: -max(row["number"].values()) * row["gates"])
    cores = run_all(variant, [(name, machines[0]) for name in VARIANTS])
    head = {"command": "make -C rtl area", "yosys": YOSYS, "machines": machines}
    target.write_text(json.dumps({**head, "units": rows, "cores": cores}, indent=1) + "\n", encoding="utf-8")
    print(f"{'unit':24}{'number':>12}{'kGE each':>10}{'flip-flops':>12}{'Kibit':>10}{'FO4':>7}")
    for row in rows:
        numbers = "/".join(str(row["number"].get(machine, 0)) for machine in machines)
        kbits, fo4 = row["memory_bits"] / 1024, row["path"]["fo4"]
        print(f"{row['unit']:24}{numbers:>12}{row['gates'] / 1000:10.1f}{row['flip_flops']:12}{kbits:10.1f}{fo4:7}")
    for row in cores:
        print(f"{CORE}, {row['variant']:24}{row['gates'] / 1000:10.1f}{row['flip_flops']:12}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
