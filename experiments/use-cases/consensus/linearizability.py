# SPDX-License-Identifier: Apache-2.0
"""Linearizability of a history of commands: some order explains all results and keeps the order of time.

Numbers are independent of each other, so the commands of each are checked alone. The search is that of Wing and Gong:
it takes a command that may come next, because no other has ended before it began, and tries the rest; what it has
tried is remembered by the set of commands and the number. A command without an answer may come at any time after its
start, or never.
"""

from collections.abc import Iterable
from dataclasses import dataclass

READ, WRITE, ADD, SWAP = 1, 2, 3, 4
BITS = 64


@dataclass(frozen=True)
class Command:
    """A command of a client; result and end are None without an answer."""

    operation: int
    key: int
    value: int
    expected: int
    result: int | None
    start: int
    end: int | None

    def after(self, number: int) -> int:
        """Return the number after this command."""
        if self.operation == WRITE or (self.operation == SWAP and number == self.expected):
            return self.value
        return (number + self.value) % (1 << BITS) if self.operation == ADD else number


def is_linearizable(history: Iterable[Command]) -> bool:
    """Return true if the commands of all clients are linearizable; all numbers are initially 0."""
    of_key: dict[int, list[Command]] = {}
    for command in history:
        of_key.setdefault(command.key, []).append(command)
    return all(_explained(commands) for commands in of_key.values())


def _explained(commands: list[Command]) -> bool:
    commands = sorted(commands, key=lambda one: one.start)
    answered = sum(1 << i for i, one in enumerate(commands) if one.end is not None)
    tried = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        done, number = waiting.pop()
        if done & answered == answered:
            return True
        earliest = min(one.end for i, one in enumerate(commands) if one.end is not None and not done >> i & 1)
        for i, one in enumerate(commands):
            if one.start > earliest:
                break
            if done >> i & 1 or one.result not in (None, number):
                continue
            following = (done | 1 << i, one.after(number))
            if following not in tried:
                tried.add(following)
                waiting.append(following)
    return False
