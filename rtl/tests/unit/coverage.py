# SPDX-License-Identifier: Apache-2.0
"""Coverage points of rtl/sva reached by the tests of units, all parameter sets together."""

import re
import sys
from collections import Counter

from units import OUT, cases

AT_LEAST = 0.95
POINT = re.compile(rb"C '.*\x01f\x02(?P<file>[^\x01]*).*\x01h\x02[^\x01]*u_sva\.(?P<point>[^\x01']*)' (?P<count>\d+)")


def main() -> int:
    """Run the command."""
    points: dict[str, Counter[str]] = {}
    for case in cases():
        for line in (OUT / case.name / "coverage.dat").read_bytes().splitlines():
            if found := POINT.match(line):
                unit = found["file"].decode().rsplit("/", 1)[-1].removesuffix("_sva.sv")
                name = re.sub(r"__BRA__(\d+)__KET__", r"[\1]", found["point"].decode()).replace("__DOT__", ".")
                points.setdefault(unit, Counter())[name] += int(found["count"])
    too_low = False
    for unit, counts in points.items():
        missed = sorted(name for name, count in counts.items() if count == 0)
        reached = 1 - len(missed) / len(counts)
        print(f"{unit}: {reached:.1%} of {len(counts)} points{''.join(f', not {name}' for name in missed)}")
        too_low |= reached < AT_LEAST
    return int(too_low)


if __name__ == "__main__":
    sys.exit(main())
