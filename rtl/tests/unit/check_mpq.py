"""The queue engine against the rules of crates/accel/src/pspin/schedule/mpq.rs: the same task in the same cycle."""

import random
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

PARAMETERS = [
    {"Queues": 4, "SharedCells": 3, "OwnCells": 1, "IdWidth": 4, "Width": 16, "TasksWidth": 6},
    {"Queues": 2, "SharedCells": 0, "OwnCells": 2, "IdWidth": 4, "Width": 16, "TasksWidth": 6},
]

HEADER, PAYLOAD, COMPLETION = range(3)
SELECT_CYCLES = 2


@dataclass
class Her:
    message: int
    eom: bool
    roles: int
    data: int
    start: int  # the cycle from which it may be selected


@dataclass
class Queue:
    state: str = "free"
    message: int = 0
    roles: int = 0
    waiting: deque = field(default_factory=deque)
    running: int = 0
    skipped: int = 0
    failed: bool = False
    ended: bool = False
    last: Her | None = None
    start: int = 0  # an end or a reset is seen by the selection from this cycle on


@dataclass
class Task:
    queue: int
    role: int
    feeds_back: bool
    skips: bool
    resets: bool
    data: int


class Engine:
    """The rules, as the model has them."""

    def __init__(self, queues: int, shared: int, own: int) -> None:
        self.queues = [Queue() for _ in range(queues)]
        self.shared, self.own = shared, own
        self.following = 0
        self.out: Task | None = None

    def accepts(self, message: int) -> bool:
        queue = self.queues[message % len(self.queues)]
        mine = queue.message == message and not queue.ended and queue.state != "reset"
        return (queue.state == "free" or mine) and (len(queue.waiting) < self.own or self.shared > 0)

    def accept(self, now: int, her: Her) -> None:
        queue = self.queues[her.message % len(self.queues)]
        if queue.state == "free":
            queue.state = "header" if her.roles >> HEADER & 1 else "payload"
            queue.message, queue.roles, queue.failed = her.message, her.roles, False
            queue.start = now
        queue.ended = her.eom
        self.shared -= len(queue.waiting) >= self.own
        queue.waiting.append(her)

    def reset(self, now: int, message: int) -> bool:
        queue = self.queues[message % len(self.queues)]
        if queue.message != message or queue.state in ("free", "reset"):
            return False
        idle = queue.running == 0 and not queue.waiting and queue.last is None
        queue.state, queue.start = "free" if idle else "reset", now + SELECT_CYCLES
        return True

    def complete(self, now: int, number: int, failed: bool, skipped: bool) -> bool:
        queue = self.queues[number]
        only_skipped = queue.running == queue.skipped
        queue.running -= 1
        queue.skipped -= skipped
        before = queue.state
        if queue.state == "header running":
            queue.failed |= failed
            queue.state = "payload"
        elif queue.state == "draining" and queue.running == 0:
            queue.state = "completion" if queue.last else "free"
        elif queue.state == "completion running" and queue.running == 0:
            queue.state = "free"
        elif queue.state == "reset":
            if queue.running == queue.skipped and not only_skipped:
                queue.start = now + SELECT_CYCLES
            if queue.running == 0 and not queue.waiting and queue.last is None:
                queue.state = "free"
        if queue.state != before:
            queue.start = now + SELECT_CYCLES
        return queue.state == "free"

    def could_give(self, queue: Queue, now: int) -> bool:
        if queue.start > now:
            return False
        if queue.state in ("header", "payload"):
            return bool(queue.waiting) and queue.waiting[0].start <= now
        if queue.state == "reset":
            return queue.running == queue.skipped and bool(queue.waiting or queue.last)
        return queue.state == "completion"

    def step(self, now: int, taken: bool) -> None:
        if taken:
            self.out = None
        if self.out is not None:
            return
        count = len(self.queues)
        order = [(self.following + index) % count for index in range(count)]
        number = next((index for index in order if self.could_give(self.queues[index], now)), None)
        if number is not None:
            self.following = (number + 1) % count
            self.out = self.select(self.queues[number], number)

    def pop(self, queue: Queue) -> Her:
        self.shared += len(queue.waiting) > self.own
        return queue.waiting.popleft()

    def select(self, queue: Queue, number: int) -> Task | None:
        task = Task(number, PAYLOAD, True, False, False, 0)
        if queue.state == "header":
            queue.state = "header running"
            task.role, task.feeds_back, task.data = HEADER, False, queue.waiting[0].data
        elif queue.state == "payload":
            her = self.pop(queue)
            runs = bool(queue.roles >> PAYLOAD & 1) and not queue.failed
            waits = her.eom and bool(queue.roles >> COMPLETION & 1) and not queue.failed
            if her.eom:
                queue.state = "completion" if waits and queue.running == 0 and not runs else "draining"
            if waits:
                queue.last = her
            if waits and not runs:
                return None
            task.feeds_back, task.skips, task.data = not waits, not runs, her.data
        elif queue.state == "completion":
            queue.state = "completion running"
            task.role, task.data, queue.last = COMPLETION, queue.last.data, None
        else:
            her = self.pop(queue) if queue.waiting else queue.last
            if her is queue.last:
                queue.last = None
            task.skips, task.resets, task.data = True, True, her.data
        queue.skipped += task.skips
        queue.running += 1
        return task


@cocotb.test()
async def random_messages(dut) -> None:
    queues, shared, own = (int(getattr(dut, name).value) for name in ("Queues", "SharedCells", "OwnCells"))
    rng = random.Random(queues)
    engine = Engine(queues, shared, own)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for name in (
        "rst_ni",
        "her_valid_i",
        "her_message_i",
        "her_eom_i",
        "her_roles_i",
        "her_data_i",
        "task_ready_i",
        "done_valid_i",
        "done_queue_i",
        "done_failed_i",
        "done_skipped_i",
        "reset_valid_i",
        "reset_message_i",
    ):
        getattr(dut, name).value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    running: list[Task] = []
    accepted = fed_back = ended = resets = refused = 0
    states = set()
    for now in range(20000):
        drains = now > 19000
        bias = (0.95, 0.5, 0.2)[now // 500 % 3]
        message, eom, roles, data = rng.randrange(16), rng.random() < 0.25, rng.randrange(8), rng.getrandbits(16)
        state = engine.queues[message % queues]
        if state.state != "free" and state.message == message:
            roles = state.roles
        elif state.state != "free" and drains:
            message = state.message
        if drains:  # open messages end
            open_ones = [
                queue for queue in engine.queues if queue.state != "free" and not queue.ended and queue.state != "reset"
            ]
            eom, offers = True, bool(open_ones)
            if open_ones:
                message, roles = open_ones[0].message, open_ones[0].roles
        else:
            offers = rng.random() < bias
        ready = rng.random() < bias
        done = (
            running.pop(rng.randrange(len(running)))
            if running and rng.random() < (0.3, 0.6, 0.9)[now // 700 % 3]
            else None
        )
        failed = done is not None and done.role == HEADER and rng.random() < 0.3
        reset = not drains and rng.random() < 0.01
        reset_message = rng.choice([queue.message for queue in engine.queues])

        dut.her_valid_i.value, dut.her_message_i.value, dut.her_eom_i.value = offers, message, eom
        dut.her_roles_i.value, dut.her_data_i.value, dut.task_ready_i.value = roles, data, ready
        dut.done_valid_i.value = done is not None
        dut.done_queue_i.value = done.queue if done else 0
        dut.done_failed_i.value, dut.done_skipped_i.value = failed, bool(done and done.skips)
        dut.reset_valid_i.value, dut.reset_message_i.value = reset, reset_message
        await RisingEdge(dut.clk_i)

        # What is there before the clock's edge.
        is_ready = engine.accepts(message)
        assert bool(dut.her_ready_o.value) == is_ready, now
        assert int(dut.free_o.value) == sum(
            1 << index for index, queue in enumerate(engine.queues) if queue.state == "free"
        )
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
        if offers and is_ready:
            engine.accept(now, Her(message, eom, roles, data, now + SELECT_CYCLES))
            accepted += 1
        refused += offers and not is_ready
        if reset:
            was_reset = engine.reset(now, reset_message)
            assert bool(dut.reset_done_o.value) == was_reset, now
            resets += was_reset
        if done is not None:
            last = engine.complete(now, done.queue, failed, done.skips)
            assert bool(dut.done_last_o.value) == last, now
            ended += last
            fed_back += done.feeds_back
        taken = engine.out is not None and ready
        if taken:
            running.append(engine.out)
        engine.step(now, taken)
        await FallingEdge(dut.clk_i)
    assert accepted == fed_back, "every packet is fed back once"
    assert not running
    assert engine.out is None
    assert accepted > 500 * queues
    assert ended > 50 * queues
    assert resets > 10
    assert refused > 500
    assert len(states) == 8, states
