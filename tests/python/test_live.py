# SPDX-License-Identifier: Apache-2.0
"""Live cards (`spinkit pspin serve`): handlers on frames of a socket, and on real interfaces where root permits."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from spinkit import _paths

HOME = Path(__file__).resolve().parents[2]
LIVE = HOME / "sdk" / "handlers" / "live"
FAULTS = HOME / "tests" / "pspin" / "live_faults.c"
ENGINES = ["native", "model"] if platform.machine() == "x86_64" else ["model"]
CARD, CLIENT = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
CARD_MAC, CLIENT_MAC = bytes([2, 0x50, 10, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 9])


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f">{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_frame(protocol: int, payload: bytes, *, offset: int = 0) -> bytes:
    """Return a frame of the client for the card."""
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 7, offset, 64, protocol, 0) + CLIENT + CARD
    header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
    return CARD_MAC + CLIENT_MAC + b"\x08\0" + header + payload


def udp_frame(port: int, data: bytes, source: int = 40000) -> bytes:
    """Return a frame with a datagram."""
    return ip_frame(17, struct.pack(">HHHH", source, port, 8 + len(data), 0) + data)


def udp_data(frame: bytes, port: int, source: int = 40000) -> bytes:
    """Check the headers of an answer, and return its data."""
    assert frame[:14] == CLIENT_MAC + CARD_MAC + b"\x08\0"
    header = frame[14:34]
    assert checksum(header) == 0
    assert header[12:20] == CARD + CLIENT
    assert struct.unpack(">H", header[2:4])[0] == len(frame) - 14
    assert struct.unpack(">HHHH", frame[34:42]) == (port, source, len(frame) - 34, 0)
    return frame[42:]


class Client:
    """Client at the socket of a live card."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def ask(self, frame: bytes) -> bytes:
        """Send a frame, and return the next frame of the card."""
        self.connection.send(frame)
        return self.connection.recv(65536)

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self.connection.send(frame)


class Run:
    """End of a live card."""

    status = -1
    errors = ""
    output = ""

    def report(self, folder: Path) -> dict:
        """Return the report."""
        return json.loads((folder / "report.json").read_text())


@contextmanager
def served(folder: Path, program: Path, engine: str, *options: str) -> Iterator[tuple[Client, Run]]:
    """Serve a program at a socket, as long as the block lasts."""
    path, run = folder / "card", Run()
    command = [_paths.command("spinkit-pspin"), "serve", program, "--engine", engine, "--socket", path]
    command += ["--json", folder / "report.json", *options]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as card:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(60)
            until(lambda: path.exists() or card.poll() is not None)
            if card.poll() is None:
                connect(connection, path)
            yield Client(connection), run
        run.output, run.errors = card.communicate(timeout=60)
    run.status = card.returncode
    assert not path.exists(), "the socket is removed"


def connect(connection: socket.socket, path: Path) -> None:
    """Connect to a socket whose file may exist before its process listens."""

    def connected() -> bool:
        try:
            connection.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True

    until(connected)


def until(done: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


@pytest.mark.parametrize("engine", ENGINES)
def test_icmp_echo_answers_requests_only(tmp_path: Path, engine: str) -> None:
    """Compare replies of several sizes with RFC 792; other packets go to the host."""
    with served(tmp_path, LIVE / "icmp_echo/icmp_echo.c", engine, "--address", "10.0.0.1/24") as (client, run):
        for size in (0, 1, 56, 1000, 1472):
            body = struct.pack(">HH", 0x1234, size) + bytes(index % 251 for index in range(size))
            request = b"\x08\0" + struct.pack(">H", checksum(b"\x08\0\0\0" + body)) + body
            answer = client.ask(ip_frame(1, request))
            assert answer[:14] == CLIENT_MAC + CARD_MAC + b"\x08\0"
            assert answer[26:34] == CARD + CLIENT
            assert checksum(answer[14:34]) == 0
            reply = answer[34:]
            assert reply[:2] == b"\0\0"
            assert checksum(reply) == 0
            assert reply[4:] == body
        client.send(ip_frame(1, b"\x08\0\0\0" + bytes(12), offset=0x2000))  # a fragment
        client.send(ip_frame(1, b"\0\0\0\0" + bytes(12)))  # a reply
        arp = b"\xff" * 6 + CLIENT_MAC + b"\x08\x06\0\x01\x08\0\x06\x04\0\x01" + CLIENT_MAC + CLIENT + bytes(6) + CARD
        answer = client.ask(arp)
        assert answer[:42] == CLIENT_MAC + CARD_MAC + b"\x08\x06\0\x01\x08\0\x06\x04\0\x02" + CARD_MAC + CARD + (
            CLIENT_MAC + CLIENT
        )
    report = run.report(tmp_path)
    assert run.status == 0, run.errors
    assert report["engine"] == engine
    assert (report["packets"]["done"], report["packets"]["to_host"], report["commands"]["send"]) == (5, 3, 5)
    assert "2 frames that no rule takes were dropped" in run.errors


@pytest.mark.parametrize("engine", ENGINES)
def test_udp_echo_returns_data(tmp_path: Path, engine: str) -> None:
    """Compare the data of datagrams, and count malformed ones, which have no answer."""
    with served(tmp_path, LIVE / "udp_echo/udp_echo.c", engine) as (client, run):
        for size in (1, 2, 63, 1472):
            data = os.urandom(size)
            assert udp_data(client.ask(udp_frame(7, data)), 7) == data
        frame = udp_frame(7, b"longer")
        client.send(frame[:38] + struct.pack(">H", 2000) + frame[40:])
        assert udp_data(client.ask(udp_frame(7, b"after")), 7) == b"after"
    assert run.status == 0, run.errors


TEXTS = [
    b"get none\r\n",
    b"set a 5 0 3\r\nabc\r\n",
    b"get a\r\n",
    b"set b 4294967295 0 0\r\n\r\n",
    b"get a b none a\r\n",
    b"set a 0 0 5\r\nhello\r\n",
    b"get a\r\n",
    b"delete a\r\n",
    b"delete a\r\n",
    b"get a b\r\n",
    b"set " + b"k" * 250 + b" 1 0 1000\r\n" + b"v" * 1000 + b"\r\n",
    b"get " + b"k" * 250 + b"\r\n",
    b"get " + b"k" * 251 + b"\r\n",
    b"get\r\n",
    b"nonsense\r\n",
]


def memcached_frame(number: int, text: bytes) -> bytes:
    """Return a request of memcached's UDP protocol."""
    return struct.pack(">HHHH", number, 0, 1, 0) + text


@pytest.mark.parametrize("engine", ENGINES)
def test_kvstore_answers_like_memcached(tmp_path: Path, engine: str) -> None:
    """Compare answers with those of memcached on the same requests, where it is installed, and with known ones."""
    answers = []
    with served(tmp_path, LIVE / "kvstore/kvstore.c", engine) as (client, run):
        for number, text in enumerate(TEXTS):
            answer = udp_data(client.ask(udp_frame(11211, memcached_frame(number, text))), 11211)
            assert answer[:8] == memcached_frame(number, b"")
            answers.append(answer[8:])
        client.send(udp_frame(11211, memcached_frame(0, b"set q 0 0 1 noreply\r\nx\r\n")))
        answer = udp_data(client.ask(udp_frame(11211, memcached_frame(9, b"get q\r\n"))), 11211)
    assert run.status == 0, run.errors
    assert answer[8:] == b"VALUE q 0 1\r\nx\r\nEND\r\n"
    assert answers[4] == b"VALUE a 5 3\r\nabc\r\nVALUE b 4294967295 0\r\n\r\nVALUE a 5 3\r\nabc\r\nEND\r\n"
    assert answers[7:9] == [b"DELETED\r\n", b"NOT_FOUND\r\n"]
    if not shutil.which("memcached"):
        pytest.skip("memcached is not installed: its answers are not compared")
    assert answers == memcached_answers()


def memcached_answers() -> list[bytes]:
    """Return the answers of memcached over UDP."""
    port = free_port()
    command = ["memcached", "-U", str(port), "-p", str(port), "-l", "127.0.0.1", "-u", "nobody"]
    with subprocess.Popen(command) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        client.settimeout(0.5)
        answers = []
        try:
            for number, text in enumerate(TEXTS):
                for _ in range(20):  # the server may not listen yet
                    try:
                        client.send(memcached_frame(number, text))
                        answers.append(memcached_answer(client))
                        break
                    except (ConnectionRefusedError, TimeoutError):
                        time.sleep(0.1)
        finally:
            server.kill()
    return answers


def memcached_answer(client: socket.socket) -> bytes:
    """Return an answer of memcached 1.6, which sends each value but the last in a datagram, all numbered 0 of 1."""
    answer = b""
    while not answer or (answer.startswith(b"VALUE") and not answer.endswith(b"END\r\n")):
        answer += client.recv(2000)[8:]
    return answer


def free_port() -> int:
    """Return a port that is free for TCP and UDP."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def question(name: str, kind: int = 1) -> bytes:
    """Return a question of DNS."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return labels + b"\0" + struct.pack(">HH", kind, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_dns_answers_questions(tmp_path: Path, engine: str) -> None:
    """Compare answers with RFC 1035: known names in any case, unknown names, other types, malformed questions."""
    with served(tmp_path, LIVE / "dns/dns.c", engine) as (client, run):

        def ask(flags: int, text: bytes, count: int = 1) -> bytes:
            data = struct.pack(">HHHHHH", 0xABCD, flags, count, 0, 0, 0) + text
            return udp_data(client.ask(udp_frame(53, data)), 53)

        for name, address in (("spin.test", [10, 0, 0, 1]), ("WWW.Spin.test", [10, 0, 0, 80])):
            record = struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + bytes(address)
            header = struct.pack(">HHHHHH", 0xABCD, 0x8500, 1, 1, 0, 0)
            assert ask(0x0100, question(name)) == header + question(name) + record
        for text, kind, code, count in (("no.test", 1, 3, 1), ("spin.test", 28, 0, 1), ("spin.tes", 1, 3, 1)):
            expected = struct.pack(">HHHHHH", 0xABCD, 0x8400 | code, count, 0, 0, 0) + question(text, kind)
            assert ask(0, question(text, kind)) == expected
        malformed = struct.pack(">HHHHHH", 0xABCD, 0x8401, 0, 0, 0, 0)
        assert ask(0, b"\x3fshort") == malformed
        assert ask(0, question("spin.test"), count=2) == malformed
        assert ask(0x2800, question("spin.test")) == struct.pack(">HHHHHH", 0xABCD, 0xAC04, 0, 0, 0, 0)
    assert run.status == 0, run.errors


@pytest.mark.parametrize("engine", ENGINES)
def test_telemetry_counts_flows(tmp_path: Path, engine: str) -> None:
    """Compare the estimates with the counts of the datagrams: never less, and almost always the same."""
    flows = {source: source % 7 + 1 for source in range(5000, 5060)}
    with served(tmp_path, LIVE / "telemetry/telemetry.c", engine) as (client, run):
        for source, count in flows.items():
            for _ in range(count):
                client.send(udp_frame(80, b"x", source))
        excess = 0
        for source, count in flows.items():
            key = CLIENT + CARD + struct.pack(">HHB", source, 80, 17)

            def estimate(key: bytes = key) -> tuple[int, int]:
                return struct.unpack(">II", udp_data(client.ask(udp_frame(9001, key)), 9001))

            until(lambda: estimate()[1] == sum(flows.values()))
            assert estimate()[0] >= count
            excess += estimate()[0] - count
    assert run.status == 0, run.errors
    assert excess <= sum(flows.values()) // 10


NATIVE_FAULTS = {
    b"w": r"failed: an access to 0xd0000004, which is no memory of the card in live_faults_ph \(.*live_faults.c:\d+\)",
    b"n": r"failed: an access to 0x0,",
    b"l": r"killed by the watchdog in live_faults_ph",
    b"a": r"failed: an illegal instruction, or abort\(\) in live_faults_ph",
    b"s": r"failed: an access to 0x2\w+, which is no memory of the card in deep",
    b"c": r"failed: a command uses 64 bytes at 0xd0000000, which are not the handler's",
    b"h": r"failed: a command uses host memory at 0x4000000000000000, which the IOMMU refuses",
    b"o": r"failed: it called the system \(call 2\), which handlers may not in live_faults_ph",
    b"r": r"the handlers' process was ended by signal \d+, because a handler has overwritten its runtime",
}


@pytest.mark.skipif("native" not in ENGINES, reason="the native engine needs x86-64")
def test_a_failing_handler_ends_alone(tmp_path: Path) -> None:
    """Check that each kind of failure is reported with its place, and that the card answers the next packet."""
    with served(tmp_path, FAULTS, "native") as (client, run):
        for fault in NATIVE_FAULTS:
            client.send(udp_frame(7, fault))
            # With the process, other packets that HPUs have taken are lost.
            time.sleep(1 if fault in (b"l", b"r") else 0)
            assert client.ask(udp_frame(7, b"x" + fault))[42:] == b"x" + fault
        client.ask(udp_frame(7, b"print"))
    report = run.report(tmp_path)
    assert run.status == 1
    lines = run.errors.splitlines()
    for fault, pattern in NATIVE_FAULTS.items():
        assert any(re.search(pattern, line) for line in lines), (fault, run.errors)
    assert re.search(r"^\[0,\d\] datagram of 47 bytes$", run.output, re.MULTILINE)
    assert (report["faults"], report["watchdog"]) == (len(NATIVE_FAULTS) - 1, 1)
    assert report["packets"]["done"] == len(NATIVE_FAULTS) + 1


def test_the_model_reports_failures_and_goes_on(tmp_path: Path) -> None:
    """Check the failures that the model reports, and that the card answers the next packet."""
    with served(tmp_path, FAULTS, "model", "--watchdog", "20000") as (client, run):
        for fault in b"wnla":
            client.send(udp_frame(7, bytes([fault])))
            assert client.ask(udp_frame(7, b"x"))[42:] == b"x"
    report = run.report(tmp_path)
    assert (run.status, report["faults"], report["watchdog"]) == (1, 3, 1)
    assert "killed by the watchdog in live_faults_ph" in run.errors


MESSAGES = """
#define FPSPIN
#include <handler.h>
#include <packets.h>
__attribute__((used, section(".l2_handler_data"))) volatile uint32_t counts[3];
__handler__ void sum_hh(handler_args_t *args) { ((uint32_t *)args->task->handler_mem)[0] = 100; }
__handler__ void sum_ph(handler_args_t *args) {
    amo_add((int32_t *)args->task->handler_mem, ((uint8_t *)args->task->pkt_mem)[42]);
}
__handler__ void sum_th(handler_args_t *args) {
    uint8_t *frame = args->task->pkt_mem;
    memcpy(frame + 42, args->task->handler_mem, 4);
    spin_send_packet(frame, args->task->pkt_mem_size, NULL);
}
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = sum_hh, *ph = sum_ph, *th = sum_th, *memory = NULL;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_messages_have_their_header_first_and_completion_last(tmp_path: Path, engine: str) -> None:
    """Compare a sum: the header handler sets it, payload handlers add, the completion handler sends it."""
    program = tmp_path / "sum.c"
    program.write_text("#include <string.h>\n" + MESSAGES)
    rules = '[[rule]]\ncontext = "sum"\nmatch = { "ip.proto" = 17 }\nend = { "payload[0:1]" = "0x80/0x80" }\n'
    program.with_suffix(".toml").write_text(rules)
    with served(tmp_path, program, engine) as (client, run):
        for turn in range(20):
            values = [(turn * 31 + index) % 128 for index in range(1 + turn % 9)]
            for value in values:
                client.send(udp_frame(9, bytes([value, 1, 2, 3])))
            answer = client.ask(udp_frame(9, bytes([0x80 + turn, 1, 2, 3])))
            assert struct.unpack("<I", answer[42:46])[0] == 100 + sum(values) + 0x80 + turn
    assert run.status == 0, run.errors


def refused(*words: str | Path, status: int = 1) -> str:
    """Return the message of a command that fails."""
    command = [_paths.command("spinkit-pspin"), "serve", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    return done.stderr


def test_wrong_usage_is_explained(tmp_path: Path) -> None:
    """Check messages of wrong usage: their words, and the exit status."""
    program = LIVE / "icmp_echo/icmp_echo.c"
    assert "--tap" in refused(program, status=2)
    assert "10.0.0.1/24" in refused(program, "--tap", "t", "--address", "10.0.0.1", status=2)
    elf = tmp_path / "program.elf"
    elf.write_bytes(b"\x7fELF")
    if "native" in ENGINES:
        assert "needs the C source" in refused(elf, "--socket", tmp_path / "s", status=2)
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\ncontext = "other"\n')
    with served(tmp_path, program, "model", "--rules", str(rules)) as (_, run):
        pass
    assert run.status == 1
    assert "it has none of the handlers other_hh, other_ph and other_th" in run.errors


@contextmanager
def namespaces(*names: str) -> Iterator[None]:
    """Make network namespaces."""
    if os.geteuid() != 0 or not shutil.which("ip") or not os.access("/dev/net/tun", os.W_OK):
        pytest.skip("real interfaces need root, ip and /dev/net/tun; the tests over a socket take the same path")
    made = []
    try:
        for name in names:
            if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
                pytest.skip("this system forbids network namespaces; the tests over a socket take the same path")
            made.append(name)
        yield
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def inside(name: str, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a namespace."""
    command = ["ip", "netns", "exec", name, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]


def serve_inside(name: str, program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Serve a program in a namespace until it ends."""
    return inside(name, str(_paths.command("spinkit-pspin")), "serve", str(program), *options)


@contextmanager
def live(namespace: str, program: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Serve a program in a namespace until the end of the block; end it with SIGINT."""
    command = ["ip", "netns", "exec", namespace, str(_paths.command("spinkit-pspin")), "serve", str(program), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as card:
        assert card.stderr
        lines = []
        for line in card.stderr:
            lines.append(line)
            if "; Ctrl-C ends" in line:
                break
        try:
            assert lines, "it ends at once"
            assert "Ctrl-C" in lines[-1], lines
            yield card
        finally:
            card.send_signal(signal.SIGINT)
            output, errors = card.communicate(timeout=60)
    assert card.returncode == 0, errors
    assert "packets" in output


@pytest.mark.parametrize("engine", ENGINES)
def test_ping_is_answered_over_a_tap(engine: str) -> None:
    """Check real pings, and that Ctrl-C removes the interface and prints the report."""
    if not shutil.which("ping"):
        pytest.skip("ping is not installed")
    name = f"spinkit-{os.getpid()}"
    with namespaces(name):
        options = ("--engine", engine, "--tap", "spin0", "--address", "10.0.0.1/24")
        with live(name, LIVE / "icmp_echo/icmp_echo.c", *options):
            done = inside(name, "ping", "-c", "5", "-i", "0.05", "-W", "20", "-s", "1000", "10.0.0.1")
            assert "5 packets transmitted, 5 received" in done.stdout, done.stdout
            again = inside(
                name, str(_paths.command("spinkit-pspin")), "serve", str(LIVE / "icmp_echo/icmp_echo.c"), *options
            )
            assert again.returncode == 1
            assert "another process has this interface" in again.stderr
        assert inside(name, "ip", "link", "show", "spin0").returncode != 0


def test_an_interface_has_handlers_and_a_host() -> None:
    """Check that handlers answer DNS on an interface, and the host behind the card the rest, such as ping."""
    if not shutil.which("ping") or not shutil.which("dig"):
        pytest.skip("ping or dig is not installed")
    card, client = f"spinkit-{os.getpid()}-a", f"spinkit-{os.getpid()}-b"
    with namespaces(card, client):
        for words in (
            ["ip", "link", "add", "wire", "netns", card, "type", "veth", "peer", "name", "wire", "netns", client],
            ["ip", "-n", card, "link", "set", "wire", "up"],
            ["ip", "-n", client, "link", "set", "wire", "up"],
            ["ip", "-n", client, "addr", "add", "10.0.0.2/24", "dev", "wire"],
        ):
            subprocess.run(words, check=True)
        options = ("--engine", ENGINES[0], "--interface", "wire", "--host", "spin0", "--address", "10.0.0.1/24")
        with live(card, LIVE / "dns/dns.c", *options):
            done = inside(client, "ping", "-c", "3", "-i", "0.05", "-W", "20", "10.0.0.1")
            assert "3 packets transmitted, 3 received" in done.stdout, done.stdout
            done = inside(client, "dig", "+short", "+tries=5", "@10.0.0.1", "www.spin.test")
            assert done.stdout == "10.0.0.80\n", done.stdout + done.stderr
        missing = inside(
            card, str(_paths.command("spinkit-pspin")), "serve", str(LIVE / "dns/dns.c"), "--interface", "none"
        )
        assert missing.returncode == 1
        assert "none: no such interface" in missing.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="it gives up rights, and needs some first")
def test_missing_rights_are_explained(tmp_path: Path) -> None:
    """Check the message of a user without rights."""
    del tmp_path
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", str(_paths.command("spinkit-pspin")), "serve"]
    command += [str(LIVE / "icmp_echo/icmp_echo.c"), "--interface", "lo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "cannot open a packet socket" in done.stderr, done.stderr
    assert "CAP_NET_RAW" in done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
