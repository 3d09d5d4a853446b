# SPDX-License-Identifier: Apache-2.0
"""Merged streams lose nothing, and are served round robin."""

from collections import deque

import cocotb
from common import start

PARAMETERS = [{"N": 8, "Width": 16}, {"N": 1, "Width": 16}]


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each cycle follows the rules."""
    senders = int(dut.N.value)
    bench = await start(dut)
    waiting = [deque() for _ in range(senders)]
    turn = compared = held = 0
    for cycle in range(2_000):
        for queue in waiting:
            if bench.happens((0.02, 0.3)[cycle // 200 % 2]):
                queue.append(bench.rng.getrandbits(16))
        offers = [bool(queue) for queue in waiting]
        dut.valid_i.value = sum(offer << index for index, offer in enumerate(offers))
        for index, queue in enumerate(waiting):
            dut.data_i[index].value = queue[0] if queue else bench.rng.getrandbits(16)
        ready = bench.happens(0.7)
        dut.ready_i.value = ready
        await bench.read()
        order = [index % senders for index in range(turn, turn + senders)]
        choice = next((index for index in order if offers[index]), None)
        assert bool(dut.valid_o.value) == (choice is not None)
        assert int(dut.ready_o.value) == (1 << choice if ready and choice is not None else 0)
        if choice is not None:
            assert int(dut.index_o.value) == choice
            assert int(dut.data_o.value) == waiting[choice][0]
            held += not ready
            if ready:
                turn = (choice + 1) % senders
                waiting[choice].popleft()
                compared += 1
        await bench.next()
    assert compared > 200
    assert held > 50
