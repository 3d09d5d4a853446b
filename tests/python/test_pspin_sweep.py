# SPDX-License-Identifier: Apache-2.0
"""`spinkit pspin sweep`: points, table, JSON, plot, and refusals."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from spinkit import _paths


def sweep(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(_paths.command("spinkit")), "pspin", "sweep", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_throughput_is_that_of_the_law(tmp_path: Path) -> None:
    words = "--clusters 1,2 --hpus 4 --sizes 64 --instructions 40,90 --packets 2048 --json s.json --plot s.svg"
    done = sweep(tmp_path, *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5
    told = json.loads((tmp_path / "s.json").read_text())
    points = {(one["clusters"], one["instructions"]): one["report"] for one in told["points"]}
    assert set(points) == {(1, 40), (1, 90), (2, 40), (2, 90)}
    for (clusters, instructions), report in points.items():
        # Each HPU takes a packet in x + 10 cycles, and is taken for one more to begin the next.
        law = clusters * 4 * 64 * 8 / (instructions + 11)
        assert report["throughput"]["in_gbit_s"] == pytest.approx(law, rel=0.05)
    assert (tmp_path / "s.svg").read_bytes().startswith(b"<?xml")


def test_a_source_gets_the_length_as_x(tmp_path: Path) -> None:
    (tmp_path / "own.c").write_text(
        "#include <handler.h>\n"
        '__handler__ void own_ph(handler_args_t *args) { for (int i = 0; i < X; i++) asm volatile("nop"); }\n'
        "void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {}\n"
    )
    words = "own.c --clusters 1 --hpus 1 --sizes 64 --instructions 1,200 --packets 64 --json s.json"
    done = sweep(tmp_path, *words.split())
    assert (done.returncode, done.stderr) == (0, "")
    few, many = (
        one["report"]["handler_cycles"]["payload"]["min"]
        for one in json.loads((tmp_path / "s.json").read_text())["points"]
    )
    assert many > few + 200


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("--clusters 1,x", 2, "'--clusters': must be whole numbers with commas between them, is 1,x"),
        ("--hpus 0", 2, "'--hpus': must be at least 1, is 0"),
        ("--sizes 64,64", 2, "'--sizes': a value occurs twice: 64,64"),
        ("--sizes 64,65,66,67,68,69,70", 2, "'--sizes': at most 6 curves can be told apart, there are 7"),
        ("--plot s.gif", 2, "'--plot': s.gif must end in .svg or .png"),
        (
            "--machine sc17-int --clusters 1 --hpus 1 --sizes 64 --instructions 0",
            1,
            'only accelerator.kind = "pspin" has it',
        ),
    ],
)
def test_what_cannot_be_swept_is_told(words: str, status: int, message: str, tmp_path: Path) -> None:
    done = sweep(tmp_path, *words.split())
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
