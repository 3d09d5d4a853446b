# SPDX-License-Identifier: Apache-2.0
"""Surroundings of the command unit: clusters with commands, NIC-host interconnect, NIC, host, and registers."""

from collections import deque
from dataclasses import dataclass, field

from common import Bench
from fabric_model import place
from sv_types import enum, struct

COMMAND, RESPONSE, WRITE = struct("command_t"), struct("response_t"), struct("beat_request_t")
COMPLETION, IDLE, EVENT = struct("completion_t"), struct("idle_t"), struct("driver_event_t")
KIND, NOTICE = enum("command_e"), enum("notice_e")
ENGINES = {
    KIND.CommandSend: 0,
    KIND.CommandToHost: 1,
    KIND.CommandFromHost: 1,
    KIND.CommandHostDirect: 2,
    KIND.CommandHostDirectRead: 2,
}
BEAT, SLOTS, READ_CYCLES, RESPONSE_CYCLES, NHI_CYCLES = 64, 4, 4, 2, 4


def content(address: int, size: int) -> bytes:
    """Return the initial contents of a memory."""
    return bytes((byte * 89 + (byte >> 8) * 3 + 7) & 255 for byte in range(address, address + size))


def beats(address: int, size: int) -> int:
    """Return the number of words that a range touches."""
    return (address % BEAT + max(size, 1) - 1) // BEAT + 1


@dataclass
class Command:
    """A command, and the host's reaction to it."""

    kind: int
    cluster: int
    hpu: int
    address: int = 0
    size: int = 0
    others: dict[str, int] = field(default_factory=dict)
    slot: int = -1
    taken: int = -1
    is_orphan: bool = False
    is_refused: bool = False
    brought: bytes = b""

    @property
    def bits(self) -> int:
        """Bits sent by the HPU."""
        data = {"address": self.address, "size": self.size}
        hpu = {"cluster": self.cluster, "hpu": self.hpu}
        return COMMAND.pack(kind=self.kind, hpu=hpu, slot=self.slot, data=data, **self.others)


@dataclass
class Pace:
    """Probability of each action in a cycle."""

    command: float = 0.7
    nhi: float = 0.8
    send: float = 0.8
    host: float = 0.7
    event: float = 0.9


class World:
    """Surroundings of the command unit; a step is a cycle of all of them."""

    def __init__(self, bench: Bench, pace: Pace, is_exact: bool = False) -> None:
        """With `is_exact` the host responds deterministically, and refuses nothing."""
        self.bench, self.dut, self.pace, self.is_exact = bench, bench.dut, pace, is_exact
        self.clusters, self.hpus = int(self.dut.Clusters.value), int(self.dut.Hpus.value)
        self.room = int(self.dut.OutboundQueue.value)
        self.waiting: list[deque[Command]] = [deque() for _ in range(self.clusters)]
        self.flying: dict[tuple[int, int, int], Command] = {}  # by cluster, HPU and place
        self.accepted: dict[int, deque[Command]] = {kind: deque() for kind in KIND}
        self.reading: deque[Command] = deque()  # sends being read
        self.left = 0  # beats of the first one
        self.outside = 0  # sends without a response, for the count of credits
        self.returns: deque[int] = deque()  # cycles at which their credits return
        self.reads: deque[tuple[int, int, int]] = deque()  # cycle, reader, address
        self.turn = 0
        self.packet = self.burst = b""
        self.answers: dict[int, deque[tuple[int, bool]]] = {number: deque() for number in range(3)}
        self.bring: dict[int, deque[tuple[int, bytes, bool, bool]]] = {number: deque() for number in range(2)}
        self.bringing: int | None = None
        self.written: dict[int, int] = {}
        self.expected_events: list[int] = []
        self.failures: deque[tuple[str, int]] = deque()
        self.told: list[dict] = []
        self.statuses: list[tuple[int, bytes]] = []  # address and bytes, in the order of failures
        self.log: list[tuple[str, int]] = []  # events and their cycles
        self.responses: list[tuple[int, Command]] = []
        self.compared = 0

    def say(self, what: str) -> None:
        """Record an event in this cycle."""
        self.log.append((what, self.bench.cycle))

    def when(self, what: str) -> list[int]:
        """Return the cycles of an event."""
        return [cycle for name, cycle in self.log if name == what]

    @property
    def is_idle(self) -> bool:
        """Return true if nothing is left to do."""
        return not any(self.waiting) and not self.flying and not self.failures and not self.statuses

    async def step(self) -> None:
        """One cycle."""
        dut, bench, pace, now = self.dut, self.bench, self.pace, self.bench.cycle
        while self.returns and self.returns[0] <= now:
            self.returns.popleft()
            self.outside -= 1
        credit = int(dut.credit_o.value)
        assert bool(credit & 1) == (self.outside < self.room), f"{self.outside} sends are under way in cycle {now}"

        offers = [self.offer(cluster, credit) for cluster in range(self.clusters)]
        dut.command_valid_i.value = sum(1 << i for i, offer in enumerate(offers) if offer)
        dut.command_i.value = sum(offer.bits << i * COMMAND.width for i, offer in enumerate(offers) if offer)
        orphans = [where for where, command in self.flying.items() if command.is_orphan]
        dut.orphans_i.value = sum(1 << (c * self.hpus + h) * SLOTS + slot for c, h, slot in orphans)

        asks = int(dut.read_valid_o.value)
        asking = {i: self.read_address(i) for i in range(2) if asks >> i & 1}
        if len({place(address) for address in asking.values()}) < len(asking):
            del asking[1 - self.turn]  # one read a cycle at a memory
            self.turn = 1 - self.turn
        readers = [i for i in asking if bench.happens(pace.nhi)]  # the banks of others are busy
        dut.read_ready_i.value = sum(1 << i for i in readers)
        self.bring_beat(now)
        dut.write_ready_i.value = writes = bench.happens(pace.nhi)
        dut.send_ready_i.value = sends = bench.happens(pace.send)
        dut.host_write_ready_i.value = accepts = bench.happens(pace.host)
        dut.host_read_ready_i.value = hears = bench.happens(pace.host)
        self.answer(now)
        dut.event_ready_i.value = learns = sum(bench.happens(pace.event) << i for i in range(3))
        name, bits = self.failures[0] if self.failures else ("", 0)
        dut.failed_valid_i.value, dut.idle_valid_i.value = name == "failed", name == "idle"
        (dut.failed_i if name == "failed" else dut.idle_i).value = bits

        await bench.read()
        if taken := int(dut.command_ready_o.value) & int(dut.command_valid_i.value):
            self.take_command(taken)
        for reader in readers:
            self.take_read(now, reader)
        if dut.send_valid_o.value and sends:
            self.take_send()
        if dut.host_write_valid_o.value and accepts:
            self.take_host_write(now)
        if dut.host_read_valid_o.value and hears:
            self.take_host_read(now)
        if self.bringing is not None and dut.host_data_ready_o.value:
            self.say("brought")
            if self.bring[self.bringing].popleft()[2]:
                self.bringing = None
        if dut.write_valid_o.value and writes:
            self.take_write()
        for i in range(3):
            if int(dut.event_valid_o.value) >> i & learns >> i & 1:
                self.take_event(EVENT.unpack(int(dut.event_o.value) >> i * EVENT.width))
        if name and (dut.failed_ready_o if name == "failed" else dut.idle_ready_o).value:
            self.failures.popleft()
        if dut.response_valid_o.value:
            self.take_response(now, RESPONSE.unpack(dut.response_o.value))
        await bench.next()

    def offer(self, cluster: int, credit: int) -> Command | None:
        """Return the command offered by a cluster: the engine has a credit, and the HPU a slot."""
        if not self.waiting[cluster] or not self.bench.happens(self.pace.command):
            return None
        command = self.waiting[cluster][0]
        free = [slot for slot in range(SLOTS) if (cluster, command.hpu, slot) not in self.flying]
        if not free or not credit >> ENGINES[KIND(command.kind)] & 1:
            return None
        command.slot = free[0]
        return command

    def take_command(self, taken: int) -> None:
        """Let the unit accept a command."""
        cluster = taken.bit_length() - 1
        assert taken == 1 << cluster
        command = self.waiting[cluster].popleft()
        command.taken = self.bench.cycle
        self.flying[cluster, command.hpu, command.slot] = command
        self.accepted[command.kind].append(command)
        self.say("taken")
        if command.kind == KIND.CommandSend:
            self.reading.append(command)
            self.outside += 1

    def bring_beat(self, now: int) -> None:
        """Return the beats that the interconnect accepted before."""
        valid = 0
        for i in range(2):
            self.dut.read_data_i[i].value = self.bench.rng.getrandbits(512)
        while self.reads and self.reads[0][0] == now:
            _, reader, address = self.reads.popleft()
            valid |= 1 << reader
            self.dut.read_data_i[reader].value = int.from_bytes(content(address, BEAT), "little")
        self.dut.read_rvalid_i.value = valid

    def read_address(self, reader: int) -> int:
        """Return the address of the beat that an engine requests."""
        return int(self.dut.read_address_o.value) >> 32 * reader & 0xFFFF_FFFF

    def take_read(self, now: int, reader: int) -> None:
        """Read a beat. The credit of a send returns after its last beat's latency."""
        address = self.read_address(reader)
        assert address % BEAT == 0
        self.reads.append((now + NHI_CYCLES, reader, address))
        self.say(f"read {reader}")
        if reader == 0:
            self.left = (self.left or beats(self.reading[0].address, self.reading[0].size)) - 1
            if self.left == 0:
                self.reading.popleft()
                self.returns.append(now + 1 + READ_CYCLES)

    def take_send(self) -> None:
        """Take a beat of a packet."""
        dut, command = self.dut, self.accepted[KIND.CommandSend][0]
        assert int(dut.send_command_o.value) == command.bits
        assert bool(dut.send_first_o.value) == (self.packet == b"")
        size = int(dut.send_bytes_o.value)
        self.packet += int(dut.send_data_o.value).to_bytes(BEAT, "little")[:size]
        if not dut.send_last_o.value:
            assert size == BEAT
            return
        assert self.packet == content(command.address, command.size)
        self.packet = b""
        self.accepted[KIND.CommandSend].popleft()
        self.say("sent")

    def take_host_write(self, now: int) -> None:
        """Take a beat of a write to the host."""
        dut, rng = self.dut, self.bench.rng
        number, address = int(dut.host_write_id_o.value), int(dut.host_write_address_o.value)
        data = int(dut.host_write_data_o.value).to_bytes(BEAT, "little")[: int(dut.host_write_bytes_o.value)]
        assert bool(dut.host_write_own_o.value) == (number == 2)
        assert bool(dut.host_write_first_o.value) == (self.burst == b"")
        is_last = bool(dut.host_write_last_o.value)
        is_refused = not self.is_exact and self.bench.happens(0.1)
        if number == 2:
            assert is_last
            assert (address, data) == self.statuses.pop(0)
        else:
            command = self.accepted[KIND.CommandToHost if number == 0 else KIND.CommandHostDirect][0]
            assert address == command.others["host"]
            assert int(dut.host_write_context_o.value) == command.others["execution_context"]
            assert int(dut.host_write_size_o.value) == (command.size if number == 0 else len(data))
            self.burst += data
            if not is_last:
                assert len(data) == BEAT
                return
            immediate = command.others["immediate"].to_bytes(8, "little")[: command.others["immediate_size"]]
            assert self.burst == (content(command.address, command.size) if number == 0 else immediate)
            self.burst = b""
            self.accepted[command.kind].popleft()
            command.is_refused = is_refused
        self.compared += 1
        self.say(f"host write {number}")
        self.answers[number].append((now + (2 if self.is_exact else rng.randrange(1, 20)), is_refused))

    def answer(self, now: int) -> None:
        """Respond to writes of the host, and return requested data."""
        dut, rng = self.dut, self.bench.rng
        ready = [number for number, answers in self.answers.items() if answers and answers[0][0] <= now]
        dut.host_written_valid_i.value = bool(ready)
        if ready:
            number = rng.choice(ready)
            dut.host_written_id_i.value = number
            dut.host_written_refused_i.value = self.answers[number].popleft()[1]
            self.say("written")
        if self.bringing is None:
            ready = [number for number, data in self.bring.items() if data and data[0][0] <= now]
            self.bringing = rng.choice(ready) if ready and self.bench.happens(self.pace.host) else None
        dut.host_data_valid_i.value = self.bringing is not None
        if self.bringing is not None:
            _, data, is_last, is_refused = self.bring[self.bringing][0]
            dut.host_data_id_i.value, dut.host_data_last_i.value = self.bringing, is_last
            dut.host_data_refused_i.value = is_refused
            dut.host_data_i.value = int.from_bytes(data.ljust(BEAT, b"?"), "little")

    def take_host_read(self, now: int) -> None:
        """Take a read of host memory. A refusal may follow some of its data."""
        dut, rng = self.dut, self.bench.rng
        number = int(dut.host_read_id_o.value)
        command = self.accepted[KIND.CommandFromHost if number == 0 else KIND.CommandHostDirectRead].popleft()
        size = command.size if number == 0 else command.others["immediate_size"]
        assert int(dut.host_read_address_o.value) == command.others["host"]
        assert int(dut.host_read_size_o.value) == size
        assert int(dut.host_read_context_o.value) == command.others["execution_context"]
        self.say("host read")
        command.is_refused = not self.is_exact and self.bench.happens(0.1)
        command.brought = rng.randbytes(size)
        parts = [command.brought[i : i + BEAT] for i in range(0, max(size, 1), BEAT)]
        at = now + (29 if self.is_exact else rng.randrange(1, 30))
        fails_from = rng.randrange(len(parts)) if command.is_refused else len(parts)
        for i, part in enumerate(parts):
            is_refused = i == fails_from or (i > fails_from and self.bench.happens(0.5))
            self.bring[number].append((at + i, part, i == len(parts) - 1, is_refused))

    def take_write(self) -> None:
        """Write host data to a memory of the unit."""
        write = WRITE.unpack(self.dut.write_o.value)
        assert write["address"] % BEAT == 0
        for i in range(BEAT):
            if write["strobe"] >> i & 1:
                assert write["address"] + i not in self.written, "a byte is written twice"
                self.written[write["address"] + i] = write["wdata"] >> 8 * i & 255
        self.say("write")

    def take_event(self, event: dict) -> None:
        """Take an event for the driver."""
        if event["kind"] == NOTICE.NoticeCommand:
            self.expected_events.append(event["user"])
        else:
            self.told.append(event)
        self.compared += 1

    def take_response(self, now: int, response: dict) -> None:
        """Take the end of a command."""
        hpu = response["hpu"]
        command = self.flying.pop((hpu["cluster"], hpu["hpu"], response["slot"]))
        assert bool(response["is_refused"]) == command.is_refused
        if command.is_refused:
            assert response["host"] == command.others["host"]
        elif command.kind == KIND.CommandHostDirectRead:
            assert response["data"].to_bytes(BEAT, "little")[: len(command.brought)] == command.brought
        if command.kind == KIND.CommandFromHost:
            found = [self.written.pop(command.address + i, None) for i in range(command.size)]
            if not command.is_refused:
                assert found == ([None] * command.size if command.is_orphan else list(command.brought))
        self.responses.append((now, command))
        self.compared += 1
        self.say("response")
