"""The FIFO keeps order, says when it is full and empty, and loses nothing."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge


@cocotb.test()
async def random_traffic(dut) -> None:
    depth = int(dut.Depth.value)
    rng = random.Random(depth)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    dut.rst_ni.value = dut.valid_i.value = dut.ready_i.value = dut.data_i.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    held: deque[int] = deque()
    compared = fulls = 0
    for cycle in range(2000):
        push, pop = (rng.random() < bias for bias in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6))[cycle // 100 % 3])
        data = rng.getrandbits(16)
        dut.valid_i.value, dut.ready_i.value, dut.data_i.value = push, pop, data
        await RisingEdge(dut.clk_i)
        assert bool(dut.ready_o.value) == (len(held) < depth)
        assert bool(dut.valid_o.value) == bool(held)
        assert int(dut.count_o.value) == len(held)
        fulls += len(held) == depth
        had_room = len(held) < depth
        if held and pop:
            assert int(dut.data_o.value) == held.popleft()
            compared += 1
        if push and had_room:
            held.append(data)
        await FallingEdge(dut.clk_i)
    assert compared > 300
    assert fulls > 50
