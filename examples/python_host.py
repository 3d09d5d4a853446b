"""Python as the host, by ctypes: a card adds up vectors that other ranks send from the memory of Python.

spincc -shared -fPIC examples/python_host.c -o libpython_host.so && spinrun -n 3 python3 examples/python_host.py
"""

from __future__ import annotations

from array import array
from ctypes import CDLL, c_double, c_uint32, c_uint64
from pathlib import Path

COUNT = 1000

card = CDLL(str(Path("libpython_host.so").resolve()))  # and with it libportals.so, whose functions can be called, too
rank, ranks = card.spin_rank(), card.spin_size()


def pointer(numbers: array[float]) -> object:
    """Return numbers as C sees them: no copy is made."""
    return (c_double * len(numbers)).from_buffer(numbers)


card.host_open()
numbers = array("d", [0.0] * COUNT if rank == 0 else [rank * i / 2 for i in range(COUNT)])
if rank == 0:
    card.host_receive(pointer(numbers), c_uint32(COUNT))
for turn in range(1, ranks):  # one rank after the other
    card.spin_barrier()
    if rank == turn:
        card.host_send(pointer(numbers), c_uint32(COUNT))
    if rank == 0:
        card.host_wait(c_uint64(turn))
if rank == 0:
    expected = [i / 2 * sum(range(ranks)) for i in range(COUNT)]
    print("the sums are", "right" if list(numbers) == expected else "wrong", "and the last one is", numbers[-1])
card.host_close()
