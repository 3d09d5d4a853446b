# SPDX-License-Identifier: Apache-2.0
"""The NIC-host interconnect: writers, readers, and times of data."""

from collections import deque
from typing import Any

import cocotb
from common import start
from fabric_model import HANDLER, L1, PACKET, PROGRAM, SPAN
from sv_types import struct

SIZES = {"L1Bytes": 65536, "HandlerBytes": 131072, "PacketBytes": 262144, "ProgramBytes": 4096}
PARAMETERS = [{"Clusters": clusters, **SIZES} for clusters in (3, 1)]

WRITE = struct("beat_request_t")
BEAT, READERS = 64, 3


def memory_of(address: int, clusters: int) -> int | None:
    """Return the number of a memory: handler memory, packet buffer, program memory, L1 by cluster."""
    starts = [(HANDLER, SIZES["HandlerBytes"]), (PACKET, SIZES["PacketBytes"]), (PROGRAM, SIZES["ProgramBytes"])]
    starts += [(L1 + SPAN * cluster, SIZES["L1Bytes"]) for cluster in range(clusters)]
    return next((i for i, (first, size) in enumerate(starts) if first <= address < first + size), None)


@cocotb.test()
async def random_beats(dut) -> None:
    """Each cycle follows the rules."""
    bench = await start(dut)
    rng = bench.rng
    clusters = int(dut.Clusters.value)
    memories = 3 + clusters

    def random_address() -> int:
        first = rng.choice([HANDLER, PACKET, PROGRAM, *(L1 + SPAN * cluster for cluster in range(clusters))])
        if bench.happens(0.1):
            return rng.choice([0, L1 + SPAN * clusters, 0x1A00_0000, 0x1E00_0000, first + 4 * SIZES["PacketBytes"]])
        return first + BEAT * rng.randrange(SIZES["ProgramBytes"] // BEAT)

    writers: list[dict[str, int] | None] = [None, None]
    readers: list[int | None] = [None] * READERS
    turns = [0] * 4  # next side at each write port
    read_turns = [0] * memories  # next reader at each read port
    chosen: list[tuple[int | None, int] | None] = [None] * READERS  # memory and address of the read requested before
    data: dict[tuple[int, int], int] = {}  # by cycle and memory
    coming: list[deque[tuple[int, int | None]]] = [deque() for _ in range(READERS)]  # cycle and data, by reader
    counts = dict.fromkeys(("written", "missing", "read", "late", "lost", "turns", "together", "several", "held"), 0)
    for cycle in range(5000):
        pace = (0.9, 0.2)[cycle // 300 % 2]
        for i, writer in enumerate(writers):
            if writer is None and bench.happens(pace):
                bits = {"strobe": rng.getrandbits(BEAT), "wdata": rng.getrandbits(512)}
                writers[i] = {"address": random_address(), **bits}
        for i, reader in enumerate(readers):
            if reader is None and bench.happens(pace):
                readers[i] = random_address()
        write_ready = [bench.happens(0.7) for _ in range(memories)]
        read_ready = [bench.happens(0.8) for _ in range(memories)]

        def bits(flags: list[bool]) -> int:
            return sum(1 << i for i, flag in enumerate(flags) if flag)

        dut.write_valid_i.value, dut.host_valid_i.value = writers[0] is not None, writers[1] is not None
        dut.write_i.value, dut.host_i.value = (WRITE.pack(**(writer or {})) for writer in writers)
        dut.read_valid_i.value = bits([reader is not None for reader in readers])
        for i, reader in enumerate(readers):
            dut.read_address_i[i].value = reader or 0
        dut.memory_write_ready_i.value, dut.l1_write_ready_i.value = bits(write_ready[:3]), bits(write_ready[3:])
        dut.memory_read_ready_i.value, dut.l1_read_ready_i.value = bits(read_ready[:3]), bits(read_ready[3:])
        for memory in range(memories):
            port: Any = dut.memory_read_data_i[memory] if memory < 3 else dut.l1_read_data_i[memory - 3]
            port.value = data.pop((cycle, memory), None) or rng.getrandbits(512)
        await bench.read()

        # Writes: each port alternates between NIC and host.
        targets = [memory_of(writer["address"], clusters) if writer else None for writer in writers]
        ports = [min(target, 3) if target is not None else None for target in targets]
        valid = int(dut.memory_write_valid_o.value) | int(dut.l1_write_valid_o.value) << 3
        takes = [writer is not None and target is None for writer, target in zip(writers, targets, strict=True)]
        for port, first in enumerate(turns):
            asks = [i for i in (first, 1 - first) if ports[i] == port]
            if asks:
                target = targets[asks[0]]
                assert target is not None
                assert valid & 1 << target
                valid ^= 1 << target
                beat: Any = dut.l1_write_o if port == 3 else dut.memory_write_o[port]
                assert WRITE.unpack(beat.value) == writers[asks[0]]
                takes[asks[0]] = write_ready[target]
                counts["turns"] += len(asks) == 2
                if write_ready[target]:
                    turns[port] = 1 - asks[0]
        assert not valid
        counts["together"] += all(takes)
        for i, ready in enumerate((dut.write_ready_o, dut.host_ready_o)):
            if writers[i]:
                assert bool(ready.value) == takes[i], cycle
        if writers[0]:
            assert bool(dut.write_missing_o.value) == (targets[0] is None)
        for i in range(2):
            if takes[i]:
                counts["written"] += 1
                counts["missing"] += targets[i] is None
                writers[i] = None

        # Reads requested in the cycle before. Stalled ones block their readers and their memories.
        valid = int(dut.memory_read_valid_o.value)
        held = set()
        for reader, beat in enumerate(chosen):
            if beat is None:
                continue
            memory, address = beat
            if memory is not None and memory < 3:
                assert valid & 1 << memory, cycle
                valid ^= 1 << memory
                assert int(dut.memory_read_address_o[memory].value) == address
                if not read_ready[memory]:
                    held.add(memory)
                    counts["late"] += 1
                    continue
                data[cycle + 3, memory] = rng.getrandbits(512)
                coming[reader].append((cycle + 3, data[cycle + 3, memory]))
            else:
                coming[reader].append((cycle + 3, data.get((cycle + 2, memory)) if memory is not None else None))
            chosen[reader] = None
        assert not valid

        # Next reads: each memory serves its readers round robin.
        waiting = [i for i, reader in enumerate(readers) if reader is not None and chosen[i] is None]
        sources = {i: memory_of(readers[i] or 0, clusters) for i in waiting}
        taken = sum(1 << i for i, memory in sources.items() if memory is None)
        valid = int(dut.l1_read_valid_o.value)
        for memory in range(memories):
            asks = [i for i in waiting if sources[i] == memory]
            counts["held"] += bool(asks) and memory in held
            if not asks or memory in held:
                continue
            reader = min(asks, key=lambda index: (index - read_turns[memory]) % READERS)
            read_turns[memory] = (reader + 1) % READERS
            if memory >= 3:
                assert valid & 1 << memory - 3, cycle
                valid ^= 1 << memory - 3
                assert int(dut.l1_read_address_o[memory - 3].value) == readers[reader]
                if not read_ready[memory]:
                    counts["lost"] += 1
                    continue
                data[cycle + 3, memory] = rng.getrandbits(512)
            taken |= 1 << reader
        assert not valid
        assert int(dut.read_ready_o.value) == taken, cycle
        counts["several"] += taken.bit_count() > 1
        for i in waiting:
            if taken >> i & 1:
                chosen[i] = sources[i], readers[i] or 0
                readers[i] = None

        # Data.
        here = [bool(beats) and beats[0][0] == cycle for beats in coming]
        assert int(dut.read_rvalid_o.value) == bits(here), cycle
        for reader, is_here in enumerate(here):
            if is_here:
                expected = coming[reader].popleft()[1]
                assert int(dut.read_data_o[reader].value) == (expected or 0), cycle
                if reader == READERS - 1:
                    assert bool(dut.read_missing_o.value) == (expected is None)
                counts["read"] += 1
        await bench.next()
    assert counts["written"] > 1000
    assert counts["read"] > 1000
    assert min(counts.values()) > 50, counts
