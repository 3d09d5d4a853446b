# SPDX-License-Identifier: Apache-2.0
"""The queue in a memory keeps order, reports full, shows its first entry in time, and loses nothing."""

from collections import deque

import cocotb
from common import start

PARAMETERS = [{"Width": 16, "Depth": depth} for depth in (3, 4, 1)]


@cocotb.test()
async def cycles(dut) -> None:
    """Each cycle follows the rules: an entry is read after the cycle of its arrival, and shown in the next."""
    depth = int(dut.Depth.value)
    bench = await start(dut)
    held: deque[int] = deque()
    shown = False
    compared = fulls = at_once = 0
    for cycle in range(2000):
        push, pop = (bench.happens(likely) for likely in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6))[cycle // 100 % 3])
        data = bench.rng.getrandbits(16)
        dut.valid_i.value, dut.ready_i.value, dut.data_i.value = push, pop, data
        await bench.read()
        had_room, takes = len(held) < depth, shown and pop
        assert bool(dut.ready_o.value) == had_room
        assert bool(dut.valid_o.value) == shown
        fulls += not had_room
        if shown:
            assert int(dut.data_o.value) == held[0]
        if takes:
            held.popleft()
            compared += 1
        at_once += bool(takes and held)
        shown = bool(held)
        if push and had_room:
            held.append(data)
        await bench.next()
    assert compared > 200
    assert fulls > 50
    assert depth == 1 or at_once > 50
