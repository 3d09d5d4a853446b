# SPDX-License-Identifier: Apache-2.0
"""The FIFO keeps order, reports full and empty, and loses nothing."""

from collections import deque

import cocotb
from common import Driver, Monitor, Scoreboard, start

PARAMETERS = [{"Width": 16, "Depth": depth} for depth in (3, 4, 1)]


@cocotb.test()
async def cycles(dut) -> None:
    """Each cycle follows the rules."""
    depth = int(dut.Depth.value)
    bench = await start(dut)
    held: deque[int] = deque()
    compared = fulls = 0
    for cycle in range(2000):
        push, pop = (bench.happens(likely) for likely in ((0.9, 0.2), (0.2, 0.9), (0.6, 0.6))[cycle // 100 % 3])
        data = bench.rng.getrandbits(16)
        dut.valid_i.value, dut.ready_i.value, dut.data_i.value = push, pop, data
        await bench.read()
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
        await bench.next()
    assert compared > 300
    assert fulls > 50


@cocotb.test()
async def streams(dut) -> None:
    """Entries leave in order and in the next cycle at the earliest, at any pace of both sides."""
    bench = await start(dut, most_cycles=5000)
    source, sink, board = Driver(bench, "", ["data"]), Monitor(bench, "", ["data"]), Scoreboard()
    for source.pace, sink.pace in ((1, 1), (0.2, 1), (1, 0.2), (0.5, 0.5)):
        for _ in range(100):
            item = bench.rng.getrandbits(16)
            source.send(item)
            board.expect(item)
        while source.waiting or dut.valid_o.value:
            await bench.next()
    for (cycle_in, _), (cycle_out, item) in zip(source.taken, sink.seen, strict=True):
        assert cycle_out > cycle_in
        board.compare(item)
    board.finish(400)
