# SPDX-License-Identifier: Apache-2.0
"""FPGA resources of each unit of a machine, for the family UltraScale+: fpga.py FILE MACHINE.

Memories become block RAM and UltraRAM of the unit that contains them. The counts are an estimate: tools of the vendor
place and route, and optimize more.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from machine import CELLS, UNITS, YOSYS, Flow, Unit, elaborate, run_all

XILINX = "synth_xilinx -family xcup -uram -flatten -noiopad -noclkbuf -top TOP -run"
# The first passes find byte enables in writes that keep the other bytes; a memory of 512 rows or more is not
# distributed RAM, and a wide one of 2,048 rows is an UltraRAM.
FLOW = Flow(
    passes=f"""proc
flatten
opt_expr -mux_undef
opt_reduce
opt_clean
opt_mem_feedback
{XILINX} begin:map_memory
setattr -set ram_style "block" t:$mem_v2 r:SIZE>=512 %i
setattr -set ram_style "huge" t:$mem_v2 r:SIZE>=2048 %i r:WIDTH>=64 %i
{XILINX} map_memory:map_luts
opt_expr -mux_undef -noclkinv
abc -luts 2:2,3,6:5,10,20 -script abc.script
clean
xilinx_srl -fixed -minlen 3
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx
clean
tee -q -o cells.json stat -json
""",
    result="cells.json",
    files={"abc.script": "strash\n&get -n\n&dc2\n&dc2\n&b\n&put\nif\n"},
    boxes=tuple(CELLS),
)
# LUTs of a cell, by the vendor's documentation of the family (UG574).
LUTS = {f"LUT{inputs}": 1 for inputs in range(1, 7)}
MEMORY_LUTS = {"RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4}
MEMORY_LUTS |= {"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM256X1D": 8, "SRL16E": 1, "SRLC32E": 1}


def resources(cells: Counter[str]) -> dict[str, Any]:
    """Return the resources of these cells; a block RAM of 18 Kibit is half of one."""
    return {
        "luts": sum(number * LUTS.get(kind, 0) for kind, number in cells.items()),
        "memory_luts": sum(number * MEMORY_LUTS.get(kind, 0) for kind, number in cells.items()),
        "flip_flops": sum(cells[kind] for kind in ("FDRE", "FDSE", "FDCE", "FDPE")),
        "block_rams": cells["RAMB36E2"] + cells["RAMB18E2"] / 2,
        "ultra_rams": cells["URAM288"],
        "dsps": cells["DSP48E2"],
    }


def row_of(job: tuple[Unit, str]) -> dict[str, Any]:
    """Return the row of a machine's unit."""
    unit, machine = job
    data = json.loads((FLOW.run(unit, machine) / FLOW.result).read_text(encoding="utf-8"))
    cells = Counter(data["design"]["num_cells_by_type"])
    strange = [
        kind for kind in cells if kind.startswith(("$", "RAM")) and kind not in {*MEMORY_LUTS, "RAMB36E2", "RAMB18E2"}
    ]
    if strange:
        sys.exit(f"{unit.name}: cells that are not counted: {strange}")
    head = {"unit": unit.name, "part": UNITS[unit.name], "parameters": unit.parameters, "number": unit.count}
    return head | resources(cells)


def main(target: Path, machine: str) -> None:
    """Write the table of a machine."""
    rows = run_all(row_of, [(unit, machine) for unit in elaborate(machine)])
    rows.sort(key=lambda row: -row["number"] * row["luts"])
    names = list(resources(Counter()))
    whole = {name: sum(row["number"] * row[name] for row in rows) for name in names}
    head = {"machine": machine, "command": "make -C rtl fpga", "yosys": YOSYS, "family": "xcup"}
    target.write_text(json.dumps({**head, "whole": whole, "units": rows}, indent=1) + "\n", encoding="utf-8")
    for row in [*rows, {"unit": machine, "number": 1, **whole}]:
        print(f"| `{row['unit']}` | {row['number']} | " + " | ".join(f"{row[name]:,}" for name in names) + " |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
