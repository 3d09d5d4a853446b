# SPDX-License-Identifier: Apache-2.0
"""The scheduler between a NIC and clusters: each cycle follows the rules, and every packet is fed back once."""

from collections import deque

import cocotb
from common import start
from feedback_model import Cause, End, Feedback, bits, refusal
from mpq_model import HEADER, Engine
from sched_model import Context, Policy, Sched
from sv_types import struct

NAMES = ("Clusters", "Queues", "SharedCells", "UsesHome", "UsesOthers", "UsesPins", "DispatchCycles", "FeedbackCycles")
SETS = [(4, 16, 6, 1, 1, 0, 1, 1), (1, 8, 4, 1, 1, 0, 1, 1), (3, 16, 8, 1, 0, 1, 2, 2), (4, 256, 128, 0, 1, 0, 1, 1)]
PARAMETERS = [
    {**dict(zip(NAMES, values, strict=True)), "Tasks": 6, "Contexts": 12, "BufferBytes": 2000} for values in SETS
]
CONTEXTS = 12
SHORT = 30  # cycles of the idle time-out of some contexts


async def write_contexts(dut, bench, sched: Sched) -> None:
    """Fill the table of contexts, through the port of the registers."""
    context_t = struct("execution_context_t")
    for index in range(CONTEXTS):
        roles = index % 8
        idle_cycles = SHORT if index % 3 == 0 else 1 << 31
        pin = bench.rng.randrange(256) if index % 2 else None
        sched.contexts[index] = Context(roles, pin, idle_cycles)
        # The handlers are an array: role 0 is in the lowest bits.
        handlers = sum(0x1D00_0000 + role << 64 * role + 32 for role in range(3) if roles >> role & 1)
        noise = context_t.unpack(bench.rng.getrandbits(context_t.width))
        noise |= {"handlers": handlers, "idle_cycles": idle_cycles, "is_pinned": int(pin is not None), "pin": pin or 0}
        dut.context_write_i.value, dut.context_index_i.value = 1, index
        dut.context_i.value = context_t.pack(**noise)
        await bench.next()
    dut.context_write_i.value = 0


@cocotb.test()
async def random_traffic(dut) -> None:
    """Requests, ends, failures, resets, idle messages, and any pace of NIC and status unit."""
    her_t, task_t, completion_t, feedback_t, idle_t, events_t = (
        struct(name) for name in ("her_t", "task_t", "completion_t", "feedback_t", "idle_t", "sched_events_t")
    )
    values = {name: int(getattr(dut, name).value) for name in (*NAMES, "OwnCells", "Tasks")}
    clusters, queues, places = values["Clusters"], values["Queues"], values["Tasks"]
    engine = Engine(queues, values["SharedCells"], values["OwnCells"])
    back = Feedback(clusters, values["FeedbackCycles"])
    policy = Policy(*(bool(values[name]) for name in ("UsesHome", "UsesOthers", "UsesPins")))
    bench = await start(dut)
    rng, sched = bench.rng, Sched(engine, back, policy, values["DispatchCycles"], 2000)
    await write_contexts(dut, bench, sched)
    running: list[list] = [[] for _ in range(clusters)]  # tasks in a cluster
    ended: list[deque] = [deque() for _ in range(clusters)]  # those of them that have ended
    idle_said = None  # event pending for the status unit
    inside: dict[int, dict] = {}  # requests by number
    count = dict.fromkeys(("accepted", "sent", "fed_back", "reset", "idle", "skipped", "blocked", "held", "failed"), 0)
    count |= dict.fromkeys(("refused", "too_long", "young", "dropped"), 0)
    user, until = 0, 12000
    refused: set[int] = set()  # requests with numbers beyond the tables
    gives_up = False
    for now in range(until + 3000):
        drains = now > until
        # The NIC.
        open_ones = [queue for queue in engine.queues if queue.state not in ("free", "reset") and not queue.ended]
        her = her_t.unpack(rng.getrandbits(her_t.width))
        her |= {"message": rng.randrange(4 * queues), "execution_context": rng.randrange(CONTEXTS), "user": user}
        her |= {"eom": int(bench.happens(0.2)), "transfer": rng.randrange(2048)}
        offers = bench.happens((0.9, 0.4, 0.1)[now // 1000 % 3])
        if drains:
            offers, her["eom"] = bool(open_ones), 1
        if open_ones and (drains or bench.happens(0.6)):
            her["message"] = rng.choice(open_ones[:6]).message
        beyond, wrong = not drains and bench.happens(0.03), 0
        if beyond and bench.happens(0.5):
            wrong = rng.choice([1024, 1024 + her["message"], her["message"] | 1 << rng.randrange(10, 32)])
            her["message"] = wrong
        elif beyond:
            her["execution_context"] = wrong = rng.choice([CONTEXTS, 255, rng.randrange(CONTEXTS, 256)])
        # The driver disables the HPUs: all messages are given up, and requests wait until the last of them has left.
        gives_up = not drains and (now % 2500 == 2400 or (gives_up and not bool(dut.clean_o.value)))
        dut.give_up_i.value = gives_up
        resets, reset_message = not drains and bench.happens(0.005), rng.choice(engine.queues).message
        ready, failed_ready, idle_ready = (drains or bench.happens(likely) for likely in (0.8, 0.7, 0.05))
        idle_ready |= gives_up
        # The clusters.
        for index in range(clusters):
            # A disabled HPU ends no task, until all messages are given up.
            ends = bench.happens((0.1, 0.3)[now // 700 % 2] + drains) and (not gives_up or bool(dut.given_up_o.value))
            if running[index] and ends:
                task = running[index].pop(rng.randrange(len(running[index])))
                kind = rng.choice((End.EndFaulted, End.EndTimedOut)) if bench.happens(0.1) else End.EndDone
                outcome = {"kind": int(kind), "cause": rng.randrange(12), "pc": now, "address": user}
                if bool(dut.given_up_o.value):
                    outcome |= {"kind": int(End.EndMessageReset), "cause": int(Cause.CauseDisabled)}
                    count["dropped"] += 1
                hpu = {"cluster": index, "hpu": rng.randrange(8)}
                ended[index].append({**task, "hpu": hpu, "outcome": outcome})
        tasks = [len(running[index]) + len(ended[index]) for index in range(clusters)]
        l1_room = [2048 if drains else rng.randrange(1024, 2500) for _ in range(clusters)]
        waits = engine.out
        if waits is not None:
            assert int(dut.offer_transfer_o.value) == waits.data["transfer"]
        transfer = waits.data["transfer"] if waits else 0
        has_room = [tasks[index] < places and transfer <= l1_room[index] for index in range(clusters)]
        fronts = [queue[0] if queue else None for queue in ended]

        dut.her_valid_i.value, dut.her_i.value = offers, her_t.pack(**her)
        dut.feedback_ready_i.value, dut.failed_ready_i.value, dut.idle_ready_i.value = ready, failed_ready, idle_ready
        dut.reset_valid_i.value, dut.reset_message_i.value = resets, reset_message
        dut.has_room_i.value = sum(1 << index for index, room in enumerate(has_room) if room)
        width = places.bit_length()
        dut.tasks_i.value = sum(number << width * index for index, number in enumerate(tasks))
        dut.done_valid_i.value = sum(1 << index for index, front in enumerate(fronts) if front)
        dut.done_i.value = sum(
            completion_t.pack(**front) << completion_t.width * index for index, front in enumerate(fronts) if front
        )
        await bench.read()

        # The cycle, in the order in which the model's parts act.
        events = dict.fromkeys(events_t.fields, 0)
        assert int(dut.free_o.value) == engine.having("free")
        assert int(dut.inside_o.value) == len(inside), now
        is_quiet = len(inside) == 0 and not back.way and not back.skipped and waits is None and idle_said is None
        is_quiet &= back.refused is None
        is_quiet &= engine.having("free") == (1 << queues) - 1 and not offers and not any(fronts)
        assert bool(dut.empty_o.value) == is_quiet, now
        is_ready = not gives_up and (back.refused is None if beyond else engine.accepts(her["message"]))
        assert bool(dut.her_ready_o.value) == is_ready, now
        number = her["message"] % queues
        is_first = engine.queues[number].state == "free"
        takes_refused = offers and is_ready and beyond
        if takes_refused:
            refused.add(user)
            user += 1
            count["accepted"] += 1
            count["refused"] += 1
        elif offers and is_ready:
            sched.accept(now, her)
            inside[user] = her
            user += 1
            count["accepted"] += 1
        events["accepted"], events["refused"] = int(offers and is_ready), int(offers and not is_ready)
        comes = offers and is_ready and not beyond and is_first and her["message"] == reset_message
        was_free = engine.reset(now, reset_message) if resets and not comes else None
        assert bool(dut.reset_done_o.value) == (was_free is not None), now
        assert bool(dut.reset_free_o.value) == bool(was_free), now
        count["reset"] += was_free is not None

        # The hardware chooses the idle message, which must be due.
        assert bool(dut.idle_valid_o.value) == (idle_said is not None), now
        if idle_said is not None:
            assert idle_t.unpack(dut.idle_o.value) == idle_said, now
            if idle_ready:
                idle_said = None
        seen = events_t.unpack(dut.events_o.value)
        if seen["idle"]:
            assert not resets
            assert not dut.idle_valid_o.value, "the event before has not been taken"
            queue = int(dut.u_mpq.idle_queue_i.value)
            is_old = now - sched.touched[queue] >= sched.allowed[queue]
            assert is_old or gives_up, now
            count["young"] += not is_old
            message = engine.queues[queue].message
            is_free = engine.reset(now, message)
            assert is_free is not None
            context = int(dut.u_idle.idle_context_o.value)
            assert sched.contexts[context].idle_cycles == sched.allowed[queue]
            idle_said = {"message": message, "execution_context": context, "is_free": int(is_free)}
            idle_said["is_disabled"] = int(gives_up)
            events["idle"] = 1
            count["idle"] += 1

        room_for_skipped = back.has_room()
        choice = back.collect(now, fronts)
        assert int(dut.done_ready_o.value) == (0 if choice is None or choice >= clusters else 1 << choice), now
        if takes_refused:
            back.refused = refusal(her, wrong)
        if choice is not None and choice < clusters:
            ended[choice].popleft()
        arrives = back.front(now)
        feedback, failed, is_new = back.arrive(now, lambda end, now=now: sched.end(now, end), ready, failed_ready)
        assert bool(dut.failed_valid_o.value) == (failed is not None), now
        if failed is not None:
            assert completion_t.unpack(dut.failed_o.value) == bits(completion_t, failed), now
            count["failed"] += failed_ready
        assert bool(dut.feedback_valid_o.value) == (feedback is not None), now
        if feedback is not None:
            assert feedback_t.unpack(dut.feedback_o.value) == feedback, now
            events["held"] = int(not ready)
            count["held"] += not ready
            count["fed_back"] += ready
            if ready:
                refused.discard(feedback["user"])
        if is_new and arrives.end["feeds_back"]:
            del inside[arrives.end["her"]["user"]]

        waits = sched.waiting(now)
        cluster = sched.dispatch(now, has_room, tasks, room_for_skipped)
        assert int(dut.send_valid_o.value) == (0 if cluster is None else 1 << cluster), now
        if waits is not None and sched.ends_here(waits):
            count["too_long"] += not waits.skips and room_for_skipped
            events["skipped"] = int(room_for_skipped)
        elif waits is not None:
            events["sent"], events["blocked"] = int(cluster is not None), int(cluster is None)
        if cluster is not None:
            sent = {"role": waits.role, "mpq": waits.queue, "feeds_back": int(waits.feeds_back), "her": waits.data}
            assert task_t.unpack(dut.send_o.value) == sent, now
            running[cluster].append(sent)
            assert waits.role != HEADER or not waits.feeds_back
        assert seen == events, now
        for name in ("sent", "skipped", "blocked"):
            count[name] += events[name]
        await bench.next()
    assert not inside
    assert not refused
    assert bool(dut.empty_o.value)
    assert count["accepted"] == count["fed_back"], "every packet is fed back once"
    floors = {"accepted": 1500, "sent": 1000, "reset": 10, "idle": 1, "skipped": 300, "blocked": 40, "held": 300}
    for name, least in {**floors, "failed": 100, "refused": 40, "too_long": 5, "young": 5, "dropped": 2}.items():
        assert count[name] > least, count


@cocotb.test()
async def resets_in_traffic(dut) -> None:
    """A reset at any time leaves nothing behind: all outputs are known, and the next message is processed."""
    her_t, task_t, completion_t, feedback_t = (
        struct(name) for name in ("her_t", "task_t", "completion_t", "feedback_t")
    )
    bench = await start(dut)
    rng = bench.rng
    clusters, queues = int(dut.Clusters.value), int(dut.Queues.value)
    engine = Engine(queues, int(dut.SharedCells.value), 1)
    sched = Sched(engine, Feedback(clusters, 1), Policy(home=True, others=True, pins=False), 1)
    compared = 0
    for round_ in range(20):
        await bench.reset()
        await bench.read()
        assert bool(dut.empty_o.value)
        assert int(dut.free_o.value) == (1 << queues) - 1
        assert int(dut.inside_o.value) == 0
        valids = ("feedback_valid_o", "send_valid_o", "failed_valid_o", "idle_valid_o", "reset_done_o", "done_ready_o")
        assert all(int(getattr(dut, name).value) == 0 for name in valids)
        await bench.next()
        await write_contexts(dut, bench, sched)
        dut.feedback_ready_i.value = dut.failed_ready_i.value = dut.idle_ready_i.value = 1
        running: deque[dict] = deque()
        back: list[int] = []
        # A message of three packets with all handlers runs alone, followed by traffic until the reset.
        alone = [{"message": round_ % queues, "execution_context": 7, "eom": int(user == 2)} for user in range(3)]
        offered, traffic = 0, rng.randrange(10, 200)
        for _ in range(100 + traffic):
            is_alone = len(back) < len(alone)
            fields = alone[offered] if offered < len(alone) else {"message": rng.randrange(4 * queues), "eom": 1}
            dut.her_valid_i.value = offered < len(alone) or not is_alone
            dut.her_i.value = her_t.pack(**{"execution_context": rng.randrange(CONTEXTS), **fields, "user": offered})
            dut.has_room_i.value = (1 << clusters) - 1 if is_alone else rng.getrandbits(clusters)
            ends = bool(running) and bench.happens(0.5)
            dut.done_valid_i.value, dut.done_i.value = ends, completion_t.pack(**running[0]) if ends else 0
            await bench.read()
            if dut.feedback_valid_o.value:
                back.append(feedback_t.unpack(dut.feedback_o.value)["user"])
            if ends and int(dut.done_ready_o.value) & 1:
                running.popleft()
            if int(dut.send_valid_o.value):
                running.append(task_t.unpack(dut.send_o.value))
            offered += bool(dut.her_valid_i.value and dut.her_ready_o.value)
            await bench.next()
        assert back[:3] == [0, 1, 2], back
        compared += len(back)
    assert compared > 500


@cocotb.test()
async def clean_after_a_refusal(dut) -> None:
    """The scheduler is clean once the NIC has the feedback of a refused request, and in no cycle before."""
    her_t = struct("her_t")
    bench = await start(dut)
    dut.failed_ready_i.value = 1
    dut.her_valid_i.value, dut.her_i.value = 1, her_t.pack(message=1024, eom=1)
    await bench.read()
    assert bool(dut.clean_o.value)
    assert bool(dut.her_ready_o.value)
    await bench.next()
    dut.her_valid_i.value = 0
    waited = 0
    while waited < 10:
        await bench.read()
        assert not bool(dut.clean_o.value), waited
        waited += bool(dut.feedback_valid_o.value)
        await bench.next()
    dut.feedback_ready_i.value = 1
    await bench.next()
    for _ in range(10):
        await bench.read()
        if dut.clean_o.value:
            return
        await bench.next()
    raise AssertionError("the scheduler is never clean")
