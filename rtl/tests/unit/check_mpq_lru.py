# SPDX-License-Identifier: Apache-2.0
"""The tree finds an active queue, as crates/card/pspin-unit/src/schedule/lru.rs does by access times."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

PARAMETERS = [{"Queues": 16}, {"Queues": 2}]


class Order:
    """The tree, by the number of the latest access to each queue."""

    def __init__(self, queues: int) -> None:
        self.accessed = [0] * queues
        self.accesses = 0

    def access(self, queue: int) -> None:
        self.accesses += 1
        self.accessed[queue] = self.accesses

    def victim(self, active: int) -> int:
        start, places = 0, len(self.accessed)
        while places > 1:
            places //= 2
            lower, upper = range(start, start + places), range(start + places, start + 2 * places)
            latest = [max(self.accessed[queue] for queue in half) for half in (lower, upper)]
            has_active = [any(active >> queue & 1 for queue in half) for half in (lower, upper)]
            # Bits point away from the half that was accessed last; before any access they point at the lower one.
            if has_active[1] if latest[0] > latest[1] else not has_active[0]:
                start += places
        return start


@cocotb.test()
async def victims(dut) -> None:
    queues = int(dut.Queues.value)
    rng = random.Random(queues)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for signal in (dut.rst_ni, dut.touch_i, dut.touched_i, dut.active_i, dut.compare_i):
        signal.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    order, active, found = Order(queues), 0, set()
    for _ in range(3000):
        touch, touched, compare = rng.random() < 0.3, rng.randrange(queues), rng.random() < 0.7
        dut.touch_i.value, dut.touched_i.value = touch, touched
        dut.active_i.value, dut.compare_i.value = active, compare
        await RisingEdge(dut.clk_i)
        assert bool(dut.victim_valid_o.value) == bool(active)
        if active:
            victim = order.victim(active)
            assert int(dut.victim_o.value) == victim
            if compare:
                order.access(victim)
                found.add(victim)
        if touch:
            order.access(touched)
            active |= 1 << touched
        if rng.random() < 0.2:
            active &= ~(1 << rng.randrange(queues))
        await FallingEdge(dut.clk_i)
    assert found == set(range(queues))
