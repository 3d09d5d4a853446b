# SPDX-License-Identifier: Apache-2.0
"""Rules of queue engine, dispatcher and return path together, in the order of crates/card/pspin-unit/src/pspin.rs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from feedback_model import Cause, End, Feedback, is_skipped
from mpq_model import Engine, Her, Task


@dataclass
class Context:
    """Scheduler's part of an execution context."""

    roles: int
    pin: int | None
    idle_cycles: int


@dataclass
class Policy:
    """Policy of the dispatcher."""

    home: bool
    others: bool
    pins: bool


class Sched:
    """All units; `cycle` is one cycle."""

    def __init__(
        self, engine: Engine, back: Feedback, policy: Policy, dispatch_cycles: int, buffer_bytes: int = 1 << 16
    ) -> None:
        self.engine, self.back, self.policy, self.dispatch_cycles = engine, back, policy, dispatch_cycles
        self.buffer_bytes = buffer_bytes
        self.contexts: dict[int, Context] = {}
        self.since = 0  # cycle in which the engine selected its task
        self.touched = [0] * len(engine.queues)
        self.allowed = [0] * len(engine.queues)

    def accept(self, now: int, her: dict[str, Any]) -> None:
        """Accept a request for which the engine has room."""
        number = her["message"] % len(self.engine.queues)
        if self.engine.queues[number].state == "free":
            self.allowed[number] = self.contexts[her["execution_context"]].idle_cycles
        self.touched[number] = now
        roles = self.contexts[her["execution_context"]].roles
        self.engine.accept(now, Her(her["message"], bool(her["eom"]), roles, her))

    def home(self, her: dict[str, Any]) -> int:
        """Return the home cluster of a task."""
        pin = self.contexts[her["execution_context"]].pin
        return (her["message"] if pin is None or not self.policy.pins else pin) % self.back.clusters

    def waiting(self, now: int) -> Task | None:
        """Return the task at the dispatcher."""
        is_ripe = self.engine.out is not None and now >= self.since + self.dispatch_cycles
        return self.engine.out if is_ripe else None

    def ends_here(self, task: Task) -> bool:
        """Return true if a task goes to no cluster: it runs no handler, or no packet buffer could hold its bytes."""
        return task.skips or task.data["transfer"] > self.buffer_bytes

    def choose(self, task: Task, has_room: Sequence[bool], tasks: Sequence[int]) -> int | None:
        """Return the cluster of a task."""
        home = self.home(task.data)
        if self.policy.home and has_room[home]:
            return home
        others = [index for index, room in enumerate(has_room) if room] if self.policy.others else []
        return min(others, key=lambda index: tasks[index], default=None)

    def end(self, now: int, end: dict[str, Any]) -> bool:
        """Report an end to the engine. Return true if its message ended."""
        kind = end["outcome"]["kind"]
        failed = kind in (End.EndFaulted, End.EndTimedOut)
        return self.engine.complete(now, end["mpq"], failed, is_skipped(end))

    def dispatch(
        self, now: int, has_room: Sequence[bool], tasks: Sequence[int], has_room_for_skipped: bool
    ) -> int | None:
        """Send a task, and select the next one. Return the cluster."""
        task, cluster, taken = self.waiting(now), None, False
        if task is not None and self.ends_here(task):
            taken = has_room_for_skipped
            if taken:
                kind = int(End.EndMessageReset if task.resets else End.EndSkipped)
                outcome = {"kind": kind, "cause": 0, "pc": 0, "address": 0}
                if not task.skips:
                    outcome |= {"kind": int(End.EndFaulted), "cause": int(Cause.CauseRequest)}
                    outcome["address"] = task.data["transfer"]
                feeds_back = int(task.skips or task.feeds_back)
                fields = {"role": task.role, "mpq": task.queue, "feeds_back": feeds_back}
                fields["hpu"] = {"cluster": 0, "hpu": 0}
                self.back.skipped.append({**fields, "outcome": outcome, "her": task.data})
        elif task is not None:
            cluster = self.choose(task, has_room, tasks)
            taken = cluster is not None
        before = self.engine.out
        self.engine.step(now, taken)
        if self.engine.out is not before:
            self.since = now
        return cluster
