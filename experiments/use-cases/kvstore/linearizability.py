# SPDX-License-Identifier: Apache-2.0
"""Checks that the operations of clients on a key-value store (kvstore --history) are linearizable.

    python3 linearizability.py HISTORY...

A line of a history is one operation: client, kind, record, id, start, end, status. The id is that of the value: the
one that an insert or update writes, or that a get has read. Records do not depend on each other, so the store is
linearizable if each record is (Herlihy, Wing): for each record the checker looks for an order of its operations that
respects time and gives what the clients have seen (Wing, Gong; with the memory of Lowe). An operation without an answer
may have taken effect at any time after its start, or never. An operation has a line before it begins and one after it
has ended.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OK, EXISTS, MISSING, LOST = 0, 1, 2, 7
REFUSED = (3, 4, 5)  # no slot, a full queue, a value that is too large: nothing is done
FOREVER = 1 << 63


@dataclass(frozen=True)
class Operation:
    """Operation of one client on one record."""

    client: int
    kind: str
    record: int
    id: int
    start: int
    end: int
    status: int

    def __str__(self) -> str:
        """Write it as in a history."""
        return f"{self.client} {self.kind} {self.record} {self.id} {self.start} {self.end} {self.status}"


def read(lines: Iterable[str]) -> list[Operation]:
    """Read the lines of histories. The last line about an operation counts; one without an answer has no end."""
    operations = {}
    for line in lines:
        client, kind, *numbers = line.split()
        record, value, start, end, status = map(int, numbers)
        end = FOREVER if status == LOST else end
        operations[client, start] = Operation(int(client), kind, record, value, start, end, status)
    return list(operations.values())


def applied(operation: Operation, present: int | None) -> tuple[bool, int | None]:
    """Return true if a record with the value `present` allows the operation's outcome, and the record's new value."""
    exists = present is not None
    is_lost = operation.status == LOST
    if operation.kind == "get":
        fits = present == operation.id if operation.status == OK else operation.status == MISSING and not exists
        return fits or is_lost, present
    succeeds = exists != (operation.kind == "insert")
    after = (None if operation.kind == "delete" else operation.id) if succeeds else present
    refused = EXISTS if operation.kind == "insert" else MISSING
    return is_lost or operation.status == (OK if succeeds else refused), after


def is_linearizable(operations: list[Operation]) -> bool:
    """Return whether an order explains the operations on one record, which does not exist in the beginning."""
    operations = sorted(operations, key=lambda operation: (operation.start, operation.end))
    count = len(operations)
    must = {i for i, operation in enumerate(operations) if operation.status != LOST}
    seen: set[tuple[int, frozenset[int], int | None]] = set()
    # A state: all operations before `first` are done, and those in `beyond`; the record holds `present`.
    states: list[tuple[int, frozenset[int], int | None]] = [(0, frozenset(), None)]
    while states:
        state = states.pop()
        if state in seen:
            continue
        seen.add(state)
        first, beyond, present = state
        if all(i in beyond for i in must if i >= first):
            return True
        horizon = FOREVER
        for i in range(first, count):
            operation = operations[i]
            if operation.start > horizon:
                break
            if i in beyond:
                continue
            horizon = min(horizon, operation.end)
            fits, after = applied(operation, present)
            if fits:
                done, end = beyond | {i}, first
                while end in done:
                    done, end = done - {end}, end + 1
                states.append((end, done, after))
    return False


def violations(operations: Iterable[Operation]) -> list[int]:
    """Return the records whose operations are not linearizable."""
    records = defaultdict(list)
    for operation in operations:
        if operation.status not in REFUSED:
            records[operation.record].append(operation)
    return sorted(record for record, found in records.items() if not is_linearizable(found))


def main(paths: list[str]) -> int:
    """Check the histories together; they are those of all clients of a run."""
    if not paths:
        print("usage: linearizability.py HISTORY...", file=sys.stderr)
        return 2
    operations = read(line for path in paths for line in Path(path).read_text().splitlines())
    wrong = violations(operations)
    print(f"{len(operations)} operations on {len({operation.record for operation in operations})} records: ", end="")
    print(f"not linearizable: records {wrong}" if wrong else "linearizable")
    for operation in sorted((o for o in operations if wrong and o.record == wrong[0]), key=lambda o: o.start):
        print(f"  {operation}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
