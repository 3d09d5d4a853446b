# SPDX-License-Identifier: Apache-2.0
"""The whole unit with a driver, a NIC or a host that misbehaves: each packet is fed back once, and work goes on."""

import random
import subprocess
from collections import Counter
from pathlib import Path

import programs
import pytest
import sv_types
import units

HERE = Path(__file__).resolve().parent
ABI = sv_types.constants("pspin_abi_pkg")
CFG = sv_types.constants("pspin_cfg_pkg")
HOST = 0x1_2000_0000
HANDLERS = ("finish", "spin", "fail", "write_host", "read_host", "count")
FINISH, SPIN, FAIL, WRITE, READ, COUNT = range(len(HANDLERS))
DONE, SKIPPED, FAULTED, TIMED_OUT, GIVEN_UP = range(5)


@pytest.fixture(scope="session")
def simulator() -> Path:
    """Build the simulator, unless it exists."""
    folder = units.OUT.parent / "edge"
    with units.lock(folder.with_name(".edge")):
        units.build(units.Case("edge", "pspin_top"), folder, main=HERE / "edge.cpp")
    return folder / "pspin_top"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> programs.Program:
    """Compile the handlers."""
    return programs.build(HERE / "handlers.c", tmp_path_factory.mktemp("edge"))


class Run:
    """Lines for edge.cpp, and its answers."""

    def __init__(self, simulator: Path, program: programs.Program) -> None:
        self.simulator, self.program = simulator, program
        self.lines: list[str] = []
        self.users: set[int] = set()
        self.boot()

    def set(self, register: str, value: int) -> None:
        """Write a register."""
        self.lines.append(f"set {ABI[f'Control{register}']:#x} {value:#x}")

    def get(self, register: str) -> None:
        """Read a register."""
        self.lines.append(f"get {ABI[f'Control{register}']:#x}")

    def get_counter(self, name: str) -> None:
        """Read a counter; the first value is that of CYCLES."""
        base = ABI["ControlCounters"]
        self.lines += [f"get {base:#x}", f"get {base + 8 * ABI[f'Counter{name}']:#x}"]

    def run(self, cycles: int) -> None:
        """Let time pass."""
        self.lines.append(f"run {cycles}")

    def boot(self) -> None:
        """Write the program and a context for each handler, and enable the HPUs."""
        code, data, symbols = self.program.code, self.program.data, self.program.symbols
        for base, content in ((programs.PROGRAM, code), (programs.HANDLER, data)):
            for at in range(0, len(content), 64):
                self.lines.append(f"load {base + at:#x} {content[at : at + 64].hex()}")
        for name, value in {
            "Entry": symbols["_start"],
            "Again": symbols["__rt_again"],
            "StaticAddress": programs.HANDLER,
            "StaticBytes": len(data),
            "CodeAddress": programs.PROGRAM,
            "CodeBytes": len(code),
            "ContextIdle": 1 << 30,
            "ContextWatchdog": 2000,
            "ContextHost": HOST & 0xFFFF_FFFF,
            "ContextHostHigh": HOST >> 32,
            "ContextHostBytes": 4096,
        }.items():
            self.set(name, value)
        for number, name in enumerate(HANDLERS):
            self.set("ContextPayload", symbols[name])
            self.set("ContextPayloadBytes", len(code) - (symbols[name] - programs.PROGRAM))
            self.set("ContextWrite", number)
        self.set("Enable", 1)
        self.run(1000)

    def request(self, message: int, context: int, transfer: int = 64, eom: int = 1) -> int:
        """Offer a request, and return its tag."""
        user = len(self.users)
        self.users.add(user)
        self.lines.append(f"request {message:#x} {eom} {max(64, transfer)} {transfer} {context} {user}")
        return user

    def play(self) -> tuple[dict[int, tuple[int, int]], list[int]]:
        """Run the simulator. Return kind and last flag of each feedback, and the values of the registers."""
        text = "\n".join(self.lines) + "\n"
        done = subprocess.run([self.simulator], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        feedback: dict[int, tuple[int, int]] = {}
        values = []
        for line in done.stdout.splitlines():
            name, *numbers = line.split()
            if name == "feedback":
                user, kind, last = map(int, numbers)
                assert user not in feedback, f"packet {user} is fed back twice"
                feedback[user] = kind, last
            elif name == "value":
                values.append(int(numbers[0]))
            else:
                assert line == "waiting 0", "the unit accepts no requests"
        return feedback, values


@pytest.mark.parametrize("seed", range(8))
def test_disabled_under_traffic(simulator: Path, program: programs.Program, seed: int) -> None:
    """ENABLE falls while handlers run, fail, wait for the host or access L2; all messages end, and new ones run."""
    rng = random.Random(seed)
    run = Run(simulator, program)
    olds, news = [], []
    for _ in range(3):
        olds += [run.request(message, rng.choice([SPIN, FAIL, WRITE, READ, COUNT])) for message in range(8)]
        run.lines.append(f"host {rng.randrange(2)}")
        run.run(rng.choice([rng.randrange(200), rng.randrange(2500)]))
        run.set("Enable", 0)
        run.run(rng.choice([0, rng.randrange(40), 500]))
        run.lines.append("host 1")
        run.run(rng.choice([0, 100]))
        run.set("Enable", 1)
        run.run(9000)
        run.get("State")
        news += [run.request(message, FINISH) for message in range(8)]
        run.run(2000)
        run.get("State")
    feedback, values = run.play()
    assert set(feedback) == run.users, "each packet is fed back once"
    assert all(last for _, last in feedback.values())
    assert {feedback[user][0] for user in news} == {DONE}
    assert [value & 1 for value in values] == [1] * 6, "the unit is idle"
    kinds = Counter(feedback[user][0] for user in olds)
    assert kinds[GIVEN_UP] > 0, kinds


def test_silent_host(simulator: Path, program: programs.Program) -> None:
    """Commands of a silent host end after the time-out; others go on; late answers are dropped and counted."""
    run = Run(simulator, program)
    run.set("HostTimeout", 500)
    run.lines.append("host 0")
    lost = [run.request(message, (WRITE, READ)[message % 2]) for message in range(4)]
    run.run(4000)
    run.get("EventKind")
    run.get("EventCause")
    others = [run.request(message % 8, FINISH) for message in range(20)]
    run.run(2000)
    run.get("State")
    run.lines.append("host 1")
    run.run(500)
    run.get_counter("Stray")
    again = [run.request(message, (WRITE, READ)[message % 2]) for message in range(4)]
    run.run(2000)
    run.get("State")
    feedback, values = run.play()
    assert {feedback[user][0] for user in lost} == {FAULTED}
    assert {feedback[user][0] for user in others + again} == {DONE}
    kind, cause, idle, _, strays, idle_again = values
    assert (kind, cause & 255) == (ABI["EventFailed"], ABI["StatusHost"])
    assert (idle & 1, idle_again & 1) == (1, 1)
    assert strays >= 2


def test_refused_requests(simulator: Path, program: programs.Program) -> None:
    """Numbers beyond the tables and bytes beyond the packet buffer fail; the open message of the same queue is safe."""
    run = Run(simulator, program)
    buffer, messages, contexts = CFG["ClusterPacketBufferBytes"], CFG["InboundMessageIds"], CFG["LimitsContexts"]
    opened = run.request(1, FINISH, eom=0)
    wrong = {
        run.request(messages, FINISH): messages,
        run.request(messages + 1, FINISH): messages + 1,
        run.request(0xFFFF_FFFF, FINISH): 0xFFFF_FFFF,
        run.request(2, contexts): contexts,
        run.request(2, 255): 255,
        run.request(3, FINISH, transfer=buffer + 1): buffer + 1,
        run.request(3, FINISH, transfer=65535): 65535,
    }
    good = [run.request(messages - 1, FINISH), run.request(4, FINISH, transfer=buffer), run.request(1, FINISH)]
    unwritten = run.request(5, contexts - 1)
    run.run(4000)
    for _ in wrong:
        for register in ("EventKind", "EventCause", "EventAddress"):
            run.get(register)
        run.set("EventPop", 1)
    run.get("EventKind")
    run.run(100)
    run.get("State")
    feedback, values = run.play()
    assert {user: feedback[user] for user in wrong} == dict.fromkeys(wrong, (FAULTED, 1))
    assert feedback[opened] == (DONE, 0)
    assert [feedback[user] for user in good] == [(DONE, 1)] * 3
    assert feedback[unwritten] == (SKIPPED, 1)
    events = [tuple(values[at : at + 3]) for at in range(0, 3 * len(wrong), 3)]
    cause = 3 << 8 | ABI["StatusRequest"]
    assert sorted(events) == sorted((ABI["EventFailed"], cause, number) for number in wrong.values())
    assert values[-2] == 0
    assert values[-1] & 1


def test_answers_after_a_reset(simulator: Path, program: programs.Program) -> None:
    """An answer from before a reset, and strays, end nothing."""
    run = Run(simulator, program)
    run.lines.append("host 0")
    run.request(1, WRITE)
    run.run(300)
    run.users.clear()
    run.lines += ["reset", "host 1", "stray 3", "run 20"]
    run.boot()
    users = [run.request(message, WRITE) for message in range(4)]
    run.run(1500)
    run.get_counter("Stray")
    run.run(100)
    run.get("State")
    feedback, values = run.play()
    assert [feedback[user] for user in users] == [(DONE, 1)] * 4
    assert values[1] == 3
    assert values[2] & 1
