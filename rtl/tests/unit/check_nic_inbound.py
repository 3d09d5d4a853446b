# SPDX-License-Identifier: Apache-2.0
"""The inbound engine between a network and a unit: bytes, requests, cycles, and nothing is lost."""

from collections import deque
from dataclasses import dataclass

import cocotb
from common import start
from nic_model import BEAT, beats, random_frame
from sv_types import struct

BASE = 0x1C40_0000
SIZES = ((4, 8, 256, 16, 4), (2, 64, 512, 64, 4), (1, 3, 128, 2, 6))
NAMES = ("Rulesets", "Slots", "SlotBytes", "MessageIds", "WriteCycles")
PARAMETERS = [dict(zip(NAMES, sizes, strict=True)) for sizes in SIZES]


@dataclass
class Stored:
    """Packet for the unit."""

    packet: bytes
    match: dict[str, int]
    at: int  # cycle in which its last beat was accepted


@cocotb.test()
async def random_packets(dut) -> None:
    """Packets of all kinds, at any pace of network, host and unit."""
    match_t, her_t, feedback_t, beat_t = (
        struct(name) for name in ("nic_match_t", "her_t", "feedback_t", "beat_request_t")
    )
    count, slots, slot_bytes, ids, write_cycles = (int(getattr(dut, name).value) for name in NAMES)
    bench = await start(dut)
    rng = bench.rng
    coming: deque[tuple[int, int, bool, int, int]] = deque()  # beats from the network, with user and match
    for_unit: deque[tuple[bytes, dict[str, int]]] = deque()
    stored: deque[Stored] = deque()  # packets in memory without a request yet
    inside: list[dict[str, int]] = []  # requests at the unit
    memory = bytearray(slots * slot_bytes)
    used: set[int] = set()  # slots
    open_messages: dict[int, int] = {}  # by ruleset
    in_message: dict[int, int] = {}  # packets inside, by message
    ended: set[int] = set()
    written = 0  # bytes of the arriving packet
    offers = False
    counts = dict.fromkeys(("stored", "dropped", "done", "messages", "full"), 0)
    expected_drops = 0
    until = 9000
    for now in range(until + 2000):
        drains = now > until
        while not drains and len(coming) < 8:
            packet = random_frame(rng, slot_bytes + 100)
            is_bad = rng.random() < 0.05
            match = {
                "ruleset": rng.randrange(count),
                "eom": int(rng.random() < 0.4),
                "execution_context": rng.randrange(64),
                "transfer": rng.choice((64, 128, 2048)),
            }
            verdict = match_t.pack(**match)
            coming += [(data, keep, last, int(is_bad and last), verdict) for data, keep, last in beats(packet)]
            if is_bad or len(packet) > slot_bytes:
                expected_drops += 1
            else:
                for_unit.append((packet, match))
        offers = bool(coming) and (offers or bench.happens((0.9, 0.3, 1)[now // 400 % 3]))
        dut.rx_valid_i.value = offers
        if offers:
            data, keep, last, user, verdict = coming[0]
            dut.rx_match_i.value = verdict
            dut.rx_data_i.value, dut.rx_keep_i.value = data, keep
            dut.rx_last_i.value, dut.rx_user_i.value = last, user
        ready = {"write_ready_i": 0.8, "her_ready_i": (0.9, 0.3)[now // 600 % 2]}
        ready = {name: bench.happens(likely) or drains for name, likely in ready.items()}
        for name, value in ready.items():
            getattr(dut, name).value = value
        is_done = bool(inside) and (drains or bench.happens((0.02, 0.8)[now // 500 % 2]))
        done = inside.pop(rng.randrange(len(inside))) if is_done else None
        dut.feedback_valid_i.value = is_done
        if done:
            fields = {name: done[name] for name in ("message", "address", "size", "transfer", "user")}
            dut.feedback_i.value = feedback_t.pack(**fields)
        await bench.read()

        # The engine may send the request in the cycle in which the packet is complete, and not before.
        is_due = bool(stored) and now >= stored[0].at + write_cycles + 1
        assert bool(dut.her_valid_o.value) == is_due, now
        if is_due:
            her = her_t.unpack(dut.her_o.value)
            this = stored[0]
            match = this.match
            at = her["address"] - BASE
            assert at == her["user"] * slot_bytes
            assert memory[at : at + len(this.packet)] == this.packet, now
            assert her["size"] == len(this.packet)
            assert her["transfer"] == min(match["transfer"], len(this.packet))
            assert her["execution_context"] == match["execution_context"]
            assert her["flow"] == match["ruleset"]
            if ready["her_ready_i"]:
                stored.popleft()
                message = open_messages.pop(match["ruleset"], None)
                if message is None:
                    assert her["message"] not in in_message, "a number is used again when nothing of it is left"
                    counts["messages"] += 1
                else:
                    assert her["message"] == message
                assert her["message"] < ids
                in_message[her["message"]] = in_message.get(her["message"], 0) + 1
                assert bool(her["eom"]) == bool(match["eom"])
                if her["eom"]:
                    ended.add(her["message"])
                else:
                    open_messages[match["ruleset"]] = her["message"]
                inside.append(her)
        if dut.write_valid_o.value and ready["write_ready_i"]:
            beat = beat_t.unpack(dut.write_o.value)
            at = beat["address"] - BASE
            assert at // slot_bytes not in used, "no packet is overwritten"
            assert at % slot_bytes == written
            for index in range(BEAT):
                if beat["strobe"] >> index & 1:
                    memory[at + index] = beat["wdata"] >> 8 * index & 0xFF
            written += BEAT
            if dut.stored_o.value:
                packet, match = for_unit.popleft()
                stored.append(Stored(packet, match, now))
                used.add(at // slot_bytes)
                written = 0
                counts["stored"] += 1
        else:
            assert not dut.stored_o.value
        if dut.dropped_o.value:
            counts["dropped"] += 1
            written = 0
        counts["full"] += len(used) == slots
        assert bool(dut.feedback_ready_o.value)
        if done:
            used.remove(done["user"])
            in_message[done["message"]] -= 1
            if in_message[done["message"]] == 0 and done["message"] in ended:
                del in_message[done["message"]]
                ended.remove(done["message"])
            counts["done"] += 1
        if offers and dut.rx_ready_o.value:
            coming.popleft()
            offers = False
        await bench.next()
    assert not for_unit, "every packet has come to the unit"
    assert not used
    assert not stored
    assert bool(dut.empty_o.value)
    assert counts["stored"] == counts["done"]
    assert counts["dropped"] == expected_drops
    floors = {"stored": 300, "dropped": 50, "messages": 100, "full": 50 if slots < ids else 0}
    assert all(counts[name] >= least for name, least in floors.items()), counts
