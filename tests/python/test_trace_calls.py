# SPDX-License-Identifier: Apache-2.0
"""Traces of rarer calls: one-sided ones, and those of MPI 3.1 to 4."""

from __future__ import annotations

from collections import Counter

import pytest

from .traced import RANKS, Message, Mpi, goal, messages

# The tag of a one-sided message tells its kind (docs/goal.md): 8 times a number, plus one of these.
ACCESS, ANSWER, ACKNOWLEDGEMENT, POST, COMPLETE = range(5)


def one_sided(*sent: tuple[int, int, int, int], space: int) -> Counter[Message]:
    """Return peer, bytes, number of the access or epoch, and kind of each message."""
    return Counter((peer, size, str(number * 8 + kind), str(space)) for peer, size, number, kind in sent)


# MPI_COMM_WORLD has spaces 0 and 1, MPI_COMM_SELF 2 and 3, the first window 4 and 5.
WINDOW = {
    0: one_sided(
        (1, 100, 0, ACCESS),
        (2, 1, 0, ACCESS),  # the get's request
        *[(peer, 1, times, POST) for peer in (1, 2) for times in (0, 1)],
        (3, 1, 1, ACKNOWLEDGEMENT),  # for the put under a lock
        (3, 4, 2, ANSWER),  # to MPI_Fetch_and_op
        (1, 4, 2, ANSWER),  # to MPI_Compare_and_swap
        space=4,
    ),
    1: one_sided(
        (2, 100, 0, ACCESS),
        *[(0, 301, times, ACCESS) for times in (0, 1)],
        *[(0, 1, times, COMPLETE) for times in (0, 1)],
        (2, 600, 1, ACCESS),
        (3, 1, 0, ACCESS),
        (0, 8, 2, ACCESS),
        space=4,
    ),
    2: one_sided(
        (3, 100, 0, ACCESS),
        (0, 200, 0, ANSWER),
        *[(0, 302, times, ACCESS) for times in (0, 1)],
        *[(0, 1, times, COMPLETE) for times in (0, 1)],
        (1, 1, 1, ACKNOWLEDGEMENT),
        space=4,
    ),
    3: one_sided(
        (0, 100, 0, ACCESS),
        (1, 80, 0, ACCESS),
        (0, 500, 1, ACCESS),
        (0, 4, 2, ACCESS),
        (1, 700, 0, ANSWER),
        space=4,
    ),
}
# Nothing is added to what is read, so the requests are empty. Numbers count on from the fence's epoch to the lock's.
HALF = {
    1: one_sided((3, 48, 0, ANSWER), (3, 48, 1, ANSWER), space=0),
    3: one_sided((1, 1, 0, ACCESS), (1, 1, 1, ACCESS), space=0),
}


@pytest.fixture(scope="module")
def windows(mpi: Mpi) -> Mpi:
    done = mpi.trace("windows", "windows")
    assert done.returncode == 0, done.stderr
    return mpi


def without_spaces(all_messages: Counter[Message]) -> Counter[Message]:
    found: Counter[Message] = Counter()
    for (peer, size, tag, _), count in all_messages.items():
        found[peer, size, tag, "0"] += count
    return found


def test_one_sided_accesses_are_messages(windows: Mpi) -> None:
    for me, sent in enumerate(messages(windows.folder / "windows", "send")):
        own = Counter({message: n for message, n in sent.items() if int(message[3] or 0) % 2 == 0})
        world = Counter({message: n for message, n in own.items() if message[3] == "4"})
        assert world == WINDOW[me], me
        assert without_spaces(own - world) == HALF.get(me, Counter()), me
    received = [sum(found.values()) for found in messages(windows.folder / "windows", "recv")]
    assert sum(received) == sum(sum(found.values()) for found in messages(windows.folder / "windows", "send"))


def test_fences_are_barriers_of_the_window(windows: Mpi) -> None:
    # The window is made and freed, with three fences between: five times two rounds of dissemination.
    for sent in messages(windows.folder / "windows", "send"):
        assert sum(count for message, count in sent.items() if message[3] == "5") == 10


@pytest.mark.parametrize("options", [[], ["--extrapolate", "3"], ["--wildcards", "keep"]])
@pytest.mark.parametrize("rendezvous", ["65535", "50"])
def test_schedules_of_windows_finish(windows: Mpi, options: list[str], rendezvous: str) -> None:
    schedule = windows.folder / "windows.bin"
    assert goal("import", windows.folder / "windows", "-o", schedule, *options).returncode == 0
    for command in (["check", schedule], ["run", schedule, "-S", rendezvous]):
        done = goal(*command)
        assert done.returncode == 0, done.stderr


def test_copies_access_their_own_memory(windows: Mpi) -> None:
    ranks = messages(windows.folder / "windows", "send", "--extrapolate", "2")
    for me, sent in enumerate(ranks):
        copy = me // RANKS * RANKS
        found = Counter({message: n for message, n in sent.items() if message[3] == "4"})
        expected = {(peer + copy, *rest): n for (peer, *rest), n in WINDOW[me - copy].items()}
        assert found == Counter(expected), me
        # Fences involve all copies.
        assert sum(count for message, count in sent.items() if message[3] == "5") == 15


def test_newer_calls_are_recorded(mpi: Mpi) -> None:
    done = mpi.trace("newer", "newer")
    assert done.returncode == 0, done.stderr
    has_large_counts = mpi.name == "mpich"
    ranks = messages(mpi.folder / "newer", "send", "--collectives", "bcast=binomial,alltoall=linear")
    sizes = Counter(size for sent in ranks for message, n in sent.items() for size in [message[1]] * n)
    # Broadcasts are three messages; three of 61 bytes.
    assert sizes[61] == 9
    assert sizes[84] == (3 if has_large_counts else 0)
    for me, sent in enumerate(ranks):
        up, down = (me + 1) % RANKS, (me - 1) % RANKS
        to = Counter((message[0], message[1]) for message, n in sent.items() for _ in range(n))
        # Around the ring: in the copy, by sendrecv both ways, in three parts, and to both neighbours.
        assert [to[up, 40], to[up, 71], to[down, 72], to[up, 90]] == [1] * 4
        assert (to[up, 19], to[down, 19]) == (1, 1)
        # Recursive doubling of 16 bytes, twice.
        assert sum(n for (_, size), n in to.items() if size == 16) == 4
        for other in range(RANKS):
            assert to[other, 10 + other] == (2 if other != me else 0)
            assert to[other, 30 + other] == (1 if other != me and has_large_counts else 0)
        assert [to[up, size] for size in (81, 82, 83, 85)] == [int(has_large_counts)] * 4
    for options in ([], ["--extrapolate", "3"], ["--wildcards", "keep"]):
        imported = goal("import", mpi.folder / "newer", "-o", mpi.folder / "newer.bin", *options)
        assert (imported.returncode, imported.stderr) == (0, "")
        checked = goal("check", mpi.folder / "newer.bin")
        assert checked.returncode == 0, checked.stderr


def test_processes_that_are_spawned_are_named_or_refused(mpi: Mpi) -> None:
    done = mpi.trace("spawn", "spawn")
    assert done.returncode == 0, done.stderr
    # Open MPI does not pass these calls to the tracer.
    assert mpi.name == "openmpi" or "processes made by MPI_Comm_spawn are not traced" in done.stderr
    imported = goal("import", mpi.folder / "spawn")
    warning = "spinkit goal: warning: MPI_Comm_spawn is not in the schedule (4 ranks call it)\n"
    assert (imported.returncode, imported.stderr) == (0, warning)
    assert mpi.trace("spawn", "spoken", "to").returncode != 0
    refused = goal("import", mpi.folder / "spoken")
    assert refused.returncode == 1
    assert "rank-0.spintrace:byte " in refused.stderr
    assert "a communicator with processes of another MPI_COMM_WORLD" in refused.stderr
