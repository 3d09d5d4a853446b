# SPDX-License-Identifier: Apache-2.0
"""A stage holds one item, and passes one per cycle when the receiver accepts them."""

import cocotb
from common import start

PARAMETERS = [{"Width": 8}]


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules."""
    bench = await start(dut)
    held = None
    compared = stalls = 0
    for now in range(2000):
        push, pop = (bench.happens(likely) for likely in ((0.9, 0.3), (0.3, 0.9), (1, 1))[now // 100 % 3])
        data = bench.rng.getrandbits(8)
        dut.valid_i.value, dut.ready_i.value, dut.data_i.value = push, pop, data
        await bench.read()
        assert bool(dut.valid_o.value) == (held is not None)
        assert bool(dut.ready_o.value) == (held is None or pop)
        if held is not None:
            assert int(dut.data_o.value) == held
            compared += pop
            stalls += not pop
        if held is None or pop:
            held = data if push else None
        await bench.next()
    assert compared > 500
    assert stalls > 200
