# SPDX-License-Identifier: Apache-2.0
"""A cluster of pspin-tiny boots the runtime and runs handlers. The test plays dispatcher, memories and feedback
arbiter.
"""

import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from common import Bench, start
from programs import PROGRAM, Program, build
from sv_types import enum, struct

TASK, DONE, CONFIG = struct("task_t"), struct("completion_t"), struct("cfg_t")
CONTEXT, RANGE, BEAT = struct("execution_context_t"), struct("range_t"), struct("dma_beat_t")
WORD, COMMAND, RESPONSE = struct("word_request_t"), struct("command_t"), struct("response_t")
HANDLERS = ("empty", "sum", "tell")
SCRATCHPAD, HANDLER, PACKETS = 0x1000_3000, 0x1C00_0000, 0x1C40_0000
LATENCY, LEAST_BEATS, MISS, LINE = 10, 2, 12, 32  # values of pspin-tiny


def program() -> Program:
    """Return the runtime with the handlers of cluster.S."""
    with tempfile.TemporaryDirectory() as folder:
        return build(Path(__file__).with_name("cluster.S"), Path(folder))


class Around:
    """Surroundings of the cluster."""

    def __init__(self, bench: Bench, code: bytes, grants: float = 1) -> None:
        self.bench, self.dut, self.code, self.grants = bench, bench.dut, code, grants
        self.packets = bytearray(bench.rng.randbytes(65_536))
        self.granted: list[int] = []  # cycles
        self.done: list[tuple[int, dict[str, Any]]] = []
        self.takes = 1.0  # probability of accepting a feedback
        for task in (self._refill(), self._beats(), self._feedback()):
            cocotb.start_soon(task)

    async def _refill(self) -> None:
        """Lines of the program, one per four cycles at the port. The cache asks in the cycle after the fetch."""
        dut, coming, free = self.dut, {}, 0
        while True:
            now = self.bench.cycle
            dut.refill_ready_i.value = now >= free
            beat = coming.pop(now, None)
            dut.refill_rvalid_i.value = beat is not None
            dut.refill_rdata_i.value = int.from_bytes(beat or self.bench.rng.randbytes(8), "little")
            await RisingEdge(dut.clk_i)
            if dut.refill_valid_o.value and now >= free:
                free, offset = now + LINE // 8, int(dut.refill_address_o.value) - PROGRAM
                for index in range(LINE // 8):
                    word = self.code[offset + 8 * index : offset + 8 * index + 8].ljust(8, b"\0")
                    coming[now + MISS - 1 - LINE // 8 + index] = word
            await FallingEdge(dut.clk_i)

    async def _beats(self) -> None:
        """DMA interconnect: a word arrives three cycles after its grant."""
        dut, words = self.dut, deque([None] * 3)
        while True:
            beat = BEAT.unpack(int(dut.beat_o.value) & (1 << BEAT.width) - 1)
            grant = beat["valid"] and self.bench.happens(self.grants)
            dut.beat_grant_i.value = int(grant)
            word = words.popleft()
            dut.data_i.value = self.bench.rng.getrandbits(512) if word is None else word
            at = beat["address"] - PACKETS
            words.append(int.from_bytes(self.packets[at : at + 64], "little") if grant and beat["reads"] else None)
            if grant:
                self.granted.append(self.bench.cycle)
            await FallingEdge(dut.clk_i)

    async def _feedback(self) -> None:
        """The feedback arbiter."""
        dut = self.dut
        while True:
            ready = self.bench.happens(self.takes)
            dut.done_ready_i.value = ready
            await RisingEdge(dut.clk_i)
            if dut.done_valid_o.value and ready:
                self.done.append((self.bench.cycle, DONE.unpack(int(dut.done_o.value))))
            await FallingEdge(dut.clk_i)

    async def words(self, read: dict[int, int]) -> None:
        """PE interconnect: a word of another memory arrives some cycles later, one at a time."""
        dut, coming = self.dut, deque()
        while True:
            ready = self.bench.happens(0.7)
            dut.pe_ready_i.value = ready
            answers = bool(coming) and coming[0][0] <= self.bench.cycle
            dut.pe_rvalid_i.value = answers
            dut.pe_rhpu_i.value, dut.pe_rdata_i.value = coming.popleft()[1:] if answers else (0, 0)
            await RisingEdge(dut.clk_i)
            if dut.pe_valid_o.value and ready:
                request, hpu = WORD.unpack(int(dut.pe_o.value)), int(dut.pe_hpu_o.value)
                assert not request["we"]
                read[hpu] = read.get(hpu, 0) + 1
                coming.append((self.bench.cycle + 18, hpu, self.word(request["address"], read[hpu], hpu)))
            await FallingEdge(dut.clk_i)

    def word(self, address: int, number: int, hpu: int) -> int:
        """Return the result of an HPU's n-th read."""
        return (address * 5 + number * 977 + hpu * 65_537 + 0x2000_0000) % (1 << 32)

    async def commands(self, taken: list[dict[str, Any]]) -> None:
        """Command unit: engines have a credit now and then; a response arrives some cycles later."""
        dut, coming = self.dut, deque()
        while True:
            ready, credit = self.bench.happens(0.7), self.bench.rng.randrange(8)
            dut.command_ready_i.value, dut.credit_i.value = ready, credit
            answers = bool(coming) and coming[0][0] <= self.bench.cycle
            dut.response_valid_i.value = answers
            if answers:
                dut.response_i.value = RESPONSE.pack(**coming.popleft()[1])
            await RisingEdge(dut.clk_i)
            if dut.command_valid_o.value:
                command = COMMAND.unpack(int(dut.command_o.value))
                assert command["kind"] == enum("command_e").CommandHostDirect
                assert credit >> enum("engine_e").EngineDirect & 1, "no credit"
                if ready:
                    taken.append(command)
                    coming.append((self.bench.cycle + 7, {"hpu": command["hpu"], "slot": command["slot"]}))
            await FallingEdge(dut.clk_i)

    async def console(self, printed: list[tuple[int, int]]) -> None:
        """The console of the unit."""
        dut = self.dut
        while True:
            ready = self.bench.happens(0.3)
            dut.console_ready_i.value = ready
            await RisingEdge(dut.clk_i)
            if dut.console_valid_o.value and ready:
                printed.append((int(dut.console_hpu_o.value), int(dut.console_char_o.value)))
            await FallingEdge(dut.clk_i)

    async def boot(self, made: Program) -> None:
        """Write the contexts, one for each handler, and start the HPUs."""
        dut = self.dut
        code = {"address": PROGRAM, "size": len(made.code)}
        for index, name in enumerate(HANDLERS):
            handler = {"address": made.symbols[name], "size": 64}
            row = {
                "watchdog_cycles": 100_000,
                "handlers": RANGE.pack(**handler) << RANGE.width,
                "handler_memory": {"address": HANDLER, "size": 4096},
                "host": {"address": 0, "size": 1 << 32},
            }
            dut.context_write_i.value, dut.context_index_i.value = 1, index
            dut.context_i.value = CONTEXT.pack(**row)
            dut.scratchpad_write_i.value, dut.scratchpad_index_i.value = 1, index
            dut.scratchpad_i.value = RANGE.pack(address=SCRATCHPAD, size=1024)
            await self.bench.next()
        dut.context_write_i.value = dut.scratchpad_write_i.value = 0
        dut.cfg_i.value = CONFIG.pack(
            enable=1,
            entry=made.symbols["_start"],
            again=made.symbols["__rt_again"],
            code=code,
            static_data={"address": SCRATCHPAD, "size": 1024},
        )
        for _ in range(400):
            await self.bench.next()
            if dut.waits_o.value:
                return
        raise AssertionError("the HPUs do not wait for tasks")

    async def send(self, handler: int, address: int, size: int, user: int = 0) -> int:
        """Send a task when there is room. Return the cycle."""
        dut = self.dut
        role = enum("role_e").RolePayload
        her = {"address": PACKETS + address, "size": size, "transfer": size, "execution_context": handler, "user": user}
        dut.offer_transfer_i.value = size
        dut.send_i.value = TASK.pack(role=role, feeds_back=1, mpq=3, her=her)
        while True:
            await RisingEdge(dut.clk_i)
            has_room = bool(dut.has_room_o.value)
            await FallingEdge(dut.clk_i)
            if has_room:
                break
        # Room persists: no other task is sent.
        dut.send_valid_i.value = 1
        cycle = self.bench.cycle
        await self.bench.next()
        dut.send_valid_i.value = 0
        return cycle

    async def read(self, address: int) -> bytes:
        """Read a beat of L1 through the port of the NIC-host interconnect."""
        dut = self.dut
        dut.nhi_read_valid_i.value, dut.nhi_read_address_i.value = 1, address
        while True:
            await RisingEdge(dut.clk_i)
            taken = bool(dut.nhi_read_ready_o.value)
            await FallingEdge(dut.clk_i)
            if taken:
                break
        dut.nhi_read_valid_i.value = 0
        await self.bench.next()
        await self.bench.next()
        await RisingEdge(dut.clk_i)
        data = int(dut.nhi_read_data_o.value)
        await FallingEdge(dut.clk_i)
        return data.to_bytes(64, "little")


class Events:
    """Cycles of internal events."""

    def __init__(self, bench: Bench) -> None:
        self.landed: list[int] = []
        self.assigned: list[tuple[int, int]] = []
        self.started: list[int] = []
        self.ended: list[int] = []
        cocotb.start_soon(self._watch(bench))

    async def _watch(self, bench: Bench) -> None:
        dut = bench.dut
        drivers = [one.u_hpu.u_hpu.u_driver for one in (dut.gen_hpu[0], dut.gen_hpu[1])]
        while True:
            await RisingEdge(dut.clk_i)
            if dut.u_csched.landed_valid_i.value:
                self.landed.append(bench.cycle)
            for index, driver in enumerate(drivers):
                if driver.assign_valid_i.value:
                    self.assigned.append((bench.cycle, index))
                if driver.start_o.value:
                    self.started.append(bench.cycle)
                if driver.end_o.value:
                    self.ended.append(bench.cycle)


@cocotb.test()
async def unloaded(dut) -> None:
    """A single task takes the same cycles as in the model, from the first beat to the feedback arbiter."""
    bench, made = await start(dut), program()
    around, events = Around(bench, made.code), Events(bench)
    await around.boot(made)
    assert (await around.read(SCRATCHPAD))[8:10] == b"\x0d\x60"
    # The handler's only line misses in the instruction cache for its first task.
    await around.send(0, 0, 64)
    for _ in range(100):
        await bench.next()
    assert events.ended[0] == events.started[0] + 8 + MISS
    compared = 0
    for size in (64, 1, 128, 256, 65, 512, 1024, 1536, 2048, 64):
        sent = await around.send(0, 0, size)
        for _ in range(100 + size // 64):
            await bench.next()
        beats = -(-size // 64)
        assert around.granted[-beats] == sent + 1
        last = sent + beats
        landed = last + LATENCY + max(0, LEAST_BEATS - beats)
        cycles = events.landed[-1], events.assigned[-1][0], events.started[-1], events.ended[-1], around.done[-1][0]
        assert cycles == (landed, landed + 1, landed + 2, landed + 10, landed + 11), (size, sent, cycles)
        assert events.assigned[-1][1] == 0
        compared += 1
    assert compared == 10
    assert len(around.done) == 11


@cocotb.test()
async def loaded(dut) -> None:
    """Tasks of all sizes at once: each HPU finds its packet in L1, and all are fed back."""
    bench, made = await start(dut), program()
    around, events = Around(bench, made.code, grants=0.7), Events(bench)
    around.takes = 0.5
    await around.boot(made)
    total = 0
    count = 24
    for user in range(count):
        size = bench.rng.choice([4, 64, 68, 4 * bench.rng.randrange(1, 100), 1024])
        address = 64 * bench.rng.randrange(900)
        await around.send(1, address, size, user)
        words = around.packets[address : address + size]
        total += sum(int.from_bytes(words[at : at + 4], "little") for at in range(0, size, 4))
    for _ in range(20_000):
        await bench.next()
        if dut.waits_o.value and len(around.done) == count:
            break
    assert sorted(done["her"]["user"] for _, done in around.done) == list(range(count))
    assert all(done["outcome"]["kind"] == enum("end_e").EndDone for _, done in around.done)
    assert {done["hpu"]["hpu"] for _, done in around.done} == {0, 1}
    words = await around.read(SCRATCHPAD)
    assert int.from_bytes(words[:4], "little") == count
    assert int.from_bytes(words[4:8], "little") == total % (1 << 32)
    assert len(events.landed) == len(events.ended) == count


@cocotb.test()
async def outside(dut) -> None:
    """Each HPU gets its own words of other memories, responses and characters, despite concurrent requests."""
    bench, made = await start(dut), program()
    around = Around(bench, made.code)
    around.takes = 0.5
    read: dict[int, int] = {}
    taken: list[dict[str, Any]] = []
    printed: list[tuple[int, int]] = []
    for one in (around.words(read), around.commands(taken), around.console(printed)):
        cocotb.start_soon(one)
    await around.boot(made)
    count = 30
    for user in range(count):
        await around.send(HANDLERS.index("tell"), 0, 4, user)
    for _ in range(10_000):
        await bench.next()
        if dut.waits_o.value and len(around.done) == count and len(printed) == count:
            break
    assert sorted(done["her"]["user"] for _, done in around.done) == list(range(count))
    assert all(done["outcome"]["kind"] == enum("end_e").EndDone for _, done in around.done)
    assert len(taken) == count
    for hpu in range(2):
        words = [around.word(HANDLER, number, hpu) for number in range(1, read[hpu] + 1)]
        of_hpu = [command for command in taken if command["hpu"] == {"cluster": 0, "hpu": hpu}]
        assert [command["host"] for command in of_hpu] == words
        assert [command["immediate"] % (1 << 32) for command in of_hpu] == words
        assert [char for printer, char in printed if printer == hpu] == [word % 256 for word in words]
        assert len(words) > 5
