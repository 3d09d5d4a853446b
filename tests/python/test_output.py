# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from spinkit._errors import SpinkitError
from spinkit.cli import main
from spinkit.common._output import write_atomically


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "new", b"text")
    assert (tmp_path / "new").read_bytes() == b"text"
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new", "usual"]


def test_a_regular_file_keeps_its_permissions_and_a_link_its_file(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("a longer text")
    file.chmod(0o640)
    link.symlink_to("file")
    for name in (file, link):
        write_atomically(name, b"text")
        assert (file.read_bytes(), mode(file), link.is_symlink()) == (b"text", 0o640, True)
    file.unlink()
    with pytest.raises(SpinkitError, match=f"cannot write {link}: No such file or directory"):
        write_atomically(link, b"text")
    assert [file.name for file in tmp_path.iterdir()] == ["link"]


def test_pipes_and_devices_are_written_in_place(tmp_path: Path) -> None:
    pipe, null = tmp_path / "pipe", tmp_path / "null"
    os.mkfifo(pipe)
    null.symlink_to("/dev/null")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"through the pipe")
    reader.join()
    assert read == [b"through the pipe"]
    for device in (null, Path("/dev/null")):
        write_atomically(device, b"text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert null.is_symlink()
    assert Path("/dev/null").is_char_device()
    with pytest.raises(SpinkitError, match="cannot write /dev/full: No space left on device"):
        write_atomically(Path("/dev/full"), b"text")


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/stderr"])
def test_standard_output_is_appended_to_its_file(tmp_path: Path, name: str) -> None:
    program = (
        "from pathlib import Path; from spinkit.common._output import write_atomically as write; "
        f"print('before'); write(Path({name!r}), b'text\\n') if {name!r} == '-' else "
        f"(__import__('sys').stdout.flush(), write(Path({name!r}), b'text\\n'))"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, stderr=out, check=True)
    assert (tmp_path / "out").read_text() == "before\ntext\n"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for file, reason in ((tmp_path, "Is a directory"), (tmp_path / "no" / "file", "No such file or directory")):
        with pytest.raises(SpinkitError, match=f"cannot write {file}: {reason}"):
            write_atomically(file, b"text")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_is_an_error_before_the_run(tmp_path: Path) -> None:
    for words in (["reproduce", "ping-pong"], ["conformance"], ["profile", "program"]):
        command, *arguments = words
        missing = tmp_path / "no" / "report.json"
        result = CliRunner().invoke(main, [command, "--json", str(missing), *arguments])
        assert result.exit_code == 1
        assert result.stderr == f"spinkit: cannot write {missing}: there is no folder {missing.parent}\n"
        assert result.stdout == ""


@pytest.mark.parametrize("words", ["--help", "machines", "goal --help", "reproduce no-such-experiment", "doctor"])
def test_a_reader_that_stops_early_ends_a_command_quietly(words: str) -> None:
    """As in `… | head` and `… 2>&1 | head`."""
    command = [sys.executable, "-m", "spinkit", *words.split()]
    for both in (False, True):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(command, stdout=write, stderr=write if both else subprocess.PIPE, check=False)
        os.close(write)
        assert done.returncode in (0, 1)
        assert both or b"Traceback" not in done.stderr
        assert both or b"ipe" not in done.stderr
