# SPDX-License-Identifier: Apache-2.0
"""All inputs of a pipeline leave after the same number of cycles."""

import cocotb
from common import start

PARAMETERS = [{"Width": 8, "Cycles": cycles} for cycles in (5, 1, 0)]


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules."""
    cycles = int(dut.Cycles.value)
    bench = await start(dut)
    on_the_way: dict[int, int] = {}
    compared = empties = 0
    for now in range(1000):
        data = bench.rng.getrandbits(8)
        valid = bench.happens((0.9, 0.1)[now // 50 % 2])
        dut.valid_i.value, dut.data_i.value = valid, data
        await bench.read()
        if valid:
            on_the_way[now + cycles] = data
        assert bool(dut.empty_o.value) == (not on_the_way)
        empties += not on_the_way
        expected = on_the_way.pop(now, None)
        assert bool(dut.valid_o.value) == (expected is not None)
        if expected is not None:
            assert int(dut.data_o.value) == expected
            compared += 1
        await bench.next()
    assert compared > 400
    assert empties > 50
