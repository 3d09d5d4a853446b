# SPDX-License-Identifier: Apache-2.0
"""The PE interconnect: each access reaches its memory and is answered in the cycle given by the rules, in order."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from common import Bench, start
from fabric_model import HANDLER, L1, PACKET, PROGRAM, SPAN
from sv_types import struct

PARAMETERS = [
    {"Clusters": 4},
    {"Clusters": 2, "InFlight": 3, "RemoteL1Cycles": 9, "L2Cycles": 8},
    {"Clusters": 1, "InFlight": 1},
]

WORD = struct("word_request_t")
ANSWERS = 4  # outstanding responses of a memory


@dataclass
class Access:
    """A word for an HPU."""

    cluster: int
    hpu: int
    request: dict[str, Any]
    memory: int
    ready: int  # first cycle in which its memory may accept it
    back: int
    accepted: int | None = None
    data: int | None = None
    done: int = 0  # first cycle in which it may be answered


@dataclass
class Memory:
    """Memory that accepts an access in some cycles, and responds in order."""

    turn: int = 0
    ready: bool = False
    owed: deque[tuple[int, Access]] = field(default_factory=deque)  # with the cycle of the response


class World:
    """The interconnect, its clusters and its memories."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut
        self.clusters, self.in_flight = int(self.dut.Clusters.value), int(self.dut.InFlight.value)
        self.l1_cycles, self.l2_cycles = int(self.dut.RemoteL1Cycles.value), int(self.dut.L2Cycles.value)
        self.memories = [Memory() for _ in range(3 + self.clusters)]
        self.flying: list[deque[Access]] = [deque() for _ in range(self.clusters)]
        self.asking: list[dict[str, Any] | None] = [None] * self.clusters
        self.compared = self.waited = self.full = 0
        self.unloaded: list[int] = []

    def memory_of(self, address: int) -> int:
        """Return the number of a memory."""
        starts = [(PROGRAM, 2), (PACKET, 1), (HANDLER, 0)]
        return next((number for first, number in starts if address >= first), 3 + (address - L1) // SPAN)

    def random_request(self) -> dict[str, Any]:
        """Return any access."""
        rng = self.bench.rng
        bases = [HANDLER, PACKET, PROGRAM, *(L1 + SPAN * cluster for cluster in range(self.clusters))]
        bits = {name: rng.getrandbits(width) for name, width in (("we", 1), ("be", 4), ("wdata", 32), ("expected", 32))}
        return {**bits, "address": rng.choice(bases) + 4 * rng.randrange(64), "expected_valid": rng.getrandbits(1)}

    async def cycle(self, pace: float, memory_pace: float) -> None:
        """Compare one cycle."""
        bench, dut, now = self.bench, self.dut, self.bench.cycle
        for cluster in range(self.clusters):
            if self.asking[cluster] is None and bench.happens(pace):
                self.asking[cluster] = self.random_request()
        hpus = [bench.rng.randrange(32) for _ in range(self.clusters)]
        dut.pe_valid_i.value = sum(1 << i for i, request in enumerate(self.asking) if request)
        for cluster, request in enumerate(self.asking):
            dut.pe_i[cluster].value = WORD.pack(**(request or {}))
            dut.pe_hpu_i[cluster].value = hpus[cluster]
        answers = 0
        for number, memory in enumerate(self.memories):
            memory.ready = bench.happens(memory_pace)
            if memory.owed and memory.owed[0][0] == now:
                answers |= 1 << number
                data = bench.rng.getrandbits(32)
                access = memory.owed.popleft()[1]
                access.data, access.done = data, now + 1
                (dut.memory_rdata_i[number] if number < 3 else dut.remote_rdata_i[number - 3]).value = data
        ready = sum(1 << number for number, memory in enumerate(self.memories) if memory.ready)
        dut.memory_ready_i.value, dut.remote_ready_i.value = ready & 7, ready >> 3
        dut.memory_rvalid_i.value, dut.remote_rvalid_i.value = answers & 7, answers >> 3
        await bench.read()
        for cluster in range(self.clusters):
            self.compare_answer(cluster, now)
        firsts = [next((one for one in flying if one.accepted is None), None) for flying in self.flying]
        for number in range(len(self.memories)):
            self.compare_access(number, now, answers >> number & 1, firsts)
        for cluster in range(self.clusters):
            self.compare_request(cluster, now, hpus[cluster])
        await bench.next()

    def compare_answer(self, cluster: int, now: int) -> None:
        """Compare the response to the oldest access of a cluster."""
        flying = self.flying[cluster]
        oldest = flying[0] if flying else None
        is_due = (
            oldest is not None
            and oldest.accepted is not None
            and oldest.data is not None
            and now >= max(oldest.accepted + oldest.back, oldest.done)
        )
        assert bool(int(self.dut.pe_rvalid_o.value) >> cluster & 1) == is_due, now
        if is_due and oldest is not None:
            assert int(self.dut.pe_rhpu_o[cluster].value) == oldest.hpu
            assert int(self.dut.pe_rdata_o[cluster].value) == oldest.data
            self.compared += 1
            flying.popleft()
            self.unloaded.append(now - oldest.ready)

    def compare_access(self, number: int, now: int, answers: int, firsts: list[Access | None]) -> None:
        """Compare the request to a memory."""
        memory, dut = self.memories[number], self.dut
        wanted = {
            cluster: first
            for cluster, first in enumerate(firsts)
            if first and first.memory == number and first.ready <= now
        }
        has_room = len(memory.owed) + answers < ANSWERS
        valid = int(dut.memory_valid_o.value) | int(dut.remote_valid_o.value) << 3
        assert bool(valid >> number & 1) == (bool(wanted) and has_room), (number, now)
        if not wanted or not has_room:
            return
        cluster = min(wanted, key=lambda index: (index - memory.turn) % self.clusters)
        access = wanted[cluster]
        request = dut.memory_o[number] if number < 3 else dut.remote_o[number - 3]
        assert WORD.unpack(request.value) == {**WORD.unpack(0), **access.request}, (number, now)
        if not memory.ready:
            self.waited += 1
            return
        memory.turn = (cluster + 1) % self.clusters
        access.accepted = now
        least = memory.owed[-1][0] + 1 if memory.owed else 0
        memory.owed.append((max(now + self.bench.rng.randrange(1, 4), least), access))

    def compare_request(self, cluster: int, now: int, hpu: int) -> None:
        """Compare the acceptance of a cluster's access."""
        flying = self.flying[cluster]
        has_room = len(flying) < self.in_flight
        assert bool(int(self.dut.pe_ready_o.value) >> cluster & 1) == has_room, now
        self.full += not has_room
        request = self.asking[cluster]
        if request and has_room:
            cycles = self.l1_cycles if request["address"] < HANDLER else self.l2_cycles
            memory, there = self.memory_of(request["address"]), cycles // 2
            flying.append(Access(cluster, hpu, request, memory, now + there, cycles - there))
            self.asking[cluster] = None


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle follows the rules."""
    bench = await start(dut)
    world = World(bench)
    for part in range(12):
        pace, memory_pace = ((0.02, 1.0), (0.9, 1.0), (0.5, 0.4), (1.0, 0.8))[part % 4]
        for _ in range(300):
            await world.cycle(pace, memory_pace)
    while any(world.flying):
        await world.cycle(0.0, 1.0)
    assert world.compared > 150
    assert world.waited > 10
    assert world.full > 200
    # An access of an idle interconnect has an exact latency.
    assert {world.l1_cycles - world.l1_cycles // 2, world.l2_cycles - world.l2_cycles // 2} <= set(world.unloaded)
