# SPDX-License-Identifier: Apache-2.0
"""Reads the slices of a timeline that `spinrun --trace` has written.

The file is a Perfetto trace: protocol buffers, with the field numbers of `protos/perfetto/trace` in Perfetto's public
repository. Only the fields that `spinrun` writes are read. Times are the exact picoseconds of the arguments `start_ps`
and `dur_ps`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spinkit._errors import SpinkitError

# trace_packet.proto
_PACKET, _INTERNED, _EVENT, _DESCRIPTOR = 1, 12, 11, 60
# interned_data.proto, and the number and text of its entries
_EVENT_NAMES, _ARGUMENT_NAMES, _IID, _TEXT = 2, 3, 1, 2
# track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto
_UUID, _PROCESS, _THREAD, _PARENT, _PROCESS_NAME, _THREAD_NAME = 1, 3, 4, 5, 6, 5
# track_event.proto, debug_annotation.proto
_ARGUMENT, _TYPE, _NAME_IID, _TRACK, _SLICE_BEGIN = 4, 9, 10, 11, 1
_ARGUMENT_IID, _ARGUMENT_UINT = 1, 3

Value = int | bytes


@dataclass(frozen=True)
class Slice:
    """Something that lasts for a time, in a row of a process."""

    process: str
    row: str
    name: str
    start: int
    """Picoseconds."""
    end: int
    """Picoseconds."""
    arguments: Mapping[str, int]


def read(file: Path) -> list[Slice]:
    """Return the slices of a trace, in the order of their starts."""
    content = file.read_bytes()
    try:
        return sorted(_slices(content), key=lambda one: (one.start, -one.end))
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise SpinkitError(f"{file}: no timeline of spinrun: {error!r}") from None


def _slices(content: bytes) -> Iterator[Slice]:
    processes: dict[int, str] = {}
    tracks: dict[int, tuple[int, str]] = {}
    events: dict[int, str] = {}
    arguments: dict[int, str] = {}
    for number, packet in _fields(content):
        if number != _PACKET:
            continue
        fields = _message(packet)
        for interned in fields.get(_INTERNED, []):
            for kind, entry in _fields(_bytes(interned)):
                names = {_EVENT_NAMES: events, _ARGUMENT_NAMES: arguments}.get(kind)
                if names is not None:
                    text = _message(entry)
                    names[_int(text[_IID][0])] = _bytes(text[_TEXT][0]).decode()
        for descriptor in fields.get(_DESCRIPTOR, []):
            track = _message(descriptor)
            uuid = _int(track[_UUID][0])
            for process in track.get(_PROCESS, []):
                processes[uuid] = _bytes(_message(process)[_PROCESS_NAME][0]).decode()
            for thread in track.get(_THREAD, []):
                name = _bytes(_message(thread)[_THREAD_NAME][0]).decode()
                tracks[uuid] = (_int(track[_PARENT][0]), name)
        for event in fields.get(_EVENT, []):
            track_event = _message(event)
            if track_event[_TYPE][0] == _SLICE_BEGIN:
                parent, row = tracks[_int(track_event[_TRACK][0])]
                values = dict(_argument(one, arguments) for one in track_event.get(_ARGUMENT, []))
                start, length = values.pop("start_ps"), values.pop("dur_ps")
                name = events[_int(track_event[_NAME_IID][0])]
                yield Slice(processes[parent], row, name, start, start + length, values)


def _argument(content: Value, names: Mapping[int, str]) -> tuple[str, int]:
    fields = _message(content)
    return names[_int(fields[_ARGUMENT_IID][0])], _int(fields.get(_ARGUMENT_UINT, [0])[0])


def _message(content: Value) -> dict[int, list[Value]]:
    """Return the values of each field of a message."""
    found: dict[int, list[Value]] = {}
    for number, value in _fields(_bytes(content)):
        found.setdefault(number, []).append(value)
    return found


def _fields(content: Value) -> Iterator[tuple[int, Value]]:
    """Return the number and value of each field, in the wire format of protocol buffers."""
    data, at = _bytes(content), 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(data, at)
        else:
            length = {1: 8, 5: 4}[wire]
        if at + length > len(data):
            raise IndexError("a field is cut off")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError("a number is missing")
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a message is missing")
    return value
