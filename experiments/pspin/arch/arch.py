# SPDX-License-Identifier: Apache-2.0
"""Running times of the use cases on x86 (x86.json, written by measure.py), and the paper's printed results.

Arguments: the threads, and the values of the sweep.
"""

import json
import sys
from pathlib import Path

NAMES = {1: "reduce", 2: "aggregate", 3: "filtering", 4: "kvstore", 5: "strided_ddt", 6: "histogram"}
# Section IV-C2: throughput of a RISC-V core over that of a core of the best competitor, x86 (ault) or ARM (zynq).
PAPER = {1: 5.3, 2: 1 / 1.8, 3: 1 / 40, 4: 1.9, 5: 1 / 36, 6: 1.3}
# Table IV: area of a processing element in mm2, scaled to one process and to the same memory.
AREA = {"ault": 35.956, "zynq": 1.752, "pspin": 0.578}

threads, values = sys.argv[1:]
measured = json.loads((Path(__file__).parent / "x86.json").read_text(encoding="utf-8"))["results"]
for value in map(int, values.split(",")):
    ns = measured[NAMES[value]][threads]["ns"]
    times = {"handler_cycles": {"payload": {"mean": ns["median"]}}, "q1_ns": ns["q1"], "q3_ns": ns["q3"]}
    areas = {f"paper_over_{chip}_by_area": PAPER[value] * AREA[chip] / AREA["pspin"] for chip in ("ault", "zynq")}
    print(json.dumps({"use_case": value, "data_ok": True, **times, **areas}))
