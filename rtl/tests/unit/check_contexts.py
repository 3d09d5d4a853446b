# SPDX-License-Identifier: Apache-2.0
"""The table of execution contexts: rows are written and read, and scratchpads one by one; a reset empties all."""

import cocotb
from cocotb.clock import Clock
from common import Bench
from sv_types import struct

PARAMETERS = [{"Contexts": 16, "Clusters": clusters} for clusters in (4, 1)]


@cocotb.test()
async def rows(dut) -> None:
    """A row is output in the cycle after its read, and stable; it is 0 until its first write after a reset."""
    context_t, range_t = struct("execution_context_t"), struct("range_t")
    contexts, clusters = int(dut.Contexts.value), int(dut.Clusters.value)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    bench = Bench(dut)
    rng = bench.rng
    rows: list[int] = []
    pads: list[list[int]] = []
    seen: tuple[int, list[int]] = (0, [])
    compared = empty = 0
    reads_before = False
    for cycle in range(3000):
        if cycle % 600 == 0:
            await bench.reset()
            rows, pads = [0] * contexts, [[0] * clusters for _ in range(contexts)]
            seen = 0, [0] * clusters
        index, pad_index, pad_cluster, read_index = (
            rng.randrange(most) for most in (contexts, contexts, clusters, contexts)
        )
        row, pad = rng.getrandbits(context_t.width), rng.getrandbits(range_t.width)
        writes, writes_pad, reads = (bench.happens(likely) for likely in (0.3, 0.6, 0.5))
        reads &= not (writes and index == read_index) and not (writes_pad and pad_index == read_index)
        dut.context_write_i.value, dut.context_index_i.value, dut.context_i.value = writes, index, row
        dut.scratchpad_write_i.value, dut.scratchpad_index_i.value = writes_pad, pad_index
        dut.scratchpad_cluster_i.value, dut.scratchpad_i.value = pad_cluster, pad
        dut.read_i.value, dut.index_i.value = reads, read_index
        await bench.read()
        assert int(dut.context_o.value) == seen[0]
        found = int(dut.scratchpads_o.value)
        for cluster, expected in enumerate(seen[1]):
            assert found >> range_t.width * cluster & (1 << range_t.width) - 1 == expected
            compared += 1
            empty += reads_before and bool(seen[0]) and not expected
        reads_before = reads
        if reads:
            seen = rows[read_index], list(pads[read_index])
        if writes:
            rows[index] = row
        if writes_pad:
            pads[pad_index][pad_cluster] = pad
        await bench.next()
    assert compared >= 3000
    assert empty > 10
