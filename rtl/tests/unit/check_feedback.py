# SPDX-License-Identifier: Apache-2.0
"""Return path of tasks: round robin, cycles, and each end reported once, at any pace of the NIC and of the status
unit.
"""

from collections import deque

import cocotb
from common import start
from feedback_model import Cause, End, Feedback, bits, is_skipped, refusal
from sv_types import struct

PARAMETERS = [
    {"Clusters": clusters, "FeedbackCycles": cycles, "SkippedDepth": 4}
    for clusters, cycles in ((4, 1), (3, 2), (2, 3), (1, 1))
]
ENDS = [End.EndDone, End.EndDone, End.EndFaulted, End.EndTimedOut, End.EndMessageReset]


@cocotb.test()
async def random_ends(dut) -> None:
    """Each cycle follows the rules."""
    completion, feedback_t, task = (struct(name) for name in ("completion_t", "feedback_t", "task_t"))
    clusters, cycles = (int(getattr(dut, name).value) for name in ("Clusters", "FeedbackCycles"))
    bench = await start(dut)
    rng, model = bench.rng, Feedback(clusters, cycles)
    offered: list[deque] = [deque() for _ in range(clusters)]
    made = learned = fed_back = failures = held = full = outside = 0
    her_t = struct("her_t")
    sources = set()
    until = 6000
    for now in range(until + 300):
        drains = now > until
        for queue in offered:
            if not drains and len(queue) < 2 and bench.happens((0.1, 0.5, 0.9)[now // 100 % 3]):
                end = completion.unpack(rng.getrandbits(completion.width))
                end["outcome"]["kind"] = int(rng.choice(ENDS))
                if end["outcome"]["kind"] == End.EndMessageReset:
                    end["outcome"]["cause"] = int(Cause.CauseDisabled)
                queue.append(end)
                made += 1
        skips, resets = not drains and bench.happens((0.5, 0.1)[now // 200 % 2]), bench.happens(0.5)
        fails = not resets and bench.happens(0.3)
        if model.refused is None and not drains and bench.happens(0.05):
            model.refused = refusal(her_t.unpack(rng.getrandbits(her_t.width)), rng.getrandbits(32))
            dut.refused_i.value = her_t.pack(**model.refused["her"])
            dut.refused_number_i.value = model.refused["outcome"]["address"]
        dut.refused_valid_i.value = has_refused = model.refused is not None
        skipped = task.unpack(rng.getrandbits(task.width))
        ready, failed_ready = (drains or bench.happens((0.9, 0.3, 1)[now // place % 3]) for place in (300, 500))
        last = bench.happens(0.5)
        fronts = [queue[0] if queue else None for queue in offered]
        dut.done_valid_i.value = sum(1 << index for index, front in enumerate(fronts) if front)
        dut.done_i.value = sum(
            completion.pack(**front) << completion.width * index for index, front in enumerate(fronts) if front
        )
        dut.skipped_valid_i.value, dut.skipped_resets_i.value, dut.skipped_fails_i.value = skips, resets, fails
        dut.skipped_i.value, dut.ended_last_i.value = task.pack(**skipped), last
        dut.feedback_ready_i.value, dut.failed_ready_i.value = ready, failed_ready
        await bench.read()

        assert bool(dut.empty_o.value) == (not model.way and not model.skipped), now
        assert bool(dut.skipped_ready_o.value) == model.has_room(), now
        takes_skipped = skips and model.has_room()
        full += skips and not model.has_room()
        choice = model.collect(now, fronts)
        sources.add(choice)
        assert int(dut.done_ready_o.value) == (0 if choice is None or choice >= clusters else 1 << choice), now
        assert bool(dut.refused_ready_o.value) == (choice == clusters + 1), now
        outside += choice == clusters + 1
        assert has_refused or choice != clusters + 1
        if choice is not None and choice < clusters:
            offered[choice].popleft()
        arrives = model.front(now)
        feedback, failed, is_new = model.arrive(now, lambda _, last=last: last, ready, failed_ready)
        assert bool(dut.ended_valid_o.value) == is_new, now
        if is_new:
            kind = arrives.end["outcome"]["kind"]
            assert int(dut.ended_mpq_o.value) == arrives.end["mpq"]
            assert bool(dut.ended_feeds_back_o.value) == bool(arrives.end["feeds_back"])
            assert bool(dut.ended_failed_o.value) == (kind in (End.EndFaulted, End.EndTimedOut))
            assert bool(dut.ended_skipped_o.value) == is_skipped(arrives.end)
            learned += 1
        assert bool(dut.feedback_valid_o.value) == (feedback is not None), now
        if feedback is not None:
            assert feedback_t.unpack(dut.feedback_o.value) == feedback, now
            fed_back += ready
            held += not ready
        assert bool(dut.failed_valid_o.value) == (failed is not None), now
        if failed is not None:
            assert completion.unpack(dut.failed_o.value) == bits(completion, failed), now
            failures += failed_ready
        if takes_skipped:
            kind = int(End.EndMessageReset if resets else End.EndSkipped)
            empty = completion.unpack(0)
            outcome = {**empty["outcome"], "kind": kind}
            if fails:
                outcome |= {"kind": int(End.EndFaulted), "cause": int(Cause.CauseRequest)}
                outcome["address"] = skipped["her"]["transfer"]
            model.skipped.append({**empty, **skipped, "outcome": outcome})
            made += 1
        await bench.next()
    assert made == learned, "each end is told once"
    assert not model.way
    assert made > 2000
    assert fed_back > 1000
    assert failures > 300
    assert held > 300
    assert full > 100
    assert outside > 50
    assert sources == {None, *range(clusters + 2)} or cycles > 1
