# SPDX-License-Identifier: Apache-2.0
"""The AXI port for NIC and host: bursts of any length and size, in order, with the right bytes and responses."""

from collections import deque
from typing import Any

import cocotb
from common import Bench, Driver, Monitor, Scoreboard, start
from fabric_model import Bytes
from sv_types import struct

PARAMETERS = [{}, {"Buffer": 4, "Bursts": 2, "IdWidth": 2}]

BEAT, PAGE, BYTES = 64, 4096, 16384
WRITE = struct("beat_request_t")
OKAY, SLVERR, DECERR, INCR = 0, 2, 3, 1


class Memories:
    """Beats of one memory, accepted in some cycles; reads are answered in order, some cycles later."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut
        self.bytes = Bytes()
        self.bytes.write(0, bytes(BYTES))
        self.answers: deque[tuple[int, int]] = deque()
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        bench, dut = self.bench, self.dut
        while True:
            writes, reads = bench.happens(0.7), bench.happens(0.7)
            dut.write_ready_i.value, dut.read_ready_i.value = writes, reads
            is_due = bool(self.answers) and self.answers[0][0] <= bench.cycle
            dut.read_rvalid_i.value = is_due
            if is_due:
                address = self.answers.popleft()[1]
                exists = 0 < address < BYTES
                dut.read_missing_i.value = not exists
                dut.read_data_i.value = int.from_bytes(self.bytes.read(address, BEAT), "little") if exists else 0
            await cocotb.triggers.ReadOnly()
            address = WRITE.unpack(dut.write_o.value)["address"] if dut.write_valid_o.value else 0
            await cocotb.triggers.NextTimeStep()
            dut.write_missing_i.value = not 0 < address < BYTES
            await bench.read()
            if dut.write_valid_o.value and writes:
                beat = WRITE.unpack(dut.write_o.value)
                assert beat["address"] % BEAT == 0
                if 0 < beat["address"] < BYTES:
                    self.bytes.write(beat["address"], beat["wdata"].to_bytes(BEAT, "little"), beat["strobe"])
            if dut.read_valid_o.value and reads:
                self.answers.append((bench.cycle + 4 + bench.rng.randrange(3), int(dut.read_address_o.value)))
            await bench.next()


def random_burst(bench: Bench, ids: int, area: range) -> dict[str, int]:
    """Return a burst, sometimes one that the port refuses: too wide, across 4 KiB, or not INCR."""
    rng = bench.rng
    size = rng.choice([6, 6, 6, 2, 3, 0])
    address = rng.choice([rng.choice(area), rng.choice(area) // BEAT * BEAT])
    if bench.happens(0.08):
        address += 2 * BYTES
    most = (PAGE - address % PAGE // (1 << size) * (1 << size)) >> size
    beats = rng.randrange(1, min(most, 16) + 1)
    burst = rng.choice([0, 2]) if bench.happens(0.05) else INCR
    if bench.happens(0.05):
        size, beats = 7, rng.randrange(1, 4)
    elif bench.happens(0.08):
        # The last beat begins directly behind the page, or the burst ends with the page: both sides of the rule.
        beats = rng.randrange(2, 5)
        across = rng.randrange(2)
        address = (address // PAGE + 1) * PAGE - ((beats - across) << size) + rng.randrange(1 << size)
    return {"id": rng.randrange(ids), "addr": address, "len": beats - 1, "size": size, "burst": burst}


def refuses(burst: dict[str, int]) -> bool:
    """Return true for a burst that gets SLVERR."""
    first, width = burst["addr"] >> burst["size"], 1 << burst["size"]
    last_byte = (first + burst["len"] + 1) * width - 1
    return burst["burst"] != INCR or width > BEAT or last_byte // PAGE != burst["addr"] // PAGE


def beats_of(burst: dict[str, int]) -> list[tuple[int, int]]:
    """Return address and mask of the bytes of each beat."""
    beats, address, width = [], burst["addr"], 1 << burst["size"]
    for _ in range(burst["len"] + 1):
        end = address // width * width + width
        first = address // BEAT * BEAT
        beats.append((first, sum(1 << byte - first for byte in range(address, end))))
        address = end
    return beats


def kind_of(burst: dict[str, int]) -> set[str]:
    """Return the cases of the rules that a burst covers."""
    if burst["burst"] != INCR:
        return {"WRAP" if burst["burst"] == 2 else "FIXED"}
    if burst["size"] == 7:
        return {"wide"}
    end = (burst["addr"] >> burst["size"]) + burst["len"] + 1 << burst["size"]
    return {"crosses" if refuses(burst) else "ends with the page" if end % PAGE == 0 else "inside"}


@cocotb.test()
async def random_bursts(dut) -> None:
    """A write is visible once its response arrives; every burst is answered, in order."""
    bench = await start(dut)
    rng = bench.rng
    ids = 1 << len(dut.aw_id_i)
    memories = Memories(bench)
    aw, w, ar = (Driver(bench, name) for name in ("aw", "w", "ar"))
    b, r = Monitor(bench, "b"), Monitor(bench, "r")
    board, expected = Scoreboard(), Bytes()
    expected.write(0, bytes(BYTES))
    responses = {OKAY: 0, SLVERR: 0, DECERR: 0}
    kinds: dict[str, set[str]] = {"write": set(), "read": set()}
    for part in range(12):
        aw.pace, w.pace, ar.pace, b.pace, r.pace = (rng.choice([0.3, 1.0]) for _ in range(5))
        # First all writes, then the reads: the two directions are not ordered.
        for _ in range(20):
            burst = random_burst(bench, ids, range(BEAT, BYTES - PAGE))
            aw.send(burst)
            resp = SLVERR if refuses(burst) else OKAY
            kinds["write"] |= kind_of(burst)
            beats = beats_of(burst)
            for index, (address, mask) in enumerate(beats):
                data, strobe = rng.randbytes(BEAT), rng.getrandbits(BEAT) & mask
                last = index == len(beats) - 1
                w.send({"data": int.from_bytes(data, "little"), "strb": strobe, "last": last})
                if resp != SLVERR and address < BYTES:
                    expected.write(address, data, strobe)
                elif resp != SLVERR:
                    resp = DECERR
            board.expect({"id": burst["id"], "resp": resp}, "b")
            responses[resp] += 1
        while len(b.seen) < 20 * (part + 1):
            await bench.next()
        assert memories.bytes.bytes == expected.bytes
        reads: list[Any] = []
        for _ in range(20):
            burst = random_burst(bench, ids, range(BEAT, BYTES - PAGE))
            ar.send(burst)
            kinds["read"] |= kind_of(burst)
            beats = beats_of(burst)
            for index, (address, _) in enumerate(beats):
                resp = SLVERR if refuses(burst) else OKAY if address < BYTES else DECERR
                data = int.from_bytes(expected.read(address, BEAT), "little") if resp == OKAY else 0
                last = int(index == len(beats) - 1)
                reads.append({"id": burst["id"], "data": data, "resp": resp, "last": last})
                responses[resp] += 1
        seen = len(r.seen)
        while len(r.seen) < seen + len(reads):
            await bench.next()
        for item in reads:
            board.expect(item, "r")
        for _, item in r.seen[seen:]:
            board.compare(item, "r")
    for _, item in b.seen:
        board.compare(item, "b")
    board.finish(1000)
    assert min(responses.values()) > 10, responses
    for kind in kinds.values():
        assert kind == {"wide", "crosses", "ends with the page", "FIXED", "WRAP", "inside"}
