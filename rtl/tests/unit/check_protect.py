# SPDX-License-Identifier: Apache-2.0
"""Protection against sets of bytes: a range is allowed when all of its bytes are in one window, and in one memory."""

import random

import cocotb
from cocotb.triggers import Timer
from sv_types import struct

PARAMETERS = [
    {"Clusters": 3, "L1Bytes": 512, "HandlerBytes": 256, "PacketBytes": 256, "ProgramBytes": 128},
    {"Clusters": 1, "L1Bytes": 65536, "HandlerBytes": 65536, "PacketBytes": 65536, "ProgramBytes": 8192},
]

RANGE, WINDOWS = struct("range_t"), struct("windows_t")
NAMES = ("own_stack", "static_data", "code", "packet", "l2_packet", "handler_memory")
OWN, L1, SPAN = 0x1B00_0000, 0x1000_0000, 0x40_0000


@cocotb.test()
async def random_ranges(dut) -> None:
    rng = random.Random(cocotb.RANDOM_SEED)
    clusters, l1 = int(dut.Clusters.value), int(dut.L1Bytes.value)
    memories = [(L1 + cluster * SPAN, l1) for cluster in range(clusters)]
    memories += [(0x1C00_0000, int(dut.HandlerBytes.value)), (0x1C40_0000, int(dut.PacketBytes.value))]
    memories += [(0x1D00_0000, int(dut.ProgramBytes.value))]

    def piece(first: int, size: int) -> tuple[int, int]:
        """Return a range of a memory: often all of it, or none; sometimes beyond its end."""
        begin, end = sorted(rng.choice([0, size, rng.randrange(size + 1)]) for _ in range(2))
        return first + begin, end - begin + rng.choice([0, 0, 0, 8])

    def wrapping(first: int, size: int) -> tuple[int, int]:
        """Return a window that begins above all memories, and would contain this one if it continued at address 0."""
        begin = rng.randrange(0x1E00_0000, 1 << 32)
        return begin, min((1 << 32) - begin + first + size, (1 << 32) - 1)

    seen = {"allowed": 0, "denied": 0, "own": 0, "code": 0, "empty": 0, "last byte": 0, "beyond": 0, "wraps": 0}
    for _ in range(800):
        cluster = rng.randrange(clusters)
        windows = {name: (wrapping if rng.random() < 0.2 else piece)(*rng.choice(memories)) for name in NAMES}
        scratchpads = [(wrapping if rng.random() < 0.2 else piece)(*memories[number]) for number in range(clusters)]
        dut.cluster_i.value = cluster
        dut.windows_i.value = WINDOWS.pack(
            **{name: {"address": first, "size": size} for name, (first, size) in windows.items()}
        )
        dut.scratchpads_i.value = sum(
            RANGE.pack(address=first, size=size) << 64 * number for number, (first, size) in enumerate(scratchpads)
        )
        spans = [(*window, name != "code") for name, window in windows.items()]
        spans += [(*scratchpad, True) for scratchpad in scratchpads]
        for _ in range(20):
            # A range at an edge of a window or a memory, or anywhere.
            first, size = rng.choice([*((first, size) for first, size, _ in spans), *memories])
            wanted = rng.choice([0, 1, 2, 4, size, size + 1, 64, 1 << 31, (1 << 32) - 1])
            address = rng.choice([first, first + size - wanted, first + size]) + rng.choice([-1, 0, 0, 1])
            address = rng.getrandbits(32) if rng.random() < 0.02 else address % (1 << 32)
            seen_at = address
            if memories[cluster][0] <= address < memories[cluster][0] + l1 and rng.random() < 0.5:
                seen_at = address - memories[cluster][0] + OWN
            writes = rng.random() < 0.5
            dut.range_i.value, dut.writes_i.value = RANGE.pack(address=seen_at, size=wanted), writes
            await Timer(1, unit="ns")

            def inside(first: int, size: int, address: int = address, wanted: int = wanted) -> bool:
                return size > 0 and first <= address and address + wanted <= first + size

            having = [may_write for first, size, may_write in spans if inside(first, size)]
            allowed = any(inside(*memory) for memory in memories) and any(having if writes else [True for _ in having])
            where = f"{wanted} B at {seen_at:#x}, writes: {writes}, windows: {windows}, {scratchpads}"
            assert bool(dut.allowed_o.value) == allowed, where
            assert int(dut.common_o.value) == address, where
            if allowed and wanted:
                assert bool(dut.is_own_l1_o.value) == inside(*memories[cluster]), where
                seen["own"] += seen_at != address
            seen["allowed" if allowed else "denied"] += 1
            seen["empty"] += allowed and not wanted
            seen["code"] += not allowed and bool(having)
            seen["beyond"] += not allowed and any(having if writes else [True for _ in having])
            around = any(wanted and inside(first - (1 << 32), size) for first, size, _ in spans)
            seen["wraps"] += not allowed and around and any(inside(*memory) for memory in memories)
            seen["last byte"] += (
                not allowed and wanted > 1 and any(inside(*span[:2], wanted=wanted - 1) for span in spans)
            )
    assert min(seen.values()) > 40, seen
