# SPDX-License-Identifier: Apache-2.0
"""Child processes of a command, which an interrupt ends together."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from spinkit._errors import EndingError, SpinkitError

Execute = Callable[[list[str], float | None], tuple[int, str, str]]
"""Runs a command within a time in seconds; returns its exit status, output and error output."""


class Processes:
    """The processes that are running, so that an interrupt can end them all."""

    def __init__(self) -> None:
        self._live: set[subprocess.Popen[str]] = set()
        self._lock = Lock()
        self._closed = False

    def execute(self, command: list[str], timeout_s: float | None, folder: Path | None = None) -> tuple[int, str, str]:
        """Run a command, in a folder or the present one; return its exit status, output and error output."""
        with self._lock:
            if self._closed:
                raise EndingError("interrupted")
            try:
                process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                )
            except OSError as error:
                raise SpinkitError(f"{command[0]}: {error.strerror}") from None
            self._live.add(process)
        try:
            output, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise SpinkitError(f"{command[0]} did not end within {timeout_s} s") from None
        finally:
            with self._lock:
                self._live.discard(process)
        return process.returncode, output, errors

    def output(self, command: Sequence[str | Path]) -> str:
        """Run a command that must succeed; return its output."""
        status, output, errors = self.execute([str(word) for word in command], None)
        if status != 0:
            raise SpinkitError(f"{command[0]} ended with status {status}\n{errors.strip()}".rstrip())
        return output

    def interrupt(self) -> None:
        """Start no more processes and send SIGINT to all, so that spinrun ends its ranks."""
        with self._lock:
            self._closed = True
            for process in self._live:
                process.send_signal(signal.SIGINT)


@contextmanager
def pool(threads: int) -> Iterator[tuple[ThreadPoolExecutor, Processes]]:
    """Open threads that run child processes; an exception in the block ends those and starts no more."""
    processes = Processes()
    with ThreadPoolExecutor(threads) as executor:
        try:
            yield executor, processes
        except BaseException:
            processes.interrupt()
            executor.shutdown(cancel_futures=True)
            raise
