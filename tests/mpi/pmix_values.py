"""The functions of PMIx of `libsimpmix.so`, beside those for values of the library of PMIx that the argument names."""

from __future__ import annotations

import ctypes
import sys


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint16), ("data", ctypes.c_uint64 * 3)]


class Process(ctypes.Structure):
    _fields_ = [("job", ctypes.c_char * 256), ("rank", ctypes.c_uint32)]


class Bytes(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char_p), ("length", ctypes.c_size_t)]


ours, theirs, me = ctypes.CDLL(None), ctypes.CDLL(sys.argv[1]), Process()
assert ours.PMIx_Initialized() == 0
assert ours.PMIx_Put(3, b"early", ctypes.byref(Value())) == -31  # not initialised
assert ours.PMIx_Init(ctypes.byref(me), None, 0) == 0
assert ours.PMIx_Initialized() == 1


def get(rank: int, key: bytes) -> tuple[int, ctypes._Pointer[Value]]:
    found = ctypes.POINTER(Value)()
    asked = Process(me.job, rank)
    status = ours.PMIx_Get(ctypes.byref(asked), key, None, 0, ctypes.byref(found))
    return status, found


def texts(rank: int) -> dict[bytes, bytes]:  # of one part, and of several
    return {b"short": b"rank %d" % rank, b"empty": b"", b"long": b"%d" % rank * 5000}


for key, text in texts(me.rank).items():
    value = Value()
    assert theirs.PMIx_Value_load(ctypes.byref(value), ctypes.c_char_p(text), ctypes.c_uint16(3)) == 0
    assert ours.PMIx_Put(3, key, ctypes.byref(value)) == 0
for kind, number in (
    (13, ctypes.c_uint16(60000 + me.rank)),
    (14, ctypes.c_uint32(4000000000 + me.rank)),
    (4, ctypes.c_size_t(1 << 60)),
):
    value = Value()
    assert theirs.PMIx_Value_load(ctypes.byref(value), ctypes.byref(number), ctypes.c_uint16(kind)) == 0
    assert ours.PMIx_Put(3, b"number%d" % kind, ctypes.byref(value)) == 0
value = Value()
held = Bytes(b"a\0b" + bytes([me.rank]) * 997, 1000)
assert theirs.PMIx_Value_load(ctypes.byref(value), ctypes.byref(held), ctypes.c_uint16(27)) == 0
assert ours.PMIx_Put(3, b"bytes", ctypes.byref(value)) == 0
assert ours.PMIx_Put(3, b"a key with blanks", ctypes.byref(value)) == -27
assert ours.PMIx_Put(3, b"k" * 500, ctypes.byref(value)) == -27
assert ours.PMIx_Put(3, b"pointer", ctypes.byref(Value(31))) == -47
assert ours.PMIx_Commit() == 0
assert ours.PMIx_Fence(None, 0, None, 0) == 0

status, found = get(0xFFFFFFFE, b"pmix.job.size")
assert status == 0
assert found[0].kind == 14
size = found[0].data[0] & 0xFFFFFFFF
for rank in range(size):
    for key, text in texts(rank).items():
        status, found = get(rank, key)
        assert (status, found[0].kind) == (0, 3)
        assert ctypes.string_at(found[0].data[0]) == text
        theirs.PMIx_Value_free(found, ctypes.c_size_t(1))
    for kind, bits, number in ((13, 16, 60000 + rank), (14, 32, 4000000000 + rank), (4, 64, 1 << 60)):
        status, found = get(rank, b"number%d" % kind)
        assert (status, found[0].kind, found[0].data[0] % (1 << bits)) == (0, kind, number)
    status, found = get(rank, b"bytes")
    assert (status, found[0].kind, found[0].data[1]) == (0, 27, 1000)
    assert ctypes.string_at(found[0].data[0], 1000) == b"a\0b" + bytes([rank]) * 997
    status, found = get(rank, b"pmix.lpeers")
    assert ctypes.string_at(found[0].data[0]) == b"%d" % rank  # alone on its node
assert [get(*what)[0] for what in ((0, b"nothing"), (size, b"short"), (0, b"pmix.hname"))] == [-46] * 3
assert ours.PMIx_Get(ctypes.byref(Process(b"another", 0)), b"short", None, 0, ctypes.byref(found)) == -46
some = (Process * 2)(Process(me.job, 0), Process(me.job, 1))
assert ours.PMIx_Fence(some, 2, None, 0) == -47
print(me.rank, "of", size)
assert ours.PMIx_Finalize(None, 0) == 0
assert ours.PMIx_Finalize(None, 0) == -31
