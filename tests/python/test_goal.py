# SPDX-License-Identifier: Apache-2.0
"""GOAL schedules from Python: values by hand in the LogGOPS model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from spinkit import goal

# o to send, L and 7 G until the last of 8 bytes has arrived, o to receive: 100 + 1000 + 7 + 100.
NUMBERS = {"L": 1000, "o": 100, "g": 50, "G": 1, "O": 0, "S": 65536}
ARRIVED = 1207


def pair() -> goal.Builder:
    schedule = goal.Builder(ranks=2)
    received = schedule.recv(1, source=0, size=8)
    schedule.calc(1, ns=500, after=[received])
    schedule.send(0, to=1, size=8)
    return schedule


def test_a_message_and_a_computation_take_the_times_computed_by_hand(tmp_path: Path) -> None:
    schedule = pair().schedule()
    result = goal.run(schedule, **NUMBERS)
    assert (result.end_ns, result.max_end_ns) == ((100, ARRIVED + 500), ARRIVED + 500)
    assert (result.model, result.ranks, result.operations) == ("loggops", 2, 3)
    assert result.parameters["L_ns"] == 1000
    assert result.more["unreceived_messages"] == 0
    schedule.save(tmp_path / "pair.goal")
    assert goal.run(tmp_path / "pair.goal", **NUMBERS) == result
    assert goal.Schedule.load(tmp_path / "pair.goal") == schedule


def test_wildcards_tags_and_cpus() -> None:
    schedule = goal.Builder(ranks=2)
    schedule.send(0, to=1, size=8, tag=7, cpu=1)
    schedule.calc(0, ns=5000)
    schedule.recv(1, source=None, size=8, tag=None)
    assert goal.run(schedule.schedule(), **NUMBERS).end_ns == (5000, ARRIVED)
    assert "recv 8b from any tag any" in schedule.schedule().text()


@pytest.mark.parametrize(("wait", "end"), [(goal.Builder.require, 150), (goal.Builder.require_start, 100)])
def test_operations_wait_for_the_end_or_the_start_of_others(wait: Callable[..., None], end: int) -> None:
    schedule = goal.Builder(ranks=1)
    first, second = schedule.calc(0, ns=100), schedule.calc(0, ns=50, cpu=1)
    wait(schedule, second, first)
    assert goal.run(schedule.schedule()).end_ns == (end,)


def test_generated_schedules_run_in_every_form(tmp_path: Path) -> None:
    tree = goal.generate("bcast", 4, 8)
    assert tree.text().startswith("num_ranks 4\n")
    # Rank 3 is behind rank 1, to which the root sends first.
    assert goal.run(tree, **NUMBERS).end_ns == (200, ARRIVED + 100, ARRIVED + 100, 2 * ARRIVED)
    assert goal.run(goal.Schedule(tree.text().encode()), **NUMBERS) == goal.run(tree, **NUMBERS)
    assert goal.generate("halo", 4, dims="2x2", periodic=True) != goal.generate("halo", 4, dims="2x2", periodic=False)
    # The packet model, too, has rank 3 last.
    ends = goal.run(tree, model="packet", machine="sc17-int", set=["host.o_ns=100"]).end_ns
    assert ends.index(max(ends)) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: goal.generate("bcats", 4), "invalid value 'bcats'"),
        (lambda: goal.run("no.goal"), "no.goal"),
        (lambda: goal.run(goal.Schedule(b"num_ranks 1\nrank 0 {\nl1: send\n}\n")), "<stdin>:4:1: expected size"),
        (lambda: goal.run(pair().schedule(), latency=3), "--latency"),
        (lambda: goal.Schedule.load("no.goal"), "no.goal: No such file"),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(goal.SpinkitError) as error:
        call()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: goal.Builder(0), "ranks: expected at least 1"),
        (lambda: pair().send(0, to=2, size=1), "to: expected 0 to 1, found 2"),
        (lambda: pair().calc(2, ns=1), "rank: expected 0 to 1, found 2"),
        (lambda: pair().calc(0, ns=-1), "ns: expected 0 to"),
        (lambda: pair().calc(0, ns=1, after=[goal.Operation(1, 0)]), "rank 0 cannot wait for one of rank 1"),
    ],
)
def test_numbers_out_of_range_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
