# SPDX-License-Identifier: Apache-2.0
"""Prints the measurements of LAMMPS and HPCC on one kind of card (programs.json, written by measure.py).

Arguments: the kind of card, and the values of the sweep, which number the rows.
"""

import json
import sys
from pathlib import Path

ROWS = (
    "melt-16",
    "melt-64",
    "hpl",
    "random-access",
    "fft",
    "ping-pong-8",
    "ring-8",
    "ping-pong-2M",
    "ring-2M",
    "random-access-64",
    "fft-64",
    "ring-8-64",
    "ring-2M-64",
)
# The CPU time of the melt on 16 ranks, mean of a rank, in experiments/mpi/traces/README.md: 56.4 ms.
COMPUTATION_PS = {"melt-16": 56_400_000_000}

nic, values = sys.argv[1:]
measured = json.loads((Path(__file__).parent / "programs.json").read_text(encoding="utf-8"))["results"][nic]
for value in values.split(","):
    row = ROWS[int(value) - 1]
    point = {"row": int(value), "data_ok": True, **measured[row]}
    if row in COMPUTATION_PS:
        point["application_ps"] = measured[row]["time_ps"] + COMPUTATION_PS[row]
    print(json.dumps(point))
