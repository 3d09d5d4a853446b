# SPDX-License-Identifier: Apache-2.0
"""Runs LAMMPS and HPCC under spinrun, and writes programs.json: `python experiments/mpi/programs/measure.py`.

They are external programs; docs/mpi.md has their sources. `--lmp` and `--hpcc`
name them, if they are not on the PATH. A program that is not there is named, and keeps the numbers that were measured
before.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from spinkit.common._output import write_atomically

HERE = Path(__file__).resolve().parent
INPUTS = HERE.parent / "traces"
NICS = ("rdma", "portals4", "spin")
STEP = re.compile(r"^ +\d+( +-?[\d.]+){5} *$", re.MULTILINE)
"""A line of LAMMPS with its results: step, temperature, energies and pressure."""
FFT_PARTS = range(7)
SIZE = 2_000_000
"""Bytes of a long message of HPCC's latency and bandwidth tests."""

Numbers = dict[str, dict[str, float]]
"""The numbers of each row of the experiment."""


class WrongError(Exception):
    """A program failed, or gave another result than it must."""


def run(nic: str, ranks: int, command: list[str], folder: Path) -> tuple[str, int]:
    """Run a program on cards of a kind; return its output, and the bytes that the hosts' CPUs copied."""
    report = folder / "report.json"
    spinrun = ["spinrun", "-n", str(ranks), "--nic", nic, "--clock", "simulated", "--json", str(report)]
    one_thread = ["-x", "OMP_NUM_THREADS=1", "-x", "OPENBLAS_NUM_THREADS=1"]
    done = subprocess.run([*spinrun, *one_thread, *command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WrongError(f"{command[0]} on {nic}, {ranks} ranks: status {done.returncode}\n{done.stderr}")
    cards = json.loads(report.read_text(encoding="utf-8"))["cards"]
    return done.stdout, sum(card["host_written_bytes"] for card in cards)


def lammps(nic: str, program: str, folder: Path) -> tuple[Numbers, str]:
    """Run the melt on 16 and 64 ranks; return the times, and the results that must be equal on all cards."""
    numbers: Numbers = {}
    physics = []
    for row, ranks in (("melt-16", 16), ("melt-64", 64)):
        command = [program, "-in", str(INPUTS / "melt.in"), "-log", "none"]
        output, copied = run(nic, ranks, command, folder)
        steps = [line[0] for line in STEP.finditer(output)]
        loop = re.search(r"^Loop time of ([\d.e+-]+) on", output, re.MULTILINE)
        if not loop or not steps:
            raise WrongError(f"{program} on {nic}, {ranks} ranks: it has printed no steps and no time\n{output}")
        numbers[row] = {
            "time_ps": picoseconds(float(loop[1])),
            "copied_bytes": copied,
            "result": float(steps[-1].split()[4]),
        }
        physics += steps
    return numbers, "\n".join(physics)


def hpcc(nic: str, program: str, folder: Path) -> tuple[Numbers, str]:
    """Run all tests on 16 and 64 ranks; return the times, and the results that must be equal on all cards."""
    numbers: Numbers = {}
    kept = []
    for ranks in (16, 64):
        found = hpcc_tests(nic, ranks, program, folder)
        times = {
            "random-access": float(found["MPIRandomAccess_time"]),
            "fft": sum(float(found[f"MPIFFT_time{part}"]) for part in FFT_PARTS),
            "ring-8": float(found["RandomlyOrderedRingLatency_usec"]) / 1e6,
            "ring-2M": SIZE / (float(found["RandomlyOrderedRingBandwidth_GBytes"]) * 1e9),
        }
        suffix = "" if ranks == 16 else f"-{ranks}"
        numbers |= {row + suffix: {"time_ps": picoseconds(seconds)} for row, seconds in times.items()}
        if ranks == 16:  # The grid of HPL has 16 ranks, and a ping-pong has two, however many there are.
            ping_pong_2m = SIZE / (float(found["AvgPingPongBandwidth_GBytes"]) * 1e9)
            numbers |= {
                "hpl": {"time_ps": picoseconds(float(found["HPL_time"])), "result": float(found["HPL_RnormI"])},
                "ping-pong-8": {"time_ps": picoseconds(float(found["AvgPingPongLatency_usec"]) / 1e6)},
                "ping-pong-2M": {"time_ps": picoseconds(ping_pong_2m)},
            }
        same = ("HPL_RnormI", "HPL_Xnorm1", "PTRANS_residual", "MPIFFT_maxErr", "MPIRandomAccess_ExeUpdates")
        kept += [f"{ranks} ranks: {key}={found[key]}" for key in same]
    return numbers, "\n".join(kept)


def hpcc_tests(nic: str, ranks: int, program: str, folder: Path) -> dict[str, str]:
    """Run HPCC on some ranks, check that its tests pass, and return the numbers that it reports."""
    shutil.copy(INPUTS / "hpccinf.txt", folder)
    (folder / "hpccoutf.txt").unlink(missing_ok=True)  # it would be written behind what is there
    run(nic, ranks, [program], folder)
    output = (folder / "hpccoutf.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(\w+)=(\S+)$", output, re.MULTILINE))
    failed = re.findall(r"^ *(\d+) tests completed and failed", output, re.MULTILINE)
    errors = {key: int(found.get(key, -1)) for key in ("MPIRandomAccess_Errors", "MPIRandomAccess_LCG_Errors")}
    if found.get("Success") != "1" or len(failed) != 2 or set(failed) != {"0"} or any(errors.values()):
        raise WrongError(
            f"{program} on {nic}, {ranks} ranks: a test has failed: {failed} of PTRANS and HPL, "
            f"errors {errors}\n{output}"
        )
    return found


def picoseconds(seconds: float) -> int:
    """Return a time in picoseconds."""
    return round(seconds * 1e12)


def measure(name: str, program: str, runner: Callable[[str, str, Path], tuple[Numbers, str]]) -> dict[str, Numbers]:
    """Run a program on all cards, which must not change its results."""
    numbers, results = {}, {}
    for nic in NICS:
        print(f"{name} on {nic}", flush=True)
        with TemporaryDirectory() as folder:
            numbers[nic], results[nic] = runner(nic, program, Path(folder))
        if results[nic] != results[NICS[0]]:
            raise WrongError(f"{name} computes on {nic}\n{results[nic]}\nand on {NICS[0]}\n{results[NICS[0]]}")
    return numbers


def main() -> int:
    """Run everything that is installed."""
    parser = argparse.ArgumentParser(description="Run LAMMPS and HPCC under spinrun, and write what they measure.")
    parser.add_argument("--lmp", default="lmp", help="LAMMPS")
    parser.add_argument("--hpcc", default="hpcc", help="HPCC, linked with MPICH")
    parser.add_argument("--out", type=Path, default=HERE / "programs.json", help="the file to write")
    options = parser.parse_args()
    written = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {"results": {}}
    missing = 0
    for name, program, runner in (("LAMMPS", options.lmp, lammps), ("HPCC", options.hpcc, hpcc)):
        found = shutil.which(program)
        if found is None:
            print(f"{name} is not installed: there is no {program}; docs/mpi.md says how to get it", file=sys.stderr)
            missing += 1
            continue
        try:
            numbers = measure(name, str(Path(found).absolute()), runner)
        except WrongError as error:
            print(error, file=sys.stderr)
            return 1
        for nic, rows in numbers.items():
            written["results"].setdefault(nic, {}).update(rows)
    written["command"] = "python experiments/mpi/programs/measure.py"
    written["machine"] = "sc17-int"
    write_atomically(options.out, (json.dumps(written, indent=1, sort_keys=True) + "\n").encode())
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
