# SPDX-License-Identifier: Apache-2.0
"""Recovery against its rules: which failure counts, from which cycle, and when the task ends and the HPU continues."""

from collections import Counter

import cocotb
from common import shorter, start
from sv_types import enum, struct

PARAMETERS = [{"TrapCycles": 20}, {"TrapCycles": 16}]

OUTCOME, End, Cause = struct("outcome_t"), enum("end_e"), enum("cause_e")
# From the grant of the boot ROM's last instruction to the first of the program in the execute stage.
LEAVES = 5


@cocotb.test()
async def random_failures(dut) -> None:
    bench = await start(dut)
    rng, trap = bench.rng, int(dut.TrapCycles.value)
    enabled, running, killed, again, leaving = False, False, False, False, False
    failed_at: int | None = None  # cycle from which the failure counts
    known_at = 0
    outcome = 0
    seen: Counter[str] = Counter()
    for cycle in range(shorter(20_000)):
        enabled = bench.happens(0.98) if enabled else bench.happens(0.2)
        happens = {name: running and bench.happens(0.03) for name in ("traps", "denied", "misuse", "bites")}
        age, early, busy = rng.randrange(3), bench.happens(0.5), bench.happens(0.3)
        can_end = bench.happens(0.7)
        outcomes = {
            name: OUTCOME.unpack(rng.getrandbits(OUTCOME.width)) for name in ("trap", "denial", "misuse_outcome")
        }
        causes = [Cause.CauseLoad, Cause.CauseCommand]
        outcomes["misuse_outcome"]["cause"] = rng.choice(causes)
        for name, fields in outcomes.items():
            getattr(dut, f"{name}_i").value = OUTCOME.pack(**fields)
        for name, value in happens.items():
            getattr(dut, f"{name}_i").value = value
        dut.enable_i.value, dut.can_end_i.value, dut.remote_busy_i.value = enabled, can_end, busy
        dut.trap_age_i.value, dut.denied_early_i.value = age, early
        await bench.read()

        recovers = failed_at is not None
        kills = running and not recovers and (happens["bites"] or killed)
        leaving |= running and not enabled
        ends = recovers and cycle >= failed_at + trap
        assert bool(dut.stop_o.value) == (kills or recovers or leaving or not running), cycle
        assert bool(dut.ends_o.value) == ends, cycle
        if ends:
            assert int(dut.outcome_o.value) == outcome, cycle
            seen["held" if not can_end else "ended"] += 1
        if recovers:
            leaves = cycle >= failed_at + trap - LEAVES and can_end
            assert bool(dut.may_leave_o.value) == leaves, cycle
            # The core is reset at once, and has time to boot.
            assert not dut.core_rst_no.value or cycle > known_at + 1, cycle
            assert dut.core_rst_no.value or cycle < failed_at + 3, cycle
        elif running:
            assert dut.may_leave_o.value == 1, cycle
            assert dut.core_rst_no.value == 1, cycle
        else:
            assert dut.core_rst_no.value == 0, cycle
        assert bool(dut.abort_o.value) != bool(dut.core_rst_no.value), cycle
        if running:
            assert bool(dut.again_o.value) == again, cycle

        if ends and can_end:
            failed_at = None
        elif running and not recovers:
            killed = kills and busy
            if kills:
                if not busy:
                    failed_at, what = cycle, "killed"
                    outcome = OUTCOME.pack(kind=End.EndTimedOut, cause=Cause.CauseWatchdog)
            elif happens["misuse"]:
                failed_at, what = cycle - (outcomes["misuse_outcome"]["cause"] == Cause.CauseLoad), "misuse"
                outcome = OUTCOME.pack(**outcomes["misuse_outcome"])
            elif happens["denied"]:
                failed_at, what = cycle + 1 + early, "denied"
                outcome = OUTCOME.pack(**outcomes["denial"])
            elif happens["traps"]:
                failed_at, what = cycle + 1 - age, "trapped"
                outcome = OUTCOME.pack(**outcomes["trap"])
            if failed_at is not None:
                known_at, again = cycle, True
                seen[what] += 1
            seen["late"] += killed
        if leaving and not recovers and busy:
            # The access to a remote memory completes, even if the HPU is enabled again meanwhile.
            failed_at, killed = None, killed
            seen["waits"] += 1
        elif leaving or not enabled:
            seen["stopped"] += running
            running, failed_at, killed, again, leaving = False, None, False, False, False
        else:
            running = True
        await bench.next()
    assert len(seen) == 9, seen
    assert min(seen.values()) > shorter(12), seen
