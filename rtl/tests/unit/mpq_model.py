# SPDX-License-Identifier: Apache-2.0
"""Rules of the queue engine, as in crates/card/pspin-unit/src/schedule/mpq.rs."""

from collections import deque
from dataclasses import dataclass, field

HEADER, PAYLOAD, COMPLETION = range(3)
SELECT_CYCLES = 2


@dataclass
class Her:
    message: int
    eom: bool
    roles: int
    data: int
    start: int = 0  # first cycle of its selection


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
    start: int = 0  # first cycle in which the selection sees an end or a reset


@dataclass
class Task:
    queue: int
    role: int
    feeds_back: bool
    skips: bool
    resets: bool
    data: int


class Engine:
    """Rules of the model."""

    def __init__(self, queues: int, shared: int, own: int) -> None:
        self.queues = [Queue() for _ in range(queues)]
        self.shared, self.own = shared, own
        self.following = 0
        self.out: Task | None = None

    def having(self, state: str) -> int:
        return sum(1 << index for index, queue in enumerate(self.queues) if queue.state == state)

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
        queue.ended, her.start = her.eom, now + SELECT_CYCLES
        self.shared -= len(queue.waiting) >= self.own
        queue.waiting.append(her)

    def reset(self, now: int, message: int) -> bool | None:
        """Give up a message. Return true if its queue is free; None if the message does not exist."""
        queue = self.queues[message % len(self.queues)]
        if queue.message != message or queue.state in ("free", "reset"):
            return None
        idle = queue.running == 0 and not queue.waiting and queue.last is None
        queue.state, queue.start = "free" if idle else "reset", now + SELECT_CYCLES
        return idle

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
