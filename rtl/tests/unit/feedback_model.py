# SPDX-License-Identifier: Apache-2.0
"""Rules of the return path of tasks, as in send_feedback of crates/card/pspin-unit/src/pspin.rs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sv_types import enum

End = enum("end_e")
SKIPPED_DEPTH = 4


@dataclass
class Returning:
    """End that has left its cluster."""

    at: int
    end: dict[str, Any]  # a completion_t
    last: bool | None = None  # response of the queue engine
    reported: bool = False  # the failure is reported to the status unit


class Feedback:
    """Return path of ends to the queue engine, the NIC and the status unit."""

    def __init__(self, clusters: int, cycles: int) -> None:
        self.clusters, self.cycles = clusters, cycles
        self.following = 0
        self.skipped: deque[dict[str, Any]] = deque()
        self.way: deque[Returning] = deque()

    def has_room(self) -> bool:
        """Return true if a packet without a handler may arrive."""
        return len(self.skipped) < SKIPPED_DEPTH

    def collect(self, now: int, offered: list[dict[str, Any] | None]) -> int | None:
        """Take an end from a cluster, or a packet without a handler. Return its index."""
        if len(self.way) == self.cycles:
            return None
        sources = [*offered, self.skipped[0] if self.skipped else None]
        order = [(self.following + index) % len(sources) for index in range(len(sources))]
        choice = next((index for index in order if sources[index] is not None), None)
        if choice is not None:
            self.following = (choice + 1) % len(sources)
            if choice == self.clusters:
                self.skipped.popleft()
            self.way.append(Returning(now + self.cycles - 1, sources[choice]))
        return choice

    def front(self, now: int) -> Returning | None:
        """Return the arriving end."""
        return self.way[0] if self.way and self.way[0].at <= now else None

    def arrive(
        self, now: int, complete: Callable[[dict[str, Any]], bool], ready: bool, failed_ready: bool
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None, bool]:
        """Report to all units. Return the offers to NIC and status unit, and whether the end is new."""
        front = self.front(now)
        if front is None:
            return None, None, False
        is_new = front.last is None
        if is_new:
            front.last = complete(front.end)
        has_failed = front.end["outcome"]["kind"] in (End.EndFaulted, End.EndTimedOut)
        failed = front.end if has_failed and not front.reported else None
        front.reported |= not has_failed or failed_ready
        feeds_back = bool(front.end["feeds_back"])
        feedback = None
        if feeds_back and front.reported:
            her = front.end["her"]
            feedback = {name: her[name] for name in ("message", "address", "size", "transfer", "user")}
            feedback |= {"kind": front.end["outcome"]["kind"], "last": int(front.last)}
        if front.reported and (ready or not feeds_back):
            self.way.popleft()
        return feedback, failed, is_new
