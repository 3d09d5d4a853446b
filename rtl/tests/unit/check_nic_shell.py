"""A NIC with the unit of pspin-tiny answers pings and UDP echo by handlers; the host has all other packets."""

import struct as binary
import tempfile
from collections import deque
from pathlib import Path

import cocotb
from common import Bench, Monitor, start
from nic_model import BEAT, ICMP, UDP, Rule, beats, frame
from programs import PROGRAM, Program, build
from sv_types import constants, struct

UNIT = "nic_shell"
ABI = constants("pspin_abi_pkg")
ME, PEER = 0x0A000002, 0x0A000001
# Pings and UDP echo, each packet alone; and UDP packets in messages of four, with handlers for their begin and end.
RULES = [
    Rule(ICMP, None, ME, 0, 1, 2048),
    Rule(UDP, 7, ME, 0, 1, 2048),
    Rule(UDP, 9, ME, 1, 4, 2048),
]


def checksum(data: bytes) -> int:
    """Return the sum of the Internet: 0 over data that has its own."""
    words = binary.unpack(f">{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def sealed(packet: bytes) -> bytes:
    """Return a frame with Ethernet addresses and checksums."""
    data = bytearray(packet)
    data[0:12] = bytes(range(0x10, 0x1C))
    data[24:26] = checksum(bytes(data[14:34])).to_bytes(2, "big")
    if data[23] == ICMP:
        data[36:38] = checksum(bytes(data[34:])).to_bytes(2, "big")
    return bytes(data)


def answer(packet: bytes) -> bytes:
    """Return what the network should get for a frame."""
    data = bytearray(packet)
    data[0:6], data[6:12] = packet[6:12], packet[0:6]
    data[26:30], data[30:34] = packet[30:34], packet[26:30]
    if data[23] == UDP:
        data[34:36], data[36:38] = packet[36:38], packet[34:36]
    else:
        data[34] = 0
        data[36:38] = bytes(2)
        data[36:38] = checksum(bytes(data[34:])).to_bytes(2, "big")
    return bytes(data)


class Shell:
    """The driver of the card, and both ends of its streams."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut
        self.coming: dict[str, deque] = {"rx": deque(), "host": deque()}
        self.pace = 0.8
        for name in self.coming:
            cocotb.start_soon(self._send(name))

    async def _send(self, name: str) -> None:
        """Play a sender."""
        ports = {port: getattr(self.dut, f"{name}_{port}_i") for port in ("valid", "data", "keep", "last")}
        ready, queue, offers = getattr(self.dut, f"{name}_ready_o"), self.coming[name], False
        while True:
            offers = bool(queue) and (offers or self.bench.happens(self.pace))
            ports["valid"].value = offers
            if offers:
                ports["data"].value, ports["keep"].value, ports["last"].value = queue[0]
            await self.bench.read()
            if offers and ready.value:
                queue.popleft()
                offers = False
            await self.bench.next()

    async def access(self, register: str, value: int | None = None) -> int:
        """Write a register, or read it."""
        dut = self.dut
        dut.ctrl_valid_i.value, dut.ctrl_we_i.value = 1, value is not None
        dut.ctrl_address_i.value, dut.ctrl_wdata_i.value = ABI[f"Control{register}"], value or 0
        await self.bench.next()
        dut.ctrl_valid_i.value = 0
        return int(dut.ctrl_rdata_o.value)

    async def load(self, address: int, data: bytes) -> None:
        """Write a memory of the unit."""
        dut, beat_t = self.dut, struct("beat_request_t")
        for at in range(0, len(data), BEAT):
            part = data[at : at + BEAT].ljust(BEAT, b"\0")
            fields = {"address": address + at, "strobe": (1 << BEAT) - 1, "wdata": int.from_bytes(part, "little")}
            dut.load_i.value, dut.load_valid_i.value = beat_t.pack(**fields), 1
            while True:
                await self.bench.read()
                taken = bool(dut.load_ready_o.value)
                await self.bench.next()
                if taken:
                    break
        dut.load_valid_i.value = 0

    async def boot(self, made: Program) -> None:
        """Load the program, write contexts and rules, and let the HPUs start."""
        await self.load(PROGRAM, made.code)
        for name, value in (
            ("Entry", made.symbols["_start"]),
            ("Again", made.symbols["__rt_again"]),
            ("CodeAddress", PROGRAM),
            ("CodeBytes", len(made.code)),
            ("ContextIdle", 1 << 30),
            ("ContextWatchdog", 100_000),
            ("ContextPayload", made.symbols["echo"]),
            ("ContextPayloadBytes", 256),
            ("ContextWrite", 0),
            ("ContextHeader", made.symbols["nothing"]),
            ("ContextHeaderBytes", 32),
            ("ContextCompletion", made.symbols["nothing"]),
            ("ContextCompletionBytes", 32),
            ("ContextWrite", 1),
            ("Enable", 1),
        ):
            await self.access(name, value)
        rule_t = struct("nic_rule_t")
        for index, rule in enumerate(RULES):
            self.dut.rule_write_i.value, self.dut.rule_index_i.value = 1, index
            self.dut.rule_i.value = rule_t.pack(**rule.fields())
            await self.bench.next()
        self.dut.rule_write_i.value = 0
        for _ in range(50):
            for _ in range(100):  # an access counts as something that is under way
                await self.bench.next()
            if await self.access("State") & 1:
                return
        raise AssertionError("the HPUs do not wait for tasks")


def packets_of(monitor: Monitor) -> list[bytes]:
    """Return the packets that a stream has carried."""
    whole, part = [], b""
    for _, beat in monitor.seen:
        part += beat["data"].to_bytes(BEAT, "little")[: beat["keep"].bit_length()]
        if beat["last"]:
            whole.append(part)
            part = b""
    assert not part
    return whole


@cocotb.test()
async def pings_and_udp_echo(dut) -> None:
    """Each packet is answered once, with right checksums, or is the host's."""
    bench = await start(dut)
    with tempfile.TemporaryDirectory() as folder:
        made = build(Path(__file__).with_name("echo.S"), Path(folder))
    shell = Shell(bench)
    tx, other = (Monitor(bench, name, ["data", "keep", "last"]) for name in ("tx", "other"))
    await shell.boot(made)
    rng = bench.rng
    answers, for_host, from_host = [], [], []
    in_messages = 0  # packets of the rule that has messages of several
    for number in range(120):
        payload = number.to_bytes(4, "big") + rng.randbytes(rng.choice((18, rng.randrange(200), 1400)))
        protocol, port = rng.choice(((ICMP, 0), (UDP, 7), (UDP, 9), (UDP, 80)))
        if number >= 112:  # the last message is complete
            protocol, port = (UDP, 9) if in_messages % RULES[2].packets else (ICMP, 0)
        in_messages += port == RULES[2].port
        packet = sealed(frame(protocol, ME, port, payload))
        shell.coming["rx"] += beats(packet)
        if any(rule.fits(packet) for rule in RULES):
            answers.append(answer(packet))
        else:
            for_host.append(packet)
        if rng.random() < 0.3:
            from_host.append(sealed(frame(UDP, PEER, 5000, b"host" + payload)))
            shell.coming["host"] += beats(from_host[-1])
    for _ in range(6_000):
        await bench.next()
        if not any(shell.coming.values()) and dut.empty_o.value and dut.idle_o.value:
            break
    else:
        raise AssertionError("the card does not come to rest")
    for _ in range(20):
        await bench.next()
    sent = packets_of(tx)
    assert packets_of(other) == for_host
    assert [packet for packet in sent if packet in from_host] == from_host
    assert sorted(packet for packet in sent if packet not in from_host) == sorted(answers)
    assert all(checksum(packet[14:34]) == 0 for packet in sent)
    assert all(checksum(packet[34:]) == 0 for packet in sent if packet[23] == ICMP)
    assert await shell.access("EventKind") == 0, "no handler has failed"
    assert min(len(answers), len(for_host), len(from_host)) > 20
