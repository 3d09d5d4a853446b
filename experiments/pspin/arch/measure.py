# SPDX-License-Identifier: Apache-2.0
"""Measures the use cases on this computer's cores, and writes x86.json: `python experiments/pspin/arch/measure.py`.

Wall-clock times differ from run to run, so one measurement is data of the experiment. Of several runs, the one with
the smallest median counts, because the others were disturbed.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from spinkit.common._output import write_atomically

HERE = Path(__file__).resolve().parent
HANDLERS = HERE.parents[2] / "sdk" / "handlers" / "pspin"
NAMES = ("reduce", "aggregate", "filtering", "kvstore", "strided_ddt", "histogram")
THREADS = (1, 2)
RUNS = 25
SIZE = 1024


def environment() -> dict[str, str]:
    """Return the environment with the variables that the Makefiles need."""
    told = subprocess.run(["spinkit-pspin", "env"], check=True, capture_output=True, text=True).stdout
    words = shlex.split(told.replace("export ", ""))
    return os.environ | dict(word.split("=", 1) for word in words)


def cpu() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def measure(folder: Path, name: str, threads: int, room: Path) -> dict[str, object]:
    """Run a use case and return its best run."""
    found = []
    for _ in range(RUNS):
        report = room / "report.json"
        words = [f"./host_{name}", "-s", str(SIZE), "--threads", str(threads), "--json", str(report)]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        found.append(json.loads(report.read_text(encoding="utf-8")))
    return min(found, key=lambda one: one["ns"]["median"])


def main() -> None:
    """Build and measure everything."""
    compiler = subprocess.run(["gcc", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    with tempfile.TemporaryDirectory() as room:
        handlers = Path(room) / "pspin"
        shutil.copytree(HANDLERS, handlers)
        results = {}
        for name in NAMES:
            subprocess.run(["make", "host"], cwd=handlers / name, env=environment(), check=True, capture_output=True)
            results[name] = {threads: measure(handlers / name, name, threads, Path(room)) for threads in THREADS}
    written = {
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "compiler": f"{compiler}, -O3 -march=native",
        "command": "python experiments/pspin/arch/measure.py",
        "packet_bytes": SIZE,
        "runs": RUNS,
        "results": results,
    }
    write_atomically(HERE / "x86.json", (json.dumps(written, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
