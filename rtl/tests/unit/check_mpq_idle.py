# SPDX-License-Identifier: Apache-2.0
"""The idle time-out: only a message that was idle for long enough is given up, and each of those soon."""

import cocotb
from check_mpq_lru import Order
from common import start

PARAMETERS = [{"Queues": queues, "TimeWidth": 40} for queues in (16, 64, 2)]
STAGES = 3  # from the choice of a queue to its end


@cocotb.test()
async def ages(dut) -> None:
    """Each cycle follows the tree and the times."""
    queues = int(dut.Queues.value)
    bench = await start(dut)
    rng, order = bench.rng, Order(queues)
    idle_cycles = [rng.randrange(1, 40 * queues) for _ in range(8)]
    touched, context = [0] * queues, [0] * queues
    active: set[int] = set()
    named: list[int | None] = [None] * (STAGES + 1)  # queues in the stages, the latest first
    answer = given_up = saved = young = 0
    for now in range(12000):
        is_busy = now // 1000 % 3 != 2
        touch = bench.happens((0.3, 0.05)[now // 500 % 2]) and is_busy
        queue = rng.randrange(queues)
        # A few queues have nearly all requests, so that the others become idle.
        if bench.happens(0.9):
            queue %= max(1, queues // 4)
        is_new, new_context = queue not in active, rng.randrange(len(idle_cycles))
        takes = bench.happens(0.5)
        dut.all_i.value = gives_up = now % 2000 > 1950
        dut.touch_i.value, dut.touched_i.value = touch, queue
        dut.touch_new_i.value, dut.touch_context_i.value = touch and is_new, new_context
        dut.active_i.value = sum(1 << index for index in active)
        dut.idle_cycles_i.value = idle_cycles[answer]
        await bench.read()

        victim = order.victim(sum(1 << index for index in active)) if active else None
        named = [victim, *named[:STAGES]]
        due = named[STAGES]
        is_old = due is not None and now - touched[due] >= idle_cycles[context[due]]
        is_due = is_old or (due is not None and gives_up)
        young += is_due and not is_old
        assert bool(dut.idle_o.value) == is_due, now
        if is_due:
            assert int(dut.idle_queue_o.value) == due, now
            assert int(dut.idle_context_o.value) == context[due], now
        for index in active:
            late = now - touched[index] - idle_cycles[context[index]]
            assert late < 12 * queues + 8, f"queue {index} has been idle for too long in cycle {now}"
        if dut.read_o.value:
            answer = int(dut.read_context_o.value) % len(idle_cycles)
        gone = due if is_due and takes and due in active and not (touch and queue == due) else None
        if gone is None and active and bench.happens(0.02):
            gone = rng.choice(sorted(active))
            gone = None if touch and gone == queue else gone
        elif gone is not None:
            given_up += 1
        if victim is not None:
            order.access(victim)
        if touch:
            order.access(queue)
            touched[queue] = now
            if is_new:
                context[queue] = new_context
            active.add(queue)
            saved += queue in named[:STAGES]
            named = [None if index < STAGES and name == queue else name for index, name in enumerate(named)]
        active.discard(gone)
        await bench.next()
    assert given_up > 30
    assert young > 30
    assert saved > 50
