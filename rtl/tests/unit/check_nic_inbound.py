# SPDX-License-Identifier: Apache-2.0
"""The inbound engine between a network, a host and a unit: bytes, requests, cycles, and nothing is lost."""

from collections import deque
from dataclasses import dataclass

import cocotb
from common import start
from nic_model import BEAT, UDP, beats, random_frame, random_rules
from sv_types import struct

BASE = 0x1C40_0000
SIZES = ((4, 8, 256, 16, 4), (2, 64, 512, 64, 4), (1, 3, 128, 2, 6))
NAMES = ("Rules", "Slots", "SlotBytes", "MessageIds", "WriteCycles")
PARAMETERS = [dict(zip(NAMES, sizes, strict=True)) for sizes in SIZES]


@dataclass
class Stored:
    """Packet for the unit."""

    packet: bytes
    rule: int
    at: int  # cycle in which its last beat was accepted


@cocotb.test()
async def random_packets(dut) -> None:
    """Packets of all kinds, at any pace of network, host and unit."""
    rule_t, her_t, feedback_t, beat_t = (
        struct(name) for name in ("nic_rule_t", "her_t", "feedback_t", "beat_request_t")
    )
    count, slots, slot_bytes, ids, write_cycles = (int(getattr(dut, name).value) for name in NAMES)
    bench = await start(dut)
    rng = bench.rng
    rules = random_rules(rng, count)
    # The last rule matches everything else.
    rules[-1].packets = 3
    rules[-1].is_used, rules[-1].protocol, rules[-1].port, rules[-1].address = True, UDP, None, None
    for index, rule in enumerate(rules):
        dut.rule_write_i.value, dut.rule_index_i.value = 1, index
        dut.rule_i.value = rule_t.pack(**rule.fields())
        await bench.next()
    dut.rule_write_i.value = 0

    coming: deque[tuple[int, int, bool, int]] = deque()  # beats from the network, with user
    for_host: deque[tuple[int, int, bool, int]] = deque()
    for_unit: deque[tuple[bytes, int]] = deque()
    stored: deque[Stored] = deque()  # packets in memory without a request yet
    inside: list[dict[str, int]] = []  # requests at the unit
    memory = bytearray(slots * slot_bytes)
    used: set[int] = set()  # slots
    open_messages: dict[int, tuple[int, int]] = {}  # by rule: message, and number of packets left
    in_message: dict[int, int] = {}  # packets inside, by message
    ended: set[int] = set()
    written = 0  # bytes of the arriving packet
    offers = False
    counts = dict.fromkeys(("stored", "other", "dropped", "done", "messages", "full"), 0)
    expected_drops = 0
    until = 9000
    for now in range(until + 2000):
        drains = now > until
        while not drains and len(coming) < 8:
            packet = random_frame(rng, slot_bytes + 100)
            is_bad = rng.random() < 0.05
            rule = next((index for index, rule in enumerate(rules) if rule.fits(packet)), None)
            parts = [(data, keep, last, int(is_bad and last)) for data, keep, last in beats(packet)]
            coming += parts
            if rule is None:
                for_host += parts
            elif is_bad or len(packet) > slot_bytes:
                expected_drops += 1
            else:
                for_unit.append((packet, rule))
        offers = bool(coming) and (offers or bench.happens((0.9, 0.3, 1)[now // 400 % 3]))
        dut.rx_valid_i.value = offers
        if offers:
            data, keep, last, user = coming[0]
            dut.rx_data_i.value, dut.rx_keep_i.value = data, keep
            dut.rx_last_i.value, dut.rx_user_i.value = last, user
        ready = {"other_ready_i": 0.7, "write_ready_i": 0.8, "her_ready_i": (0.9, 0.3)[now // 600 % 2]}
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
            rule = rules[this.rule]
            at = her["address"] - BASE
            assert at == her["user"] * slot_bytes
            assert memory[at : at + len(this.packet)] == this.packet, now
            assert her["size"] == len(this.packet)
            assert her["transfer"] == min(rule.transfer, len(this.packet))
            assert her["execution_context"] == rule.execution_context
            assert her["flow"] == this.rule
            if ready["her_ready_i"]:
                stored.popleft()
                message, left = open_messages.pop(this.rule, (None, rule.packets))
                if message is None:
                    assert her["message"] not in in_message, "a number is used again when nothing of it is left"
                    counts["messages"] += 1
                else:
                    assert her["message"] == message
                assert her["message"] < ids
                in_message[her["message"]] = in_message.get(her["message"], 0) + 1
                assert bool(her["eom"]) == (left == 1)
                if left == 1:
                    ended.add(her["message"])
                else:
                    open_messages[this.rule] = (her["message"], left - 1)
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
                packet, rule = for_unit.popleft()
                stored.append(Stored(packet, rule, now))
                used.add(at // slot_bytes)
                written = 0
                counts["stored"] += 1
        else:
            assert not dut.stored_o.value
        if dut.dropped_o.value:
            counts["dropped"] += 1
            written = 0
        if dut.other_valid_o.value and ready["other_ready_i"]:
            assert for_host.popleft() == (
                int(dut.other_data_o.value),
                int(dut.other_keep_o.value),
                bool(dut.other_last_o.value),
                int(dut.other_user_o.value),
            )
            counts["other"] += bool(dut.other_last_o.value)
            assert bool(dut.other_o.value) == bool(dut.other_last_o.value)
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
    assert not for_host
    assert not used
    assert not stored
    assert bool(dut.empty_o.value)
    assert counts["stored"] == counts["done"]
    assert counts["dropped"] == expected_drops
    floors = {"stored": 300, "other": 300, "dropped": 50, "messages": 100, "full": 50 if slots < ids else 0}
    assert all(counts[name] >= least for name, least in floors.items()), counts
