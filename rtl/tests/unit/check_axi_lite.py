# SPDX-License-Identifier: Apache-2.0
"""The AXI4-Lite port of the registers: every access reaches them once and is answered, with stalls on either side."""

from collections import deque

import cocotb
from common import Driver, Monitor, start

OKAY, SLAVE_ERROR = 0, 2


@cocotb.test()
async def random_accesses(dut) -> None:
    """Writes and reads with pauses of both sides, against registers in Python."""
    bench = await start(dut)
    rng = bench.rng
    registers = dict.fromkeys(range(0, 64, 4), 0)
    paces = (rng.choice([0.3, 0.9]) for _ in range(10))
    addresses, data, reads = (Driver(bench, name, pace=next(paces)) for name in ("aw", "w", "ar"))
    answers, values = (Monitor(bench, name, pace=next(paces)) for name in ("b", "r"))
    writes = []
    for _ in range(500):
        strobe = 15 if bench.happens(0.8) else rng.randrange(15)
        writes.append((rng.randrange(16) * 4, rng.getrandbits(32), strobe))
        addresses.send(writes[-1][0])
        data.send({"data": writes[-1][1], "strb": strobe})
    asked = [rng.randrange(16) * 4 for _ in range(500)]
    for address in asked:
        reads.send(address)
    seen: list[tuple[int, int]] = []
    expected: deque[int] = deque()
    read: list[int] = []
    answer: int | None = None
    while len(answers.seen) < 500 or len(values.seen) < 500:
        dut.ctrl_rvalid_i.value = answer is not None
        dut.ctrl_rdata_i.value = answer if answer is not None else rng.getrandbits(32)
        await bench.read()
        answer = None
        if dut.ctrl_valid_o.value:
            address, value = int(dut.ctrl_address_o.value), int(dut.ctrl_wdata_o.value)
            answer = registers[address]
            if dut.ctrl_we_o.value:
                registers[address] = value
                seen.append((address, value))
            else:
                read.append(address)
                expected.append(answer)
        await bench.next()
    assert seen == [(address, value) for address, value, strobe in writes if strobe == 15]
    assert [item for _, item in answers.seen] == [OKAY if strobe == 15 else SLAVE_ERROR for _, _, strobe in writes]
    assert read == asked
    assert [item["data"] if isinstance(item, dict) else item for _, item in values.seen] == list(expected)
    assert all(not isinstance(item, dict) or item["resp"] == OKAY for _, item in values.seen)
