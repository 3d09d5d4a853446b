# SPDX-License-Identifier: Apache-2.0
"""The queue between two clocks keeps order and loses nothing, at any ratio; and it passes an entry in each cycle."""

import random
from collections import deque

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

PARAMETERS = [{"Width": 16, "Depth": depth} for depth in (16, 2, 4)]
# Periods of writer and reader.
PERIODS = ((10, 10), (6, 14), (14, 6), (10, 22), (34, 6), (10, 12))


async def write(dut, rng: random.Random, count: int, pace: float, sent: deque[int]) -> None:
    """Offer numbers; an offer stays until it is accepted."""
    for number in range(count):
        while rng.random() > pace:
            await FallingEdge(dut.w_clk_i)
        dut.w_valid_i.value, dut.w_data_i.value = 1, number
        await RisingEdge(dut.w_clk_i)
        while not dut.w_ready_o.value:
            await RisingEdge(dut.w_clk_i)
        sent.append(number)
        await FallingEdge(dut.w_clk_i)
        dut.w_valid_i.value = 0


async def read(dut, rng: random.Random, count: int, pace: float, sent: deque[int]) -> list[int]:
    """Take numbers in order, and only those that were written. Return the edges of the reader's clock."""
    taken: list[int] = []
    edge = 0
    while len(taken) < count:
        await FallingEdge(dut.r_clk_i)
        dut.r_ready_i.value = rng.random() < pace
        await RisingEdge(dut.r_clk_i)
        edge += 1
        if dut.r_valid_o.value and dut.r_ready_i.value:
            assert sent, "an entry is read before it is written"
            assert int(dut.r_data_o.value) == sent.popleft()
            taken.append(edge)
    await FallingEdge(dut.r_clk_i)
    dut.r_ready_i.value = 0
    return taken


@cocotb.test()
async def ratios(dut) -> None:
    """All entries pass at each ratio of clocks, at any pace of both sides."""
    rng = random.Random(cocotb.RANDOM_SEED)
    depth = int(dut.Depth.value)
    for of_writer, of_reader in PERIODS:
        clocks = [
            cocotb.start_soon(Clock(port, period, unit="ns").start())
            for port, period in ((dut.w_clk_i, of_writer), (dut.r_clk_i, of_reader))
        ]
        dut.w_rst_ni.value = dut.r_rst_ni.value = 0
        dut.w_valid_i.value = dut.r_ready_i.value = 0
        await Timer(100, unit="ns")
        dut.w_rst_ni.value = dut.r_rst_ni.value = 1
        await FallingEdge(dut.w_clk_i)
        for paces in ((1, 1), (0.3, 1), (1, 0.3), (0.6, 0.6)):
            sent: deque[int] = deque()
            writer = cocotb.start_soon(write(dut, rng, 200, paces[0], sent))
            edges = await read(dut, rng, 200, paces[1], sent)
            await writer
            assert not sent
            if depth == 16 and paces == (1, 1) and of_reader >= of_writer:
                assert edges[-1] - edges[0] == 199, "the reader gets an entry with each edge"
        for clock in clocks:
            clock.cancel()
