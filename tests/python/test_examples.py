# SPDX-License-Identifier: Apache-2.0
"""Each program of examples/ compiles without a warning, and prints the right output on all kinds of cards."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
STRICT = ["-Wall", "-Wextra", "-Werror"]
MACHINES = ("sc17-int", "sc17-dis", "pspin-400g")


def letters() -> list[str]:
    counts = Counter("the quick brown fox jumps over the lazy dog ")
    return [f"{letter} {3 * 1000 * counts[letter]}" for letter in map(chr, range(ord("a"), ord("z") + 1))]


def alarms() -> list[str]:
    readings = [(rank, (i * 37 + rank * 11) % 100) for rank in (1, 2, 3) for i in range(100)]
    found = [f"alarm: rank {rank} measured {value}" for rank, value in readings if value > 98]
    assert len(found) == 3, "few readings are alarms"
    return [*found, f"the card has seen {len(readings)} readings"]


def rows() -> list[str]:
    asked = [(rank, number) for rank in (1, 2) for number in range(rank, 2000, 499)]
    return [f"rank {r}: row {n} of the table" if n < 1000 else f"rank {r}: there is no row {n}" for r, n in asked]


def extremes() -> str:
    values = [i * i % 10007 * (-1) ** rank for rank in (1, 2, 3) for i in range(10000)]
    return f"from {min(values)} to {max(values)}"


EXPECTED = {
    "hello.c": [f"rank {rank}: HELLO FROM RANK {(rank - 1) % 4}" for rank in range(4)],
    "filter.c": alarms(),
    "counter.c": letters(),
    "kvstore.c": [f"rank {rank}: 20 of 20 values are right; key 99999 is missing" for rank in range(4)],
    "allreduce.c": [f"rank {rank}: the last of 500 sums is {499 * sum(range(1, 9))}" for rank in range(8)],
    "scatter.c": [f"{256 * 64} of 16384 elements are right; row 255 begins at column 24 with {255 * 1000 + 24}"],
    "request_reply.c": rows(),
    "flow_control.c": ["all 31 messages are complete; flow control was needed"],
    "minmax.cpp": [extremes()],
    "python_host.py": [f"the sums are right and the last one is {999 * (1 + 2) / 2}"],
}
# PsPIN's 32 cores are fast enough.
NOT_NEEDED = ["all 31 messages are complete; flow control was not needed"]


def steps(name: str) -> tuple[list[str], list[str]]:
    """Return the two commands in the first lines of a program."""
    [line] = re.findall(r"^(?: \* |// |)(spincc .*?)(?: \*/)?$", (EXAMPLES / name).read_text(), re.MULTILINE)
    compile_it, run_it = (shlex.split(part) for part in line.split(" && "))
    return compile_it, run_it


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_prints_what_is_right(name: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    compile_it, run_it = steps(name)

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        line = [_paths.command(command[0]), *command[1:]]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    compiled = run([*compile_it, *STRICT])
    assert (compiled.returncode, compiled.stderr) == (0, "")
    for machine in MACHINES:
        done = run([*run_it[:1], "--machine", machine, *run_it[1:]])
        assert done.returncode == 0, done.stderr
        expected = NOT_NEEDED if name == "flow_control.c" and machine == "pspin-400g" else EXPECTED[name]
        assert sorted(done.stdout.splitlines()) == sorted(expected), machine
        # The only messages that are lost are those that the example about it repeats.
        assert ("messages lost" in done.stderr) == ("was needed" in expected[0]), done.stderr


def test_the_readme_lists_every_example_and_each_is_short() -> None:
    files = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".c", ".cpp", ".py")}
    listed = re.findall(r"\[([\w.]+)\]\(\1\)", (EXAMPLES / "README.md").read_text())
    assert sorted(listed) == sorted(files)
    assert files - {"python_host.c"} == set(EXPECTED)
    for name in files:
        assert 30 <= len((EXAMPLES / name).read_text().splitlines()) <= 80, name
