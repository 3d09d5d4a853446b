# SPDX-License-Identifier: Apache-2.0
"""A home folder with the real machines and an experiment (ping-pong.toml), run by fake tools that print fixed times."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths
from spinkit.simulate._toolchain import Toolchain

from .traced import PROCESSORS, Mpi

CHECKOUT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).parent / "fake_tools"
SAMPLE = Path(__file__).parent / "ping-pong.toml"
TOOLS = Toolchain(FAKES / "spincc", FAKES / "spinrun", FAKES / "spinkit-goal", FAKES / "spinkit-pspin")

# [ps, ps per byte]; if two more numbers follow, they apply to more than 4 KiB.
# At 8 B on the integrated card: RDMA 1,000,160 ps, streaming 600,120 ps.
TIMES = {
    "sc17-int": {
        "rdma": [1_000_000, 20],
        "triggered": [900_000, 20],
        "store": [600_008, 15, 900_000, 20],
        "stream": [600_000, 15],
    },
    "sc17-dis": {
        "rdma": [2_000_000, 30],
        "triggered": [1_800_000, 29],
        "store": [600_008, 20, 1_800_000, 29],
        "stream": [600_000, 20],
    },
}

Program = Callable[..., None]


def pytest_configure() -> None:
    """Share compiler output among all tests, and give each process that runs tests a processor.

    A simulator and its ranks switch quickly on one processor.
    """
    os.environ.setdefault("SPIN_CACHE", str(CHECKOUT / ".cache" / "zig"))
    # With it, spinrun fails if a handler fails, as those of many tests do.
    os.environ.pop("CI", None)
    number, count = (os.environ.get(f"PYTEST_XDIST_WORKER{rest}", "") for rest in ("", "_COUNT"))
    if number and int(count) >= len(PROCESSORS):
        os.sched_setaffinity(0, {PROCESSORS[int(number.removeprefix("gw")) % len(PROCESSORS)]})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home folder and let spinkit find it and the fake tools."""
    folder = tmp_path / "home"
    (folder / "sdk" / "include").mkdir(parents=True)
    (folder / "sdk" / "include" / "portals4.h").touch()
    shutil.copytree(CHECKOUT / "machines", folder / "machines")
    (folder / "experiments" / "sc17" / "ping-pong").mkdir(parents=True)
    shutil.copy(SAMPLE, folder / "experiments" / "sc17" / "ping-pong" / "ping-pong.toml")
    monkeypatch.setenv("SPINKIT_HOME", str(folder))
    real = _paths.command
    monkeypatch.setattr(_paths, "command", lambda name: FAKES / name if (FAKES / name).exists() else real(name))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def program(home: Path) -> Program:
    """Write the fake program; by default it has no faults."""

    def write(**changes: Any) -> None:
        content = {"times": TIMES, **changes}
        (home / "experiments" / "sc17" / "ping-pong" / "ping-pong.c").write_text(json.dumps(content))

    write()
    return write


@pytest.fixture(scope="session", params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    """Trace tests/traces/calls.c under an MPI, and return the MPI for further programs."""
    found = Mpi(request.param, tmp_path_factory.mktemp(request.param))
    done = found.trace("calls", "trace")
    assert done.returncode == 0, done.stderr
    return found
