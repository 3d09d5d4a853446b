# SPDX-License-Identifier: Apache-2.0
"""An L2 memory: users of the groups of banks in each cycle, and read data."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from check_l1_bank import LR, OPERATIONS, SC, modify
from common import Bench, start
from sv_types import struct

PARAMETERS = [
    {"Banks": 32, "BankBytes": 8, "Bytes": 1024},
    {"Banks": 2, "BankBytes": 64, "Bytes": 512, "Ports": 1},
    {"Banks": 8, "BankBytes": 8, "Bytes": 256},
]

START, BEAT = 0x1C00_0000, 64
WRITE, WORD = struct("beat_request_t"), struct("word_request_t")


@dataclass
class Model:
    """Memory, atomic operation in progress, and pending responses."""

    groups: int
    ports: int
    data: bytearray
    atomic: dict[str, Any] | None = None
    answers: deque[tuple[int, int | None]] = field(default_factory=deque)  # cycle and word
    beats: dict[tuple[str, int], bytes] = field(default_factory=dict)  # by port and cycle
    late: int = 0  # cycles in which only an atomic operation waits for its second half

    def group(self, address: int) -> int:
        """Return the group of an address."""
        return address // BEAT % self.groups

    def waits(self, groups: set[int]) -> set[int]:
        """Return the groups busy for others."""
        return set(range(self.groups)) if groups and self.ports == 1 else groups

    def word(self, address: int) -> int:
        """Return a word."""
        offset = (address - START) & ~3
        return int.from_bytes(self.data[offset : offset + 4], "little")

    def write(self, address: int, data: int, strobe: int, size: int) -> None:
        """Write some bytes."""
        for index, value in enumerate(data.to_bytes(size, "little")):
            if strobe >> index & 1:
                self.data[address - START + index] = value

    def operate(self, request: dict[str, Any]) -> int:
        """Perform an atomic operation; return its response."""
        address = request["address"] & ~3
        expected = request["expected"] if request["expected_valid"] else None
        new, answer = modify(request["atop"] & 31, self.word(address), request["wdata"], expected)
        self.write(address, new, 0xF, 4)
        return answer


def random_word(bench: Bench, model: Model) -> dict[str, Any]:
    """Return a request of an HPU."""
    rng = bench.rng
    address = START + rng.randrange(min(len(model.data), 256))
    operation = rng.choice([*OPERATIONS, LR, SC]) if bench.happens(0.3) else None
    return {
        "we": bench.happens(0.5) if operation is None else operation != LR,
        "atop": 0 if operation is None else 0b100000 | operation,
        "address": address,
        "be": rng.randrange(1, 16),
        "wdata": rng.getrandbits(32),
        "expected_valid": bench.happens(0.9),
        "expected": model.word(address) if bench.happens(0.7) else rng.getrandbits(32),
    }


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle follows the rules."""
    bench = await start(dut)
    rng = bench.rng
    size, ports = int(dut.Bytes.value), int(dut.Ports.value)
    model = Model(int(dut.Groups.value), ports, bytearray(size))
    for beat in range(0, size, BEAT):
        dut.b_write_valid_i.value = 1
        dut.b_write_i.value = WRITE.pack(address=START + beat, strobe=(1 << BEAT) - 1, wdata=0)
        await bench.next()
    dut.b_write_valid_i.value = 0
    for _ in range(4):
        await bench.next()

    def random_beat() -> int:
        return START + BEAT * rng.randrange(size // BEAT)

    a_write: dict[str, int] | None = None
    a_read: int | None = None
    pe: dict[str, Any] | None = None
    b_write: dict[str, int] | None = None
    compared = {"a": 0, "b": 0, "pe": 0}
    waited = {"a write": 0, "a read": 0, "pe": 0}
    for cycle in range(6000):
        # Waiting requests stay unchanged.
        pace = (0.2, 0.5, 0.9)[cycle // 200 % 3]
        if a_write is None and bench.happens(pace):
            a_write = {"address": random_beat(), "strobe": rng.getrandbits(BEAT), "wdata": rng.getrandbits(512)}
        if a_read is None and bench.happens(pace):
            a_read = random_beat()
        if pe is None and bench.happens(0.8):
            pe = random_word(bench, model)
        b_beat = {"address": random_beat(), "strobe": rng.getrandbits(BEAT), "wdata": rng.getrandbits(512)}
        b_next = b_beat if bench.happens(0.3) else None
        b_read, b_wants = random_beat(), bench.happens(pace)

        # Users of each group.
        held = {model.group(model.atomic["address"])} if model.atomic else set()
        hit = {model.group(b_write["address"])} if b_write else set()
        hit_next = model.waits({model.group(b_next["address"])} if b_next else set())
        before_write = model.waits(hit | held)
        writing = {model.group(a_write["address"])} if a_write else set()
        before_read = model.waits(hit | held | writing)
        reading = {model.group(a_read)} if a_read is not None else set()
        busy = model.waits(hit | held | writing | reading)
        b_reads = b_wants and model.group(b_read) not in busy
        before_pe = model.waits(hit | held | writing | reading | ({model.group(b_read)} if b_reads else set()))
        takes_write = a_write is not None and model.group(a_write["address"]) not in before_write
        takes_read = a_read is not None and model.group(a_read) not in before_read
        takes_pe = pe is not None and model.atomic is None and model.group(pe["address"]) not in before_pe
        if takes_pe and pe and pe["atop"] and model.group(pe["address"]) in hit_next:
            takes_pe = False
            model.late += 1

        dut.a_write_valid_i.value, dut.a_read_valid_i.value = a_write is not None, a_read is not None
        dut.a_write_i.value = WRITE.pack(**(a_write or {}))
        dut.a_read_address_i.value = a_read or rng.getrandbits(32)
        dut.b_write_valid_i.value, dut.b_write_i.value = b_next is not None, WRITE.pack(**b_beat)
        dut.b_read_valid_i.value, dut.b_read_address_i.value = b_reads, b_read
        dut.pe_valid_i.value, dut.pe_i.value = pe is not None, WORD.pack(**(pe or {}))
        await bench.read()

        assert int(dut.busy_o.value) == sum(1 << group for group in busy), cycle
        if a_write:
            assert bool(dut.a_write_ready_o.value) == takes_write, cycle
            waited["a write"] += not takes_write
        if a_read is not None:
            assert bool(dut.a_read_ready_o.value) == takes_read, cycle
            waited["a read"] += not takes_read
        if pe:
            assert bool(dut.pe_ready_o.value) == takes_pe, cycle
            waited["pe"] += not takes_pe
        for port, output in (("a", dut.a_read_data_o), ("b", dut.b_read_data_o)):
            if (expected := model.beats.pop((port, cycle), None)) is not None:
                assert int(output.value).to_bytes(BEAT, "little") == expected, (port, cycle)
                compared[port] += 1
        answers = bool(model.answers) and model.answers[0][0] == cycle
        assert bool(dut.pe_rvalid_o.value) == answers, cycle
        if answers and (word := model.answers.popleft()[1]) is not None:
            assert int(dut.pe_rdata_o.value) == word, cycle
            compared["pe"] += 1

        # Updates of the memory.
        if model.atomic:
            model.answers.append((cycle + 2, model.operate(model.atomic)))
            model.atomic = None
        if takes_pe and pe:
            if pe["atop"]:
                model.atomic = pe
            elif pe["we"]:
                model.write(pe["address"] & ~3, pe["wdata"], pe["be"], 4)
                model.answers.append((cycle + 3, None))
            else:
                model.answers.append((cycle + 3, model.word(pe["address"])))
            pe = None
        for port, address, takes in (("a", a_read, takes_read), ("b", b_read, b_reads)):
            if takes and address is not None:
                model.beats[port, cycle + 3] = bytes(model.data[address - START : address - START + BEAT])
        if takes_read:
            a_read = None
        if b_write:
            model.write(b_write["address"], b_write["wdata"], b_write["strobe"], BEAT)
        b_write = b_next
        if takes_write and a_write:
            model.write(a_write["address"], a_write["wdata"], a_write["strobe"], BEAT)
            a_write = None
        await bench.next()
    assert min(compared.values()) > 150, compared
    assert min(waited.values()) > 100, waited
    assert model.late > 10
