"""A bank against a dictionary: bytes, atomic operations, cycles."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

PARAMETERS = [{"Rows": 8}]

MASK = 0xFFFF_FFFF


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


# The operation of bits 31 to 27 of the instruction (RISC-V Unpriv. "A").
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


@cocotb.test()
async def random_accesses(dut) -> None:
    rng = random.Random(1)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for signal in (
        dut.rst_ni,
        dut.req_i,
        dut.we_i,
        dut.atop_i,
        dut.row_i,
        dut.be_i,
        dut.wdata_i,
        dut.expected_valid_i,
        dut.expected_i,
    ):
        signal.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    words = {}
    answers: dict[int, int | None] = {}  # by cycle; None for the answer to a store
    busy, compared, kinds = -1, 0, set()
    for cycle in range(4000):
        row = rng.randrange(8)
        operation = rng.choice([*OPERATIONS, LR, SC]) if rng.random() < 0.4 else None
        store = operation is None and (row not in words or rng.random() < 0.4)
        be = 0xF if row not in words else rng.randrange(1, 16)
        data = rng.choice([0, 1, MASK, 1 << 31, rng.getrandbits(32)])
        request = rng.random() < 0.8 and not (operation is not None and row not in words)
        has_expected = rng.random() < 0.8
        expected = words.get(row, 0) if rng.random() < 0.7 else rng.getrandbits(32)
        dut.req_i.value, dut.row_i.value, dut.wdata_i.value, dut.be_i.value = request, row, data, be
        dut.we_i.value = store if operation is None else operation != LR
        dut.atop_i.value = 0 if operation is None else 0b100000 | operation
        dut.expected_valid_i.value, dut.expected_i.value = has_expected, expected
        await RisingEdge(dut.clk_i)
        granted = cycle != busy
        assert bool(dut.gnt_o.value) == granted
        assert bool(dut.rvalid_o.value) == (cycle in answers)
        if (answer := answers.pop(cycle, None)) is not None:
            assert int(dut.rdata_o.value) == answer
            compared += 1
        if request and granted:
            old = words.get(row, 0)
            kinds.add(operation)
            if operation is not None:
                busy = cycle + 1
                succeeds = has_expected and expected == old
                answers[cycle + 2] = (0 if succeeds else 1) if operation == SC else old
                if operation in OPERATIONS:
                    words[row] = OPERATIONS[operation](old, data)
                elif operation == SC and succeeds:
                    words[row] = data
            elif store:
                mask = sum(0xFF << 8 * byte for byte in range(4) if be >> byte & 1)
                words[row] = old & ~mask | data & mask
                answers[cycle + 1] = None
            else:
                answers[cycle + 1] = old
        await FallingEdge(dut.clk_i)
    assert compared > 1000
    assert len(kinds) == 12
