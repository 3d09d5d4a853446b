# SPDX-License-Identifier: Apache-2.0
"""L1 of a cluster against the rules of memory/banks.rs and core/hpus.rs of crates/card/pspin-unit, in every cycle."""

from dataclasses import dataclass
from typing import Any

import cocotb
from check_l1_bank import LR, MASK, OPERATIONS, SC, merge, modify
from common import Bench, start
from sv_types import struct

PARAMETERS = [
    {"Hpus": 8, "Banks": 64, "Bytes": 1024},
    {"Hpus": 2, "Banks": 16, "Bytes": 512},
    {"Hpus": 5, "Banks": 32, "Bytes": 256},
]

WORD, BEAT = struct("word_request_t"), struct("beat_request_t")
LANES = 16


@dataclass
class Asker:
    """HPU or PE interconnect: its requested word, and the time of its response."""

    request: dict[str, Any] | None = None
    holds: bool = False  # an atomic request was accepted in the cycle before
    answer: tuple[int, int | None] | None = None  # cycle and value; None for the response to a store
    gap: int = 0


def random_word(bench: Bench, words: int, hot: list[int], base: int) -> dict[str, Any]:
    """Return a request for any word, often one of a few."""
    rng = bench.rng
    word = rng.choice(hot) if bench.happens(0.7) else rng.randrange(words)
    operation = rng.choice([*OPERATIONS, LR, SC]) if bench.happens(0.3) else None
    store = operation is None and bench.happens(0.5)
    return {
        "we": store if operation is None else operation != LR,
        "atop": 0 if operation is None else 0b100000 | operation,
        "address": base + 4 * word,
        "be": rng.randrange(16) if store else 0xF,
        "wdata": rng.choice([1, MASK, rng.getrandbits(32)]),
        "expected_valid": bench.happens(0.8),
        "expected": rng.getrandbits(32) if bench.happens(0.5) else 0,
    }


def place_of(word: int, banks: int) -> tuple[int, int]:
    """Return the bank of a word, and its row."""
    return word % banks, word // banks


def banks_of(groups: int, write: dict[str, int] | None, read: int | None) -> set[int]:
    """Return the banks used by beats."""
    beats = [write["address"] // 64] if write else []
    beats += [read // 64] if read is not None else []
    return {beat % groups * LANES + lane for beat in beats for lane in range(LANES)}


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle follows the rules."""
    hpus, banks = int(dut.Hpus.value), int(dut.Banks.value)
    words, groups = int(dut.Bytes.value) // 4, banks // LANES
    bench = await start(dut)
    rng = bench.rng
    bases = [0x1B00_0000] * hpus + [0x1040_0000]
    memory = [[0] * (words // banks) for _ in range(banks)]
    held: set[int] = set()  # banks in which an atomic operation writes
    askers = [Asker() for _ in range(hpus + 1)]
    for beat in range(words // LANES):
        dut.write_valid_i.value = 1
        dut.write_i.value = BEAT.pack(address=64 * beat, strobe=(1 << 64) - 1, wdata=0)
        await bench.next()
    dut.write_valid_i.value = 0
    await bench.next()
    turn = compared = conflicts = moved = waits = gave_way = 0
    remote_held: int | None = None  # bank in which an atomic operation of another cluster writes
    owed: int | None = None  # bank last used by the word of another cluster, if an HPU waits for it
    write = read = None  # beats of the cycle before, now at the banks
    reads: dict[int, int] = {}
    kinds = set()
    for cycle in range(3_000):
        hot = [0, banks, 1, LANES] if cycle // 500 % 2 else list(range(0, words, 5))
        # Inputs of this cycle.
        for asker, base in zip(askers, bases, strict=True):
            asker.gap = max(0, asker.gap - 1)
            if asker.request is None and asker.gap == 0:
                asker.request = random_word(bench, words, hot, base)
        valid = [asker.request is not None for asker in askers]
        dut.hpu_valid_i.value = sum(one << index for index, one in enumerate(valid[:hpus]))
        for index in range(hpus):
            dut.hpu_i[index].value = WORD.pack(**askers[index].request) if valid[index] else rng.getrandbits(WORD.width)
        dut.remote_valid_i.value = valid[hpus]
        dut.remote_i.value = WORD.pack(**askers[hpus].request) if valid[hpus] else 0
        next_write = next_read = None
        if bench.happens(0.3):
            strobe = (1 << 64) - 1 if bench.happens(0.5) else rng.getrandbits(64)
            address = 0x1040_0000 + 64 * rng.randrange(words // LANES)
            next_write = {"address": address, "strobe": strobe, "wdata": rng.getrandbits(512)}
        if bench.happens(0.3):
            next_read = 64 * rng.randrange(words // LANES)
            if next_write and next_write["address"] // 64 % groups == next_read // 64 % groups:
                next_read = None
        dut.write_valid_i.value, dut.read_valid_i.value = next_write is not None, next_read is not None
        dut.write_i.value = BEAT.pack(**next_write) if next_write else rng.getrandbits(BEAT.width)
        dut.read_address_i.value = next_read if next_read is not None else rng.getrandbits(32)
        await bench.read()

        # Responses.
        rvalid = int(dut.hpu_rvalid_o.value) | int(dut.remote_rvalid_o.value) << hpus
        for index, asker in enumerate(askers):
            due = asker.answer is not None and asker.answer[0] == cycle
            assert bool(rvalid >> index & 1) == due, (cycle, index)
            if due and asker.answer[1] is not None:
                port = dut.hpu_rdata_o[index] if index < hpus else dut.remote_rdata_o
                assert int(port.value) == asker.answer[1], (cycle, index)
                compared += 1
        if cycle in reads:
            assert int(dut.read_data_o.value) == reads.pop(cycle), cycle
            compared += 1

        # Users of each bank: beats, the PE interconnect, HPUs from the pointer on. An atomic one needs two cycles.
        now = banks_of(groups, write, read)
        later = banks_of(groups, next_write, next_read)
        assert not now & held
        order = [hpus, *((turn + step) % hpus for step in range(hpus))]
        taken, first_lost = {}, None
        missed = set()  # banks that HPUs want and do not get
        for index in order:
            asker = askers[index]
            if asker.request is None or asker.holds:
                continue
            bank = asker.request["address"] // 4 % banks
            cannot_begin = asker.request["atop"] and bank in later
            if index == hpus and bank == owed:
                gave_way += bank not in held | now
                continue
            if cannot_begin or bank in held | now or bank in taken:
                first_lost = index if first_lost is None and index < hpus else first_lost
                missed |= {bank} if index < hpus else set()
                conflicts += 1
                waits += bool(cannot_begin) and bank not in held | now
            else:
                taken[bank] = index
        granted = int(dut.hpu_gnt_o.value) | int(dut.remote_ready_o.value) << hpus
        assert granted == sum(1 << index for index in taken.values()), (cycle, bin(granted), taken)
        if first_lost is not None:
            turn, moved = first_lost, moved + (first_lost != turn)

        # The bank that the PE interconnect uses or used goes to HPUs next, if they waited for it.
        used = owed if remote_held is None else remote_held
        used = next((bank for bank, index in taken.items() if index == hpus), used)
        owed = used if used in missed and taken.get(used, hpus) == hpus else None
        remote_held = None

        # Actions of the banks.
        held.clear()
        for asker in askers:
            asker.holds = False
        if write:
            for lane in range(LANES):
                bank, row = place_of(write["address"] % (4 * words) // 4 + lane, banks)
                be, data = write["strobe"] >> 4 * lane & 0xF, write["wdata"] >> 32 * lane & MASK
                memory[bank][row] = merge(memory[bank][row], data, be)
        line = 0
        for lane in range(LANES if read is not None else 0):
            bank, row = place_of(read // 4 + lane, banks)
            line |= memory[bank][row] << 32 * lane
        for index in taken.values():
            asker = askers[index]
            request, asker.request = asker.request, None
            bank, row = place_of(request["address"] % (4 * words) // 4, banks)
            word = memory[bank][row]
            if request["atop"]:
                operation = request["atop"] & 0x1F
                expected = request["expected"] if request["expected_valid"] else None
                memory[bank][row], answer = modify(operation, word, request["wdata"], expected)
                held.add(bank)
                remote_held = bank if index == hpus else remote_held
                asker.holds, asker.answer = True, (cycle + 2, answer)
                kinds.add((operation, index == hpus))
            elif request["we"]:
                memory[bank][row] = merge(word, request["wdata"], request["be"])
                asker.answer = (cycle + 1, None)
            else:
                asker.answer = (cycle + 1, word)
            asker.gap = rng.choice([0, 0, 1, 2, 5]) if index < hpus or cycle % 3 else 10
        if read is not None:
            reads[cycle + 1] = line
        write, read = next_write, next_read
        await bench.next()
    assert compared > 1_000
    assert conflicts > 500
    assert moved > 100
    assert waits > 20
    assert gave_way > 20
    assert len(kinds) > 18


async def longest_store(bench: Bench, swap: int, others: int, cycles: int) -> int:
    """Let HPU 0 store to bank 0 now and then, and return the maximum number of cycles.

    In each cycle, other clusters want to swap a word of this bank, and so do the HPUs in the set `swap`. Those in the
    set `others` load from another bank whenever bank 0 is held.
    """
    dut = bench.dut
    hpus, banks = int(dut.Hpus.value), int(dut.Banks.value)
    swapped = WORD.pack(we=1, atop=0b100001, address=0x1B00_0000, be=0xF, wdata=1, expected_valid=0, expected=0)
    stored = WORD.pack(we=1, atop=0, address=0x1B00_0000 + 4 * banks, be=0xF, wdata=2, expected_valid=0, expected=0)
    loaded = WORD.pack(we=0, atop=0, address=0x1B00_0004, be=0xF, wdata=0, expected_valid=0, expected=0)
    for index in range(hpus):
        dut.hpu_i[index].value = stored if index == 0 else loaded if others >> index & 1 else swapped
    dut.remote_i.value = swapped
    dut.remote_valid_i.value = 1
    dut.write_valid_i.value = dut.read_valid_i.value = 0
    longest = waited = stores = remote = loads = 0
    is_held = False
    for _ in range(cycles):
        wants = waited > 0 or bench.happens(0.2)
        dut.hpu_valid_i.value = wants | swap | (others if is_held else 0)
        await bench.read()
        granted, taken = int(dut.hpu_gnt_o.value), int(dut.remote_ready_o.value)
        is_held = bool(granted & swap or taken)
        remote += taken
        loads += bool(granted & others)
        if wants:
            waited += 1
            longest = max(longest, waited)
            if granted & 1:
                waited, stores = 0, stores + 1
        await bench.next()
    # Other clusters also get their half of the bank, and the other bank is always available.
    assert stores > cycles // 100, stores
    assert remote > cycles // 5, remote
    assert loads > cycles // 4 or not others, loads
    return longest


@cocotb.test()
async def nobody_starves(dut) -> None:
    """An HPU stores to its bank after one turn of all, however often other clusters and all other HPUs swap a word.

    An atomic operation takes two cycles of the bank. An access of another cluster follows each access of an HPU.
    """
    hpus = int(dut.Hpus.value)
    longest = await longest_store(await start(dut), (1 << hpus) - 2, 0, 2_000)
    assert hpus <= longest <= 4 * hpus, longest


@cocotb.test()
async def another_bank_is_no_turn(dut) -> None:
    """HPUs that use another bank while this one is held do not overtake the HPU that waits for it."""
    hpus = int(dut.Hpus.value)
    bench = await start(dut)
    for swap in (1 << index for index in range(1, hpus)):
        longest = await longest_store(bench, swap, ((1 << hpus) - 2) & ~swap, 500)
        assert longest <= 8, (longest, swap)
        await bench.reset()
