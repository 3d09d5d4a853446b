# SPDX-License-Identifier: Apache-2.0
"""Rules of the NIC: the first match wins, and packets of a rule form messages."""

import cocotb
from common import start
from nic_model import Rule, beats, random_frame, random_rules
from sv_types import struct

PARAMETERS = [{"Rules": rules, "IdWidth": 6} for rules in (4, 1)]


@cocotb.test()
async def rules_and_messages(dut) -> None:
    """Each frame gets the verdict of the rules, and each packet is counted in a message."""
    rule_t = struct("nic_rule_t")
    count = int(dut.Rules.value)
    bench = await start(dut)
    rng = bench.rng
    rules: list[Rule | None] = [None] * count
    left = [0] * count  # packets left in the open message
    message = [0] * count
    found: dict[int | None, int] = {}
    messages = waits = 0
    for cycle in range(6000):
        index = rng.randrange(count)
        writes = cycle < count or (bench.happens(0.01) and left[index] == 0)
        index = cycle if cycle < count else index
        rule = random_rules(rng, 1)[0]
        dut.rule_write_i.value, dut.rule_index_i.value = writes, index
        dut.rule_i.value = rule_t.pack(**rule.fields())
        whole = random_frame(rng, 200)
        packet = whole[: rng.randrange(30, 42)] if bench.happens(0.3) else whole
        # Bytes after the end of a frame are arbitrary, for example those of a longer frame.
        dut.header_i.value, dut.keep_i.value = beats(whole)[0][0], beats(packet)[0][1]
        number, id_valid = rng.getrandbits(6), bench.happens(0.7)
        of_rule = rng.randrange(count)
        wants = bench.happens(0.6) and rules[of_rule] is not None and not (writes and index == of_rule)
        can = left[of_rule] > 0 or id_valid
        dut.packet_rule_i.value, dut.packet_take_i.value = of_rule, wants and can
        dut.id_valid_i.value, dut.id_i.value = id_valid, number
        await bench.read()
        first = next((index for index, rule in enumerate(rules) if rule and rule.fits(packet)), None)
        assert bool(dut.match_o.value) == (first is not None), packet.hex()
        if first is not None:
            assert int(dut.match_rule_o.value) == first
        found[first] = found.get(first, 0) + 1
        assert bool(dut.packet_valid_o.value) == can
        waits += wants and not can
        takes_id = wants and can and left[of_rule] == 0
        assert bool(dut.id_take_o.value) == takes_id
        if wants and can:
            of = rules[of_rule]
            if takes_id:
                message[of_rule], left[of_rule] = number, of.packets
                messages += 1
            left[of_rule] -= 1
            assert int(dut.packet_message_o.value) == message[of_rule]
            assert bool(dut.packet_eom_o.value) == (left[of_rule] == 0)
            assert int(dut.packet_context_o.value) == of.execution_context
            assert int(dut.packet_transfer_o.value) == of.transfer
        if writes:
            rules[index] = rule
        await bench.next()
    assert all(found.get(index, 0) > 50 for index in (None, *range(count))), found
    assert messages > 500
    assert waits > 100
