# SPDX-License-Identifier: Apache-2.0
"""The index of the lowest set bit."""

import random

import cocotb
from cocotb.triggers import Timer

PARAMETERS = [{"N": count} for count in (5, 256, 1)]


@cocotb.test()
async def lowest(dut) -> None:
    """The right bit, for each of them."""
    count = int(dut.N.value)
    rng = random.Random(cocotb.RANDOM_SEED)
    found = set()
    for place in [*range(count), *(rng.randrange(count) for _ in range(500))]:
        bits = (rng.getrandbits(count) | rng.getrandbits(1)) << place & ~(-1 << count)
        dut.bits_i.value = bits
        await Timer(1, unit="ns")
        expected = next((index for index in range(count) if bits >> index & 1), None)
        assert bool(dut.valid_o.value) == (expected is not None)
        assert int(dut.index_o.value) == (expected or 0)
        found.add(expected)
    assert len(found) > count // 2
