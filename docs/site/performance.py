# SPDX-License-Identifier: Apache-2.0
"""Writes the numbers of `spinkit bench` into docs/internals/performance.md: `performance.py out/bench.json`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "internals" / "performance.md"
BLOCK = re.compile(r"(<!-- generated: bench -->\n).*?(<!-- end -->\n)", re.DOTALL)


def main(results: Path) -> None:
    """Replace the generated block of the page."""
    text, count = BLOCK.subn(
        lambda block: block[1] + markdown(json.loads(results.read_text())) + block[2], PAGE.read_text()
    )
    if count != 1:
        raise SystemExit(f"{PAGE}: {count} generated blocks instead of one")
    PAGE.write_text(text)


def markdown(bench: dict[str, Any]) -> str:
    """Return the machine, the numbers and the aims as Markdown."""
    machine = bench["machine"]
    load = ", ".join(f"{value:.1f}" for value in machine["load"])
    lines = [
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_kib'] / 2**20:.0f} GiB of memory, "
        f"Linux {machine['kernel']}, {machine['rustc'].partition(' (')[0]}, Python {machine['python']}. "
        f"Load averages at the end of the run: {load}.",
        "",
        f"Method: {bench['method']}.",
        "",
        "| benchmark | number | unit |",
        "| --- | --: | --- |",
        *(row(number) for number in bench["numbers"]),
        "",
        "| aim | bound | measured |",
        "| --- | --: | --: |",
        *(aim(row) for row in bench["aims"]),
    ]
    return "\n".join(lines) + "\n"


def row(number: dict[str, Any]) -> str:
    """Return the table row of a number."""
    remark = f" ({number['remark']})" if number.get("remark") else ""
    return f"| `{number['name']}` | {value(number['value'])} | {number['unit']}{remark} |"


def aim(row: dict[str, Any]) -> str:
    """Return the table row of an aim."""
    bound = f"{'≤' if row['at_most'] else '≥'} {value(row['value'])} {row['unit']}"
    remark = f": {row['remark']}" if row.get("remark") else ""
    measured = f"not measured{remark}" if row["measured"] is None else value(row["measured"])
    return f"| `{row['name']}` | {bound} | {measured} |"


def value(number: float) -> str:
    """Return a number with three significant digits, without an exponent."""
    digits = f"{number:.3g}"
    return f"{float(digits):,.0f}" if "e" in digits or abs(number) >= 1000 else digits


if __name__ == "__main__":
    main(Path(sys.argv[1]))
