# SPDX-License-Identifier: Apache-2.0
"""Makes GOAL schedules, by generators or operation by operation, and runs them with the command `spinkit goal`.

```python
from spinkit import goal

tree = goal.generate("bcast", ranks=1024, size=4096)
print(goal.run(tree, L=1000, o=200).max_end_ns)

pair = goal.Builder(ranks=2)
received = pair.recv(1, source=0, size=8)
pair.calc(1, ns=500, after=[received])
pair.send(0, to=1, size=8)
print(goal.run(pair.schedule(), model="packet", machine="sc17-int").end_ns)
```
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._output import write_atomically

__all__ = ["Builder", "Operation", "Option", "Result", "Schedule", "SpinkitError", "generate", "run"]

Option = str | int | float | bool | Path | Sequence[str] | None
"""Value of an option of `spinkit goal`: True is the flag alone, a list one option for each item, False or None none."""


@dataclass(frozen=True)
class Schedule:
    """A schedule, in text or binary form."""

    data: bytes

    @classmethod
    def load(cls, file: Path | str) -> Schedule:
        """Read a file without checking it; `run` reports mistakes in it."""
        try:
            return cls(Path(file).read_bytes())
        except OSError as error:
            raise SpinkitError(f"{file}: {error.strerror}") from None

    def save(self, file: Path | str) -> None:
        """Write a file, in the schedule's own form."""
        try:
            write_atomically(Path(file), self.data)
        except OSError as error:
            raise SpinkitError(f"{file}: {error.strerror}") from None

    def text(self) -> str:
        """Return the schedule as text."""
        return _goal(["show", "-"], self.data).decode()


@dataclass(frozen=True)
class Operation:
    """An operation of a `Builder`, on which others may depend."""

    rank: int
    number: int
    """Number among the rank's operations, from 0."""


class Builder:
    """Makes a schedule operation by operation. The operations of a rank are concurrent unless one depends on others.

    All methods raise ValueError for numbers out of range, and for a dependency on an operation of another rank.
    """

    def __init__(self, ranks: int) -> None:
        if ranks < 1:
            raise ValueError(f"ranks: expected at least 1, found {ranks}")
        self._lines: list[list[str]] = [[] for _ in range(ranks)]
        self._counts = [0] * ranks

    def send(
        self, rank: int, to: int, size: int, *, tag: int = 0, cpu: int = 0, after: Iterable[Operation] = ()
    ) -> Operation:
        """Send `size` bytes when all operations in `after` have ended."""
        self._check("to", to, len(self._lines))
        return self._add(rank, f"send {self._check('size', size)}b to {to}", tag, cpu, after)

    def recv(
        self,
        rank: int,
        source: int | None,
        size: int,
        *,
        tag: int | None = 0,
        cpu: int = 0,
        after: Iterable[Operation] = (),
    ) -> Operation:
        """Receive `size` bytes; the receive is posted when all operations in `after` have ended.

        None as source or tag stands for any.
        """
        origin = "any" if source is None else self._check("source", source, len(self._lines))
        what = f"recv {self._check('size', size)}b from {origin}"
        return self._add(rank, f"{what} tag any" if tag is None else what, tag, cpu, after)

    def calc(self, rank: int, ns: int, *, cpu: int = 0, after: Iterable[Operation] = ()) -> Operation:
        """Compute for `ns` nanoseconds when all operations in `after` have ended."""
        return self._add(rank, f"calc {self._check('ns', ns)}", None, cpu, after)

    def require(self, operation: Operation, *others: Operation) -> None:
        """Let an operation also wait until others have ended."""
        self._lines[operation.rank] += self._waits(operation, "requires", others)

    def require_start(self, operation: Operation, *others: Operation) -> None:
        """Let an operation also wait until others have started."""
        self._lines[operation.rank] += self._waits(operation, "irequires", others)

    def schedule(self) -> Schedule:
        """Return the schedule made so far."""
        ranks = [f"rank {rank} {{\n{''.join(lines)}}}\n" for rank, lines in enumerate(self._lines)]
        return Schedule("\n".join([f"num_ranks {len(ranks)}\n", *ranks]).encode())

    def _add(self, rank: int, what: str, tag: int | None, cpu: int, after: Iterable[Operation]) -> Operation:
        self._check("rank", rank, len(self._lines))
        operation = Operation(rank, self._counts[rank])
        tagged = "" if tag is None else f" tag {self._check('tag', tag)}"
        line = f"l{operation.number}: {what}{tagged} cpu {self._check('cpu', cpu)}\n"
        waits = self._waits(operation, "requires", after)
        self._counts[rank] += 1
        self._lines[rank] += [line, *waits]
        return operation

    @staticmethod
    def _waits(operation: Operation, how: str, others: Iterable[Operation]) -> list[str]:
        lines = []
        for other in others:
            if other.rank != operation.rank:
                raise ValueError(f"an operation of rank {operation.rank} cannot wait for one of rank {other.rank}")
            lines.append(f"l{operation.number} {how} l{other.number}\n")
        return lines

    @staticmethod
    def _check(name: str, number: int, end: int = 1 << 63) -> int:
        if not 0 <= number < end:
            raise ValueError(f"{name}: expected 0 to {end - 1}, found {number}")
        return number


@dataclass(frozen=True)
class Result:
    """Result of a run."""

    model: str
    parameters: Mapping[str, Any]
    """Parameters of the model, by name and unit."""
    operations: int
    events: int
    end_ns: tuple[float, ...]
    """End of each rank, in nanoseconds of simulated time."""
    max_end_ns: float
    more: Mapping[str, Any]
    """Results that are specific to this model."""

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return len(self.end_ns)


def generate(pattern: str, ranks: int, size: int = 1, **options: Option) -> Schedule:
    """Make the schedule of a pattern: `spinkit goal gen --help` lists patterns and options (`calc=100`, `root=1`)."""
    arguments = ["gen", pattern, "--ranks", str(ranks), "--size", str(size), *_options(options)]
    return Schedule(_goal([*arguments, "--format", "binary"], b""))


def run(schedule: Schedule | Path | str, model: str = "loggops", **parameters: Option) -> Result:
    """Execute a schedule, or the file that contains one.

    Parameters are options of `spinkit goal run MODEL`: `L=1000` is `-L 1000`, and `switch_latency=50` is
    `--switch-latency 50`.
    """
    file, data = ("-", schedule.data) if isinstance(schedule, Schedule) else (str(schedule), b"")
    with TemporaryDirectory(prefix="spinkit-goal-") as folder:
        report = Path(folder) / "report.json"
        fixed = ["run", model, "--progress", "off", "--json", str(report)]
        _goal([*fixed, *_options(parameters), "--", file], data)
        content = json.loads(report.read_text(encoding="utf-8"))
    for left_out in ("ranks", "cpu_seconds", "wall_seconds", "peak_memory_bytes"):
        del content[left_out]
    ends = tuple(content.pop("end_ns"))
    known = {key: content.pop(key) for key in ("model", "parameters", "operations", "events", "max_end_ns")}
    return Result(end_ns=ends, more=content, **known)


def _options(given: Mapping[str, Option]) -> list[str]:
    options: list[str] = []
    for name, value in given.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if value is True:
            options.append(flag)
        elif value is not None and value is not False:
            values = [str(value)] if isinstance(value, str | int | float | Path) else value
            options += [word for one in values for word in (flag, one)]
    return options


def _goal(arguments: Sequence[str], data: bytes) -> bytes:
    done = subprocess.run([_paths.command("spinkit-goal"), *arguments], input=data, capture_output=True, check=False)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip().removeprefix("spinkit goal: error: ")
        raise SpinkitError(message or f"spinkit goal ended with status {done.returncode}")
    return done.stdout
