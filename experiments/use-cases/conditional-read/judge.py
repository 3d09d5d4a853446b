# SPDX-License-Identifier: Apache-2.0
"""SQLite's answers to the reads of the experiment: the table of conditional-read.c, and a SELECT for each share.

The time of a point is the least that any card can take: that of the rows that SQLite returns, and of an answer, on the
wire to the client.
"""

import json
import sqlite3
import sys

SALARIES, ROW_BYTES, ANSWER_BYTES = 10_000, 64, 16


def employee(number: int) -> tuple[int, int]:
    """Return number and salary of a row."""
    return number, number * 7919 % SALARIES


shares, rows, ps_per_byte = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE employees (id INTEGER, salary INTEGER)")
database.executemany("INSERT INTO employees VALUES (?, ?)", map(employee, range(rows)))
for share in map(int, shares.split(",")):
    select = "SELECT count(*), coalesce(sum(id * (salary + 1)), 0) FROM employees WHERE salary >= ?"
    [[found, checksum]] = database.execute(select, [share * SALARIES // 100])
    point = {"mode": "sqlite", "discarded": share, "rows": found, "checksum": checksum}
    size = found * ROW_BYTES + ANSWER_BYTES
    print(json.dumps(point | {"wire_bytes": size, "time_ps": round(size * ps_per_byte), "data_ok": True}))
