"""The packet buffer against the rules of crates/accel/src/pspin/memory/ring.rs, and against a map of units."""

import random
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge


@dataclass
class Piece:
    start: int
    size: int
    free: bool


class Ring:
    """The rules. What is freed in a cycle leaves before what is allocated in it comes."""

    def __init__(self, units: int) -> None:
        self.units, self.tail, self.pieces = units, 0, []

    def used(self) -> int:
        return sum(piece.size for piece in self.pieces)

    def place(self, size: int) -> int | None:
        head = self.pieces[0].start if self.pieces else self.tail
        if self.pieces and self.tail == head:
            return None
        if self.pieces and self.tail < head:
            return self.tail if size <= head - self.tail else None
        if size <= self.units - self.tail:
            return self.tail
        if size <= (head if self.pieces else self.units):
            return 0
        return None

    def leave(self) -> None:
        while self.pieces and self.pieces[0].free:
            self.pieces.pop(0)

    def allocate(self, start: int, size: int, was_empty: bool) -> Piece:
        if start != self.tail and not was_empty:
            self.pieces.append(Piece(self.tail, self.units - self.tail, True))
        piece = Piece(start, size, False)
        self.pieces.append(piece)
        self.tail = (start + size) % self.units
        return piece


@cocotb.test()
async def random_pieces(dut) -> None:
    units, most = int(dut.Units.value), int(dut.Pieces.value) - 1
    rng = random.Random(units)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for signal in (dut.rst_ni, dut.size_i, dut.allocate_i, dut.free_i, dut.freed_i):
        signal.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    ring, owner = Ring(units), [None] * units
    live: dict[int, Piece] = {}
    allocated = refused = wraps = 0
    for cycle in range(6000):
        size = rng.randrange(1, units + 1) if rng.random() < 0.05 else rng.randrange(1, max(2, units // 3))
        wants = rng.random() < (0.8, 0.4)[cycle // 300 % 2]
        freed = rng.choice(list(live)) if live and rng.random() < (0.4, 0.7)[cycle // 300 % 2] else None
        dut.size_i.value = size
        dut.free_i.value, dut.freed_i.value = freed is not None, freed or 0
        dut.allocate_i.value = 0
        start = ring.place(size)
        takes = wants and start is not None and len(live) < most
        dut.allocate_i.value = takes
        await RisingEdge(dut.clk_i)
        assert int(dut.used_o.value) == ring.used(), cycle
        if len(live) < most:
            assert bool(dut.has_room_o.value) == (start is not None), cycle
        refused += wants and start is None
        if takes:
            assert int(dut.start_o.value) == start, cycle
            number = int(dut.piece_o.value)
            assert number not in live
        was_empty = not ring.pieces
        if freed is not None:
            piece = live.pop(freed)
            piece.free = True
            owner[piece.start : piece.start + piece.size] = [None] * piece.size
        ring.leave()
        if takes:
            wraps += start == 0 and not was_empty
            live[number] = ring.allocate(start, size, was_empty)
            assert owner[start : start + size] == [None] * size, "pieces never overlap"
            owner[start : start + size] = [number] * size
            allocated += 1
        elif not ring.pieces:
            ring.tail = 0
        await FallingEdge(dut.clk_i)
    assert allocated > 1500
    assert refused > 300
    assert wraps > 50
