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
    turn = 0
    turns = [0] * 4  # next side at each write port
    at_memory: tuple[int, int | None, int] | None = None  # reader, memory, address of the read requested before
    data: dict[tuple[int, int], int] = {}  # by cycle and memory
    coming: deque[tuple[int, int, int | None]] = deque()  # cycle, reader, data
    counts = {"written": 0, "missing": 0, "read": 0, "late": 0, "lost": 0, "turns": 0, "together": 0}
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

        # Read requested in the cycle before.
        valid = int(dut.memory_read_valid_o.value)
        moves = True
        if at_memory:
            reader, memory, address = at_memory
            uses_l2 = memory is not None and memory < 3
            assert valid == (1 << memory if uses_l2 and memory is not None else 0), cycle
            if uses_l2 and memory is not None:
                assert int(dut.memory_read_address_o.value) == address
                moves = read_ready[memory]
                if moves:
                    data[cycle + 3, memory] = rng.getrandbits(512)
                    coming.append((cycle + 3, reader, data[cycle + 3, memory]))
                counts["late"] += not moves
            else:
                coming.append((cycle + 3, reader, data.get((cycle + 2, memory)) if memory is not None else None))
            if moves:
                at_memory = None
        else:
            assert not valid

        # Next read.
        waiting = [i for i, reader in enumerate(readers) if reader is not None]
        taken = 0
        if waiting and moves:
            chosen = min(waiting, key=lambda index: (index - turn) % READERS)
            turn = (chosen + 1) % READERS
            wanted = readers[chosen] or 0
            memory = memory_of(wanted, clusters)
            is_l1 = memory is not None and memory >= 3
            assert int(dut.l1_read_valid_o.value) == (1 << memory - 3 if is_l1 and memory is not None else 0), cycle
            if is_l1 and memory is not None:
                assert int(dut.l1_read_address_o.value) == wanted
            if not is_l1 or (memory is not None and read_ready[memory]):
                taken = 1 << chosen
                readers[chosen] = None
                at_memory = (chosen, memory, wanted)
                if is_l1 and memory is not None:
                    data[cycle + 3, memory] = rng.getrandbits(512)
            else:
                counts["lost"] += 1
        else:
            assert not dut.l1_read_valid_o.value
        assert int(dut.read_ready_o.value) == taken, cycle

        # Data.
        is_here = bool(coming) and coming[0][0] == cycle
        assert int(dut.read_rvalid_o.value) == (1 << coming[0][1] if is_here else 0), cycle
        if is_here:
            expected = coming.popleft()[2]
            assert int(dut.read_data_o.value) == (expected or 0), cycle
            assert bool(dut.read_missing_o.value) == (expected is None)
            counts["read"] += 1
        await bench.next()
    assert counts["written"] > 1000
    assert counts["read"] > 1000
    assert min(counts.values()) > 50, counts
