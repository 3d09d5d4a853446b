# SPDX-License-Identifier: Apache-2.0
"""The progress of a run, as a terminal shows it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from spinkit import _paths, goal

READING = "reading <stdin>"


class Terminal:
    """A terminal that has only standard error on it."""

    def __init__(self, command: str, *arguments: str) -> None:
        self._screen, of_child = pty.openpty()
        self.child = subprocess.Popen(
            [_paths.command(command), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=of_child,
            env=os.environ | {"TERM": "xterm"},
        )
        os.close(of_child)
        self.written = ""

    def read_until(self, there: Callable[[str], bool]) -> None:
        while not there(self.written):
            try:
                more = os.read(self._screen, 4096)
            except OSError:  # The child has closed it.
                more = b""
            if not more:
                return
            self.written += more.decode(errors="replace")

    def end(self, data: bytes = b"") -> bytes:
        """Write the rest of its input, and return what it has printed."""
        assert self.child.stdin is not None
        self.child.stdin.write(data)
        self.child.stdin.close()
        self.read_until(lambda _: False)
        os.close(self._screen)
        assert self.child.stdout is not None
        with self.child.stdout as printed:
            return printed.read()

    @property
    def line(self) -> str:
        """The final text of the cursor's line; lines above it never change."""
        assert "\n" not in self.written
        return self.written.replace("\x1b[2K", "\x1b[K").rpartition("\r\x1b[K")[2]


def test_a_bar_is_shown_and_removed_at_the_end(tmp_path: Path) -> None:
    schedule = tmp_path / "all.bin"
    goal.generate("alltoall", ranks=400).save(schedule)
    shown, hidden = (Terminal("spinkit-goal", "run", str(schedule), "--progress", when) for when in ("0.001", "off"))
    printed = [terminal.end().decode().splitlines() for terminal in (shown, hidden)]
    assert printed[0][:3] == printed[1][:3] == ["ranks    400", "events   478800", printed[0][2]]
    assert "/319200 operations" in shown.written
    assert "█" in shown.written
    assert shown.line == ""
    assert hidden.written == ""
    assert [terminal.child.wait() for terminal in (shown, hidden)] == [0, 0]


def test_reading_is_shown_and_removed_at_the_end() -> None:
    terminal = Terminal("spinkit-goal", "run", "-", "--progress", "0.01")
    terminal.read_until(lambda written: READING in written)
    printed = terminal.end(b"num_ranks 1\nrank 0 {\ncalc 100\n}\n")
    assert READING in terminal.written
    assert printed.startswith(b"ranks    1\nevents   1\nend      100.000 ns\n")
    assert terminal.line == ""
    assert terminal.child.wait() == 0


def test_an_interrupt_ends_the_run_and_leaves_the_terminal_clean() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        terminal = Terminal("spinkit-goal", "run", "-", "--progress", "0.01")
        terminal.read_until(lambda written: READING in written)
        assert terminal.line != ""
        terminal.child.send_signal(number)
        assert terminal.child.wait() == -number
        assert terminal.end() == b""
        assert terminal.line == ""


WAITING = ["sh", "-c", "read line; echo got $line"]


def test_a_simulation_shows_its_time_separately_from_its_output() -> None:
    terminal = Terminal("spinrun", "--progress", "0.01", *WAITING)
    told = "0.000 ns of simulated time, 0 events, 0/s"
    terminal.read_until(lambda written: told in written)
    assert terminal.end(b"it\n") == b"got it\n"
    assert told in terminal.written
    assert terminal.line == ""
    assert terminal.child.wait() == 0


def test_the_message_of_an_interrupted_simulation_has_a_line_of_its_own() -> None:
    terminal = Terminal("spinrun", "--progress", "0.01", *WAITING)
    terminal.read_until(lambda written: "simulated time" in written)
    terminal.child.send_signal(signal.SIGINT)
    assert terminal.child.wait() == 128 + signal.SIGINT
    assert terminal.end() == b""
    said = "spinrun: interrupted by signal 2 (SIGINT) at 0.000 ns of simulated time, in rank 0's own code\r\n"
    assert terminal.written.endswith("\r\x1b[2K" + said)


def test_a_simulation_shows_no_progress_where_its_output_goes(tmp_path: Path) -> None:
    program = ["sh", "-c", "sleep 0.1; echo out; echo err >&2"]
    for options in [[], ["--progress", "off"]]:
        done = subprocess.run([_paths.command("spinrun"), *options, *program], capture_output=True, check=True)
        assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    terminal = Terminal("spinrun", *program)
    assert (terminal.end(), terminal.written) == (b"out\n", "err\r\n")
    assert terminal.child.wait() == 0
