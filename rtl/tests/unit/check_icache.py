# SPDX-License-Identifier: Apache-2.0
"""The instruction cache against the rules of crates/card/pspin-unit/src/core/cache.rs, in every cycle.

HPUs fetch from a few places of the program, and withdraw fetches as at a reset. The program memory accepts lines at
random times, and returns them in order.
"""

from collections import deque

import cocotb
from common import start
from sv_types import struct

PARAMETERS = [
    {"Ports": 8, "Bytes": 1024, "Ways": 4, "LineBytes": 32, "ProgramBytes": 4096},
    {"Ports": 2, "Bytes": 128, "Ways": 1, "LineBytes": 16, "ProgramBytes": 1024},
    {"Ports": 3, "Bytes": 512, "Ways": 2, "LineBytes": 64, "ProgramBytes": 2048},
]

PROGRAM, RANGE = 0x1D00_0000, struct("range_t")


class Cache:
    """Rules: a line replaces the oldest of its set when requested, and is valid when complete."""

    def __init__(self, sets: int, ways: int) -> None:
        self.sets, self.ways = sets, ways
        self.lines = [[None] * ways for _ in range(sets)]
        self.oldest = [0] * sets
        self.missed: deque[int] = deque()  # not requested yet
        self.asked: deque[tuple[int, int]] = deque()  # with its way

    def has(self, line: int) -> bool:
        return line in self.lines[line % self.sets]

    def is_coming(self, line: int) -> bool:
        return line in self.missed or any(line == other for other, _ in self.asked)

    def ask(self) -> int:
        line = self.missed.popleft()
        where = line % self.sets
        way = self.oldest[where]
        self.oldest[where] = (way + 1) % self.ways
        self.lines[where][way] = None
        self.asked.append((line, way))
        return line

    def fill(self) -> None:
        line, way = self.asked.popleft()
        self.lines[line % self.sets][way] = line

    def empty(self) -> None:
        self.lines = [[None] * self.ways for _ in range(self.sets)]


@cocotb.test()
async def random_fetches(dut) -> None:
    """Each cycle follows the rules. The program changes while the cache is flushed."""
    ports, ways, size = int(dut.Ports.value), int(dut.Ways.value), int(dut.LineBytes.value)
    code = int(dut.ProgramBytes.value) * 3 // 4 + 4
    bench = await start(dut)
    rng = bench.rng
    cache = Cache(int(dut.Bytes.value) // size // ways, ways)
    program = rng.randbytes(int(dut.ProgramBytes.value))
    dut.code_i.value = RANGE.pack(address=PROGRAM, size=code)
    fetches: list[int | None] = [None] * ports
    places = [4 * rng.randrange(code // 4) for _ in range(ports)]
    answers: dict[int, tuple[int, bool]] = {}
    bringing: deque[int] = deque()  # beats of all lines
    turn = compared = errors = withdrawn = merged = replaced = 0
    for cycle in range(6_000):
        flush = cycle % 1000 < 60
        if cycle % 1000 == 50:
            assert not cache.asked
            program = rng.randbytes(len(program))
        # Fetches continue, and jump now and then, some out of the code.
        for port in range(ports):
            if flush:
                fetches[port] = None
            elif fetches[port] is not None and bench.happens(0.01):
                fetches[port] = None
                withdrawn += 1
            elif fetches[port] is None and bench.happens(0.9):
                if bench.happens(0.1):
                    shared = [0, size, 7 * size, places[0]]
                    places[port] = rng.choice([rng.randrange(0, len(program), 4), *shared])
                fetches[port] = places[port]
                places[port] = (places[port] + 4) % len(program)
        dut.flush_i.value = flush
        dut.req_i.value = sum((fetch is not None) << port for port, fetch in enumerate(fetches))
        for port, fetch in enumerate(fetches):
            dut.address_i[port].value = rng.getrandbits(32) if fetch is None else PROGRAM + fetch
        ready = bench.happens((1, 0.2)[cycle // 300 % 2])
        dut.refill_ready_i.value = ready
        comes = bool(bringing) and bench.happens(0.8)
        dut.refill_rvalid_i.value = comes
        address = bringing[0] if comes else 0
        dut.refill_rdata_i.value = (
            int.from_bytes(program[address : address + 8], "little") if comes else rng.getrandbits(64)
        )
        await bench.read()

        # Responses to the grants of the last cycle.
        assert int(dut.rvalid_o.value) == sum(1 << port for port in answers), cycle
        for port, (word, error) in answers.items():
            assert int(dut.rdata_o[port].value) == word, (cycle, port)
            assert bool(int(dut.error_o.value) >> port & 1) == error, (cycle, port)
            compared += 1
        answers = {}
        grants = 0
        for port, fetch in enumerate(fetches):
            if fetch is None:
                continue
            if fetch >= code:
                answers[port] = (0, True)
                errors += 1
            elif cache.has(fetch // size):
                answers[port] = (int.from_bytes(program[fetch : fetch + 4], "little"), False)
            grants += (port in answers) << port
        assert int(dut.gnt_o.value) == grants, cycle
        # One missed line without a refill is queued behind the others.
        missing = {port: fetch // size for port, fetch in enumerate(fetches) if fetch is not None}
        missing = {port: line for port, line in missing.items() if port not in answers}
        merged += any(cache.is_coming(line) for line in missing.values())
        order = [port % ports for port in range(turn, turn + ports)]
        chosen = next((port for port in order if port in missing and not cache.is_coming(missing[port])), None)
        if len(cache.missed) + len(cache.asked) == ports:
            chosen = None
        assert bool(dut.miss_valid_o.value) == (chosen is not None), cycle
        asks = bool(cache.missed) and len(cache.asked) < ways
        assert bool(dut.refill_valid_o.value) == asks, cycle
        new = None
        if chosen is not None:
            assert int(dut.miss_hpu_o.value) == chosen
            new = missing[chosen]
            assert int(dut.miss_address_o.value) == PROGRAM + new * size
            turn = (chosen + 1) % ports
        if asks:
            assert int(dut.refill_address_o.value) == PROGRAM + cache.missed[0] * size
        if comes:
            bringing.popleft()
            if address % size == size - 8:
                cache.fill()
        if asks and ready:
            where = cache.missed[0] % cache.sets
            replaced += cache.lines[where][cache.oldest[where]] is not None
            line = cache.ask()
            bringing.extend(range(line * size, (line + 1) * size, 8))
        if new is not None:
            cache.missed.append(new)
        if flush:
            cache.empty()
        fetches = [None if port in answers else fetch for port, fetch in enumerate(fetches)]
        await bench.next()
    assert compared > 3_000
    assert min(errors, withdrawn, merged, replaced) > 50, (errors, withdrawn, merged, replaced)
