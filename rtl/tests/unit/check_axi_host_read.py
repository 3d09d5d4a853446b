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
        self.left: int | None = None  # beats until the host is silent
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
            if offered is None and waiting and self.left != 0 and self.bench.happens(0.8):
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
                self.left = None if self.left is None else self.left - 1
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


@cocotb.test()
async def silent_hosts(dut) -> None:
    """Each read of a silent host ends once, refused; late data is dropped, and then reads succeed again."""
    bench = await start(dut, 60_000)
    rng = bench.rng
    ids = int(dut.Ids.value)
    host = Host(bench, ids)
    driver, data = Driver(bench, "host_read", pace=1.0), Sink(bench)
    strays = refused = 0

    async def count_strays() -> None:
        nonlocal strays
        while True:
            await bench.read()
            strays += bool(dut.stray_o.value and dut.r_valid_i.value)
            await bench.next()

    def read(most: int) -> tuple[int, int, int]:
        """Queue a read of pages that the host accepts."""
        address = (1 << 40) + PAGE * (1 + 8 * rng.randrange(32)) + rng.randrange(200)
        size, identifier = rng.choice([1, 64, rng.randrange(1, most)]), rng.randrange(ids)
        driver.send({"address": address, "size": size, "id": identifier})
        return address, size, identifier

    def ends(first: int) -> list[tuple[int, int]]:
        """Return identifiers and refusals of the last beats."""
        return [(identifier, is_refused) for identifier, _, last, is_refused in data.seen[first:] if last]

    cocotb.start_soon(count_strays())
    parts = shorter(16)
    for part in range(parts):
        host.left, host.ar.pace = rng.choice([0, rng.randrange(60)]), rng.choice([0.0, 0.05, 1.0])
        dut.timeout_i.value = limit = rng.randrange(100, 160)
        before, strays_before = len(data.seen), strays
        sent = [read(9000)[2] for _ in range(6)]
        begin = bench.cycle
        while len(ends(before)) < len(sent):
            await bench.next()
        assert bench.cycle - begin < 1500 + 14 * limit
        assert sorted(identifier for identifier, _ in ends(before)) == sorted(sent), part
        refused += sum(is_refused for _, is_refused in ends(before))
        # The host answers late, also the bursts that it accepts only now.
        owed = sum(map(len, host.beats))
        host.left, host.ar.pace = None, 1.0
        for _ in range(30):
            await bench.next()
        while any(host.beats):
            await bench.next()
        for _ in range(20):
            await bench.next()
        assert strays - strays_before >= owed, part
        assert len(ends(before)) == len(sent), "a read has ended once"
        before, strays_before = len(data.seen), strays
        address, size, identifier = read(600)
        while not ends(before):
            await bench.next()
        assert ends(before) == [(identifier, 0)]
        found = b"".join(beat for _, beat, _, _ in data.seen[before:])[:size]
        assert found == bytes(byte_at(address + index) for index in range(size)), part
        # Data for nothing is dropped.
        host.beats[identifier].append((0, True))
        for _ in range(10):
            await bench.next()
        assert strays == strays_before + 1
    assert refused > shorter(30)
    assert strays > shorter(100)
