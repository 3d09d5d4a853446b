# SPDX-License-Identifier: Apache-2.0
"""Rules of the return path of tasks, as in send_feedback of crates/card/pspin-unit/src/pspin.rs."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sv_types import enum

End, Cause = enum("end_e"), enum("cause_e")
SKIPPED_DEPTH = 4


@dataclass
class Returning:
    """End that has left its cluster."""

    at: int
    end: dict[str, Any]  # a completion_t
    last: bool | None = None  # response of the queue engine
    reported: bool = False  # the failure is reported to the status unit


def is_skipped(end: dict[str, Any]) -> bool:
    """Return true for a packet without a handler; a task dropped by its HPU has a cause."""
    return end["outcome"]["kind"] in (End.EndSkipped, End.EndMessageReset) and not end["outcome"]["cause"]


def refusal(her: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the end of a request with a number beyond the tables, as a completion."""
    outcome = {"kind": int(End.EndFaulted), "cause": int(Cause.CauseRequest), "pc": 0, "address": number}
    fields = {"role": 0, "mpq": 0, "feeds_back": 1, "hpu": {"cluster": 0, "hpu": 0}}
    return {**fields, "outcome": outcome, "her": her, "is_outside": True}


def bits(completion: Any, end: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a completion."""
    return {name: end[name] for name in completion.fields}


class Feedback:
    """Return path of ends to the queue engine, the NIC and the status unit."""

    def __init__(self, clusters: int, cycles: int) -> None:
        self.clusters, self.cycles = clusters, cycles
        self.following = 0
        self.skipped: deque[dict[str, Any]] = deque()
        self.refused: dict[str, Any] | None = None  # request with a number beyond the tables
        self.way: deque[Returning] = deque()

    def has_room(self) -> bool:
        """Return true if a packet without a handler may arrive."""
        return len(self.skipped) < SKIPPED_DEPTH

    def collect(self, now: int, offered: list[dict[str, Any] | None]) -> int | None:
        """Take an end from a cluster, or a packet without a handler. Return its index."""
        if len(self.way) == self.cycles:
            return None
        sources = [*offered, self.skipped[0] if self.skipped else None, self.refused]
        order = [(self.following + index) % len(sources) for index in range(len(sources))]
        choice = next((index for index in order if sources[index] is not None), None)
        if choice is not None:
            self.following = (choice + 1) % len(sources)
            if choice == self.clusters:
                self.skipped.popleft()
            elif choice > self.clusters:
                self.refused = None
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
        is_new = front.last is None and not front.end.get("is_outside")
        if is_new:
            front.last = complete(front.end)
        elif front.last is None:
            front.last = bool(front.end["her"]["eom"])
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
