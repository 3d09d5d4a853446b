# SPDX-License-Identifier: Apache-2.0
"""Writes to host memory: bytes, bursts within pages, answers in the order of each engine."""

from collections import deque
from typing import Any

import cocotb
from common import Bench, Driver, Monitor, Scoreboard, start
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
            answers = bool(waiting) and self.bench.happens(0.5)
            dut.b_valid_i.value = answers
            if answers:
                chosen = rng.choice(waiting)
                dut.b_id_i.value, dut.b_resp_i.value = chosen, self.answers[chosen].popleft()
            await self.bench.read()
            assert dut.b_ready_o.value
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
