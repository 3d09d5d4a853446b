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


class Bank:
    """Words, and the atomic operation that is about to write, if there is one: row, word, bytes."""

    def __init__(self, words: list[int]) -> None:
        self.words, self.writing = words, None

    def beat(self, row: int, be: int | None, data: int) -> int:
        """Write these bytes, or none to read. Return the word as it was."""
        old = self.words[row]
        if be is not None:
            self.words[row] = merge(old, data, be)
            if self.writing and self.writing[0] == row:
                self.writing = (row, self.writing[1], self.writing[2] & ~be)
        return old

    def modify(self, operation: int, row: int, data: int, expected: int | None) -> int:
        """Begin an atomic operation. Return its answer."""
        result, answer = modify(operation, self.words[row], data, expected)
        self.writing = (row, result, 0xF)
        return answer

    def settle(self) -> None:
        """Let the atomic operation write, in a cycle without a beat."""
        if self.writing:
            row, result, be = self.writing
            self.words[row], self.writing = merge(self.words[row], result, be), None


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle is as the rules say."""
    bench = await start(dut)
    rng = bench.rng
    bank = Bank([rng.getrandbits(32) for _ in range(8)])
    dut.req_i.value, dut.beat_i.value, dut.we_i.value, dut.be_i.value = 1, 1, 1, 0xF
    for row, word in enumerate(bank.words):
        dut.row_i.value, dut.wdata_i.value = row, word
        await bench.next()
    answers: dict[int, int | None] = {}  # by cycle; None for the answer to a store
    beats: dict[int, int] = {}
    compared, kinds, delayed = 0, set(), 0
    for cycle in range(6_000):
        row, request = rng.randrange(8), bench.happens(0.8)
        beat = bench.happens((0.1, 0.5)[cycle // 100 % 2])
        operation = rng.choice([*OPERATIONS, LR, SC]) if not beat and bench.happens(0.4) else None
        store = operation is None and bench.happens(0.5)
        be, data = rng.randrange(16), rng.choice([0, 1, MASK, 1 << 31, rng.getrandbits(32)])
        has_expected = bench.happens(0.8)
        expected = bank.words[row] if bench.happens(0.7) else rng.getrandbits(32)
        dut.req_i.value, dut.row_i.value, dut.wdata_i.value, dut.be_i.value = request, row, data, be
        dut.beat_i.value, dut.we_i.value = beat, store if operation is None else operation != LR
        dut.atop_i.value = 0 if operation is None else 0b100000 | operation
        dut.expected_valid_i.value, dut.expected_i.value = has_expected, expected
        await bench.read()
        busy = bank.writing is not None
        assert bool(dut.gnt_o.value) == (not busy), cycle
        assert bool(dut.rvalid_o.value) == (cycle in answers), cycle
        for port, answer in ((dut.rdata_o, answers.pop(cycle, None)), (dut.beat_rdata_o, beats.pop(cycle, None))):
            if answer is not None:
                assert int(port.value) == answer, cycle
                compared += 1
        if request and beat:
            delayed += busy
            old = bank.beat(row, be if store else None, data)
            if not store:
                beats[cycle + 1] = old
        elif busy:
            bank.settle()
        elif request and operation is not None:
            kinds.add(operation)
            answers[cycle + 2] = bank.modify(operation, row, data, expected if has_expected else None)
        elif request:
            old = bank.beat(row, be if store else None, data)
            answers[cycle + 1] = None if store else old
        await bench.next()
    assert compared > 1_500
    assert len(kinds) == len(OPERATIONS) + 2
    assert delayed > 100
