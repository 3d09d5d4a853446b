# SPDX-License-Identifier: Apache-2.0
"""The queue engine against the rules of crates/card/pspin-unit/src/schedule/mpq.rs: the same task in the same cycle."""

import cocotb
from common import shorter, start
from mpq_model import HEADER, Engine, Her, Task

SIZES = ((4, 3, 1), (2, 0, 2), (256, 128, 1))
RESETS = 20
PARAMETERS = [
    {
        "Queues": queues,
        "SharedCells": shared,
        "OwnCells": own,
        "IdWidth": queues.bit_length() + 1,
        "Width": 16,
        "TasksWidth": 6,
        "SkipsWidth": 3,
    }
    for queues, shared, own in SIZES
]


@cocotb.test()
async def random_messages(dut) -> None:
    """Each cycle follows the rules, with requests, ends, and resets of messages in any combination."""
    queues, shared, own = (int(getattr(dut, name).value) for name in ("Queues", "SharedCells", "OwnCells"))
    most_tasks, most_skips = (2 ** int(getattr(dut, name).value) - 3 for name in ("TasksWidth", "SkipsWidth"))
    bench = await start(dut)
    rng, engine = bench.rng, Engine(queues, shared, own)
    running: list[Task] = []
    accepted = fed_back = ended = resets = idles = frees = refused = 0
    states = set()
    until = shorter(20_000)
    for now in range(until + 1000 + 20 * queues):
        drains = now > until
        likely = (0.95, 0.5, 0.2)[now // 500 % 3]
        message, eom, roles, data = (rng.getrandbits(width) for width in (queues.bit_length() + 1, 2, 3, 16))
        eom = eom == 0
        offers = bench.happens(likely)
        open_ones = [queue for queue in engine.queues if queue.state not in ("free", "reset") and not queue.ended]
        if drains:
            offers, eom = bool(open_ones), True
        if open_ones and (drains or bench.happens(0.5)):
            message = rng.choice(open_ones[:8]).message
        is_crowded = len(running) >= most_tasks or sum(task.skips for task in running) >= most_skips
        ready = bench.happens(likely) and not is_crowded
        ends = running and bench.happens((0.3, 0.6, 0.9)[now // 700 % 3])
        done = running.pop(rng.randrange(len(running))) if ends else None
        failed = done is not None and done.role == HEADER and bench.happens(0.3)
        reset, idle = (not drains and bench.happens(0.01) for _ in range(2))
        reset_message = rng.choice(engine.queues).message ^ (bench.happens(0.1) * queues)
        idle_queue = rng.randrange(queues)

        dut.her_valid_i.value, dut.her_message_i.value, dut.her_eom_i.value = offers, message, eom
        dut.her_roles_i.value, dut.her_data_i.value, dut.task_ready_i.value = roles, data, ready
        dut.done_valid_i.value = done is not None
        dut.done_queue_i.value = done.queue if done else rng.randrange(queues)
        dut.done_failed_i.value, dut.done_skipped_i.value = failed, bool(done and done.skips)
        dut.reset_valid_i.value, dut.reset_message_i.value = reset, reset_message
        dut.idle_valid_i.value, dut.idle_queue_i.value = idle, idle_queue
        await bench.read()

        # State before the clock's edge.
        is_ready = engine.accepts(message)
        assert bool(dut.her_ready_o.value) == is_ready, now
        assert int(dut.free_o.value) == engine.having("free")
        assert int(dut.active_o.value) == (1 << queues) - 1 & ~engine.having("free") & ~engine.having("reset")
        assert bool(dut.task_valid_o.value) == (engine.out is not None), now
        if (task := engine.out) is not None:
            seen = (
                int(dut.task_queue_o.value),
                int(dut.task_role_o.value),
                bool(dut.task_feeds_back_o.value),
                bool(dut.task_skips_o.value),
                bool(dut.task_resets_o.value),
                int(dut.task_data_o.value),
            )
            assert seen == (task.queue, task.role, task.feeds_back, task.skips, task.resets, task.data), now
        states.update(queue.state for queue in engine.queues)

        # The cycle, in the order in which the model's parts act.
        takes = offers and is_ready
        is_new = engine.queues[message % queues].state == "free"
        assert bool(dut.touch_o.value) == takes
        assert bool(dut.touch_new_o.value) == (takes and is_new)
        if takes:
            assert int(dut.touched_o.value) == message % queues
            engine.accept(now, Her(message, eom, roles, data))
            accepted += 1
        refused += offers and not is_ready
        # A message whose first request arrives in this cycle is not known yet.
        comes = takes and is_new and message == reset_message
        was_free = engine.reset(now, reset_message) if reset and not comes else None
        assert bool(dut.reset_done_o.value) == (was_free is not None), now
        assert bool(dut.reset_free_o.value) == bool(was_free), now
        resets += was_free is not None
        # The idle time-out follows the driver, and is ignored if the queue has another event.
        is_busy = reset or (takes and message % queues == idle_queue) or (done is not None and done.queue == idle_queue)
        named = engine.queues[idle_queue].message
        was_free = engine.reset(now, named) if idle and not is_busy else None
        assert bool(dut.idle_done_o.value) == (was_free is not None), now
        assert bool(dut.idle_free_o.value) == bool(was_free), now
        if was_free is not None:
            assert int(dut.idle_message_o.value) == named
            idles += 1
            frees += was_free
        last = done is not None and engine.complete(now, done.queue, failed, done.skips)
        assert bool(dut.done_last_o.value) == last, now
        ended += last
        fed_back += done is not None and done.feeds_back
        taken = engine.out is not None and ready
        if taken:
            running.append(engine.out)
        engine.step(now, taken)
        await bench.next()
    assert accepted == fed_back, "every packet is fed back once"
    assert not running
    assert engine.out is None
    assert int(dut.free_o.value) == (1 << queues) - 1
    assert accepted > shorter(1000)
    assert ended > shorter(200)
    assert resets > shorter(10)
    assert idles > shorter(10)
    assert frees > shorter(1)
    assert refused > shorter(500)
    assert len(states) == 8, states
