# SPDX-License-Identifier: Apache-2.0
"""Programs of tests/traces, traced under the MPIs of requirements-mpi.txt, and the schedules made of the traces."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from spinkit import _paths

ROOT = Path(__file__).parents[2]
RANKS = 4
PROCESSORS = sorted(os.sched_getaffinity(0))
# Options that let mpirun run as root, with more ranks than cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}

Message = tuple[int, int, str, str]


class Mpi:
    """One of the MPIs of requirements-mpi.txt."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.bin = Path(sys.prefix) / "mpi" / name / "bin"
        assert self.bin.is_dir(), "`make test` installs the MPIs of requirements-mpi.txt"
        self.folder = folder
        self.environment = os.environ | OPEN_MPI | {"XDG_CACHE_HOME": str(folder / "cache")}

    def trace(
        self, program: str, out: str, *arguments: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Compile a program of tests/traces and trace it."""
        source, binary = ROOT / "tests" / "traces" / f"{program}.c", self.folder / f"{program}-program"
        subprocess.run([self.bin / "mpicc", "-Wall", "-Werror", source, "-o", binary], check=True)
        launch = [str(self.bin / "mpirun"), "-n", str(RANKS), str(binary), *arguments]
        command = [sys.executable, "-m", "spinkit", "trace", "-o", str(self.folder / out), *options, *launch]
        # Ranks of a real MPI wait without sleeping, so they get all processors.
        return subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, PROCESSORS),
        )


def goal(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinkit-goal")), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def messages(traces: Path, kind: str, *options: str) -> list[Counter[Message]]:
    """Import, and return peer, bytes, tag and matching space of each rank's sends or receives."""
    schedule = traces.parent / "schedule.goal"
    done = goal("import", traces, "-o", schedule, *options)
    assert (done.returncode, done.stderr) == (0, "")
    ranks: list[Counter[Message]] = []
    for block in schedule.read_text().split("\nrank ")[1:]:
        found = re.findall(rf"{kind} (\d+)b (?:to|from) (\w+) tag (\w+)(?: space (\d+))?", block)
        ranks.append(
            Counter((int(peer) if peer != "any" else -1, int(size), tag, space) for size, peer, tag, space in found)
        )
    return ranks
