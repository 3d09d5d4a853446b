# SPDX-License-Identifier: Apache-2.0
"""DMA engines, their interconnect, and the memories: destinations and cycles of bytes."""

from collections import deque
from collections.abc import Iterator
from typing import Any

import cocotb
from common import Bench, shorter, start
from fabric_model import BEAT, HANDLER, L1, PACKET, SPAN, Bytes, Copy, Interconnect
from sv_types import struct

UNIT = "bench_dma"
RESETS = 20
PARAMETERS = [
    {"Clusters": 3, "L1Banks": 64, "L1Bytes": 8192},
    {"Clusters": 2, "L1Banks": 32, "Latency": 8, "Ports": 1},
    {"Clusters": 1, "L1Banks": 16},
]

WRITE = struct("beat_request_t")
ALL = (1 << BEAT) - 1


class World:
    """The unit under test with its model, cycle by cycle."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut
        self.clusters, self.hpus = int(self.dut.Clusters.value), int(self.dut.Hpus.value)
        self.model = Interconnect(self.clusters, int(self.dut.Latency.value), 2, int(self.dut.L1Banks.value) // 16)
        self.bytes = Bytes()
        self.now = self.compared = 0
        self.landed = [0] * self.clusters
        self.packets: list[deque[Copy]] = [deque() for _ in range(self.clusters)]
        self.copies: list[deque[Copy]] = [deque() for _ in range(self.clusters * self.hpus)]
        self.turns = [0] * self.clusters  # for the HPUs of a cluster
        self.writes: deque[tuple[int, bytes, int]] = deque()
        self.reads: list[deque[int]] = [deque() for _ in range(3)]
        self.reading: list[deque[int]] = [deque() for _ in range(3)]  # what has been taken, of each reader
        self.fulls = [False] * self.clusters

    def start_of(self, memory: int) -> tuple[int, int]:
        """Return address and size of a memory: L1 of each cluster, packet buffer, handler memory."""
        if memory < self.clusters:
            return L1 + SPAN * memory, int(self.dut.L1Bytes.value)
        return (PACKET if memory == self.clusters else HANDLER), int(self.dut.L2Bytes.value)

    async def cycle(self, pace: float = 1.0) -> None:
        """Offer pending inputs, compare the outputs, and step the model."""
        bench, dut, model = self.bench, self.dut, self.model
        offered = [bool(queue) and bench.happens(pace) for queue in self.packets]
        dut.packet_valid_i.value = sum(1 << i for i, offer in enumerate(offered) if offer)
        for i, queue in enumerate(self.packets):
            if offered[i]:
                copy = queue[0]
                dut.packet_from_i[i].value, dut.packet_to_i[i].value = copy.source, copy.target
                dut.packet_size_i[i].value, dut.packet_place_i[i].value = copy.size, copy.tag
        dut.transfer_valid_i.value = sum(1 << i for i, queue in enumerate(self.copies) if queue)
        for i, queue in enumerate(self.copies):
            if queue:
                dut.transfer_from_i[i].value, dut.transfer_to_i[i].value = queue[0].source, queue[0].target
                dut.transfer_size_i[i].value = queue[0].size
        dut.write_valid_i.value = bool(self.writes)
        if self.writes:
            address, data, strobe = self.writes[0]
            dut.write_i.value = WRITE.pack(address=address, strobe=strobe, wdata=int.from_bytes(data, "little"))
        dut.read_valid_i.value = sum(1 << i for i, queue in enumerate(self.reads) if queue)
        for i, queue in enumerate(self.reads):
            if queue:
                dut.read_address_i[i].value = queue[0]
        await bench.read()
        self.compare()
        model.step(self.now, {"packet": int(dut.packet_busy_o.value), "handler": int(dut.handler_busy_o.value)})
        for i, offer in enumerate(offered):
            if offer:
                model.engines[i].queues[0].append(self.packets[i].popleft())
        self.take_copies()
        if self.writes and dut.write_ready_o.value:
            address, data, strobe = self.writes.popleft()
            self.bytes.write(address, data, strobe)
        self.take_reads()
        self.now += 1
        await bench.next()

    def compare(self) -> None:
        """Compare the landed copies."""
        landed = {(cluster, queue): copy for cluster, queue, copy in self.model.landed.pop(self.now, [])}
        for cluster in range(self.clusters):
            packet = landed.get((cluster, 0))
            assert bool(int(self.dut.landed_valid_o.value) >> cluster & 1) == (packet is not None), self.now
            if packet:
                assert int(self.dut.landed_place_o[cluster].value) == packet.tag
            copy = landed.get((cluster, 1))
            hpus = int(self.dut.transfer_landed_o.value) >> cluster * self.hpus & (1 << self.hpus) - 1
            assert hpus == (1 << copy.tag if copy else 0), self.now
        for (cluster, _), copy in landed.items():
            self.landed[cluster] += 1
            self.bytes.write(copy.target, self.bytes.read(copy.source, copy.size))
            self.compared += 1

    def take_copies(self) -> None:
        """Take the copy of one HPU of each cluster."""
        ready = int(self.dut.transfer_ready_o.value)
        for cluster in range(self.clusters):
            waiting = [h for h in range(self.hpus) if self.copies[cluster * self.hpus + h]]
            queue = self.model.engines[cluster].queues[1]
            was_full = self.fulls[cluster]
            taken = ready >> cluster * self.hpus & (1 << self.hpus) - 1
            if waiting and not was_full:
                hpu = min(waiting, key=lambda h: (h - self.turns[cluster]) % self.hpus)
                assert taken == 1 << hpu, self.now
                queue.append(self.copies[cluster * self.hpus + hpu].popleft())
                self.turns[cluster] = (hpu + 1) % self.hpus
            elif waiting:
                assert not taken, self.now
            self.fulls[cluster] = len(queue) == 4

    def take_reads(self) -> None:
        """Take reads, and compare their data."""
        ready, valid = int(self.dut.read_ready_o.value), int(self.dut.read_rvalid_o.value)
        for reader, reading in enumerate(self.reading):
            if not valid >> reader & 1:
                continue
            address = reading.popleft()
            assert reader < 2 or not self.dut.read_missing_o.value
            data = int(self.dut.read_data_o[reader].value).to_bytes(BEAT, "little")
            assert data == self.bytes.read(address, BEAT), f"{address:#x} in cycle {self.now}"
            self.compared += 1
        for reader, queue in enumerate(self.reads):
            if queue and ready >> reader & 1:
                self.reading[reader].append(queue.popleft())

    async def fill(self) -> None:
        """Write random bytes to all memories."""
        for memory in range(self.clusters + 2):
            address, size = self.start_of(memory)
            for beat in range(0, size, BEAT):
                self.writes.append((address + beat, self.bench.rng.randbytes(BEAT), ALL))
        while self.writes:
            await self.cycle()

    async def check(self) -> None:
        """Read all memories after everything has landed."""
        while not self.model.is_idle(self.now) or any(self.packets) or any(self.copies) or self.writes:
            await self.cycle()
        for memory in range(self.clusters + 2):
            address, size = self.start_of(memory)
            for beat in range(0, size, BEAT):
                self.reads[self.bench.rng.randrange(3)].append(address + beat)
        while any(self.reads) or any(self.reading):
            await self.cycle()


def target_of(world: World, memory: int, size: int, used: list[tuple[int, int]]) -> int | None:
    """Return a free range of the second half of a memory."""
    start, total = world.start_of(memory)
    for _ in range(4):
        address = start + total // 2 + world.bench.rng.randrange(total // 2 - size + 1)
        if all(address + size <= other or other + length <= address for other, length in used):
            used.append((address, size))
            return address
    return None


def source_of(world: World, memory: int, size: int) -> int:
    """Return a range of the first half of a memory, which is never written."""
    start, total = world.start_of(memory)
    return start + world.bench.rng.randrange(total // 2 - size + 1)


def alignments(rng: Any) -> Iterator[tuple[int, int, int]]:
    """Return offsets of source and target, and sizes: all pairs of offsets, and all sizes up to 2,048."""
    pairs = [(source, target, rng.randrange(1, 200)) for source in range(BEAT) for target in range(BEAT)]
    sizes = [(rng.randrange(BEAT), rng.randrange(BEAT), size) for size in range(1, 2049)]
    yield from rng.sample(pairs, shorter(160))
    yield from rng.sample(sizes, shorter(40))
    yield from ((0, 0, 9000), (13, 0, 9000), (0, 63, 9000), (0, 0, 0), (7, 3, 0))


@cocotb.test()
async def one_at_a_time(dut) -> None:
    """A single engine: all alignments and sizes, with the landing cycle of each copy."""
    bench = await start(dut)
    world = World(bench)
    await world.fill()
    done = 0
    for source, target, size in alignments(bench.rng):
        memories = [m for m in range(world.clusters + 2) if world.start_of(m)[1] // 2 > size + 2 * BEAT]
        to, to_bytes = world.start_of(bench.rng.choice(memories))
        origin = world.start_of(bench.rng.choice(memories))[0]
        cluster, tag = bench.rng.randrange(world.clusters), bench.rng.randrange(world.hpus)
        copy = Copy(origin + source, to + to_bytes // 2 + target, size, tag)
        queue = world.packets[cluster] if bench.happens(0.5) else world.copies[cluster * world.hpus + tag]
        queue.append(copy)
        expected = world.now + copy.beats + int(dut.Latency.value) + (copy.beats < 2)
        while queue or not world.model.is_idle(world.now):
            await world.cycle()
        # Writes to the memory of the reads may delay them.
        assert world.now == expected + 1 or (origin == to and world.now > expected), hex(origin)
        done += 1
    await world.check()
    assert done > shorter(200)
    assert world.compared > done + shorter(1000)


@cocotb.test()
async def all_at_once(dut) -> None:
    """All engines, NIC and host: each cycle follows the rules."""
    bench = await start(dut)
    rng = bench.rng
    world = World(bench)
    await world.fill()
    used: list[tuple[int, int]] = []
    sent = 0
    while sent < shorter(350):
        for cluster in range(world.clusters):
            size = rng.choice([rng.randrange(1, 129), rng.randrange(1, 1600)])
            if len(world.packets[cluster]) + len(world.model.engines[cluster].queues[0]) < 20 and bench.happens(0.1):
                target = target_of(world, cluster, size, used)
                if target is not None:
                    source = source_of(world, world.clusters, size)
                    world.packets[cluster].append(Copy(source, target, size, sent % 20))
                    sent += 1
            hpu = rng.randrange(world.hpus)
            if len(world.copies[cluster * world.hpus + hpu]) < 3 and bench.happens(0.1):
                target = target_of(world, rng.randrange(world.clusters + 2), size, used)
                if target is not None:
                    source = source_of(world, rng.randrange(world.clusters + 2), size)
                    world.copies[cluster * world.hpus + hpu].append(Copy(source, target, size, hpu))
                    sent += 1
        for reader in range(3):
            if len(world.reads[reader]) < 2 and bench.happens(0.2):
                start_of, total = world.start_of(rng.randrange(world.clusters + 2))
                world.reads[reader].append(start_of + BEAT * rng.randrange(total // 2 // BEAT))
        if len(used) > 300:
            while not world.model.is_idle(world.now) or any(world.packets) or any(world.copies):
                await world.cycle()
            used.clear()
        if bench.happens(0.3) and len(world.writes) < 2:
            size = BEAT
            target = target_of(world, rng.randrange(world.clusters + 2), 2 * BEAT, used)
            if target is not None:
                world.writes.append((-(-target // BEAT) * BEAT, rng.randbytes(BEAT), rng.getrandbits(BEAT)))
        await world.cycle(0.5)
    await world.check()
    assert world.compared > shorter(1500)
    assert min(world.landed) > shorter(50)
    assert world.model.moved > shorter(800)
    assert world.model.passed > shorter(10)
