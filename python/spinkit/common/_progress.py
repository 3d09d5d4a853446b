# SPDX-License-Identifier: Apache-2.0
"""Shows the steps of a long command: a bar on a terminal, else a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spinkit.common._terminal import progress_bar


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


@contextmanager
def steps() -> Iterator[Progress]:
    """Show steps on standard error until the work is done."""
    with progress_bar() as bar:
        task = bar.add_task("compile", total=None)

        def tell(step: Step) -> None:
            if step.failure is not None:
                bar.console.print(f"{step.what} failed and is run again: {step.failure}", markup=False, soft_wrap=True)
                return
            bar.update(task, description=step.what, completed=step.done, total=step.total)
            if not bar.console.is_terminal:
                before = " (from the cache)" if step.cached else ""
                bar.console.print(f"{step.done}/{step.total} {step.what}{before}", markup=False, soft_wrap=True)

        yield tell
