# SPDX-License-Identifier: Apache-2.0
"""The program behind Fig. 4: handlers of a given time, and what it says when there are none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

SOURCE = Path(__file__).parents[2] / "experiments" / "sc17" / "hpu-count" / "hpu-count.c"


@pytest.mark.parametrize(("clock", "reached_ps", "stderr"), [("2.5", 52_800, ""), ("0.5", 26_000, "of 53.0 ns")])
def test_handlers_take_the_time_that_is_printed(tmp_path: Path, clock: str, reached_ps: int, stderr: str) -> None:
    """At 0.5 GHz one iteration more makes a branch mispredicted, which costs 15 cycles of 2 ns."""
    program = tmp_path / "hpu-count"
    subprocess.run([_paths.command("spincc"), SOURCE, "-o", program], check=True)
    settings = ("accelerator.hpus=16", "accelerator.contexts=16", f"hpu.clock_ghz={clock}")
    options = [part for setting in settings for part in ("--set", setting)]
    laws = ["--gap-ns", "6.7", "--byte-ps", "20", "--clock-ghz", clock]
    laws += ["--injection", "max", "--overlaps", "reception", "--match-ns", "30"]
    arguments = ["--mode", "count", "--sizes", "8", "--hpus", "16", "--handler-ns", "53", *laws]
    command: list[str | Path] = [_paths.command("spinrun"), "-n", "2", *options, program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0
    point = json.loads(done.stdout)
    assert point["handler_ps"] == reached_ps
    assert point["hpus"] == -(-reached_ps // 6_700)
    assert stderr in done.stderr
    assert bool(done.stderr) == bool(stderr)
