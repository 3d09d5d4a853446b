# SPDX-License-Identifier: Apache-2.0
"""Reads from host memory: bytes, bursts within pages, interleaved beats of the engines."""

from collections import deque
from typing import Any

import cocotb
from common import Bench, Driver, Monitor, Scoreboard, shorter, start

PARAMETERS = [{}, {"Ids": 1, "Reads": 1}]

BEAT, PAGE = 64, 4096


def byte_at(address: int) -> int:
    """Return a byte of host memory."""
    return (address * 2654435761 >> 7) & 0xFF


def refuses(address: int) -> bool:
    """Return true if the host refuses a beat."""
    return address // PAGE % 8 == 0


class Host:
    """Host memory, which serves the identifiers in any order."""

    def __init__(self, bench: Bench, ids: int) -> None:
        self.bench, self.dut = bench, bench.dut
        self.ar = Monitor(bench, "ar")
        self.beats: list[deque[tuple[int, bool]]] = [deque() for _ in range(ids)]
        self.bursts = 0
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut, rng = self.dut, self.bench.rng
        offered: int | None = None
        while True:
            while self.ar.seen:
                fields: Any = self.ar.seen.pop(0)[1]
                count = fields["len"] + 1
                assert fields["size"] == 6
                assert fields["burst"] == 1
                assert fields["addr"] % PAGE + count * BEAT <= PAGE, "no burst crosses a page"
                beats = [(fields["addr"] + BEAT * index, index == count - 1) for index in range(count)]
                self.beats[fields["id"]].extend(beats)
                self.bursts += 1
            waiting = [i for i, beats in enumerate(self.beats) if beats]
            if offered is None and waiting and self.bench.happens(0.8):
                offered = rng.choice(waiting)
            dut.r_valid_i.value = offered is not None
            if offered is not None:
                address, last = self.beats[offered][0]
                dut.r_id_i.value, dut.r_last_i.value = offered, last
                dut.r_data_i.value = sum(byte_at(address + index) << 8 * index for index in range(BEAT))
                dut.r_resp_i.value = 2 if refuses(address) else 0
            await self.bench.read()
            if offered is not None and dut.r_ready_o.value:
                self.beats[offered].popleft()
                offered = None
            await self.bench.next()


class Sink:
    """The unit, which accepts beats in some cycles."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut, self.pace = bench, bench.dut, 1.0
        self.seen: list[tuple[int, bytes, int, int]] = []  # identifier, data, last, refused
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        dut = self.dut
        while True:
            dut.host_data_ready_i.value = takes = self.bench.happens(self.pace)
            await self.bench.read()
            if takes and dut.host_data_valid_o.value:
                data = int(dut.host_data_o.value).to_bytes(BEAT, "little")
                flags = int(dut.host_data_last_o.value), int(dut.host_data_refused_o.value)
                self.seen.append((int(dut.host_data_id_o.value), data, *flags))
            await self.bench.next()


@cocotb.test()
async def random_reads(dut) -> None:
    """All alignments and sizes; data starts with the first byte."""
    bench = await start(dut)
    rng = bench.rng
    ids = int(dut.Ids.value)
    host = Host(bench, ids)
    driver, data = Driver(bench, "host_read"), Sink(bench)
    board = Scoreboard()
    sizes: dict[int, deque[int]] = {identifier: deque() for identifier in range(ids)}
    refused_reads = expected_beats = 0
    for _ in range(10):
        driver.pace, data.pace, host.ar.pace = (rng.choice([0.4, 1.0]) for _ in range(3))
        for _ in range(shorter(25)):
            size = rng.choice([0, rng.randrange(1, 70), rng.randrange(1, 400), rng.randrange(1, 9001)])
            address = (1 << 40) + PAGE * rng.randrange(32) + rng.choice([rng.randrange(200), PAGE - rng.randrange(200)])
            identifier = rng.randrange(ids)
            driver.send({"address": address, "size": size, "id": identifier})
            first_word, words = address // BEAT, (address + max(size, 1) - 1) // BEAT - address // BEAT + 1
            beats = -(-max(size, 1) // BEAT)
            refused = False
            for beat in range(beats):
                # A beat needs the words up to that of its last byte, or to the one that ends the read.
                last_word = min(beat + (address % BEAT != 0), words - 1) if beat < beats - 1 else words - 1
                refused = any(refuses(BEAT * (first_word + word)) for word in range(last_word + 1))
                count = min(BEAT, size - BEAT * beat)
                value = bytes(byte_at(address + BEAT * beat + index) for index in range(count))
                board.expect((value, int(beat == beats - 1), int(refused)), identifier)
                sizes[identifier].append(count)
                expected_beats += 1
            refused_reads += refused
        while len(data.seen) < expected_beats:
            await bench.next()
    for identifier, value, last, refused_beat in data.seen:
        count = sizes[identifier].popleft()
        board.compare((value[:count], last, refused_beat), identifier)
    board.finish(shorter(2000))
    assert refused_reads > shorter(20)
    assert host.bursts > shorter(250)
