# SPDX-License-Identifier: Apache-2.0
"""Beats of a network port become beats of the unit: the same bytes, without a lost cycle."""

import cocotb
from common import Driver, Monitor, Scoreboard, start
from nic_model import beats, port_beats

PARAMETERS = [{"Width": width} for width in (64, 128, 256, 512)]
FIELDS = ["data", "keep", "last", "user"]


@cocotb.test()
async def frames(dut) -> None:
    """Frames of all sizes pass at any pace of both sides."""
    width = int(dut.Width.value)
    bench = await start(dut)
    source, sink, board = Driver(bench, "", FIELDS), Monitor(bench, "", FIELDS), Scoreboard()
    for source.pace, sink.pace in ((1, 1), (0.3, 1), (1, 0.3), (0.6, 0.6)):
        for size in (1, width // 8, 63, 64, 65, 128, *(bench.rng.randrange(1, 300) for _ in range(20))):
            packet, is_bad = bench.rng.randbytes(size), bench.happens(0.3)
            for data, keep, last in port_beats(packet, width):
                source.send({"data": data, "keep": keep, "last": last, "user": int(is_bad and last)})
            for data, keep, last in beats(packet):
                board.expect((data, keep, last, is_bad and last))
        first = bench.cycle
        while source.waiting:
            await bench.next()
        if source.pace == sink.pace == 1:
            assert bench.cycle - first <= len(source.taken) + 2, "the input never waits"
        while dut.valid_o.value:
            await bench.next()
    for _, item in sink.seen:
        # Bytes without keep are arbitrary.
        mask = sum(0xFF << 8 * byte for byte in range(64) if item["keep"] >> byte & 1)
        board.compare((item["data"] & mask, item["keep"], bool(item["last"]), bool(item["user"] and item["last"])))
    board.finish(100)
