# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this experiment on the hardware, and writes rtl.json: `python experiments/pspin/rtl/measure.py`.

Programs and options are those of the series in pspin-rtl.toml that the model simulates. The hardware of pspin-400g is
built first, which takes some minutes.
"""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from spinkit.common._output import write_atomically

HERE = Path(__file__).resolve().parent
COMMAND = ["spinkit-pspin", "run", "--engine", "rtl", "--machine", "pspin-400g", "--json", "-"]
KEPT = ("packets", "latency_ns", "request_ns", "throughput", "handler_cycles", "instructions", "cycles")


def measure(experiment: dict[str, Any], series: dict[str, Any], size: int) -> dict[str, object]:
    """Run a series' program with packets of a size, and return its report."""
    print(f"{series['name']}: {size} B", flush=True)
    program = HERE / experiment["program"]["pspin"].replace("{mode}", series["mode"])
    args = [arg.replace("{value}", str(size)) for arg in series["args"]]
    run = subprocess.run(
        [*COMMAND, program, *series.get("flags", ()), *args], check=True, capture_output=True, text=True
    )
    report = json.loads(run.stdout)
    return {key: report[key] for key in KEPT}


def main() -> None:
    """Run everything."""
    experiment = tomllib.loads((HERE / "pspin-rtl.toml").read_text(encoding="utf-8"))
    results = {
        series["name"]: {size: measure(experiment, series, size) for size in experiment["sweep"]["values"]}
        for series in experiment["series"]
        if "script" not in series
    }
    written = {"command": "python experiments/pspin/rtl/measure.py", "machine": "pspin-400g", "results": results}
    write_atomically(HERE / "rtl.json", (json.dumps(written, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
