# SPDX-License-Identifier: Apache-2.0
"""Credits are taken and returned; none is created or lost."""

import cocotb
from common import start

PARAMETERS = [{"Credits": most} for most in (3, 8, 1)]


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules."""
    most = int(dut.Credits.value)
    bench = await start(dut)
    left = most
    taken = none = 0
    for now in range(1000):
        take = left > 0 and bench.happens((0.9, 0.3)[now // 50 % 2])
        give = left < most and bench.happens((0.3, 0.9)[now // 50 % 2])
        dut.take_i.value, dut.give_i.value = take, give
        await bench.read()
        assert bool(dut.available_o.value) == (left > 0)
        assert bool(dut.all_o.value) == (left == most)
        assert int(dut.count_o.value) == left
        none += left == 0
        taken += take
        left += give - take
        await bench.next()
    assert taken > 200
    assert none > 20
