# SPDX-License-Identifier: Apache-2.0
"""Numbers are allocated once until they are returned, in round-robin order."""

import cocotb
from common import start

PARAMETERS = [{"Count": count} for count in (5, 64, 1)]


@cocotb.test()
async def numbers(dut) -> None:
    """No number is allocated twice, and each is available soon after its return."""
    count = int(dut.Count.value)
    bench = await start(dut)
    out: set[int] = set()
    taken: list[int] = []
    idle = 0  # cycles without a number
    for cycle in range(4000):
        gives = bool(out) and bench.happens((0.2, 0.9)[cycle // 300 % 2])
        given = bench.rng.choice(sorted(out)) if gives else bench.rng.randrange(count)
        takes = bench.happens((0.9, 0.4)[cycle // 300 % 2])
        dut.take_i.value, dut.give_i.value, dut.given_i.value = takes, gives, given
        await bench.read()
        has_one = bool(dut.valid_o.value)
        idle = 0 if has_one or len(out) == count else idle + 1
        assert idle <= 2, "a number that is free is there after two cycles"
        if has_one and takes:
            number = int(dut.number_o.value)
            assert number not in out, number
            out.add(number)
            taken.append(number)
        if gives:
            out.remove(given)
        await bench.next()
    assert set(taken) == set(range(count))
    assert len(taken) > 500
    assert taken[:count] == list(range(count))
