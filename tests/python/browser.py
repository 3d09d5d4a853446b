# SPDX-License-Identifier: Apache-2.0
"""Chromium without a screen, driven over its debugging pipe; tests skip where it is not installed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_WAIT_S = 60.0


def chromium() -> str:
    """Return the browser's path, or skip the test."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    return found


class Browser:
    """A browser with one tab. `errors` are the uncaught errors, and messages on its console, since `open`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        self.errors: list[str] = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = ""
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        session = {"sessionId": self._session} if getattr(self, "_session", "") else {}
        message = {"id": self._number, "method": method, "params": parameters or {}, **session}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + _WAIT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"the browser did not answer within {_WAIT_S:.0f} s"
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _take(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            entry = parameters["entry"]
            self.errors.append(f"{entry['text']} {entry.get('url', '')}")
        elif method == "Network.loadingFailed" and not parameters.get("canceled"):
            self.errors.append(f"not loaded: {parameters['errorText']}")
        self._events.append(event)

    def look(self, width: int, height: int, dark: bool = False) -> None:
        """Set size and colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._call("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, file: Path, fragment: str = "") -> None:
        """Load a page of a file, and wait until it and its pictures are there."""
        self.visit(file.resolve().as_uri() + fragment)

    def visit(self, address: str) -> None:
        """Load a page, and wait until it and its pictures are there."""
        self.errors.clear()
        self._events.clear()
        self._call("Page.navigate", {"url": "about:blank"})
        self.wait("location.href == 'about:blank'")
        self._call("Page.navigate", {"url": address})
        self.wait("location.protocol != 'about:' && document.readyState == 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression, as JSON has it."""
        parameters = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = self._call("Runtime.evaluate", parameters)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + _WAIT_S
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < until, f"not within {_WAIT_S:.0f} s: {condition}; errors: {self.errors}"
            time.sleep(0.02)

    def drag(self, start: tuple[float, float], end: tuple[float, float], shift: bool = False) -> None:
        """Press the mouse at a place, move it, and release it; equal places are a click."""
        common = {"button": "left", "clickCount": 1, "modifiers": 8 if shift else 0}
        steps = [("mousePressed", start), ("mouseMoved", end), ("mouseReleased", end)]
        for kind, (x, y) in steps if start != end else [steps[0], steps[2]]:
            self._call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "buttons": 1, **common})

    def screenshot(self, file: Path) -> None:
        """Write a picture of the page."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium with a new profile; end it at the end."""
    path = chromium()
    read_by_it, to_it = os.pipe()
    from_it, written_by_it = os.pipe()
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    command = [path, *options, "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    # The pipe's ends become descriptors 3 and 4 of the browser; copies above them stay out of the way.
    script = (
        "import fcntl, os, sys; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]; "
        "[os.dup2(end, number) for end, number in zip(ends, (3, 4))]; os.execv(sys.argv[3], sys.argv[3:])"
    )
    started = [sys.executable, "-c", script, str(read_by_it), str(written_by_it), *command]
    child = subprocess.Popen(
        started,
        pass_fds=(read_by_it, written_by_it),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_by_it)
    os.close(written_by_it)
    try:
        yield Browser(to_it, from_it)
    finally:
        os.close(to_it)
        os.close(from_it)
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
