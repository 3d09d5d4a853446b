# SPDX-License-Identifier: Apache-2.0
"""MPI programs traced under MPICH and Open MPI, and schedules made of the traces."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.simulate import _mpi_trace

from .traced import OPEN_MPI, RANKS, ROOT, Message, Mpi, goal, messages

# Collective access to files is named, not simulated.
LACKING = ("File_close", "File_open", "File_write_at_all")


def point_to_point(all_messages: Counter[Message]) -> Counter[Message]:
    """The messages in the even matching spaces, which belong to the programs."""
    return Counter({message: n for message, n in all_messages.items() if int(message[3] or 0) % 2 == 0})


def expected_sends(me: int) -> Counter[Message]:
    """The messages that rank `me` of calls.c sends by point-to-point calls."""
    sent: list[Message] = [((me + 1) % RANKS, 1000, "7", "")]
    if me < RANKS - 1:
        sent += [(me + 1, 800, "1", ""), *[(me + 1, 1600, "3", "")] * 3, (me + 1, 400, "4", "")]
    if me > 0:
        sent += [(me - 1, 800, "2", ""), (0, 4, str(100 + me), ""), (0, 4, "200", "")]
    # The halves are in reverse order: ranks 2 and 3 come first. Communicators are numbered by rank 0's traces first:
    # MPI_COMM_WORLD, MPI_COMM_SELF, the half of the even ranks, the copy (6), the ring.
    if me == 2:
        sent.append((0, 300, "5", "4"))
    if me == 3:
        sent += [(1, 300, "5", "12"), (1, 33, "6", "6")]
    return Counter(sent)


def test_sends_are_those_of_the_program(mpi: Mpi) -> None:
    for me, found in enumerate(messages(mpi.folder / "trace", "send")):
        assert point_to_point(found) == expected_sends(me), me


def test_wildcards_are_kept_or_resolved(mpi: Mpi) -> None:
    kept = messages(mpi.folder / "trace", "recv", "--wildcards", "keep")
    assert kept[0][(-1, 4, "200", "")] == 3
    assert kept[0][(-1, 4, "any", "")] == 3
    assert kept[1][(3, 300, "any", "12")] == 1
    resolved = messages(mpi.folder / "trace", "recv")
    for other in (1, 2, 3):
        assert resolved[0][(other, 4, "200", "")] == 1
        assert resolved[0][(other, 4, str(100 + other), "")] == 1
    assert resolved[1][(3, 300, "5", "12")] == 1
    # The message that a matched probe has found is known in both cases.
    assert kept[1][(3, 33, "6", "6")] == resolved[1][(3, 33, "6", "6")] == 1


def test_schedules_finish_with_every_message_received(mpi: Mpi) -> None:
    schedule = mpi.folder / "checked.bin"
    choices = "allreduce=ring,alltoall=pairwise,bcast=pipeline,gather=linear,scatter=linear,allgather=ring"
    for options in ([], ["--wildcards", "keep"], ["--extrapolate", "5"], ["--collectives", choices]):
        assert goal("import", mpi.folder / "trace", "-o", schedule, *options).returncode == 0
        done = goal("check", schedule)
        assert done.returncode == 0, done.stderr


def test_collectives_move_what_the_program_says(mpi: Mpi) -> None:
    options = ("--collectives", "gather=linear,scatter=linear,allgather=ring")
    everything = messages(mpi.folder / "trace", "send", *options)
    world = [Counter({m[:3]: n for m, n in found.items() if m[3] == "1"}) for found in everything]
    sizes = [Counter[int]() for _ in range(RANKS)]
    for me, found in enumerate(world):
        for (_, size, _), count in found.items():
            sizes[me][size] += count
    # Dissemination takes two rounds for the barrier, and two for the creation of each communicator.
    assert [size[1] for size in sizes] == [6] * RANKS
    # Broadcast of 64 bytes from 1; reduction of 64 bytes to 3: three messages each.
    assert sum(size[64] for size in sizes) == 6
    # Ring all-gather of 8 bytes: each passes on three parts; with the 8 bytes of the scan (3 + 2 messages in all).
    assert sum(size[8] for size in sizes) == 12 + 5
    assert [size[9] for size in sizes] == [3] * RANKS
    assert [size[5] for size in sizes] == [0, 1, 1, 1]
    assert [size[6] for size in sizes] == [3, 0, 0, 0]
    # To rank 2 by gatherv, everyone's part; from everyone to r by alltoallv, 10 (r + 1); around by allgatherv, all but
    # the next one's part.
    for me in range(RANKS):
        by_gatherv = Counter([10 * (me + 1)] if me != 2 else [])
        by_alltoallv = Counter(10 * (rank + 1) for rank in range(RANKS) if rank != me)
        by_allgatherv = Counter(10 * (rank + 1) for rank in range(RANKS) if rank != (me + 1) % RANKS)
        expected = by_gatherv + by_alltoallv + by_allgatherv
        assert Counter({size: sizes[me][size] for size in (10, 20, 30, 40)}) == expected, me


def test_rare_calls_are_recorded(mpi: Mpi) -> None:
    done = mpi.trace("rare", "rare", str(mpi.folder / "file"))
    assert done.returncode == 0, done.stderr
    assert "MPI_THREAD_MULTIPLE cannot be traced" in done.stderr
    schedule = mpi.folder / "rare.goal"
    for options in (["--extrapolate", "3"], ["--wildcards", "keep"], []):
        imported = goal("import", mpi.folder / "rare", "-o", schedule, *options)
        warnings = [f"spinkit goal: warning: MPI_{name} is not in the schedule (4 ranks call it)\n" for name in LACKING]
        assert (imported.returncode, imported.stderr) == (0, "".join(warnings))
        checked = goal("check", schedule)
        assert checked.returncode == 0, checked.stderr
    sent: Counter[tuple[int, int, int]] = Counter()
    for me, block in enumerate(schedule.read_text().split("\nrank ")[1:]):
        sent.update((me, int(to), int(size)) for size, to in re.findall(r"send (\d+)b to (\d+)", block))
    expected = {
        # Across the intercommunicator: a message, a broadcast from 2 to 1 and 3, a gather from 0 and 2 to 1.
        **dict.fromkeys([(2, 1, 70), (2, 1, 80), (2, 3, 80), (0, 1, 3), (2, 1, 5)], 1),
        # Scatter over 3, 1, 0 from 3: half the tree is a single rank.
        **dict.fromkeys([(3, 1, 19), (3, 0, 19)], 1),
    }
    for me in range(RANKS):
        up, over, down = (me + 1) % RANKS, (me + 2) % RANKS, (me + 3) % RANKS
        expected |= {(me, over, 10): 1, (me, up, 20): 1, (me, up, 15): 4, (me, up, 17): 1, (me, up, 18): 1}
        expected |= {(me, up, 400): 2}
        # On the torus twice to the other row, around both ways, and once to the other column; with the 8 bytes to both
        # neighbours of the last all-to-all.
        beside = me ^ 1
        eights = Counter({(me, over, 8): 2}) + Counter([(me, beside, 8), (me, up, 8), (me, down, 8)])
        expected |= eights
    of_interest = {size for _, _, size in expected}
    assert {key: n for key, n in sent.items() if key[2] in of_interest} == expected


def test_report_counts_calls_and_times(mpi: Mpi) -> None:
    report = _mpi_trace.report(_paths.command("spinkit-goal"), mpi.folder / "trace")
    assert report.warnings == []
    assert [rank.messages for rank in report.ranks] == [sum(expected_sends(me).values()) for me in range(RANKS)]
    assert [rank.collectives for rank in report.ranks] == [20] * RANKS
    for rank in report.ranks:
        assert 0 < rank.compute_ns < rank.total_ns
        assert 0 < rank.mpi_ns < rank.total_ns
        assert 0 < rank.compute_share < 1


def test_a_program_that_aborts_leaves_its_records(mpi: Mpi) -> None:
    done = mpi.trace("calls", "aborted", "abort", options=("--gzip",))
    assert done.returncode != 0
    lines = re.findall(r"warning: rank (\d): its trace is cut off .*: (\d+) calls are used", done.stdout)
    # Each rank has sent, received and reached a barrier; a rank that is killed may leave only its start.
    assert ("2", "3") in lines
    read = json.loads(goal("import", mpi.folder / "aborted", "--json", "-").stdout)
    assert read["ranks"][2]["messages"] == 1


def test_a_trace_ends_where_its_program_aborts(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MPICH's `MPI_Abort` may return before its launcher ends the program, so here one returns always."""
    source, library = tmp_path / "returns.c", tmp_path / "returns.so"
    source.write_text("int PMPI_Abort(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    monkeypatch.setitem(mpi.environment, "LD_PRELOAD", str(library))
    done = mpi.trace("calls", "goes-on", "abort")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"warning: rank (\d): its trace is cut off .*: (\d+) calls are used", done.stdout) == [("2", "3")]


def test_the_library_is_built_once(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", mpi.environment["XDG_CACHE_HOME"])
    mpicc = str(mpi.bin / "mpicc")
    first = _mpi_trace.library(ROOT, mpicc)
    made = first.stat().st_mtime_ns
    assert _mpi_trace.library(ROOT, mpicc).stat().st_mtime_ns == made
    assert _mpi_trace.compiler(str(mpi.bin / "mpirun"), None) == mpicc


def test_programs_that_cannot_be_traced_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SpinkitError, match="nowhere: no such compiler"):
        _mpi_trace.compiler("mpirun", "nowhere")
    with pytest.raises(SpinkitError, match="nowhere: No such file"):
        _mpi_trace.command_line(("nowhere",), {})
    with pytest.raises(SpinkitError, match="no traces: expected rank-0"):
        _mpi_trace.report(_paths.command("spinkit-goal"), tmp_path)
    fake = tmp_path / "mpicc"
    fake.write_text("#!/bin/sh\necho no mpi.h >&2\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(SpinkitError, match=r"cannot compile the tracer:\nno mpi\.h"):
        _mpi_trace.library(ROOT, str(fake))
    # One that does not live to tell its kind is not taken for another kind.
    killed = tmp_path / "mpiexec"
    killed.write_text("#!/bin/sh\nkill -SYS $$\n")
    killed.chmod(0o755)
    with pytest.raises(SpinkitError, match="mpiexec --version was ended by SIGSYS"):
        _mpi_trace.command_line((str(killed),), {})
    # A launcher of another kind gets the variables in its environment.
    words, environment = _mpi_trace.command_line(("true", "x"), {"LD_PRELOAD": "lib"})
    assert (words, environment["LD_PRELOAD"]) == (["true", "x"], "lib")


FORTRAN = pytest.mark.skipif(shutil.which("mpif90") is None, reason="no Fortran compiler of an MPI; PyPI's have none")


def trace_fortran(source: str, folder: Path) -> Path:
    """Trace a program of tests/traces under the MPI of the system."""
    program = folder / source
    subprocess.run(["mpif90", ROOT / "tests" / "traces" / f"{source}.f90", "-o", program], cwd=folder, check=True)
    environment = os.environ | OPEN_MPI | {"XDG_CACHE_HOME": str(folder), "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    launch = ("mpirun", "-n", str(RANKS), program)
    command = [sys.executable, "-m", "spinkit", "trace", "-o", folder / "trace", *launch]
    subprocess.run(command, env=environment, capture_output=True, timeout=120, check=True)
    return folder / "trace"


@FORTRAN
def test_fortran_calls_are_recorded_like_those_of_c(tmp_path: Path) -> None:
    trace = trace_fortran("fortran", tmp_path)
    for me, found in enumerate(messages(trace, "send")):
        up = (me + 1) % RANKS
        assert point_to_point(found) == Counter([(up, 80, "5", ""), (up, 24, "6", "")])
    for me, found in enumerate(messages(trace, "recv")):
        assert found[((me - 1) % RANKS, 80, "5", "")] == 1


@FORTRAN
def test_calls_by_mpi_f08_are_recorded_like_those_of_c(tmp_path: Path) -> None:
    trace = trace_fortran("fortran08", tmp_path)
    sent = messages(trace, "send")
    for me, found in enumerate(sent):
        up, down = (me + 1) % RANKS, (me - 1) % RANKS
        to = Counter((message[0], message[1]) for message, n in found.items() for _ in range(n))
        # The put, the answer to the get, and around the ring.
        assert (to[up, 100], to[down, 200], to[up, 44]) == (1, 1, 1)
        # All to all 8 and 12 bytes, and 28 to each neighbour.
        assert (to[up, 8], to[down, 12], to[up, 28], to[down, 28]) == (1, 1, 1, 1)
    # Three others count at rank 0, which answers each.
    assert sum(n for message, n in sent[0].items() if message[1] == 4) == 3
    done = goal("check", trace.parent / "schedule.goal")
    assert done.returncode == 0, done.stderr
