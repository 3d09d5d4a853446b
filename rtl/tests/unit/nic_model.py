# SPDX-License-Identifier: Apache-2.0
"""Frames of Ethernet with IPv4, and the rulesets by which a NIC sorts them."""

import random
import struct as binary
from dataclasses import dataclass

ICMP, TCP, UDP = 1, 6, 17
BEAT = 64


def frame(protocol: int, address: int, port: int, payload: bytes, *, fragment: int = 0, options: bool = False) -> bytes:
    """Return an Ethernet frame with an IPv4 packet. The engines ignore checksums."""
    ports = binary.pack(">HHHH", 1, port, 8 + len(payload), 0) if protocol in (UDP, TCP) else b"\x08\0\0\0"
    words = 6 if options else 5
    length = 4 * words + len(ports) + len(payload)
    header = binary.pack(">BBHHHBBHII", 0x40 | words, 0, length, 0, fragment, 64, protocol, 0, 0x0A000001, address)
    return bytes(12) + b"\x08\x00" + header + bytes(4 * words - 20) + ports + payload


@dataclass(frozen=True)
class Rule:
    """Rule of a ruleset: a masked 32-bit word of a frame, big-endian, lies in a range. The default fits every frame."""

    word: int = 0
    mask: int = 0
    first: int = 0
    last: int = 0

    def fits(self, packet: bytes) -> bool:
        """Return true if a frame fits; bytes behind its end are 0."""
        word = int.from_bytes(packet[4 * self.word :][:4].ljust(4, b"\0"), "big")
        return self.first <= word & self.mask <= self.last


ALWAYS = Rule()
NEVER = Rule(first=1)
UNUSED, ALL, ANY = range(3)


@dataclass(frozen=True)
class Ruleset:
    """Ruleset for packets of the unit; the last rule fits the packets that end a message."""

    rules: tuple[Rule, ...]
    mode: int = ALL
    execution_context: int = 0
    transfer: int = 2048

    def fits(self, packet: bytes) -> bool:
        """Return true if a frame matches."""
        return self.mode != UNUSED and {ALL: all, ANY: any}[self.mode](rule.fits(packet) for rule in self.rules[:-1])

    def ends(self, packet: bytes) -> bool:
        """Return true if a frame ends its message."""
        return self.rules[-1].fits(packet)

    def registers(self, number: int, abi: dict[str, int]) -> dict[int, int]:
        """Return the registers of ruleset `number`, by address."""
        base = 0x100 * number
        values = {}
        for index, rule in enumerate(self.rules):
            for name in ("Word", "Mask", "First", "Last"):
                values[abi[f"NicRule{name}"] + base + 0x10 * index] = getattr(rule, name.lower())
        values[abi["NicRulesetContext"] + base] = self.execution_context
        values[abi["NicRulesetTransfer"] + base] = self.transfer
        values[abi["NicRulesetMode"] + base] = self.mode
        return values


def flow(protocol: int, port: int | None, address: int | None, context: int, end: Rule = ALWAYS) -> Ruleset:
    """Return the ruleset of IPv4 packets without options, no fragments, with protocol, destination port and address."""

    def equal(word: int, mask: int, value: int) -> Rule:
        return Rule(word, mask, value, value)

    rules = [equal(3, 0xFFFF_FF00, 0x0800_4500), equal(5, 0x3FFF_00FF, protocol)]
    rules.append(ALWAYS if port is None else equal(9, 0xFFFF_0000, port << 16))
    for word, mask, value in ((7, 0xFFFF, (address or 0) >> 16), (8, 0xFFFF_0000, (address or 0) << 16 & 0xFFFF_FFFF)):
        rules.append(ALWAYS if address is None else equal(word, mask, value))
    return Ruleset((*rules, end), execution_context=context)


def beats(packet: bytes) -> list[tuple[int, int, bool]]:
    """Return data, keep and last of each beat."""
    return port_beats(packet, 8 * BEAT)


def port_beats(packet: bytes, width: int) -> list[tuple[int, int, bool]]:
    """Return data, keep and last of each beat of a port of `width` bits."""
    parts = [packet[at : at + width // 8] for at in range(0, len(packet), width // 8)]
    return [
        (int.from_bytes(part, "little"), (1 << len(part)) - 1, index == len(parts) - 1)
        for index, part in enumerate(parts)
    ]


def random_rule(rng: random.Random) -> Rule:
    """Return a rule that fits some frames of `random_frame`."""
    word = rng.choice((3, 5, 5, 7, 8, 9, 9, rng.randrange(16)))
    mask = rng.choice((0xFFFF_FFFF, 0xFFFF_0000, 0xFFFF, 0xFF))
    values = (0x0800_4500, ICMP, UDP, 7 << 16, 9 << 16, 80 << 16, 0x0A00, 2 << 16, 0, rng.getrandbits(32))
    first, last = (rng.choice(values) & mask for _ in range(2))
    return rng.choice(
        (Rule(word, mask, first, last), Rule(word, mask, min(first, last), max(first, last)), ALWAYS, NEVER)
    )


def random_ruleset(rng: random.Random, rules: int) -> Ruleset:
    """Return a ruleset that matches some frames of `random_frame`."""
    context, transfer = rng.randrange(64), rng.choice((64, 128, 2048))
    some = tuple(random_rule(rng) for _ in range(rules))
    return Ruleset(some, rng.choice((UNUSED, ALL, ALL, ANY, ANY)), context, transfer)


def random_frame(rng: random.Random, most: int) -> bytes:
    """Return a frame that may or may not be for the unit."""
    packet = frame(
        rng.choice((ICMP, UDP, UDP, UDP, TCP)),
        rng.choice((0x0A000002, 0x0A000003)),
        rng.choice((7, 9, 80)),
        rng.randbytes(rng.choice((0, 20, rng.randrange(100), rng.randrange(max(1, most - 42))))),
        fragment=rng.choice((0, 0, 0, 0, 0, 0, 0x2000, 5, 0x4000)),
        options=rng.random() < 0.05,
    )
    if rng.random() < 0.1:
        packet = packet[: rng.randrange(14, len(packet))]
    if rng.random() < 0.05:
        packet = packet[:12] + rng.choice((b"\x08\x06", b"\x86\xdd")) + packet[14:]
    return packet
