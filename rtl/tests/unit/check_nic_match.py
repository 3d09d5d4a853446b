# SPDX-License-Identifier: Apache-2.0
"""Rulesets of the NIC: the first match wins, and the last rule of a ruleset marks the end of a message."""

import cocotb
from common import start
from nic_model import ALL, ALWAYS, Rule, Ruleset, beats, random_frame, random_ruleset
from sv_types import constants, struct

PARAMETERS = [{"Rulesets": sets, "Rules": rules} for sets, rules in ((4, 4), (1, 2), (3, 6))]
ABI = constants("pspin_abi_pkg")
MATCH = struct("nic_match_t")


async def program(dut, bench, number: int, ruleset: Ruleset) -> None:
    """Write the registers of a ruleset, and read them back."""
    for address, value in ruleset.registers(number, ABI).items():
        dut.write_i.value, dut.wdata_i.value = 1, value
        dut.address_i.value = address - ABI["NicRuleWord"]
        await bench.next()
        dut.write_i.value = 0
        await bench.read()
        assert int(dut.rdata_o.value) == value, hex(address)
        await bench.next()


@cocotb.test()
async def verdicts(dut) -> None:
    """Each frame gets the verdict of the rulesets."""
    sets, rules = int(dut.Rulesets.value), int(dut.Rules.value)
    bench = await start(dut)
    rng = bench.rng
    found: dict[int | None, int] = {}
    ends = 0
    for _ in range(60):
        now = [random_ruleset(rng, rules) for _ in range(sets)]
        for number, ruleset in enumerate(now):
            await program(dut, bench, number, ruleset)
        for _ in range(40):
            whole = random_frame(rng, 200)
            packet = whole[: rng.randrange(14, 60)] if bench.happens(0.3) else whole
            # Bytes after the end of a frame are arbitrary, for example those of a longer frame.
            dut.header_i.value, dut.keep_i.value = beats(whole)[0][0], beats(packet)[0][1]
            await bench.read()
            first = next((index for index, ruleset in enumerate(now) if ruleset.fits(packet[:64])), None)
            assert bool(dut.match_valid_o.value) == (first is not None), packet.hex()
            found[first] = found.get(first, 0) + 1
            if first is not None:
                match, ruleset = MATCH.unpack(int(dut.match_o.value)), now[first]
                is_end = ruleset.ends(packet[:64])
                ends += is_end
                assert match == {
                    "ruleset": first,
                    "eom": is_end,
                    "execution_context": ruleset.execution_context,
                    "transfer": ruleset.transfer,
                }
            await bench.next()
    assert all(found.get(index, 0) > 50 for index in (None, *range(sets))), found
    assert ends > 100


@cocotb.test()
async def edges_of_a_range(dut) -> None:
    """The first and the last value of a range fit, and their neighbours do not; unused rulesets match nothing."""
    rules = int(dut.Rules.value)
    bench = await start(dut)
    word = bench.rng.randrange(16)
    rule = Rule(word, 0x00FF_FF00, 0x1200, 0x0034_5600)
    dut.keep_i.value = (1 << 64) - 1
    await bench.read()
    assert not dut.match_valid_o.value
    await bench.next()
    await program(dut, bench, 0, Ruleset((rule, *([ALWAYS] * (rules - 1))), ALL, 3, 64))
    fitting, others = (0x1200, 0xFF00_12FF, 0x0034_56FF), (0x1100, 0x0034_5700, 0x00FF_FF00)
    for value in (*fitting, *others):
        dut.header_i.value = int.from_bytes(value.to_bytes(4, "big"), "little") << 32 * word
        await bench.read()
        assert bool(dut.match_valid_o.value) == (value in fitting), hex(value)
        await bench.next()
