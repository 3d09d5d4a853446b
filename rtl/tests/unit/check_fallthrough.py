# SPDX-License-Identifier: Apache-2.0
"""An entry leaves in the cycle of its arrival, or some cycles later; order is kept and nothing is lost."""

from collections import deque

import cocotb
from common import start

PARAMETERS = [{"Width": 16, "Depth": depth, "Cycles": cycles} for depth, cycles in ((3, 0), (4, 3), (2, 1), (1, 0))]


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules."""
    depth, cycles = int(dut.Depth.value), int(dut.Cycles.value)
    bench = await start(dut)
    held: deque[tuple[int, int]] = deque()
    compared = fulls = at_once = 0
    for now in range(3000):
        push, pop = (bench.happens(likely) for likely in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6), (1, 1))[now // 100 % 4])
        data = bench.rng.getrandbits(16)
        dut.valid_i.value, dut.ready_i.value, dut.data_i.value = push, pop, data
        await bench.read()
        assert bool(dut.ready_o.value) == (len(held) < depth), now
        assert bool(dut.empty_o.value) == (not held), now
        fulls += len(held) == depth
        if push and len(held) < depth:
            held.append((now + cycles, data))
        is_ripe = bool(held) and held[0][0] <= now
        assert bool(dut.valid_o.value) == is_ripe, now
        if is_ripe:
            at, expected = held[0]
            assert int(dut.data_o.value) == expected, now
            if pop:
                held.popleft()
                compared += 1
                at_once += at == now
        await bench.next()
    assert compared > 400
    assert fulls > 50
    assert at_once > 100
