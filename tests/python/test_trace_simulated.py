# SPDX-License-Identifier: Apache-2.0
"""MPI programs traced under spinrun: their calls in its timeline, and schedules that take the time of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths
from spinkit.simulate import _mpi_trace, _perfetto
from spinkit.simulate._perfetto import Slice

from .traced import ROOT, goal

RANKS = 4


@dataclass(frozen=True)
class Traced:
    folder: Path
    reports: list[dict[str, Any]]
    """Reports of `spinkit goal import` for each rank."""

    @property
    def time_ns(self) -> int:
        """Return the time from the end of MPI_Init to MPI_Finalize of the slowest rank."""
        return max(rank["total_ns"] for rank in self.reports)

    def replayed_ns(self, *options: str) -> float:
        """Return the time of a schedule of the traces on the same cards."""
        schedule, report = self.folder / "schedule.bin", self.folder / "replay.json"
        assert goal("import", self.folder / "trace", "-o", schedule).returncode == 0
        done = goal("run", schedule, "--model", "nic", "--machine", "sc17-int", "--polling", *options, "--json", report)
        assert done.returncode == 0, done.stderr
        return float(json.loads(report.read_text())["max_end_ns"])


def trace(folder: Path, name: str, ranks: int, *arguments: str) -> Traced:
    """Compile a program of an experiment, and trace it on Portals 4 cards, with a timeline."""
    source = ROOT / "experiments" / "mpi" / name.removeprefix("mpi-") / f"{name}.c"
    subprocess.run([_paths.mpicc(), "-O2", source, "-lm", "-o", folder / name], check=True)
    spinrun = [str(_paths.command("spinrun")), "-n", str(ranks), "--nic", "portals4", "--clock", "simulated"]
    command = [*spinrun, "--timeout", "300", "--trace", str(folder / "timeline"), str(folder / name), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "spinkit", "trace", "-o", str(folder / "trace"), *command],
        env=os.environ | {"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = goal("import", folder / "trace", "--json", "-")
    assert imported.returncode == 0, imported.stderr
    return Traced(folder, json.loads(imported.stdout)["ranks"])


@pytest.fixture(scope="module")
def cg(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return trace(tmp_path_factory.mktemp("cg"), "mpi-apps", RANKS, "--app", "cg", "--ranks", str(RANKS))


def rows(slices: list[Slice], rank: int, row: str) -> list[Slice]:
    return [one for one in slices if (one.process, one.row) == (f"rank {rank}", row)]


def test_calls_of_mpi_are_slices_around_what_they_make_the_cpu_do(cg: Traced) -> None:
    slices = _perfetto.read(cg.folder / "timeline")
    for rank, report in enumerate(cg.reports):
        cpu = rows(slices, rank, "CPU")
        calls = [one for one in cpu if one.name.startswith("MPI_")]
        # 25 iterations with the two neighbours of a corner; calls for the other two do nothing and take no time.
        counts = Counter(one.name for one in calls)
        assert (counts["MPI_Isend"], counts["MPI_Irecv"], counts["MPI_Waitall"]) == (50, 50, 25)
        assert sum(counts.values()) == report["calls"]
        # The tracer omits calls that only free objects, some of which are at the end.
        begin = min(one.start for one in calls if one.name == "MPI_Irecv")
        end = max(one.end for one in calls if one.name == "MPI_Waitall")
        work = [one for one in cpu if one.name in ("post", "poll", "copy") and begin <= one.start < end]
        assert len(work) > 25 * 4
        for one in work:
            assert any(call.start <= one.start and one.end <= call.end for call in calls), one


def test_a_post_leads_to_the_packets_of_its_message(cg: Traced) -> None:
    slices = _perfetto.read(cg.folder / "timeline")
    sends = [one for one in rows(slices, 0, "CPU") if one.name == "MPI_Isend"]
    posts = [one for one in rows(slices, 0, "CPU") if one.name == "post" and "message" in one.arguments]
    arrived = {
        (one.arguments["sender"], one.arguments["message"])
        for rank in range(1, RANKS)
        for one in rows(slices, rank, "NIC in")
        if one.name == "put"
    }
    messages = [
        (post.arguments["sender"], post.arguments["message"])
        for send in sends
        for post in posts
        if send.start <= post.start and post.end <= send.end
    ]
    # Two of the four neighbours of a corner are there.
    assert len(messages) == 50
    assert set(messages) <= arrived


def test_a_schedule_of_an_application_takes_the_time_of_the_run(cg: Traced) -> None:
    assert cg.replayed_ns("--inject", "64") == pytest.approx(cg.time_ns, rel=0.05)


@pytest.mark.parametrize(
    ("test", "size"),
    [
        ("latency", 8),
        ("latency", 4096),
        ("latency", 8192),
        ("latency", 65536),
        ("bandwidth", 8192),
        ("bandwidth", 65536),
    ],
)
def test_a_schedule_of_messages_takes_the_time_of_the_run(test: str, size: int, tmp_path: Path) -> None:
    traced = trace(tmp_path, "mpi-latency", 2, "--test", test, "--bytes", str(size))
    options = ("--inject", "64", "-S", "8192")
    assert traced.replayed_ns(*options) == pytest.approx(traced.time_ns, rel=0.05)


def test_the_tracer_for_spinrun_is_that_of_its_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert _mpi_trace.compiler("/somewhere/spinrun", None) == str(_paths.mpicc())
    words, _ = _mpi_trace.command_line((str(_paths.command("spinrun")), "-n", "2", "program"), {"A": "1"})
    assert words[1:] == ["-x", "A=1", "-n", "2", "program"]
