# SPDX-License-Identifier: Apache-2.0
"""A bank against a list of words: bytes, atomic operations, cycles."""

import cocotb
from common import start

PARAMETERS = [{"Rows": 8}]

MASK = 0xFFFF_FFFF


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


# Operation in bits 31 to 27 of the instruction (RISC-V Unpriv. "A").
OPERATIONS = {
    0b00000: lambda old, operand: (old + operand) & MASK,
    0b00001: lambda _, operand: operand,
    0b00100: lambda old, operand: old ^ operand,
    0b01000: lambda old, operand: old | operand,
    0b01100: lambda old, operand: old & operand,
    0b10000: lambda old, operand: min(old, operand, key=signed),
    0b10100: lambda old, operand: max(old, operand, key=signed),
    0b11000: min,
    0b11100: max,
}
LR, SC = 0b00010, 0b00011


def merge(old: int, new: int, be: int) -> int:
    """Replace the enabled bytes."""
    mask = sum(0xFF << 8 * byte for byte in range(4) if be >> byte & 1)
    return old & ~mask | new & mask


def modify(operation: int, old: int, data: int, expected: int | None) -> tuple[int, int]:
    """Return the word after an atomic operation, and its response."""
    if operation == LR:
        return old, old
    if operation == SC:
        return (data, 0) if expected == old else (old, 1)
    return OPERATIONS[operation](old, data), old


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle follows the rules."""
    bench = await start(dut)
    rng = bench.rng
    words = [rng.getrandbits(32) for _ in range(8)]
    dut.req_i.value, dut.we_i.value, dut.be_i.value = 1, 1, 0xF
    for row, word in enumerate(words):
        dut.row_i.value, dut.wdata_i.value = row, word
        await bench.next()
    dut.req_i.value = 0
    await bench.next()
    answers: dict[int, int | None] = {}  # by cycle; None for the response to a store
    busy, compared, kinds = -1, 0, set()
    for cycle in range(4_000):
        row, request = rng.randrange(8), bench.happens(0.8)
        operation = rng.choice([*OPERATIONS, LR, SC]) if bench.happens(0.4) else None
        store = operation is None and bench.happens(0.5)
        be, data = rng.randrange(16), rng.choice([0, 1, MASK, 1 << 31, rng.getrandbits(32)])
        has_expected = bench.happens(0.8)
        expected = words[row] if bench.happens(0.7) else rng.getrandbits(32)
        dut.req_i.value, dut.row_i.value, dut.wdata_i.value, dut.be_i.value = request, row, data, be
        dut.we_i.value = store if operation is None else operation != LR
        dut.atop_i.value = 0 if operation is None else 0b100000 | operation
        dut.expected_valid_i.value, dut.expected_i.value = has_expected, expected
        await bench.read()
        granted = cycle != busy
        assert bool(dut.gnt_o.value) == granted, cycle
        assert bool(dut.rvalid_o.value) == (cycle in answers), cycle
        if (answer := answers.pop(cycle, None)) is not None:
            assert int(dut.rdata_o.value) == answer, cycle
            compared += 1
        if request and granted and operation is not None:
            kinds.add(operation)
            busy = cycle + 1
            words[row], answers[cycle + 2] = modify(operation, words[row], data, expected if has_expected else None)
        elif request and granted and store:
            words[row], answers[cycle + 1] = merge(words[row], data, be), None
        elif request and granted:
            answers[cycle + 1] = words[row]
        await bench.next()
    assert compared > 1_000
    assert len(kinds) == len(OPERATIONS) + 2
