"""A bank against a dictionary: bytes, atomic operations, beats that do not wait, cycles."""

import cocotb
from common import start

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


def merge(old: int, new: int, be: int) -> int:
    """Replace the bytes that are enabled."""
    mask = sum(0xFF << 8 * byte for byte in range(4) if be >> byte & 1)
    return old & ~mask | new & mask


def modify(operation: int, old: int, data: int, expected: int | None) -> tuple[int, int]:
    """Return the word after an atomic operation, and its answer."""
    if operation == LR:
        return old, old
    if operation == SC:
        return (data, 0) if expected == old else (old, 1)
    return OPERATIONS[operation](old, data), old


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle is as the rules say. An atomic operation takes place in its first cycle, before beats that follow."""
    bench = await start(dut)
    rng = bench.rng
    words = [rng.getrandbits(32) for _ in range(8)]
    answers: dict[int, int | None] = {}  # by cycle; None for the answer to a store
    beats: dict[int, int] = {}
    dut.req_i.value, dut.beat_i.value, dut.we_i.value, dut.be_i.value = 1, 1, 1, 0xF
    for row, word in enumerate(words):
        dut.row_i.value, dut.wdata_i.value = row, word
        await bench.next()
    busy, compared, kinds, delayed = False, 0, set(), 0
    for cycle in range(6_000):
        row, request = rng.randrange(8), bench.happens(0.8)
        operation = rng.choice([*OPERATIONS, LR, SC]) if bench.happens(0.4) else None
        beat = bench.happens((0.1, 0.5)[cycle // 100 % 2])
        if beat:
            operation = None
        store = operation is None and bench.happens(0.5)
        if beat and busy:
            store = True  # those that are read wait
        be, data = rng.randrange(16), rng.choice([0, 1, MASK, 1 << 31, rng.getrandbits(32)])
        has_expected = bench.happens(0.8)
        expected = words[row] if bench.happens(0.7) else rng.getrandbits(32)
        dut.req_i.value, dut.row_i.value, dut.wdata_i.value, dut.be_i.value = request, row, data, be
        dut.beat_i.value, dut.we_i.value = beat, store if operation is None else operation != LR
        dut.atop_i.value = 0 if operation is None else 0b100000 | operation
        dut.expected_valid_i.value, dut.expected_i.value = has_expected, expected
        await bench.read()
        assert bool(dut.gnt_o.value) == (not busy), cycle
        assert bool(dut.rvalid_o.value) == (cycle in answers), cycle
        for answer in (answers.pop(cycle, None), beats.pop(cycle, None)):
            if answer is not None:
                assert int(dut.rdata_o.value) == answer, cycle
                compared += 1
        takes_beat = request and beat
        delayed += busy and takes_beat
        starts = request and not beat and not busy and operation is not None
        if takes_beat and store:
            words[row] = merge(words[row], data, be)
        elif takes_beat:
            beats[cycle + 1] = words[row]
        elif starts:
            kinds.add(operation)
            words[row], answers[cycle + 2] = modify(operation, words[row], data, expected if has_expected else None)
        elif request and not busy and store:
            words[row] = merge(words[row], data, be)
            answers[cycle + 1] = None
        elif request and not busy:
            answers[cycle + 1] = words[row]
        busy = starts or (busy and takes_beat)
        await bench.next()
    assert compared > 1_500
    assert len(kinds) == len(OPERATIONS) + 2
    assert delayed > 100
