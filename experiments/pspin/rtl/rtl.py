# SPDX-License-Identifier: Apache-2.0
"""Prints the hardware's measurements of this experiment's programs (rtl.json, written by measure.py).

Arguments: the series of the model whose program it was, and the values of the sweep.
"""

import json
import sys
from pathlib import Path

name, values = sys.argv[1:]
measured = json.loads((Path(__file__).parent / "rtl.json").read_text(encoding="utf-8"))["results"][name]
for value in values.split(","):
    print(json.dumps({"size": int(value), "data_ok": True, **measured[value]}))
