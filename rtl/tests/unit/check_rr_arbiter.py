# SPDX-License-Identifier: Apache-2.0
"""The arbiter grants the first requester after the latest grant, in cyclic order."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

PARAMETERS = [{"N": requesters} for requesters in (5, 8, 1)]


@cocotb.test()
async def choices(dut) -> None:
    count = int(dut.N.value)
    rng = random.Random(count)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    dut.rst_ni.value = dut.requests_i.value = dut.take_i.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    following = grants = 0
    waited = [0] * count
    for _ in range(2000):
        requests, take = rng.getrandbits(count), rng.random() < 0.7
        dut.requests_i.value, dut.take_i.value = requests, take
        await RisingEdge(dut.clk_i)
        assert bool(dut.valid_o.value) == bool(requests)
        if requests:
            order = [(following + index) % count for index in range(count)]
            expected = next(index for index in order if requests >> index & 1)
            assert int(dut.index_o.value) == expected
            if take:
                following = (expected + 1) % count
                grants += 1
                waited = [
                    0 if index == expected or not requests >> index & 1 else waited[index] + 1 for index in range(count)
                ]
                assert max(waited) < count, "a requester waits for each other one at most"
        await FallingEdge(dut.clk_i)
    assert grants > 600
