# SPDX-License-Identifier: Apache-2.0
"""The HPU driver against the rules of crates/card/pspin-unit/src/{core/published.rs, hpu_cluster/driver.rs}, in every
cycle.

The test plays core, protection, recovery, scheduler, command unit and DMA engine: the core makes any access to a
register, waits for its response, and fails now and then.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import cocotb
from common import QUICK, shorter, start
from sv_types import constants, enum, struct

RESETS = 20
PARAMETERS = [
    {"Clusters": 4, "Tasks": 20, "Commands": 4, "Buffered": 1, "DirectBytes": 32},
    {"Clusters": 6, "Tasks": 4, "Commands": 2, "Buffered": 2, "DirectBytes": 64},
]

TASK, ROW, RANGE, OUTCOME = struct("task_t"), struct("execution_context_t"), struct("range_t"), struct("outcome_t")
ACCESS, COMMAND, RESPONSE, HPU = (
    struct("word_request_t"), struct("command_t"), struct("response_t"), struct("hpu_id_t"),
)  # fmt: skip
End, Cause, Kind = enum("end_e"), enum("cause_e"), enum("command_e")
DONE = {"kind": End.EndDone, "cause": Cause.CauseNone, "pc": 0, "address": 0}
MASK = (1 << 32) - 1

# First address, number of bytes, name: a register has all bytes of an access. Addresses are those of the software.
ABI = constants("pspin_abi_pkg")
DRIVER = ABI["MapDriver"]
COMMANDS = DRIVER + ABI["DriverCommand"]
REGISTERS = [
    (DRIVER + ABI["DriverFunction"], 4, "function"),
    (DRIVER + ABI["DriverFunctionSize"], 76, "task"),
    *(
        (DRIVER + ABI[f"Driver{name.capitalize()}"], 4, name)
        for name in ("doorbell", "error", "issue", "wait", "test", "launch", "landed")
    ),
    *((COMMANDS + 4 * word, 4, "command") for word in range(8)),
    *((DRIVER + ABI[f"Driver{name}"], 4, "transfer") for name in ("Source", "Destination", "Bytes")),
    (ABI["MapTerminate"], 4, "terminate"),
    (ABI["MapOutput"], 4, "output"),
]


def register(address: int, size: int) -> tuple[int, str] | None:
    """Return the first address and the name of the register that has these bytes."""
    for first, width, name in REGISTERS:
        if first <= address and address + size <= first + width:
            whole = name in ("command", "transfer")
            return (first, name) if not whole or (size == 4 and address == first) else None
    return None


def failed(cause: Any, pc: int = 0, address: int = 0) -> dict[str, int]:
    """Return the end of a failed task."""
    return {"kind": End.EndFaulted, "cause": cause, "pc": pc, "address": address}


@dataclass
class Slot:
    """Command slot: its use count, and the slot of the task whose command is in flight."""

    uses: int = 0
    owner: int | None = None
    orphan: bool = False


@dataclass
class Access:
    """Access in progress at the driver."""

    name: str
    first: int
    address: int
    size: int
    stores: bool
    value: int
    pc: int


@dataclass
class Driver:
    """The driver, between two cycles."""

    clusters: int
    direct: int
    buffered: int
    slots: list[Slot]
    task: dict[str, Any] | None = None
    place: int = 0
    packet: dict[str, int] = field(default_factory=dict)
    row: dict[str, Any] = field(default_factory=dict)
    scratchpads: list[dict[str, int]] = field(default_factory=list)
    ready: bool = False
    opened: bool = False
    booted: bool = False
    idle: bool = False
    bites_at: int | None = None
    access: Access | None = None
    words: list[int] = field(default_factory=lambda: [0] * 8)
    transfer: list[int] = field(default_factory=lambda: [0] * 3)
    launched: int = 0
    landed: int = 0
    tested: bool = False
    failure: dict[str, int] | None = None
    finished: deque[list[Any]] = field(default_factory=deque)
    issuing: dict[str, Any] | None = None

    def in_flight(self, place: int) -> bool:
        """Return true if commands of the task in this slot are in flight."""
        return any(slot.owner == place for slot in self.slots)

    def is_done(self, number: int) -> bool:
        """Return true if a command is complete."""
        if number & 0xFF >= len(self.slots):
            return True
        slot = self.slots[number & 0xFF]
        return slot.owner is None or slot.uses & 0xFF_FFFF != number >> 8

    def task_words(self) -> list[int]:
        """Return the task words visible to programs."""
        host, her = self.row["host"], self.task["her"]
        four = (self.scratchpads + [{"address": 0, "size": 0}] * 4)[:4]
        return [
            self.row["handlers"][self.task["role"]]["size"],
            self.row["handler_memory"]["address"],
            self.row["handler_memory"]["size"],
            self.packet["address"],
            self.packet["size"],
            *(scratchpad["address"] for scratchpad in four),
            *(scratchpad["size"] for scratchpad in four),
            host["address"] >> 32,
            host["address"] & MASK,
            min(host["size"], MASK),
            her["address"],
            her["message"] % self.clusters,
            her["flow"],
        ]

    def command(self, common: int) -> tuple[dict[str, Any], tuple[int, int, bool] | None] | None:
        """Return the command of the words, and its range: address, size, write flag."""
        kind, a, b, c, d, e, user, _ = self.words
        fields: dict[str, Any] = {"host": b << 32 | a, "user": user, "has_event": 0}
        if kind >> 1 == 0:
            fields["kind"] = Kind.CommandToHost if e else Kind.CommandFromHost
            fields["has_event"], fields["data"] = kind & 1, {"address": common, "size": d}
            return fields, (c, d, not e)
        if kind >> 1 == 1:
            fields |= {"kind": Kind.CommandSend, "host": 0, "node": a, "flow": b}
            fields["data"] = {"address": common, "size": e}
            return fields, (c, e, False)
        if kind >> 1 == 2 and c >> 1 <= self.direct:
            fields["kind"] = Kind.CommandHostDirect if c & 1 else Kind.CommandHostDirectRead
            fields["immediate"] = e << 32 | d
            fields["immediate_size"] = min(c >> 1, 8) if c & 1 else c >> 1
            return fields, None
        return None


def task_word(driver: Driver, access: Access, is_new: bool) -> int:
    """Return the word that an access reads; 0 before the row of the context arrives."""
    return driver.task_words()[(access.address - DRIVER - 4) // 4] if driver.task and not is_new else 0


def handlers(rng) -> int:
    """Return the bits of a context with random values."""
    return rng.getrandbits(ROW.width)


def row_of(bits: int) -> dict[str, Any]:
    """Return the fields of a context; handlers by role."""
    row = ROW.unpack(bits)
    row["handlers"] = [RANGE.unpack(row["handlers"] >> 64 * role & (1 << 64) - 1) for role in range(3)]
    return row


@cocotb.test()
async def random_programs(dut) -> None:
    """Each cycle follows the rules."""
    clusters, places = int(dut.Clusters.value), int(dut.Tasks.value)
    bench = await start(dut)
    rng = bench.rng
    own = {"cluster": 3, "hpu": 6}
    dut.id_i.value, dut.enable_i.value = HPU.pack(**own), 1
    driver = Driver(
        clusters, int(dut.DirectBytes.value), int(dut.Buffered.value), [Slot() for _ in range(int(dut.Commands.value))]
    )
    recovering, stops, outcome, aborts = 0, False, DONE, 0
    row_next: tuple[int, int] | None = None
    taken: list[int] = []  # slots of commands at the command unit
    seen: Counter[str] = Counter()
    for cycle in range(shorter(30_000)):
        lively = cycle // 2000 % 3
        # Inputs of the other units.
        assigns = driver.idle and bench.happens(0.5)
        task, packet = TASK.unpack(rng.getrandbits(TASK.width)), RANGE.unpack(rng.getrandbits(64))
        task["role"] = rng.randrange(3)
        used = {entry[0] for entry in driver.finished} | ({driver.place} if driver.task else set())
        place = rng.choice([place for place in range(places) if place not in used])
        dut.assign_valid_i.value, dut.assign_place_i.value = assigns, place
        dut.assign_task_i.value, dut.assign_packet_i.value = TASK.pack(**task), RANGE.pack(**packet)
        bits, pads = handlers(rng), rng.getrandbits(64 * clusters)
        is_new = row_next is not None
        if is_new:
            bits, pads = row_next
            driver.row = row_of(bits)
            driver.scratchpads = [RANGE.unpack(pads >> 64 * number & (1 << 64) - 1) for number in range(clusters)]
            limit = driver.row["watchdog_cycles"]
            driver.bites_at = cycle - 1 + max(limit, 2) if limit else None
            seen["unwatched"] += not limit
        dut.context_i.value, dut.scratchpads_i.value = bits, pads
        row_next = None
        responds = bool(taken) and bench.happens((0.3, 0.1, 0.05)[lively])
        slot = rng.choice(taken) if responds else rng.randrange(8)
        response = {"hpu": own, "slot": slot, "is_refused": bench.happens(0.5), "host": rng.getrandbits(64)}
        others = not responds and bench.happens(0.3)
        if others:
            response["hpu"] = {"cluster": 3, "hpu": 5}
        dut.response_valid_i.value, dut.response_i.value = responds or others, RESPONSE.pack(**response)
        lands = driver.landed < driver.launched and bench.happens(0.05)
        ready = {name: bench.happens(0.4) for name in ("command", "transfer", "console", "done")}
        if lively == 2:
            ready["done"] = bench.happens(0.02)
        allowed = [bench.happens(0.95) for _ in range(2)]
        common = [rng.getrandbits(32) for _ in range(2)]
        dut.transfer_landed_i.value = lands
        for name, value in ready.items():
            getattr(dut, f"{name}_ready_i").value = value
        dut.source_allowed_i.value, dut.destination_allowed_i.value = allowed
        dut.source_common_i.value, dut.destination_common_i.value = common

        # Outputs.
        bites = driver.bites_at is not None and driver.bites_at == cycle and not is_new
        # A watchdog of two cycles expires in the cycle after the arrival of its row.
        kills = bites and not recovering and not stops
        stop = bool(recovering) or stops or kills
        ends_now = recovering == 1
        dut.stop_i.value, dut.abort_i.value, dut.ends_i.value = stop, aborts > 0, ends_now
        dut.outcome_i.value = OUTCOME.pack(**outcome)
        access = driver.access
        name = access.name if access and not stop else ""
        feeds_back = bool(driver.finished) and not driver.in_flight(driver.finished[0][0])
        expected_done = list(driver.finished[0]) if feeds_back else None
        is_full = len(driver.finished) == driver.buffered
        # The response precedes the driver's action.
        failure = driver.failure
        expected_orphans = sum(slot.orphan << number for number, slot in enumerate(driver.slots))
        issuing = driver.issuing
        if responds:
            answered = driver.slots[slot]
            owner, answered.owner, answered.orphan = answered.owner, None, False
            answered.uses += 1
            taken.remove(slot)
            entry = next((entry for entry in driver.finished if entry[0] == owner), None)
            if response["is_refused"]:
                refusal = failed(Cause.CauseHost, 0, response["host"])
                seen["refused" if entry is None else "late"] += 1
                if entry is None:
                    failure = failure or (refusal if driver.task else None)
                elif entry[1]["kind"] == End.EndDone:
                    entry[1] = refusal
        driver.landed += lands
        has_landed = driver.landed == driver.launched
        can_end = has_landed and (driver.task is None or not is_full)
        answer: int | None = None  # result of a load
        rvalid, starts, rings = False, False, False
        misuse, sent, launch = None, None, None
        reported = None
        if name == "function":
            starts = rvalid = driver.ready
            answer = driver.row["handlers"][driver.task["role"]]["address"] if starts else None
        elif name == "task":
            rvalid, answer = True, task_word(driver, access, is_new)
        elif name == "doorbell":
            rings = has_landed
            rvalid = rings and can_end
        elif name == "issue":
            command = driver.command(common[0])
            if command is None:
                misuse = failed(Cause.CauseLoad, access.pc, access.address)
                seen["unknown"] += 1
            elif command[1] and not allowed[0]:
                misuse = failed(Cause.CauseCommand, 0, common[0])
            elif driver.task and issuing is None and (number := free(driver.slots)) is not None:
                fields = {**command[0], "hpu": own, "slot": number}
                fields["execution_context"] = driver.task["her"]["execution_context"]
                sent, rvalid, answer = fields, True, driver.slots[number].uses << 8 | number
                driver.slots[number].owner, driver.slots[number].orphan = driver.place, False
            else:
                seen["full"] += 1
        elif name == "launch":
            if not allowed[0]:
                misuse = failed(Cause.CauseCommand, 0, common[0])
            elif not allowed[1]:
                misuse = failed(Cause.CauseCommand, 0, common[1])
            else:
                launch = (common[0], common[1], driver.transfer[2])
                rvalid, answer = ready["transfer"], driver.launched + 1
        elif name == "wait":
            rvalid = not access.stores or driver.is_done(access.value)
            answer = 0
            seen["waits"] += not rvalid
        elif name == "output":
            rvalid, answer = not access.stores or ready["console"], 0
        elif name:
            rvalid = True
            index = (access.address - access.first) // 4
            number = [first for first, _, other in REGISTERS if other == name].index(access.first) + index
            answer = {
                "command": driver.words[number % 8],
                "transfer": driver.transfer[number % 3],
                "test": driver.tested,
                "landed": driver.landed,
            }.get(name, 0)
            if access.stores:
                if name == "command":
                    driver.words[number] = access.value
                elif name == "transfer":
                    driver.transfer[number] = access.value
                elif name == "test":
                    driver.tested = driver.is_done(access.value)
                elif name == "error":
                    reported = failed(Cause.CauseReported, 0, access.value)
        ends = (rings or ends_now) and can_end
        ended_with = outcome if ends_now else (failure or DONE)

        # The core's next access.
        waits = access is not None and not rvalid
        new = None
        if not waits and not stop and misuse is None and bench.happens(0.7):
            # A handler seldom asks for another task; without a handler, asking is likely.
            chosen = (
                REGISTERS[1:] + [REGISTERS[2]] * 2 + [REGISTERS[4]] * 8 + [REGISTERS[7]] * 3 + REGISTERS[-1:] * 2
                if driver.opened and bench.happens(0.95)
                else REGISTERS[:1]
            )
            chosen = chosen if driver.opened or bench.happens(0.5) else REGISTERS
            first, width, wanted = rng.choice(chosen)
            size = 4 if bench.happens(0.8) else rng.choice([1, 2, 4])
            address = first + (rng.randrange(width) if bench.happens(0.1) else 4 * rng.randrange(width // 4))
            stores = bench.happens(0.6)
            value = rng.choice([rng.getrandbits(32), rng.randrange(12), rng.randrange(4) << 8 | rng.randrange(5)])
            # A number is often that of a command in flight, or of its slot's previous one.
            if wanted in ("wait", "test"):
                uses = [(max(slot.uses - rng.randrange(2), 0), number) for number, slot in enumerate(driver.slots)]
                value = rng.choice([count << 8 | number for count, number in uses])
            # Words of commands are often valid.
            if wanted == "command" and bench.happens(0.8):
                value = rng.choice([rng.randrange(5), rng.randrange(33) << 1 | 1, 0])
                value = rng.choice([*range(6), rng.randrange(8)]) if first == COMMANDS else value
            lane = address % 4
            be = ((1 << size) - 1) << lane & 0xF
            kept = sum(0xFF << 8 * byte for byte in range(4) if be >> byte & 1)
            wdata = value << 8 * lane & MASK | rng.getrandbits(32) & ~kept
            if found := register(address, size):
                pc = rng.getrandbits(32)
                new = Access(found[1], found[0], address, size, stores, (wdata & kept) >> 8 * lane, pc)
                dut.access_pc_i.value = pc
            dut.access_i.value = ACCESS.pack(we=stores, address=address, be=be, wdata=wdata)
            dut.access_size_i.value = size
        else:
            address, size = rng.choice(REGISTERS)[0] + rng.randrange(-4, 8), rng.choice([1, 2, 4])
            dut.access_i.value, dut.access_size_i.value = ACCESS.pack(address=address), size
        dut.access_valid_i.value = new is not None
        await bench.read()

        # Comparison.
        where = f"in cycle {cycle}: {access}"

        def same(port: str, value: Any, where: str = where) -> None:
            found = int(getattr(dut, port).value)
            assert found == int(value), f"{port} is {found:#x} and not {int(value):#x} {where}"

        same("has_register_o", register(address, size) is not None)
        same("rvalid_o", rvalid)
        if rvalid and answer is not None:
            same("rdata_o", answer)
        same("start_o", starts)
        same("end_o", ends)
        if ends:
            same("end_outcome_o", OUTCOME.pack(**ended_with))
        same("bites_o", bites)
        same("misuse_o", misuse is not None)
        if misuse:
            same("misuse_outcome_o", OUTCOME.pack(**misuse))
        same("idle_o", driver.idle and not assigns)
        same("is_open_o", driver.opened and not (access is not None and access.name == "doorbell"))
        same("is_booted_o", driver.booted)
        same("done_valid_o", feeds_back)
        if feeds_back:
            same("done_place_o", expected_done[0])
            same("done_outcome_o", OUTCOME.pack(**expected_done[1]))
        same("command_valid_o", issuing is not None)
        if issuing is not None:
            found = COMMAND.unpack(int(dut.command_o.value))
            assert {name: found[name] for name in issuing} == issuing, (cycle, found, issuing)
        same("orphans_o", expected_orphans)
        same("transfer_valid_o", launch is not None)
        if launch:
            same("transfer_from_o", launch[0])
            same("transfer_to_o", launch[1])
            same("transfer_size_o", launch[2])
        prints = name == "output" and access.stores
        same("console_valid_o", prints)
        if prints:
            same("console_char_o", access.value & 0xFF)
        same("terminate_o", name == "terminate" and access.stores)
        if driver.task and not is_new:
            same("handler_memory_o", RANGE.pack(**driver.row["handler_memory"]))

        # The next cycle.
        driver.failure = failure or (reported if driver.task else None)
        if feeds_back and ready["done"]:
            driver.finished.popleft()
        if issuing is not None and ready["command"]:
            taken.append(issuing["slot"])
            driver.issuing = None
        driver.issuing = sent or driver.issuing
        driver.launched += launch is not None and ready["transfer"]
        if rings or bites or ends:
            driver.bites_at = None
        if name == "function" and not driver.booted:
            driver.booted = driver.idle = True
        if starts:
            driver.ready, driver.opened = False, True
        if ends:
            driver.ready = driver.opened = False
            driver.failure = None
            if driver.task:
                if ended_with["kind"] != End.EndDone:
                    for slot_of in driver.slots:
                        slot_of.orphan |= slot_of.owner == driver.place
                driver.finished.append([driver.place, ended_with])
                driver.task, driver.idle = None, True
        if assigns:
            driver.task, driver.place, driver.packet = task, place, packet
            driver.ready, driver.idle = True, False
            bits = handlers(rng)
            watchdog = rng.choice([*range(6), *range(40, 60), 300, 300, 300, 1000])
            fields = ROW.unpack(bits) | {"watchdog_cycles": watchdog}
            row_next = ROW.pack(**fields), rng.getrandbits(64 * clusters)
        # Recovery: the HPU's action is cancelled, and its task ends some time later.
        aborts = max(0, aborts - 1)
        if ends_now and ends:
            recovering = 0
        elif recovering > 1:
            recovering -= 1
        # Without a watchdog, a failure ends a handler that waits for ever.
        is_unwatched = driver.task is not None and not is_new and driver.bites_at is None
        fails = not stop and new is None and (not waits or is_unwatched) and bench.happens(0.01)
        if kills or stops:
            stops = bench.happens(0.5)
            if not stops:
                outcome = {"kind": End.EndTimedOut, "cause": Cause.CauseWatchdog, "pc": 0, "address": 0}
                recovering, aborts = rng.randrange(5, 20), 3
        elif misuse or fails:
            outcome = misuse or failed(Cause.CauseIllegal, rng.getrandbits(32))
            recovering, aborts = rng.randrange(5, 20), 3
        driver.access = new if new else (access if waits else None)
        if aborts == 3:
            driver.access = access if access is not None and not rvalid else None
        elif aborts == 2:
            driver.access = None
        for what, happened in {
            "starts": starts, "ends": ends and not ends_now, "failed": ends and ended_with["kind"] == End.EndFaulted,
            "held": rings and not can_end, "orphans": expected_orphans != 0, "killed": kills,
            "misuse": misuse is not None, "issues": sent is not None,
            "launches": launch is not None and ready["transfer"], "prints": prints,
        }.items():  # fmt: skip
            seen[what] += happened
        await bench.next()
    # Rare events do not occur in every quick run.
    assert len(seen) >= (12 if QUICK else 15), seen
    assert QUICK or min(seen.values()) > 4, seen


@cocotb.test()
async def drops(dut) -> None:
    """A disabled HPU ends the tasks of messages that were given up, and boots before it gets others."""
    clusters = int(dut.Clusters.value)
    bench = await start(dut)
    rng = bench.rng
    dut.id_i.value, dut.done_ready_i.value = HPU.pack(cluster=3, hpu=6), 1
    dut.source_allowed_i.value = dut.destination_allowed_i.value = 1
    ended = 0

    async def access(address: int, value: int | None = None) -> None:
        word = struct("word_request_t").pack(we=int(value is not None), address=address, be=15, wdata=value or 0)
        dut.access_valid_i.value, dut.access_size_i.value, dut.access_i.value = 1, 4, word
        await bench.next()
        dut.access_valid_i.value = 0

    async def assign(place: int) -> None:
        dut.assign_valid_i.value, dut.assign_place_i.value = 1, place
        dut.assign_task_i.value = TASK.pack(role=1, feeds_back=1)
        await bench.next()
        dut.assign_valid_i.value = 0
        fields = {"watchdog_cycles": 1000, "handlers": (0x1D000000 << 32 | 64) << 64}
        dut.context_i.value, dut.scratchpads_i.value = ROW.pack(**fields), rng.getrandbits(64 * clusters)

    for part in range(30):
        dut.enable_i.value, dut.drop_i.value, dut.stop_i.value, dut.abort_i.value = 1, 0, 0, 0
        await bench.next()
        await bench.next()
        assert not dut.idle_o.value, "it has not booted"
        await access(DRIVER)
        await bench.next()
        assert dut.idle_o.value
        await assign(part % 4)
        launches = part % 2
        for _ in range(rng.randrange(1, 5)):
            await bench.next()
        if launches:
            dut.transfer_ready_i.value = 1
            await access(DRIVER + 0x118)
            await bench.next()
        # The message is given up some cycles after the HPUs stop.
        dut.enable_i.value, dut.stop_i.value, dut.abort_i.value = 0, 1, 1
        for _ in range(rng.randrange(1, 9)):
            assert not dut.done_valid_o.value
            await bench.next()
        dut.drop_i.value = 1
        for _ in range(5 * launches):
            await bench.read()
            assert not dut.done_valid_o.value, "its transfer has not landed"
            await bench.next()
        dut.transfer_landed_i.value = launches
        waiting = list(range(1 + rng.randrange(3)))
        given, expected = False, len(waiting) + 1
        for _ in range(30):
            await bench.read()
            if dut.done_valid_o.value:
                outcome = OUTCOME.unpack(dut.done_outcome_o.value)
                assert (outcome["kind"], outcome["cause"]) == (End.EndMessageReset, Cause.CauseDisabled)
                ended += 1
                expected -= 1
            may_assign = bool(dut.idle_o.value) and bool(waiting) and not given
            await bench.next()
            dut.transfer_landed_i.value = 0
            dut.assign_valid_i.value = given = may_assign
            dut.assign_place_i.value = waiting.pop() if may_assign else 0
        assert not expected
    assert ended > 60


def free(slots: list[Slot]) -> int | None:
    """Return the first place without a command."""
    return next((number for number, slot in enumerate(slots) if slot.owner is None), None)
