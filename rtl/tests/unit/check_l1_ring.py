# SPDX-License-Identifier: Apache-2.0
"""The packet buffer against the rules of crates/card/pspin-unit/src/memory/ring.rs, and against a map of units."""

import random
from dataclasses import dataclass

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

PARAMETERS = [{"Units": 8}, {"Units": 23}]


@dataclass
class Piece:
    start: int
    size: int
    free: bool


class Ring:
    """Rules. Freed units are available in the next cycle."""

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

    def allocate(self, start: int, size: int) -> Piece:
        if start != self.tail and self.pieces:
            self.pieces.append(Piece(self.tail, self.units - self.tail, True))
        piece = Piece(start, size, False)
        self.pieces.append(piece)
        self.tail = (start + size) % self.units
        return piece


@cocotb.test()
async def random_pieces(dut) -> None:
    units = int(dut.Units.value)
    rng = random.Random(units)
    cocotb.start_soon(Clock(dut.clk_i, 2, unit="ns").start())
    for signal in (dut.rst_ni, dut.size_i, dut.allocate_i, dut.free_i, dut.freed_start_i, dut.freed_end_i):
        signal.value = 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1
    ring, owned = Ring(units), [False] * units
    live: list[Piece] = []
    allocated = refused = wraps = holes = 0
    for cycle in range(6000):
        size = rng.randrange(1, units + 1) if rng.random() < 0.05 else rng.randrange(1, max(2, units // 3))
        start = ring.place(size)
        wants = rng.random() < (0.8, 0.4)[cycle // 300 % 2]
        frees = bool(live) and rng.random() < (0.4, 0.7)[cycle // 300 % 2]
        freed = live.pop(rng.randrange(len(live))) if frees else Piece(0, 0, True)
        takes = wants and start is not None
        dut.size_i.value, dut.allocate_i.value, dut.free_i.value = size, takes, frees
        dut.freed_start_i.value, dut.freed_end_i.value = freed.start, freed.start + freed.size
        await RisingEdge(dut.clk_i)
        assert int(dut.used_o.value) == ring.used(), cycle
        assert bool(dut.has_room_o.value) == (start is not None), cycle
        refused += wants and start is None
        if takes:
            assert int(dut.start_o.value) == start, cycle
            wraps += start == 0 and bool(ring.pieces)
            live.append(ring.allocate(start, size))
            assert not any(owned[start : start + size]), "pieces never overlap"
            owned[start : start + size] = [True] * size
            allocated += 1
        freed.free = True
        owned[freed.start : freed.start + freed.size] = [False] * freed.size
        ring.leave()
        holes += any(piece.free for piece in ring.pieces)
        if not ring.pieces:
            ring.tail = 0
        await FallingEdge(dut.clk_i)
    assert allocated > 1500
    assert refused > 300
    assert wraps > 50
    assert holes > 500
