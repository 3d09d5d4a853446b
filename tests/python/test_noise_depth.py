# SPDX-License-Identifier: Apache-2.0
"""Noise delays a broadcast by CPUs as much as its tree is deep, and one by cards never, whatever the seed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths

from .conftest import CHECKOUT

DETOUR_NS, INTERVAL_NS = 1000, 9000
WORK_NS = 51 + 30 + 65
ROUNDS = 100


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("noise-depth") / "noise-depth"
    source = CHECKOUT / "experiments" / "beyond" / "noise-depth" / "noise-depth.c"
    subprocess.run([_paths.command("spincc"), "-Wall", "-Wextra", "-Werror", source, "-o", found], check=True)
    return found


def measured(program: Path, mode: str, nic: str, *noise: str) -> list[dict[str, Any]]:
    options = ["-n", "32", "--nic", nic, *noise]
    arguments = ["--mode", mode, "--rounds", str(ROUNDS), "--ranks", "8,32"]
    command: list[str | Path] = [_paths.command("spinrun"), *options, program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("mode", "nic"), [("rdma", "rdma"), ("triggered", "portals4"), ("stream", "spin")])
def test_only_cpus_are_delayed_with_every_seed(program: Path, mode: str, nic: str) -> None:
    quiet = measured(program, mode, nic)
    assert [(one["forwarding"], one["delay_ps"]) for one in quiet] == [(2, 0), (4, 0)]
    detours = f"poisson:{INTERVAL_NS}:{DETOUR_NS}"
    runs = [
        measured(program, mode, nic, "--noise", detours, "--noise-ranks", "1-6,8-30", "--noise-seed", seed)
        for seed in "123"
    ]
    if mode != "rdma":
        assert runs == [quiet] * 3
        return
    by_hand = DETOUR_NS**2 / 2 / (DETOUR_NS + INTERVAL_NS) + WORK_NS * DETOUR_NS / INTERVAL_NS
    assert runs[0] != runs[1] != runs[2]
    for with_noise in zip(*runs, strict=True):
        mean = sum(one["delay_ps"] / 1000 / one["forwarding"] for one in with_noise) / 3
        assert mean == pytest.approx(by_hand, rel=0.3)
