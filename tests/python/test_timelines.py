# SPDX-License-Identifier: Apache-2.0
"""The trace diagrams: the reader of traces, and the tests of the paper's sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from spinkit._errors import SpinkitError
from spinkit.reports import _gantt, _narrative, _timelines
from spinkit.reports._timeline import Timeline
from spinkit.simulate import _perfetto
from spinkit.simulate._perfetto import Slice

from .conftest import CHECKOUT

PARAMETERS = {
    "host.o_ns": "65",
    "host.poll_ns": "51",
    "host.match_ns": "30",
    "dma.L_ns": "50",
    "dma.G_ps_per_byte": "6.7",
    "dma.messages": "transfers",
    "dma.handlers": "transfers",
    "nic.match_header_ns": "30",
    "nic.match_cam_ns": "2",
    "hpu.clock_ghz": "2.5",
    "accelerator.put_blocks": "true",
}
LATENCIES = {"host.poll_ns": "0", "host.match_ns": "0", "dma.messages": "latency", "dma.handlers": "requests"}
POSTS = [Slice("rank 0", "CPU", "post", 0, 65_000, {}), Slice("rank 1", "CPU", "post", 634_000, 699_000, {})]


def varint(value: int) -> bytes:
    """Encode a number."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def field(number: int, value: int | bytes) -> bytes:
    """Encode a field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def test_slices_are_read_with_exact_times(tmp_path: Path) -> None:
    """The names are introduced by the packet that uses them first; the end of a slice is not needed."""
    process = field(1, 7) + field(3, field(6, b"rank 3"))
    row = field(1, 300) + field(5, 7) + field(4, field(5, b"HPU 0"))
    names = field(2, field(1, 1) + field(2, b"handler"))
    names += b"".join(field(3, field(1, iid) + field(2, text)) for iid, text in ((1, b"start_ps"), (2, b"dur_ps")))
    times = field(4, field(1, 1) + field(3, 1_234_567)) + field(4, field(1, 2) + field(3, 400))
    begin = field(9, 1) + field(11, 300) + field(10, 1) + times
    end = field(9, 2) + field(11, 300)
    packets = [field(60, process), field(60, row), field(12, names) + field(11, begin), field(11, end)]
    file = tmp_path / "trace"
    file.write_bytes(b"".join(field(1, field(8, 1234) + packet) for packet in packets))
    assert _perfetto.read(file) == [Slice("rank 3", "HPU 0", "handler", 1_234_567, 1_234_967, {})]
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(SpinkitError, match="no timeline of spinrun"):
        _perfetto.read(file)


def test_a_sentence_is_true_or_not() -> None:
    """Both ranks must post, once, for exactly o."""
    test = _narrative.TESTS["both-post"]
    assert test.on(Timeline(POSTS, 700_000, PARAMETERS)) == (True, "rank 0 at 0–65 ns; rank 1 at 634–699 ns")
    assert not test.on(Timeline(POSTS[:1], 700_000, PARAMETERS))[0]
    assert not test.on(Timeline([POSTS[0], replace(POSTS[1], end=700_000)], 700_000, PARAMETERS))[0]


def test_every_sentence_is_tested_and_no_test_holds_where_nothing_happens() -> None:
    """Each test belongs to a sentence, and fails on a round in which only messages are posted."""
    table = _timelines.load(CHECKOUT)
    sentences = [sentence for one in table.diagram for sentence in one.sentence]
    instead = {difference.test for sentence in sentences for difference in sentence.differs}
    assert {sentence.test for sentence in sentences} | (instead - {None}) == set(_narrative.TESTS)
    for parameters in (PARAMETERS, PARAMETERS | LATENCIES):
        quiet = Timeline([*POSTS, POSTS[0]], 700_000, parameters)
        assert [name for name, test in _narrative.TESTS.items() if test.on(quiet)[0]] == []


def test_the_same_round_gives_the_same_picture() -> None:
    """A picture has a row for each part of a rank that does something."""
    shown = Timeline(POSTS, 700_000, PARAMETERS)
    picture = _gantt.draw("posts", shown)
    assert picture == _gantt.draw("posts", shown)
    assert picture.startswith(b"<?xml")
