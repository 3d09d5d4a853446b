# SPDX-License-Identifier: Apache-2.0
"""The program memory: lines round robin and at their cycles, words and beats in the remaining cycles."""

from collections import deque
from dataclasses import dataclass, field

import cocotb
from common import start
from sv_types import struct

PARAMETERS = [
    {"Clusters": 4, "Bytes": 2048},
    {"Clusters": 1, "Bytes": 1024, "PortBytes": 16, "MissCycles": 5},
    {"Clusters": 3, "Bytes": 1024, "PortBytes": 4, "LineBytes": 16, "MissCycles": 8},
]

START, BEAT = 0x1D00_0000, 64
WRITE = struct("beat_request_t")


@dataclass
class Lines:
    """The port, as in crates/card/pspin-unit/src/fabric/pe.rs, and clusters round robin."""

    clusters: int
    words: int
    cycles: int
    turn: int = 0
    free: int = 0
    coming: dict[int, tuple[int, int]] = field(default_factory=dict)  # by cycle, cluster and address of a word

    def choose(self, now: int, waiting: set[int]) -> int | None:
        """Return the cluster whose line is started."""
        if now < self.free or not waiting:
            return None
        cluster = min(waiting, key=lambda index: (index - self.turn) % self.clusters)
        self.turn, self.free = (cluster + 1) % self.clusters, now + self.words
        return cluster


@cocotb.test()
async def random_traffic(dut) -> None:
    """Each line arrives in its cycles; the rest arrives eventually, and correctly."""
    bench = await start(dut)
    rng = bench.rng
    clusters, size = int(dut.Clusters.value), int(dut.Bytes.value)
    port, line, miss = (int(value.value) for value in (dut.PortBytes, dut.LineBytes, dut.MissCycles))
    data = bytearray(size)
    lines = Lines(clusters, line // port, miss)
    asked: dict[int, int] = {}
    words: deque[int] = deque()
    writes = deque((START + beat, rng.getrandbits(512), (1 << BEAT) - 1) for beat in range(0, size, BEAT))
    word: int | None = None
    beat: int | None = None
    beats: deque[tuple[int, bytes]] = deque()
    is_filled, compared = False, {"line": 0, "word": 0, "beat": 0, "write": 0}
    left = 6000
    while left or asked or lines.coming or words or writes or beats or word is not None or beat is not None:
        left -= left > 0
        now = bench.cycle
        pace = (0.02, 0.3, 0.0)[left // 500 % 3]
        if is_filled and left:
            for cluster in set(range(clusters)) - asked.keys():
                if bench.happens(pace):
                    asked[cluster] = START + line * rng.randrange(size // line)
            if word is None and bench.happens(0.3):
                word = START + rng.randrange(size)
            # Beats are not read while any is written: their order is decided elsewhere.
            if beat is None and not writes and bench.happens(0.3):
                beat = START + BEAT * rng.randrange(size // BEAT)
            elif beat is None and not beats and not writes and not words and bench.happens(0.2):
                writes.append((START + BEAT * rng.randrange(size // BEAT), rng.getrandbits(512), rng.getrandbits(BEAT)))
        may_ask = {} if writes else asked  # no reads during writes
        dut.refill_valid_i.value = sum(1 << cluster for cluster in may_ask)
        for cluster, address in asked.items():
            dut.refill_address_i[cluster].value = address
        offers_word = word is not None and not writes
        dut.pe_valid_i.value, dut.pe_address_i.value = offers_word, word or 0
        dut.write_valid_i.value = bool(writes) and not lines.coming and not words
        if writes:
            dut.write_i.value = WRITE.pack(address=writes[0][0], wdata=writes[0][1], strobe=writes[0][2])
        dut.read_valid_i.value, dut.read_address_i.value = beat is not None, beat or 0
        await bench.read()

        chosen = lines.choose(now, set(may_ask))
        if may_ask:
            assert int(dut.refill_ready_o.value) == (1 << chosen if chosen is not None else 0), now
        if chosen is not None:
            address = asked.pop(chosen)
            for index in range(line // port):
                lines.coming[now + miss - line // port + index] = (chosen, address + port * index)
        expected = lines.coming.pop(now, None)
        assert int(dut.refill_rvalid_o.value) == (1 << expected[0] if expected else 0), now
        if expected:
            offset = expected[1] - START
            assert int(dut.refill_rdata_o.value).to_bytes(port, "little") == data[offset : offset + port], now
            compared["line"] += 1
        if dut.pe_rvalid_o.value:
            offset = words.popleft() - START & ~3
            assert int(dut.pe_rdata_o.value) == int.from_bytes(data[offset : offset + 4], "little"), now
            compared["word"] += 1
        if offers_word and word is not None and dut.pe_ready_o.value:
            words.append(word)
            word = None
        if beats and beats[0][0] == now:
            assert int(dut.read_data_o.value).to_bytes(BEAT, "little") == beats.popleft()[1], now
            compared["beat"] += 1
        if beat is not None and dut.read_ready_o.value:
            beats.append((now + 3, bytes(data[beat - START : beat - START + BEAT])))
            beat = None
        if dut.write_valid_i.value and dut.write_ready_o.value:
            address, value, strobe = writes.popleft()
            for index, byte in enumerate(value.to_bytes(BEAT, "little")):
                if strobe >> index & 1:
                    data[address - START + index] = byte
            compared["write"] += 1
            is_filled = is_filled or not writes
        await bench.next()
    assert min(compared.values()) > 20, compared
    assert compared["line"] > 300
