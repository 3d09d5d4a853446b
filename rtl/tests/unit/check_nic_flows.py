# SPDX-License-Identifier: Apache-2.0
"""Messages of the NIC: the packets of a ruleset form one until a packet ends it."""

import cocotb
from common import start

PARAMETERS = [{"Rulesets": sets, "IdWidth": 6} for sets in (4, 1)]


@cocotb.test()
async def messages(dut) -> None:
    """Each packet is counted in the message of its ruleset, or starts one."""
    sets = int(dut.Rulesets.value)
    bench = await start(dut)
    rng = bench.rng
    message: list[int | None] = [None] * sets
    counts = dict.fromkeys(("started", "continued", "waited"), 0)
    for _ in range(4000):
        index, number, id_valid = rng.randrange(sets), rng.getrandbits(6), bench.happens(0.7)
        can = message[index] is not None or id_valid
        takes, eom = bench.happens(0.6) and can, bench.happens(0.3)
        dut.packet_set_i.value, dut.packet_eom_i.value, dut.packet_take_i.value = index, eom, takes
        dut.id_valid_i.value, dut.id_i.value = id_valid, number
        await bench.read()
        assert bool(dut.packet_valid_o.value) == can
        assert bool(dut.id_take_o.value) == (takes and message[index] is None)
        counts["waited"] += not can
        if takes:
            counts["started" if message[index] is None else "continued"] += 1
            of = number if message[index] is None else message[index]
            assert int(dut.packet_message_o.value) == of
            message[index] = None if eom else of
        await bench.next()
    assert all(count > 200 for count in counts.values()), counts
