# SPDX-License-Identifier: Apache-2.0
"""Tests of the sentences of App. C.3 of the sPIN paper about its trace diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinkit.reports._timeline import Timeline, follow, ns, packet
from spinkit.simulate._perfetto import Slice

_CLIENT, _PARITY, _SERVERS = 0, 1, (2, 3, 4, 5)
"""Ranks of RAID."""

Check = Callable[[Timeline], tuple[bool, str]]
"""Tests a timeline; returns the verdict and the measured values."""


@dataclass(frozen=True)
class Test:
    """A test of a sentence."""

    says: str
    check: Check

    def on(self, shown: Timeline) -> tuple[bool, str]:
        """Test a timeline; return the verdict and the measured values."""
        try:
            return self.check(shown)
        except (IndexError, ValueError, StopIteration):
            return False, "something that the sentence is about did not happen"


TESTS: dict[str, Test] = {}
"""All tests by name."""


def _test(says: str) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        TESTS[check.__name__.strip("_").replace("_", "-")] = Test(says, check)
        return check

    return add


def _spans(slices: Sequence[Slice]) -> str:
    return ", ".join(f"{one.start / 1000:,.0f}–{one.end / 1000:,.0f}" for one in slices) + " ns" if slices else "none"


def _forwarders(shown: Timeline) -> list[int]:
    """Return the ranks that forward received data."""
    return [rank for rank in shown.ranks if rank > 0 and shown.sent(rank) and shown.received(rank)]


@_test("ranks 0 and 1 each post one message, which takes o")
def _both_post(shown: Timeline) -> tuple[bool, str]:
    posts = [shown.cpu(rank, "post") for rank in (0, 1)]
    overhead = shown.ps("host.o_ns")
    holds = all(len(of_rank) == 1 and of_rank[0].end - of_rank[0].start == overhead for of_rank in posts)
    return holds, "; ".join(f"rank {rank} at {_spans(of_rank)}" for rank, of_rank in enumerate(posts))


@_test("each rank sends two packets, which the other receives and writes to host memory")
def _packets_both_ways(shown: Timeline) -> tuple[bool, str]:
    counts = [(len(shown.sent(r)), len(shown.received(r, 1 - r)), len(shown.of(r, "DMA", "deposit"))) for r in (0, 1)]
    return counts == [(2, 2, 2 if shown.shows_deposits else 0)] * 2, "; ".join(
        f"rank {rank}: {sent} sent, {received} received, {deposited} written"
        for rank, (sent, received, deposited) in enumerate(counts)
    )


@_test("rank 1's CPU polls, matches and posts without a pause, after the whole message is in its memory")
def _answer_by_cpu(shown: Timeline) -> tuple[bool, str]:
    work = [one for one in shown.cpu(1) if one.name in ("poll", "match", "post")]
    there = shown.in_memory(1)
    holds = [one.name for one in work] == shown.notices("post") and follow(work) and work[0].start >= there
    return holds, f"in memory at {ns(there)}; {_spans(work)}"


@_test("the first packet is matched in 30 ns, the second in 2 ns, and then each goes on")
def _matched_separately(shown: Timeline) -> tuple[bool, str]:
    arrivals = shown.received(1, 0)
    waits: list[int] = []
    for arrival in arrivals:
        followers = [one for one in shown.of(1, "HPU") + shown.of(1, "DMA", "deposit") if _is_of(one, arrival)]
        # A packet that is only written leaves no further slice if deposits are not shown.
        if followers or shown.shows_deposits or not waits:
            waits.append(min(one.start for one in followers) - arrival.end)
    first, later = shown.ps("nic.match_header_ns"), shown.ps("nic.match_cam_ns")
    holds = len(arrivals) == 2 and waits[0] == first and all(later <= wait < first for wait in waits[1:])
    return holds, ", ".join(f"{ns(wait)} after its arrival" for wait in waits)


def _is_of(one: Slice, arrival: Slice) -> bool:
    return "offset" in one.arguments and packet(one) == packet(arrival)


@_test("one completion handler runs on rank 1, on HPU 0, when both packets are in host memory; no payload handler runs")
def _completion_on_hpu_0(shown: Timeline) -> tuple[bool, str]:
    completions = shown.handlers(1, "_completion")
    deposited = shown.deposited(1)
    holds = (
        [one.row for one in completions] == ["HPU 0"]
        and completions[0].start >= deposited
        and not shown.handlers(1, "_payload")
    )
    rows = ", ".join(one.row for one in completions)
    return holds, f"on {rows} at {_spans(completions)}; written by {ns(deposited)}"


@_test("a payload handler runs for each of the two packets, on different HPUs at the same time")
def _two_payload_handlers(shown: Timeline) -> tuple[bool, str]:
    runs = shown.handlers(1, "_payload")
    holds = len(runs) == 2 and runs[0].row != runs[1].row and runs[1].start < runs[0].end
    return holds, ", ".join(f"{one.row} {_spans([one])}" for one in runs)


@_test("a payload handler runs for each of the two packets, one after the other on HPU 0")
def _payload_handlers_in_turn(shown: Timeline) -> tuple[bool, str]:
    runs = shown.handlers(1, "_payload")
    holds = [one.row for one in runs] == ["HPU 0"] * 2 and runs[1].start >= runs[0].end
    return holds, ", ".join(f"{one.row} {_spans([one])}" for one in runs)


@_test("rank 1 begins to send before the second packet has arrived, and its memory is not touched")
def _sent_before_received(shown: Timeline) -> tuple[bool, str]:
    sent, received = shown.sent(1)[0].start, shown.received(1, 0)[-1].end
    return sent < received and not shown.of(1, "DMA"), f"sent from {ns(sent)} on, received by {ns(received)}"


@_test("rank 0 posts one message of two packets; rank 1's CPU polls and matches when both are in memory")
def _message_to_cpu(shown: Timeline) -> tuple[bool, str]:
    work = [one for one in shown.cpu(1) if one.name in ("poll", "match")]
    there = shown.in_memory(1)
    holds = (
        len(shown.cpu(0, "post")) == 1
        and len(shown.received(1)) == len(shown.sent(0)) == 2
        and [one.name for one in work] == shown.notices()
        and shown.cpu(1)[0].start >= there
    )
    return holds, f"in memory at {ns(there)}; {_spans(work)}"


@_test("rank 1's CPU reads and writes memory, directly after it has matched, and no handler runs")
def _computed_by_cpu(shown: Timeline) -> tuple[bool, str]:
    work = shown.cpu(1)
    holds = (
        [one.name for one in work] == shown.notices("memory")
        and follow(work)
        and work[0].start >= shown.in_memory(1)
        and not shown.of(1, "HPU")
    )
    return holds, _spans(shown.cpu(1, "memory"))


@_test("both handlers wait for host memory, the second before the first has its data")
def _competing_reads(shown: Timeline) -> tuple[bool, str]:
    waits, runs = shown.of(1, "HPU", "wait for DMA read"), shown.handlers(1, "_payload")
    holds = len(waits) == len(runs) == 2 and waits[1].start < waits[0].end
    return holds, f"waits at {_spans(waits)}"


@_test("each handler waits in its read and in its write; the waits of the two handlers overlap")
def _waits_overlap(shown: Timeline) -> tuple[bool, str]:
    waits = [one for one in shown.of(1, "HPU") if one.name.startswith("wait for DMA")]
    overlap = any(
        one.row != other.row and one.start < other.end and other.start < one.end for one in waits for other in waits
    )
    return len(waits) == 4 and overlap, _spans(waits)


@_test("the waits of two handlers for their reads overlap; a write frees its handler at once")
def _reads_overlap(shown: Timeline) -> tuple[bool, str]:
    waits, writes = shown.of(1, "HPU", "wait for DMA read"), shown.of(1, "HPU", "wait for DMA write")
    holds = len(waits) == 2 and waits[1].start < waits[0].end and not writes and len(shown.of(1, "DMA", "to host")) == 2
    return holds, f"reads {_spans(waits)}; waits for writes: {len(writes)}"


@_test("a read blocks its handler from its start until 2 L + s G have passed, of requests 2 L + (s − 1) G")
def _long_reads(shown: Timeline) -> tuple[bool, str]:
    if shown.parameters["dma.handlers"] == "transfers":
        least = 2 * shown.ps("dma.L_ns") + shown.dma(4096)
        taken = _blocked(shown, "from host", "wait for DMA read")
        return _near(taken, least), f"{', '.join(map(ns, taken))} after the start; 2 L + s G = {ns(least)}"
    # The engine is not needed, so the start is not shown; a handler waits at most ten cycles later.
    most = 2 * shown.ps("dma.L_ns") + shown.dma(4095)
    taken = [one.end - one.start for one in shown.of(1, "HPU", "wait for DMA read")]
    late = round(10_000 / float(shown.parameters["hpu.clock_ghz"]))
    holds = len(taken) == 2 and all(most - late <= time <= most + 1 for time in taken)
    return holds, f"{', '.join(map(ns, taken))}; 2 L + (s − 1) G = {ns(most)}"


@_test("a write blocks its handler only until its data has left the card, s G, less than half as long as a read")
def _short_writes(shown: Timeline) -> tuple[bool, str]:
    transfer = shown.dma(4096)
    reads, writes = (
        _blocked(shown, *names) for names in (("from host", "wait for DMA read"), ("to host", "wait for DMA write"))
    )
    holds = _near(writes, transfer) and 2 * max(writes) < min(reads, default=0)
    return holds, f"{', '.join(map(ns, writes))} after the start; s G = {ns(transfer)}"


def _near(times: Sequence[int], expected: int) -> bool:
    """Return true if there are two times and both are as expected, up to the rounding of a picosecond."""
    return len(times) == 2 and all(abs(time - expected) <= 1 for time in times)


def _blocked(shown: Timeline, transfer: str, wait: str) -> list[int]:
    """Return the times from the start of each of rank 1's transfers until its handler continues."""
    transfers, waits = shown.of(1, "DMA", transfer), shown.of(1, "HPU", wait)
    return [waited.end - transfer.start for transfer, waited in zip(transfers, waits, strict=True)]


@_test("each rank that forwards polls and matches when the message is in its memory, and then posts to its children")
def _forwarded_by_cpus(shown: Timeline) -> tuple[bool, str]:
    ranks, ok = _forwarders(shown), True
    for rank in ranks:
        work = shown.cpu(rank)
        posts = len(shown.cpu(rank, "post"))
        names = [one.name for one in work]
        ok &= work[0].start >= shown.in_memory(rank) and names == shown.notices(*["post"] * posts) and follow(work)
        ok &= len(shown.sent(rank)) == 2 * posts
    return ok and bool(ranks), f"{len(ranks)} ranks forward: {', '.join(map(str, ranks))}"


@_test("rank 0 receives nothing and posts log P messages; every other rank receives two packets")
def _rank_0_is_root(shown: Timeline) -> tuple[bool, str]:
    ranks = shown.ranks
    received = [len(shown.received(rank)) for rank in ranks]
    posts = len(shown.cpu(0, "post"))
    holds = received == [0] + [2] * (len(ranks) - 1) and 2**posts == len(ranks)
    return holds, f"rank 0 posts {posts} messages to reach {len(ranks)} ranks"


@_test("only the root's CPU posts; at each rank that forwards, handlers of both packets send them to every child")
def _forwarded_by_handlers(shown: Timeline) -> tuple[bool, str]:
    ranks, ok = _forwarders(shown), True
    for rank in ranks:
        runs = shown.handlers(rank, "_payload")
        sent = shown.sent(rank)
        ok &= len(runs) == 2 and len(sent) % 2 == 0
        # A handler that waits for its puts runs until the last of them has left.
        ends = [run.end for run in runs] if shown.parameters["accelerator.put_blocks"] == "true" else [shown.length] * 2
        spans = [(run.start, end) for run, end in zip(runs, ends, strict=True)]
        ok &= all(any(start <= one.start <= end for start, end in spans) for one in sent)
    posts = {one.process for one in shown.cpu(name="post")}
    return ok and bool(ranks) and posts == {"rank 0"}, f"{len(ranks)} ranks forward: {', '.join(map(str, ranks))}"


@_test("every rank that forwards begins to send before it has received the second packet")
def _forwarded_before_received(shown: Timeline) -> tuple[bool, str]:
    ahead = {rank: shown.received(rank)[-1].end - shown.sent(rank)[0].start for rank in _forwarders(shown)}
    holds = bool(ahead) and min(ahead.values()) > 0
    return holds, "; ".join(f"rank {rank}: {ns(time)} earlier" for rank, time in ahead.items())


@_test("64 packets are written to host memory, and then rank 1's CPU polls and matches")
def _whole_message_first(shown: Timeline) -> tuple[bool, str]:
    packets, there = len(shown.received(1)), shown.in_memory(1)
    work = shown.cpu(1)
    names = shown.notices("memory")
    holds = packets == 64 and [one.name for one in work] == names and work[0].start >= there
    return holds, f"{packets} packets in memory at {ns(there)}; {_spans(work[:-1])}"


@_test("each handler has one DMA write of a piece of a block, and ends before the next packet has arrived")
def _one_write_each(shown: Timeline) -> tuple[bool, str]:
    runs, writes = shown.handlers(1, "unpack_blocking"), shown.of(1, "DMA", "to host")
    waits, packets = shown.of(1, "HPU", "wait for DMA write"), shown.received(1, 0)
    longest, shortest = max(one.end - one.start for one in runs), min(one.end - one.start for one in packets)
    rows = sorted({one.row for one in runs})
    waiting = len(runs) if shown.parameters["dma.handlers"] == "transfers" else 0
    holds = len(runs) == len(writes) and len(waits) == waiting and longest < shortest and rows == ["HPU 0"]
    return holds, f"{len(runs)} handlers on {', '.join(rows)}: at most {ns(longest)}; a packet takes {ns(shortest)}"


@_test("there are 64 packets and 64 runs of the payload handler")
def _one_call_per_packet(shown: Timeline) -> tuple[bool, str]:
    packets, runs = len(shown.received(1, 0)), len(shown.handlers(1, "unpack_blocking"))
    return packets == runs == 64, f"{packets} packets, {runs} runs"


@_test("the first block is written before the second packet has arrived, the last one directly after the last packet")
def _written_while_receiving(shown: Timeline) -> tuple[bool, str]:
    arrivals, writes = shown.received(1, 0), shown.of(1, "DMA", "to host")
    lag = writes[-1].end - arrivals[-1].end
    handler = max(one.end - one.start for one in shown.handlers(1, "unpack_blocking"))
    holds = writes[0].start < arrivals[1].end and lag <= handler + shown.ps("nic.match_header_ns")
    return holds, f"first write at {ns(writes[0].start)}; last one ends {ns(lag)} after the last packet"


@_test("rank 0 posts four messages, one to each of ranks 2 to 5")
def _client_writes(shown: Timeline) -> tuple[bool, str]:
    received = [len(shown.received(rank, _CLIENT)) for rank in _SERVERS]
    posts = len(shown.cpu(_CLIENT, "post"))
    return posts == 4 and all(received), f"{posts} messages; packets to each server: {received}"


@_test("each server computes, then sends the difference to rank 1, whose CPU computes four times")
def _parity_by_cpus(shown: Timeline) -> tuple[bool, str]:
    ok = True
    for rank in _SERVERS:
        work = shown.cpu(rank, "memory")
        differences = shown.received(_PARITY, rank)
        ok &= len(work) == 1 and bool(differences) and differences[0].start > work[0].end
    work = shown.cpu(_PARITY, "memory")
    return ok and len(work) == 4, f"rank 1 computes at {_spans(work)}"


@_test("rank 1 acknowledges to each server, and then that server to rank 0")
def _acknowledged_back(shown: Timeline) -> tuple[bool, str]:
    pairs = [(shown.received(rank, _PARITY), shown.received(_CLIENT, rank)) for rank in _SERVERS]
    holds = all(len(inner) == len(outer) > 0 and inner[-1].end < outer[-1].start for inner, outer in pairs)
    return holds, f"rank 0 has the last at {ns(max(outer[-1].end for _, outer in pairs if outer))}"


@_test("each server's CPU posts the triggered put after the difference, and is idle when the acknowledgement comes")
def _acknowledgement_is_triggered(shown: Timeline) -> tuple[bool, str]:
    ok, lasts = True, []
    for rank in _SERVERS:
        posts, acknowledged = shown.cpu(rank, "post"), shown.received(rank, _PARITY)
        ok &= len(posts) == 2 and follow(posts) and len(acknowledged) == 1
        ok &= max(one.end for one in shown.cpu(rank)) < acknowledged[0].start
        lasts.append(max(one.end for one in shown.cpu(rank)))
    return ok, f"the servers' CPUs are done by {ns(max(lasts))}"


@_test("each server writes to its memory, and sends to rank 1 before its handlers end; no CPU of ranks 1 to 5 works")
def _pipelined_to_parity(shown: Timeline) -> tuple[bool, str]:
    ok, parts = not any(shown.cpu(rank) for rank in (_PARITY, *_SERVERS)), []
    for rank in _SERVERS:
        sent = next(one for one in shown.sent(rank) if one.arguments["bytes"] > 1)
        runs, writes = shown.handlers(rank, "_payload"), shown.of(rank, "DMA", "to host")
        ok &= bool(writes) and sent.start < max(one.end for one in runs)
        parts.append(f"rank {rank} sends from {ns(sent.start)} on")
    return ok, "; ".join(parts)


@_test("handlers of rank 1 and of the servers send the acknowledgements, as many as packets were written")
def _acknowledged_by_cards(shown: Timeline) -> tuple[bool, str]:
    written = sum(len(shown.received(rank, _CLIENT)) for rank in _SERVERS)
    counts = [
        len(shown.handlers(_PARITY, "_completion")),
        sum(len(shown.handlers(rank, "_ack_header")) for rank in _SERVERS),
        len(shown.received(_CLIENT)),
    ]
    return written > 0 and counts == [
        written
    ] * 3, f"{written} packets; acknowledgements of rank 1, of servers, at rank 0: {counts}"
