# SPDX-License-Identifier: Apache-2.0
"""`spinrun --gdb`: sessions at the handlers of a card in gdb's remote protocol, without a gdb that knows RISC-V."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from spinkit import _paths

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCE = CHECKOUT / "tests" / "programs" / "debugging.c"
PC, SP, A0, A1 = 32, 2, 10, 11


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("gdb") / "debugging"
    command = [_paths.command("spincc"), "-O2", "-g", "--keep", SOURCE, "-o", to]
    subprocess.run(command, check=True)
    return to


class Session:
    """A run, and gdb's side of the conversation from the first stop on."""

    def __init__(self, program: Path, place: str, *options: str) -> None:
        command = [_paths.command("spinrun"), "-n", "2", "--gdb", place, *options, program, "1000"]
        self.run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.run.stderr is not None
        self.said = ""
        for line in self.run.stderr:
            self.said += line
            if found := re.search(r"'target remote (:?)(\S+)' (\S+)", line):
                break
        else:
            raise AssertionError(self.said)
        self.symbols = Path(found[3])
        if found[1]:
            self.socket = socket.create_connection(("127.0.0.1", int(found[2])), timeout=60)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(60)
            self.socket.connect(found[2])
        # Later output must not fill the pipe.
        self.rest = ""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()
        self.ask("qSupported:swbreak+;multiprocess+;vContSupported+")

    def _read(self) -> None:
        assert self.run.stderr is not None
        self.rest = self.run.stderr.read()

    def ask(self, packet: str) -> str:
        self.socket.sendall(f"${packet}#{sum(packet.encode()) % 256:02x}".encode())
        answer = b""
        while not re.search(rb"#..$", answer):
            byte = self.socket.recv(1)
            assert byte, "spinrun has closed the connection"
            answer += byte
        self.socket.sendall(b"+")
        text = answer.decode().lstrip("+")[1:-3]
        # "x*c" is run-length encoding: x, repeated by the code of c.
        return re.sub(r"(.)\*(.)", lambda run: run[1] * (ord(run[2]) - 28), text)

    def registers(self, thread: int) -> list[int]:
        assert self.ask(f"Hgp1.{thread}") == "OK"
        return list(struct.unpack("<33I", bytes.fromhex(self.ask("g")[: 33 * 8])))

    def floats(self) -> tuple[float, ...]:
        bits = self.ask("g")[33 * 8 :]
        assert bits[32 * 16 :] == "x" * 3 * 8, "the values of the control registers are not known"
        return struct.unpack("<32d", bytes.fromhex(bits[: 32 * 16]))

    def memory(self, address: int, length: int) -> bytes:
        return bytes.fromhex(self.ask(f"m{address:x},{length:x}"))

    def close(self) -> None:
        self.socket.close()
        with self.run:  # closes its pipes
            self.run.kill()
            self.reader.join()

    def end(self) -> tuple[int, str, str]:
        out = self.run.stdout.read() if self.run.stdout else ""
        self.reader.join()
        return self.run.wait(60), out, self.said + self.rest


@pytest.fixture
def session(program: Path) -> Iterator[Session]:
    session = Session(program, "1:pay")
    yield session
    session.close()


def address_of(program: Path, mark: str) -> int:
    """Address of the first instruction of the source line with this mark, by the project's own disassembly."""
    command = [_paths.command("spincc"), "--disassemble", "pay", program]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = text[text.index("rv32imafdc:") :]  # the HPUs of sc17-int
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if f"/* {mark} */" in text)
    found = re.search(rf"debugging\.c:{line}\b.*\n(?:;.*\n)*([0-9a-f]{{8}}):", text)
    assert found, text
    return int(found[1], 16)


def test_a_handler_stops_at_its_first_instruction(session: Session) -> None:
    assert session.ask("?").startswith("T05thread:p01.01;")
    assert session.ask("qfThreadInfo") == "mp01.01"
    assert bytes.fromhex(session.ask("qThreadExtraInfo,p1.1")) == b"HPU 0 pay"
    registers = session.registers(1)
    # The payload's length and offset; the state with its sum and name.
    assert struct.unpack("<QQ", session.memory(registers[A0], 16)) == (1000, 0)
    assert session.memory(registers[A1], 16) == bytes(8) + b"hello\0\0\0"
    assert session.ask("m0,4").startswith("E")
    # gdb gets the device program with its symbols.
    assert session.symbols.read_bytes()[:4] == b"\x7fELF"


def test_breakpoints_steps_and_changes(session: Session, program: Path) -> None:
    add = address_of(program, "add")
    assert session.ask(f"Z0,{add:x},2") == "OK"
    assert "swbreak" in session.ask("vCont;c")
    registers = session.registers(1)
    assert registers[PC] == add
    assert session.ask("vCont;s:p1.1;c").startswith("T05thread:p01.01;")
    after = session.registers(1)[PC]
    assert after in (add + 2, add + 4)
    # The handler reads values written by gdb.
    state = next(value for value in registers if 0x1000_0000 <= value < 0x1000_1000)
    assert session.ask(f"M{state:x},8:{struct.pack('<Q', 5).hex()}") == "OK"
    end = after + 0x10
    assert session.ask(f"vCont;r{after:x},{end:x}:p1.1;c").startswith("T05thread:p01.01;")
    pc = session.registers(1)[PC]
    assert not after <= pc < end
    assert session.memory(state, 8) in (struct.pack("<Q", 5), struct.pack("<Q", 1005))
    assert session.ask(f"z0,{add:x},2") == "OK"
    assert session.ask("vCont;c") == "W00"
    status, out, _ = session.end()
    assert status == 0
    assert out.startswith("OK at ")
    assert not session.symbols.exists()


def test_memory_is_watched_until_it_changes(session: Session) -> None:
    [state] = {value for value in session.registers(1)[A1 : A1 + 1] if 0x1000_0000 <= value < 0x1000_1000}
    assert session.ask("Z2,0,8").startswith("E"), "there is no memory"
    assert session.ask(f"Z3,{state:x},8").startswith("E"), "reads are not watched"
    assert session.ask(f"Z2,{state:x},8") == "OK"
    assert f"watch:{state:x};" in session.ask("vCont;c")
    assert session.memory(state, 8) == struct.pack("<Q", 1000)
    assert session.ask(f"z2,{state:x},8") == "OK"
    # gdb steps the only known thread in this way.
    before = session.registers(1)[PC]
    assert session.ask("vCont;s:p1.1").startswith("T05thread:p01.01;")
    assert session.registers(1)[PC] != before
    assert session.ask("vCont;c") == "W00"
    assert session.end()[0] == 0


def test_floating_point_registers(session: Session) -> None:
    description = session.ask("qXfer:features:read:target.xml:0,4000")
    assert 'name="fa0" bitsize="64" type="ieee_double" regnum="43"' in description
    integer, values = session.registers(1), tuple(number / 4 for number in range(32))
    sent = struct.pack("<33I32d3I", *integer, *values, 0, 0, 0)
    assert session.ask(f"G{sent.hex()}") == "OK"
    session.ask("vCont;s:p1.1;c")  # the handler gets them, and returns them
    assert session.floats() == values


def test_simulated_time_stands_still(session: Session, program: Path) -> None:
    session.ask("vCont;s:p1.1;c")
    session.ask("vCont;s:p1.1;c")
    assert session.ask("vCont;c") == "W00"
    command = [_paths.command("spinrun"), "-n", "2", program, "1000"]
    plain = subprocess.run(command, check=True, capture_output=True, text=True)
    assert session.end()[1] == plain.stdout


def test_a_port_is_opened_on_request(program: Path) -> None:
    session = Session(program, "1:pay", "--gdb-port", "0")
    assert session.ask("?").startswith("T05thread:p01.01;")
    assert session.ask("vCont;c") == "W00"
    assert session.end()[0] == 0
    session.close()


def test_a_signal_ends_a_run_that_gdb_has_stopped(session: Session) -> None:
    session.run.terminate()
    status, _, err = session.end()
    assert status == 128 + signal.SIGTERM
    assert "spinrun: a signal ends the run" in err


def test_gdb_may_leave(session: Session) -> None:
    session.ask("D;1")
    status, out, err = session.end()
    assert status == 0
    assert out.startswith("OK at ")
    assert "gdb has detached; handlers run on" in err


def test_gdb_may_end_the_run(session: Session) -> None:
    session.socket.sendall(b"$vKill;1#6e")
    # A connection closed with unread input may lose its sent data.
    while session.socket.recv(4096):
        pass
    status, _, err = session.end()
    assert status != 0
    assert "gdb has ended the run" in err
