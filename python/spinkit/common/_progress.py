# SPDX-License-Identifier: Apache-2.0
"""Shows the steps of a long command: a bar on a terminal, else lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A finished step."""

    what: str
    done: int
    total: int
    cached: bool
    """True if the result comes from the cache."""
    failure: str | None = None
    """Reason for repeating the failed step."""


Progress = Callable[[Step], None]


_ASKS_FOR_A_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables by which rich treats a file or pipe as a terminal."""


def _line(step: Step) -> str:
    if step.failure is not None:
        return f"{step.what} failed and is run again: {step.failure}"
    return f"{step.done}/{step.total} {step.what}{' (from the cache)' if step.cached else ''}"


def _write_line(step: Step) -> None:
    print(_line(step), file=sys.stderr, flush=True)


_PAUSE_S = 10.0
"""Seconds between lines of a brief progress."""


class _Brief:
    """Writes failures, a line from time to time, and the number of steps at the end."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._cached = 0
        self._last: Step | None = None

    def tell(self, step: Step) -> None:
        """Take a finished step."""
        if step.failure is not None:
            _write_line(step)
            return
        self._cached += step.cached
        self._last = step
        if time.monotonic() - self._told >= _PAUSE_S:
            self._told = time.monotonic()
            _write_line(step)

    def end(self) -> None:
        """Write the number of steps."""
        if self._last is not None:
            cached = f", {self._cached} from the cache" if self._cached else ""
            print(f"{self._last.done} runs{cached}", file=sys.stderr, flush=True)


@contextmanager
def steps(verbose: bool = True) -> Iterator[Progress]:
    """Show steps on standard error until the work is done; without a terminal, each in a line if `verbose`."""
    if not (sys.stderr.isatty() or any(os.environ.get(name) for name in _ASKS_FOR_A_TERMINAL)):
        brief = _Brief()
        yield _write_line if verbose else brief.tell
        brief.end()
        return
    from spinkit.common._terminal import progress_bar  # imported here because lines do without it

    with progress_bar() as bar:
        task = bar.add_task("compile", total=None)

        def tell(step: Step) -> None:
            if step.failure is not None:
                bar.console.print(_line(step), markup=False, soft_wrap=True)
                return
            bar.update(task, description=step.what, completed=step.done, total=step.total)
            if not bar.console.is_terminal:
                bar.console.print(_line(step), markup=False, soft_wrap=True)

        yield tell
