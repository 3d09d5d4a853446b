# SPDX-License-Identifier: Apache-2.0
"""Area of the hardware in rtl/, as Table III counts, from the synthesis of its units (`make -C rtl area`: area.json).

Synthesis counts gate equivalents (GE) of logic and bits of memories. They become areas by the paper's own numbers:
0.199 um2 for a GE and 70 % density (section IV-A), and for memories the area of a bit of its L2 and of its L1.
"""

import json
import sys
from pathlib import Path

GE_UM2, DENSITY = 0.199, 0.7
# Table III in mm2 over the bits of section III-C: L2 is two memories of 4 MiB and 32 KiB for programs, L1 1 MiB.
BIT_UM2 = {"L2": 9.48e6 / (8 * (8192 + 32) * 1024), "L1": 1.65e6 / (8 * 1024 * 1024)}
HPUS = ("cores", "HPUs without core")
CLUSTER = (*HPUS, "instruction cache", "L1", "interconnect of the cluster", "scheduler of the cluster")

MACHINE = "pspin-400g"

data = json.loads((Path(__file__).parent / "area.json").read_text(encoding="utf-8"))
units = [row | {"count": row["number"][MACHINE]} for row in data["units"] if MACHINE in row["number"]]
cores = {row["variant"]: row["gates"] / 1e3 for row in data["cores"]}
clusters = next(row["count"] for row in units if row["unit"] == "pspin_cluster")


def gates(*parts: str) -> float:
    """Return the GE of the logic of some parts of the whole unit."""
    return sum(row["gates"] * row["count"] for row in units if row["part"] in parts)


def bits(*parts: str) -> float:
    """Return the bits of the memories of some parts of the whole unit."""
    return sum(row["memory_bits"] * row["count"] for row in units if row["part"] in parts)


def area(*parts: str) -> float:
    """Return the area of some parts in mm2; memories other than L2 have the area of L1."""
    memories = sum(bits(part) * BIT_UM2.get(part, BIT_UM2["L1"]) for part in parts)
    return (gates(*parts) * GE_UM2 / DENSITY + memories) / 1e6


# The paper counts the macros of L1 and L2 as such, and their controllers with the interconnects.
def macros(part: str) -> float:
    """Return the area of the memories of a part in mm2."""
    return bits(part) * BIT_UM2[part] / 1e6


def logic(*parts: str) -> float:
    """Return the area of the logic of some parts in mm2."""
    return gates(*parts) * GE_UM2 / DENSITY / 1e6


everything = {row["part"] for row in units}
longest = {row["unit"]: row["path"]["fo4"] for row in units}
AREAS = {
    1: area(*everything),
    2: macros("L2"),
    3: area("interconnect") + logic("L2"),
    4: area(*CLUSTER),
    5: macros("L1") / clusters,
    6: area("cores") / clusters,
    7: area("instruction cache") / clusters,
    8: (area("interconnect of the cluster") + logic("L1")) / clusters,
}
FOUND = {
    "scheduler_area": area("scheduler"),
    "cluster_area": area(*CLUSTER) / clusters,
    "core_kge": gates("cores") / 1e3 / sum(row["count"] for row in units if row["part"] == "cores"),
    "plain_core_kge": cores["without both"],
    "core_v_kge": cores["with both"] - cores["without CORE-V"],
    "atomic_kge": cores["without CORE-V"] - cores["without both"],
    "cache_and_interconnect_kge": gates("instruction cache", "interconnect of the cluster", "L1") / 1e3 / clusters,
    "l2_kib": bits("L2") / 8192,
    "l1_kib": bits("L1") / 8192 / clusters,
    "memory_area_share": 100 * (macros("L2") + macros("L1")) / area(*everything),
    "longest_path_fo4": max(longest.values()),
    "path_over_core": max(path for unit, path in longest.items() if unit != "pspin_core") / longest["pspin_core"],
}

for row in map(int, sys.argv[1].split(",")):
    print(json.dumps({"component": row, "data_ok": True, "area_mm2": AREAS[row]} | FOUND))
