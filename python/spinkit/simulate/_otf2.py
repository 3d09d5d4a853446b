# SPDX-License-Identifier: Apache-2.0
"""Converts OTF2 traces, as Score-P writes them, to the files of `spinkit trace`, which `spinkit goal import` reads.

The package `otf2` reads the traces (extra `otf2`). The form of the files is that of `sdk/tracer/format.h`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from spinkit._errors import SpinkitError

_MAGIC = b"SPINTRC1"
_BLOCK = 65536
_START, _END, _COMM, _OTHER = 1, 2, 3, 4
_SEND, _ISEND, _RECV, _IRECV, _WAIT = 16, 17, 18, 19, 21
_BARRIER, _BCAST, _REDUCE, _ALLREDUCE, _SCAN, _EXSCAN, _ALLGATHER, _ALLTOALL, _GATHER, _SCATTER, _REDUCE_SCATTER = (
    range(32, 43)
)

# Kind, and true for a root, of each collective whose sizes an OTF2 trace contains.
_COLLECTIVES = {
    "BARRIER": (_BARRIER, False),
    "BCAST": (_BCAST, True),
    "REDUCE": (_REDUCE, True),
    "ALLREDUCE": (_ALLREDUCE, False),
    "SCAN": (_SCAN, False),
    "EXSCAN": (_EXSCAN, False),
    "ALLGATHER": (_ALLGATHER, False),
    "ALLGATHERV": (_ALLGATHER, False),
    "ALLTOALL": (_ALLTOALL, False),
    "ALLTOALLV": (_ALLTOALL, False),
    "ALLTOALLW": (_ALLTOALL, False),
    "GATHER": (_GATHER, True),
    "GATHERV": (_GATHER, True),
    "SCATTER": (_SCATTER, True),
    "SCATTERV": (_SCATTER, True),
    "REDUCE_SCATTER": (_REDUCE_SCATTER, False),
    "REDUCE_SCATTER_BLOCK": (_REDUCE_SCATTER, False),
}
# They create communicators; the schedule has a barrier for them.
_CREATING = {"CREATE_HANDLE", "CREATE_HANDLE_AND_ALLOCATE"}
_UNEVEN = {"ALLGATHERV", "ALLTOALLV", "ALLTOALLW", "GATHERV", "SCATTERV", "REDUCE_SCATTER"}


def _varints(numbers: list[int]) -> bytes:
    out = bytearray()
    for number in numbers:
        while number >= 0x80:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
    return bytes(out)


def _text(text: str) -> list[int]:
    encoded = text.encode()
    return [len(encoded), *encoded]


def _bytes_of(name: str, ranks: int, is_root: bool, sent: int, received: int) -> int:
    """Return the size of a collective as its record counts it; `sent` and `received` are a rank's totals."""
    match name:
        case "BARRIER":
            return 0
        case "ALLGATHER" | "ALLGATHERV" | "ALLTOALL" | "ALLTOALLV" | "ALLTOALLW":
            return received // ranks
        case "GATHER" | "GATHERV":
            return received // ranks if is_root and not sent else sent
        case "BCAST" | "SCATTER" | "SCATTERV":
            return received or sent // ranks
        case "REDUCE_SCATTER" | "REDUCE_SCATTER_BLOCK":
            return received
        case _:
            return sent or received


class _Rank:
    """Records of one rank."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank = rank
        self.records: list[list[int]] = []
        self.comms: dict[Any, int] = {}
        self.requests: dict[int, int] = {}
        self.receives: dict[int, list[int]] = {}
        self.last: int | None = None
        self.first: int | None = None
        self.computed = 0
        self.depth = 0
        self.entered = 0
        self.pending: list[list[int]] = []
        self.start = [_START, rank, ranks, *_text("OTF2")]

    def enter(self, time: int) -> None:
        if self.depth == 0:
            self.entered = time
        self.depth += 1

    def leave(self, time: int) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.flush(self.entered, time)

    def flush(self, start: int, end: int) -> None:
        """End a call. Its first record gets the computation before the call, and its duration."""
        if self.last is None:
            self.first = self.last = start
        gap = max(start - self.last, 0)
        if not self.pending:
            # A call without records: its computation belongs to the next one.
            return
        self.computed += gap
        self.pending[0][1:3] = [gap, (end - start) // 1000]
        self.records += self.pending
        self.pending = []
        self.last = end

    def add(self, time: int, kind: int, fields: list[int]) -> list[int]:
        record = [kind, 0, 0, *fields]
        self.pending.append(record)
        if self.depth == 0:
            self.flush(time, time)
        return record

    def request(self, number: int) -> int:
        """Return a number that no other open request has."""
        used = set(self.requests.values())
        self.requests[number] = next(free for free in range(len(used) + 1) if free not in used)
        return self.requests[number]

    def comm(self, comm: Any, members: list[int]) -> int:
        """Return the number of a communicator, after declaring it."""
        if comm not in self.comms:
            self.comms[comm] = len(self.comms)
            runs = [value for member in members for value in (member, 1, 0)]
            self.records.append([_COMM, self.comms[comm], 0, len(members), *runs])
        return self.comms[comm]

    def write(self, folder: Path, end: int) -> None:
        if self.last is None:
            self.first = self.last = end
        elapsed = max(end - (self.first or 0), 0)
        tail = max(end - self.last, 0)
        records = [self.start, *self.records, [_END, tail, elapsed, self.computed + tail]]
        blocks, payload = [_MAGIC], b""
        for record in records:
            encoded = _varints(record)
            if payload and len(payload) + len(encoded) > _BLOCK:
                blocks += [len(payload).to_bytes(4, "little"), payload]
                payload = b""
            payload += encoded
        blocks += [len(payload).to_bytes(4, "little"), payload]
        (folder / f"rank-{self.rank}.spintrace").write_bytes(b"".join(blocks))


class _Converter:
    def __init__(self, path: Path, definitions: Any, resolution: int) -> None:
        from otf2.enums import GroupType, Paradigm

        self.path = path
        self.resolution = resolution
        worlds = [
            group
            for group in definitions.groups
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI
        ]
        if not worlds or not worlds[0].members:
            raise SpinkitError(f"{path}: it has no ranks of MPI: only traces of MPI programs become schedules")
        self.locations = list(worlds[0].members)
        self.number = {location: rank for rank, location in enumerate(self.locations)}
        self.ranks = [_Rank(rank, len(self.locations)) for rank in range(len(self.locations))]
        self.members_of: dict[Any, list[int]] = {}
        self.omitted: Counter[str] = Counter()
        self.origin: int | None = None
        self.end = 0
        # All ranks of a communicator declare it in the same order, which tells apart those with the same members.
        for comm in definitions.comms:
            if getattr(comm, "group", None) is None:
                continue
            is_self = comm.group.group_type == GroupType.COMM_SELF
            members = list(range(len(self.ranks))) if is_self else self.members(comm, 0)
            for rank in members:
                self.ranks[rank].comm(comm, self.members(comm, rank))

    def ns(self, time: int) -> int:
        if self.origin is None:
            self.origin = time
        return (time - self.origin) * 1_000_000_000 // self.resolution

    def members(self, comm: Any, rank: int) -> list[int]:
        from otf2.enums import GroupType

        group = getattr(comm, "group", None)
        if group is None:
            raise SpinkitError(f"{self.path}: {comm.name} is an intercommunicator, which schedules of OTF2 do not have")
        if group.group_type == GroupType.COMM_SELF:
            return [rank]
        if comm not in self.members_of:
            self.members_of[comm] = [self.number[location] for location in group.members]
        return self.members_of[comm]

    def event(self, location: Any, event: Any) -> None:
        time = self.ns(event.time)
        self.end = max(self.end, time)
        if location not in self.number:
            return
        me = self.number[location]
        rank = self.ranks[me]

        def number(comm: Any) -> int:
            return rank.comm(comm, self.members(comm, me))

        def peer(other: int) -> int:
            return 1 + self.members(event.communicator, me)[other]

        match type(event).__name__:
            case "Enter" if event.region.name.upper().startswith("MPI_"):
                rank.enter(time)
            case "Leave" if event.region.name.upper().startswith("MPI_"):
                rank.leave(time)
            case "MpiSend":
                comm = number(event.communicator)
                rank.add(time, _SEND, [comm, peer(event.receiver), 1 + event.msg_tag, event.msg_length])
            case "MpiIsend":
                comm = number(event.communicator)
                fields = [comm, peer(event.receiver), 1 + event.msg_tag, event.msg_length]
                rank.add(time, _ISEND, [*fields, rank.request(event.request_id)])
            case "MpiRecv":
                comm = number(event.communicator)
                rank.add(time, _RECV, [comm, peer(event.sender), 1 + event.msg_tag, event.msg_length])
            case "MpiIrecvRequest":
                request = rank.request(event.request_id)
                rank.receives[event.request_id] = rank.add(time, _IRECV, [0, 0, 0, 0, request])
            case "MpiIrecv":
                record = rank.receives.pop(event.request_id, None)
                if record is None:
                    raise SpinkitError(
                        f"{self.path}: rank {me}: request {event.request_id} ends without a beginning: damaged"
                    )
                comm = number(event.communicator)
                record[3:7] = [comm, peer(event.sender), 1 + event.msg_tag, event.msg_length]
                rank.add(time, _WAIT, [1, rank.requests.pop(event.request_id) * 4])
            case "MpiIsendComplete":
                if event.request_id in rank.requests:
                    rank.add(time, _WAIT, [1, rank.requests.pop(event.request_id) * 4])
            case "MpiCollectiveEnd":
                self.collective(rank, me, time, event, number)
            case "MpiRequestCancelled" | "MpiProbe" | "MpiMrecv" | "MpiImrecvRequest" | "MpiImrecv":
                self.omitted[type(event).__name__] += 1
            case name if name.startswith(("Rma", "NonBlockingCollective")):
                self.omitted[name] += 1
            case _:
                pass

    def collective(self, rank: _Rank, me: int, time: int, event: Any, number: Any) -> None:
        name = event.collective_op.name if hasattr(event.collective_op, "name") else str(event.collective_op)
        name = name.rsplit(".", 1)[-1]
        members = self.members(event.communicator, me)
        comm = number(event.communicator)
        if name in _CREATING:
            rank.add(time, _BARRIER, [comm])
            return
        if name not in _COLLECTIVES:
            self.omitted[f"collective {name}"] += 1
            return
        if name in _UNEVEN:
            self.omitted[f"sizes of single ranks in {name}"] += 1
        kind, has_root = _COLLECTIVES[name]
        is_root = has_root and members[event.root] == me
        size = _bytes_of(name, len(members), is_root, event.size_sent, event.size_received)
        root = [1 + event.root] if has_root else []
        rank.add(time, kind, [comm, *root, *([] if kind == _BARRIER else [size])])

    def finish(self, out: Path) -> list[str]:
        for rank in self.ranks:
            # A receive without an end has no sender: it is left out, as a cancelled one.
            for record in rank.receives.values():
                rank.records = [other for other in rank.records if other is not record]
                self.omitted["receives without an end"] += 1
            rank.write(out, self.end)
        return [f"{count} x {name} is not in the schedule" for name, count in sorted(self.omitted.items())]


def convert(path: Path, out: Path) -> list[str]:
    """Write `rank-N.spintrace` into `out` for each rank of a trace, and return warnings about omitted events."""
    try:
        import _otf2
        import otf2
    except ImportError as error:
        message = f"{path}: OTF2 traces need the package otf2; install spinkit with the extra otf2 (spinkit[otf2])"
        raise SpinkitError(message) from error
    if not path.is_file():
        raise SpinkitError(f"{path}: no such file; expected the anchor file of a trace, such as traces.otf2")
    try:
        with otf2.reader.open(str(path)) as trace:
            converter = _Converter(path, trace.definitions, trace.timer_resolution)
            for location, event in trace.events:
                converter.event(location, event)
    except (otf2.error.Error, _otf2.Error) as error:
        raise SpinkitError(f"{path}: no OTF2 trace, or damaged: {error}") from error
    return converter.finish(out)
