"""The L1 of a cluster against the rules of crates/accel/src/pspin/memory/banks.rs and core/hpus.rs, in every cycle."""

from dataclasses import dataclass
from typing import Any

import cocotb
from check_l1_bank import LR, MASK, OPERATIONS, SC, Bank, merge
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
    """An HPU, or the PE interconnect: the word that it wants, and when it has its answer."""

    request: dict[str, Any] | None = None
    holds: bool = False  # an atomic request was taken in the cycle before
    answer: tuple[int, int | None] | None = None  # its cycle and value; None for the answer to a store
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


@cocotb.test()
async def random_accesses(dut) -> None:
    """Each cycle is as the rules say."""
    hpus, banks = int(dut.Hpus.value), int(dut.Banks.value)
    words, groups = int(dut.Bytes.value) // 4, banks // LANES
    bench = await start(dut)
    rng = bench.rng
    bases = [0x1B00_0000] * hpus + [0x1040_0000]
    memory = [Bank([0] * (words // banks)) for _ in range(banks)]
    askers = [Asker() for _ in range(hpus + 1)]
    for beat in range(words // LANES):
        dut.write_valid_i.value = 1
        dut.write_i.value = BEAT.pack(address=64 * beat, strobe=(1 << 64) - 1, wdata=0)
        await bench.next()
    dut.write_valid_i.value = 0
    await bench.next()
    turn = compared = conflicts = moved = 0
    write = read = None  # the beats of the cycle before, which are now at the banks
    reads: dict[int, int] = {}
    waits, kinds = 0, set()
    for cycle in range(3_000):
        hot = [0, banks, 1, LANES] if cycle // 500 % 2 else list(range(0, words, 5))
        # The inputs of this cycle.
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

        # Answers.
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

        # Who may use which bank: beats, the PE interconnect, HPUs from the pointer on.
        used = [bank.writing is not None for bank in memory]
        beat_banks = set()
        for address in ([write["address"]] if write else []) + ([read] if read is not None else []):
            beat_banks |= {address // 64 % groups * LANES + lane for lane in range(LANES)}
        order = [hpus, *((turn + step) % hpus for step in range(hpus))]
        taken, winner, lost = {}, None, False
        for index in order:
            asker = askers[index]
            if asker.request is None or asker.holds:
                continue
            bank = asker.request["address"] // 4 % banks
            if used[bank] or bank in beat_banks or bank in taken:
                lost |= index < hpus
                conflicts += 1
            else:
                taken[bank] = index
                winner = index if winner is None and index < hpus else winner
        granted = int(dut.hpu_gnt_o.value) | int(dut.remote_ready_o.value) << hpus
        assert granted == sum(1 << index for index in taken.values()), (cycle, bin(granted), taken)
        if lost and winner is not None:
            turn, moved = (winner + 1) % hpus, moved + 1

        # What the banks do.
        for asker in askers:
            asker.holds = False
        line = 0
        for number, bank in enumerate(memory):
            lane = number % LANES
            if number in beat_banks:
                waits += bank.writing is not None
                is_written = write is not None and write["address"] // 64 % groups == number // LANES
                address = write["address"] if is_written else read
                row = address % (4 * words) // 4 // banks
                be = write["strobe"] >> 4 * lane & 0xF if is_written else None
                old = bank.beat(row, be, write["wdata"] >> 32 * lane & MASK if is_written else 0)
                if not is_written:
                    line |= old << 32 * lane
            elif bank.writing is not None:
                bank.settle()
            elif number in taken:
                asker = askers[taken[number]]
                request, asker.request = asker.request, None
                row = request["address"] % (4 * words) // 4 // banks
                if request["atop"]:
                    operation = request["atop"] & 0x1F
                    expected = request["expected"] if request["expected_valid"] else None
                    answer = bank.modify(operation, row, request["wdata"], expected)
                    asker.holds, asker.answer = True, (cycle + 2, answer)
                    kinds.add((operation, taken[number] == hpus))
                elif request["we"]:
                    bank.words[row] = merge(bank.words[row], request["wdata"], request["be"])
                    asker.answer = (cycle + 1, None)
                else:
                    asker.answer = (cycle + 1, bank.words[row])
                asker.gap = rng.choice([0, 0, 1, 2, 5]) if index < hpus or cycle % 3 else 10
        if read is not None:
            reads[cycle + 1] = line
        write, read = next_write, next_read
        await bench.next()
    assert compared > 1_000
    assert conflicts > 500
    assert moved > 100
    assert waits > 20
    assert len(kinds) > 18
