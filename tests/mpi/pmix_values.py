# SPDX-License-Identifier: Apache-2.0
"""Functions of PMIx in `libsimpmix.so`, beside those for values of the PMIx library named by the argument."""

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


def texts(rank: int) -> dict[bytes, bytes]:  # names of one part, and of several
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

# Values in a row, whose memory is the other library's.
row = (ctypes.c_size_t * 5)()
theirs.PMIx_Data_buffer_construct(ctypes.byref(row))
packed = ours.PMIx_Data_pack, ctypes.byref(me), ctypes.byref(row)
words, numbers = (ctypes.c_char_p * 3)(b"first", None, b""), (ctypes.c_uint32 * 4)(1, 2, 3, 4000000000)
for values, count, kind in ((words, 3, 3), (numbers, 4, 14), (some, 2, 22), (ctypes.byref(held), 1, 27)):
    assert packed[0](*packed[1:], values, count, ctypes.c_uint16(kind)) == 0
assert packed[0](*packed[1:], words, 1, ctypes.c_uint16(39)) == -47
start, length = ctypes.c_void_p(), ctypes.c_size_t()
theirs.PMIx_Data_buffer_unload(ctypes.byref(row), ctypes.byref(start), ctypes.byref(length))
theirs.PMIx_Data_buffer_load(ctypes.byref(row), start, length)
assert row[4] == length.value > 1000


def unpack(values: object, room: int, kind: int) -> tuple[int, int]:
    count = ctypes.c_int32(room)
    status = ours.PMIx_Data_unpack(None, ctypes.byref(row), values, ctypes.byref(count), ctypes.c_uint16(kind))
    return status, count.value


words, numbers, some, held = (ctypes.c_char_p * 3)(), (ctypes.c_uint32 * 4)(), (Process * 2)(), Bytes()
assert unpack(words, 3, 14) == (-20, 3)
assert unpack(words, 2, 3) == (-19, 2)
assert (unpack(words, 3, 3), list(words)) == ((0, 3), [b"first", None, b""])
assert (unpack(numbers, 9, 14), list(numbers)) == ((0, 4), [1, 2, 3, 4000000000])
assert (unpack(some, 2, 22), [(each.job, each.rank) for each in some]) == ((0, 2), [(me.job, 0), (me.job, 1)])
assert unpack(ctypes.byref(held), 1, 27) == (0, 1)
assert (held.length, held.start) == (1000, b"a")
assert unpack(words, 1, 3) == (-50, 1)
theirs.PMIx_Data_buffer_destruct(ctypes.byref(row))
print(me.rank, "of", size)
assert ours.PMIx_Finalize(None, 0) == 0
assert ours.PMIx_Finalize(None, 0) == -31
