"""All units, each with the parameters that make a difference."""

import pytest
from units import run


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_fifo(depth: int) -> None:
    run("pspin_fifo", "check_fifo", Width=16, Depth=depth)


@pytest.mark.parametrize("requesters", [1, 5, 8])
def test_rr_arbiter(requesters: int) -> None:
    run("pspin_rr_arbiter", "check_rr_arbiter", N=requesters)


@pytest.mark.parametrize("queues", [2, 16])
def test_mpq_lru(queues: int) -> None:
    run("pspin_mpq_lru", "check_mpq_lru", Queues=queues)


@pytest.mark.parametrize("clusters", [1, 4, 6])
def test_dispatcher(clusters: int) -> None:
    run("pspin_dispatcher", "check_dispatcher", Clusters=clusters, Tasks=20, Width=8)


def test_l1_bank() -> None:
    run("pspin_l1_bank", "check_l1_bank", Rows=8)


@pytest.mark.parametrize("units", [8, 23])
def test_l1_ring(units: int) -> None:
    run("pspin_l1_ring", "check_l1_ring", Units=units)


@pytest.mark.parametrize(("queues", "shared", "own"), [(4, 3, 1), (2, 0, 2)])
def test_mpq(queues: int, shared: int, own: int) -> None:
    run("pspin_mpq", "check_mpq", Queues=queues, SharedCells=shared, OwnCells=own, IdWidth=4, Width=16, TasksWidth=6)
