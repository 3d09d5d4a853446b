# SPDX-License-Identifier: Apache-2.0
"""Writes to host memory: bytes, bursts within pages, answers in the order of each engine."""

from collections import deque
from typing import Any

import cocotb
from common import Bench, Driver, Monitor, Scoreboard, shorter, start
from fabric_model import Bytes

PARAMETERS = [{}, {"Ids": 2, "Bursts": 1}]

BEAT, PAGE = 64, 4096


class Host:
    """Host memory; every eighth page refuses writes."""

    def __init__(self, bench: Bench, ids: int) -> None:
        self.bench, self.dut, self.ids = bench, bench.dut, ids
        self.bytes = Bytes()
        self.aw, self.w = Monitor(bench, "aw"), Monitor(bench, "w")
        self.bursts = 0
        self.answers: list[deque[int]] = [deque() for _ in range(ids)]
        self.is_silent = False
        cocotb.start_soon(self._run())

    def take(self) -> None:
        """Take a complete burst."""
        fields: Any = self.aw.seen[0][1]
        beats = fields["len"] + 1
        if len(self.w.seen) < beats:
            return
        assert fields["size"] == 6
        assert fields["burst"] == 1
        assert fields["addr"] % PAGE + beats * BEAT <= PAGE, "no burst crosses a page"
        refuses = fields["addr"] // PAGE % 8 == 0
        for index, (_, item) in enumerate(self.w.seen[:beats]):
            beat: Any = item
            assert beat["last"] == (index == beats - 1)
            if not refuses:
                data = beat["data"].to_bytes(BEAT, "little")
                self.bytes.write(fields["addr"] + BEAT * index, data, beat["strb"])
        del self.w.seen[:beats], self.aw.seen[0]
        self.answers[fields["id"]].append(2 + self.bench.rng.randrange(2) if refuses else 0)
        self.bursts += 1

    async def _run(self) -> None:
        dut, rng = self.dut, self.bench.rng
        while True:
            while self.aw.seen and len(self.w.seen) >= self.aw.seen[0][1]["len"] + 1:  # type: ignore[index]
                self.take()
            waiting = [i for i, answers in enumerate(self.answers) if answers]
            answers = bool(waiting) and not self.is_silent and self.bench.happens(0.5)
            dut.b_valid_i.value = answers
            if answers:
                chosen = rng.choice(waiting)
                dut.b_id_i.value, dut.b_resp_i.value = chosen, self.answers[chosen].popleft()
            # The response stays until it is accepted; only a time-out delays it.
            await self.bench.read()
            assert dut.b_ready_o.value or int(dut.timeout_i.value)
            while not dut.b_ready_o.value:
                await self.bench.next()
                await self.bench.read()
            await self.bench.next()


@cocotb.test()
async def random_writes(dut) -> None:
    """All alignments and sizes; accepted writes are in host memory, byte by byte."""
    bench = await start(dut)
    rng = bench.rng
    ids = int(dut.Ids.value)
    host = Host(bench, ids)
    driver = Driver(bench, "host_write")
    written = Monitor(bench, "host_written")
    board, expected = Scoreboard(), Bytes()
    free, sent, refusals = 1 << 40, 0, 0
    for _ in range(10):
        driver.pace, host.aw.pace, host.w.pace = (rng.choice([0.4, 1.0]) for _ in range(3))
        for _ in range(30):
            size = rng.choice([0, rng.randrange(1, 70), rng.randrange(1, 400), rng.randrange(1, 9001)])
            address = free + rng.choice([rng.randrange(200), PAGE - rng.randrange(200)])
            free = address + size + 1
            data, identifier = rng.randbytes(size), rng.randrange(ids)
            beats = [data[i : i + BEAT] for i in range(0, max(size, 1), BEAT)]
            for index, beat in enumerate(beats):
                fields = {"address": address, "size": size, "id": identifier}
                last = index == len(beats) - 1
                driver.send({**fields, "data": int.from_bytes(beat, "little"), "last": last})
            pages = range(address // PAGE, (address + max(size, 1) - 1) // PAGE + 1)
            refused = any(page % 8 == 0 for page in pages)
            for index, value in enumerate(data):
                if (address + index) // PAGE % 8:
                    expected.bytes[address + index] = value
            board.expect(int(refused), identifier)
            refusals += refused
            sent += 1
        while len(written.seen) < sent:
            await bench.next()
    for _, item in written.seen:
        answer: Any = item
        board.compare(answer["refused"], answer["id"])
    board.finish(300)
    assert host.bytes.bytes == expected.bytes
    assert refusals > 20
    assert host.bursts > sent


@cocotb.test()
async def silent_hosts(dut) -> None:
    """Each write to a silent host ends once, refused; late responses are dropped, and then writes succeed again."""
    bench = await start(dut, 60_000)
    rng = bench.rng
    ids = int(dut.Ids.value)
    host = Host(bench, ids)
    driver, written = Driver(bench, "host_write", pace=1.0), Monitor(bench, "host_written")
    strays = expected_strays = discarded = 0
    free = 1 << 40

    async def count_strays() -> None:
        nonlocal strays
        while True:
            await bench.read()
            strays += bool(dut.stray_o.value)
            await bench.next()

    def write(most: int) -> tuple[int, bytes, int]:
        """Queue a write to pages that the host accepts."""
        nonlocal free
        size, identifier = rng.choice([0, 1, rng.randrange(1, most)]), rng.randrange(ids)
        address = free + PAGE * 8 - free % (PAGE * 8) + PAGE + rng.randrange(200)
        free, data = address + size + 1, rng.randbytes(size)
        for index in range(0, max(size, 1), BEAT):
            beat = int.from_bytes(data[index : index + BEAT], "little")
            fields = {"address": address, "size": size, "id": identifier, "data": beat}
            driver.send({**fields, "last": index + BEAT >= size})
        return address, data, identifier

    cocotb.start_soon(count_strays())
    parts = shorter(16)
    for part in range(parts):
        # The host gives no response, or accepts no data, or no address either.
        host.is_silent, host.aw.pace, host.w.pace = True, rng.choice([0.0, 1.0]), rng.choice([0.0, 0.02, 1.0])
        dut.timeout_i.value = limit = rng.randrange(100, 160)
        before, bursts = len(written.seen), host.bursts
        sent = [write(6000)[2] for _ in range(6)]
        begin = bench.cycle
        while len(written.seen) < before + len(sent):
            await bench.next()
        discarded += host.bursts == bursts
        assert bench.cycle - begin < 1500 + 14 * limit
        told: list[Any] = [item for _, item in written.seen[before:]]
        assert sorted(item["id"] for item in told) == sorted(sent), part
        assert all(item["refused"] for item in told)
        # The host answers late, also the bursts that it accepts only now; a second answer is a stray.
        host.is_silent, host.aw.pace, host.w.pace = False, 1.0, 1.0
        for _ in range(400):
            await bench.next()
        extra = rng.randrange(3)
        host.answers[rng.randrange(ids)].extend([2] * extra)
        for _ in range(20):
            await bench.next()
        assert not any(host.answers)
        expected_strays += host.bursts - bursts + extra
        assert strays == expected_strays, part
        # Written bytes are those of the new writes, and none is refused.
        before = len(written.seen)
        news = [write(1000) for _ in range(3)]
        while len(written.seen) < before + len(news):
            await bench.next()
        assert not any(item["refused"] for _, item in written.seen[before:])  # type: ignore[index]
        for address, data, _ in news:
            assert host.bytes.read(address, len(data)) == data
        assert strays == expected_strays
    assert len(written.seen) == 9 * parts
    assert strays > shorter(20)
    assert discarded or parts < 16


@cocotb.test()
async def no_time_out(dut) -> None:
    """With a limit of 0, a write waits for its response as long as it takes."""
    bench = await start(dut)
    host, driver, written = Host(bench, int(dut.Ids.value)), Driver(bench, "host_write"), Monitor(bench, "host_written")
    host.is_silent = True
    driver.send({"address": PAGE, "size": 4, "id": 0, "data": 7, "last": 1})
    for _ in range(6000):
        await bench.next()
    assert not written.seen
    host.is_silent = False
    while not written.seen:
        await bench.next()
    assert written.seen[0][1]["refused"] == 0  # type: ignore[index]
