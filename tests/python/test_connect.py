# SPDX-License-Identifier: Apache-2.0
"""Channels: spin/connect.h, and the program that the sPIN talk prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from spinkit import _paths

PROGRAMS = Path(__file__).parents[1] / "programs"


def run(folder: Path, name: str, *options: str) -> str:
    program, source = folder / name, PROGRAMS / f"{name}.c"
    subprocess.run([_paths.command("spincc"), "-Wall", "-Werror", source, "-o", program], check=True)
    command: list[str | Path] = [_paths.command("spinrun"), *options, program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("machine", "others_ps"), [("sc17-int", 560_028), ("sc17-dis", 1_160_170)])
def test_the_program_of_the_talk_compiles_as_printed(machine: str, others_ps: int, tmp_path: Path) -> None:
    """The sum by hand of docs/validation.md (8 bytes, stream) without handlers, and the 24 cycles of these."""
    lines = run(tmp_path, "talk", "-n", "2", "--machine", machine).splitlines()
    half_ps = (others_ps + 24 * 400) // 2
    assert lines[1:] == [f"ping {half_ps / 1000:.3f} ns"] * 2


def test_channels_have_memory_state_and_match_bits_of_their_own(tmp_path: Path) -> None:
    assert run(tmp_path, "channels", "-n", "3") == ""
