# SPDX-License-Identifier: Apache-2.0
"""Tests the import of OTF2 traces, which the tests write with the package `otf2` as Score-P does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.simulate import _otf2

otf2 = pytest.importorskip("otf2")


def _trace(folder: Path, ranks: int, events: Any, paradigm: str = "MPI") -> Path:
    """Write a trace; `events(rank, writer, names)` writes those of a rank. Times are in microseconds."""
    from otf2.enums import GroupType, LocationType, Paradigm

    kind = getattr(Paradigm, paradigm)
    with otf2.writer.open(str(folder), timer_resolution=1_000_000) as trace:
        definitions = trace.definitions
        root = definitions.system_tree_node("node")
        names = {
            name: definitions.region(name, paradigm=kind)
            for name in ["MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce", "work"]
        }
        locations = []
        for rank in range(ranks):
            group = definitions.location_group(f"rank {rank}", system_tree_parent=root)
            locations.append(definitions.location(f"thread {rank}", type=LocationType.CPU_THREAD, group=group))
        writers = [trace.event_writer_from_location(location) for location in locations]
        definitions.group("world", group_type=GroupType.COMM_LOCATIONS, paradigm=kind, members=locations)
        members = definitions.group("all", group_type=GroupType.COMM_GROUP, paradigm=kind, members=locations)
        names["comm"] = definitions.comm("MPI_COMM_WORLD", group=members)
        for rank, writer in enumerate(writers):
            events(rank, writer, names)
    return folder / "traces.otf2"


def _two_ranks(rank: int, writer: Any, names: dict[str, Any]) -> None:
    """Write 10 us of work, a message of 1,000 bytes, 5 us of work, and an all-reduce of 8 bytes."""
    from otf2.enums import CollectiveOp

    comm = names["comm"]
    call = names["MPI_Send" if rank == 0 else "MPI_Recv"]
    writer.enter(100, names["work"])
    writer.enter(110, call)
    if rank == 0:
        writer.mpi_send(111, 1, comm, 7, 1000)
    else:
        writer.mpi_recv(111, 0, comm, 7, 1000)
    writer.leave(112, call)
    writer.enter(117, names["MPI_Allreduce"])
    writer.mpi_collective_begin(117)
    writer.mpi_collective_end(120, CollectiveOp.ALLREDUCE, comm, 0xFFFFFFFF, 8, 8)
    writer.leave(120, names["MPI_Allreduce"])
    writer.leave(121, names["work"])


def _import(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spinkit", "goal", "import", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_trace_becomes_the_schedule_of_its_calls(tmp_path: Path) -> None:
    path = _trace(tmp_path / "trace", 2, _two_ranks)
    done = _import(path, "-o", "-", "--format", "text")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("rank 1 {")
    assert "send 1000b to 1 tag 7" in first
    assert "calc 5000" in first
    assert "recv 1000b from 0 tag 7" in second
    assert "calc 5000" in second
    # Recursive doubling of two ranks: a message of eight bytes in each direction, in the space of collectives.
    assert first.count("send 8b to 1") == 1
    assert second.count("send 8b to 0") == 1
    report = json.loads(_import(path, "--json", "-").stdout)
    assert [rank["messages"] for rank in report["ranks"]] == [1, 0]
    assert [rank["collective_bytes"] for rank in report["ranks"]] == [8, 8]
    assert [rank["compute_ns"] for rank in report["ranks"]] == [6000, 6000]


def test_non_blocking_messages_end_with_their_wait(tmp_path: Path) -> None:
    def events(rank: int, writer: Any, names: dict[str, Any]) -> None:
        comm, other = names["comm"], 1 - rank
        writer.enter(1, names["MPI_Irecv"])
        writer.mpi_irecv_request(2, 10)
        writer.leave(3, names["MPI_Irecv"])
        writer.enter(3, names["MPI_Isend"])
        writer.mpi_isend(4, other, comm, 3, 64, 11)
        writer.leave(5, names["MPI_Isend"])
        writer.enter(9, names["MPI_Waitall"])
        writer.mpi_irecv(10, other, comm, 3, 64, 10)
        writer.mpi_isend_complete(10, 11)
        writer.leave(11, names["MPI_Waitall"])

    done = _import(_trace(tmp_path / "trace", 2, events), "-o", "-", "--format", "text")
    assert done.returncode == 0, done.stderr
    first = done.stdout.split("rank 1 {")[0]
    assert "recv 64b from 1 tag 3" in first
    assert "send 64b to 1 tag 3" in first
    assert "calc 4000" in first


def test_omitted_events_are_warnings_and_unfinished_receives_are_left_out(tmp_path: Path) -> None:
    def events(rank: int, writer: Any, names: dict[str, Any]) -> None:
        writer.mpi_irecv_request(2, 10)
        writer.mpi_request_cancelled(3, 10)

    done = _import(_trace(tmp_path / "trace", 1, events), "-o", "-", "--format", "text")
    assert done.returncode == 0, done.stderr
    assert "warning: 1 x MpiRequestCancelled is not in the schedule" in done.stderr
    assert "recv" not in done.stdout


def test_mistakes_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.otf2").write_bytes(b"OTF2 but not really")
    done = _import(tmp_path / "broken.otf2")
    assert done.returncode == 1
    assert "broken.otf2: no OTF2 trace, or damaged" in done.stderr
    done = _import(tmp_path / "none.otf2")
    assert done.returncode == 1
    assert "expected the anchor file of a trace, such as traces.otf2" in done.stderr
    path = _trace(tmp_path / "threads", 1, lambda *_: None, paradigm="OPENMP")
    with pytest.raises(SpinkitError, match="it has no ranks of MPI"):
        _otf2.convert(path, tmp_path)
    assert _paths.command("spinkit-goal").exists()
