# SPDX-License-Identifier: Apache-2.0
"""`spinkit bench`: measures how fast the simulator itself is.

The crates' own benchmarks (Criterion), messages of running ranks, the start and end of many ranks, and all experiments.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

from spinkit import _paths
from spinkit._errors import SpinkitError
from spinkit.common._output import write_atomically
from spinkit.experiments import _reader
from spinkit.experiments._pool import run_all
from spinkit.experiments._workshop import Settings
from spinkit.simulate._toolchain import Toolchain
from spinkit.suites import _aims
from spinkit.suites._aims import Number

RANKS = 1024
"""Number of ranks of the start-up benchmark."""

PACKETS = (
    ("1024", "65536", ("--radix", "16")),
    ("11664", "1", ()),
    ("65536", "1", ()),
    ("65536", "1", ("--topology", "torus")),
    ("65536", "1", ("--topology", "dragonfly")),
)
"""Ranks, bytes and networks of the packet benchmark."""

CARDS = 65_536
"""Number of ranks of the benchmark of schedules on cards."""

MANY_CARDS, MANY_CARDS_MEMORY = 1_048_576, 10 << 30
"""Number of ranks of its largest run, and bytes of free memory for it."""

LOGGOPS = (
    ("bcast", "65536", "--size", "1"),
    ("dissemination", "16384", "--size", "1"),
    ("dissemination", "1048576", "--size", "1"),
    ("alltoall", "256", "--size", "1024"),
    ("alltoall", "512", "--size", "1024"),
    ("allreduce-ring", "512", "--size", "1048576"),
    ("allreduce-recursive-doubling", "4096", "--size", "1048576"),
    ("halo", "1024", "--size", "8192", "--calc", "20000", "--iterations", "650"),
)
"""Schedules of the LogGOPS benchmark: pattern, ranks, options."""

MESSAGES = (("stream", 2, 100_000), ("alltoall", 64, 25), ("chain", 64, 1_000))
"""Patterns of the message benchmark: ranks and rounds."""

_CRITERION = (
    *("--noplot", "--warm-up-time", "0.5", "--measurement-time", "1.5"),
    *("--sample-size", "20", "--nresamples", "10000"),
)
"""Enough for two significant digits."""

_ELEMENTS = {"pspin": ("Mcycles/s", 1e6)}
"""Benchmarks that count something else than elements: the unit, and how many elements it is."""

_METHOD = (
    "CPU time of all processes that take part; wall-clock for call-round-trip and to compare two threads with one. "
    "Criterion's median for the crates' benchmarks (release profile, one core); the best of three runs for messages, "
    "LogGOPS and packets; one run for the rest"
)


def measure(home: Path, tools: Toolchain, folder: Path) -> Iterator[Number]:
    """Run all benchmarks one after the other, and yield each number as soon as it is measured."""
    yield from _criterion(home, folder)
    yield from _messages(home, tools, folder)
    yield _ranks(home, tools, folder)
    yield from _loggops(folder)
    yield from _packets(folder)
    yield from _cards(home, tools, folder)
    yield _experiments(home, tools, folder)


def write(numbers: list[Number], file: Path) -> None:
    """Write the numbers, and a description of this computer."""
    content = {
        "machine": _machine(),
        "method": _METHOD,
        "numbers": [asdict(number) for number in numbers],
        "aims": [compared.as_json() for compared in _aims.compare(numbers)],
    }
    write_atomically(file, (json.dumps(content, indent=1) + "\n").encode())


def _call(command: list[str], cwd: Path | None = None, **environment: str) -> str:
    """Run a command and return its output; its standard error is ours."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    except FileNotFoundError:
        raise SpinkitError(f"{command[0]}: command not found") from None
    except subprocess.CalledProcessError as error:
        raise SpinkitError(f"{' '.join(command[:3])} ended with status {error.returncode}") from None
    return done.stdout


def _criterion(home: Path, folder: Path) -> Iterator[Number]:
    """Run the benchmarks of all crates; yield the throughput if a benchmark declares one, else its time."""
    if not (home / "Cargo.toml").is_file():
        raise SpinkitError(f"{home} is an installation; benchmarks need a checkout of spinkit")
    workspace = json.loads(_call(["cargo", "metadata", "--no-deps", "--locked", "--format-version=1"], home))
    targets = sorted(
        (package["name"], target["name"])
        for package in workspace["packages"]
        for target in package["targets"]
        if "bench" in target["kind"]
    )
    for package, target in targets:
        results = folder / "criterion" / package / target
        _call(
            ["cargo", "bench", "--locked", "-p", package, "--bench", target, "--", *_CRITERION],
            home,
            CRITERION_HOME=str(results.resolve()),
        )
        found = [_estimate(package, target, file) for file in sorted(results.glob("**/new/estimates.json"))]
        if not found:
            raise SpinkitError(f"the benchmark {target} of {package} measured nothing")
        yield from found


def _estimate(package: str, target: str, estimates: Path) -> Number:
    benchmark = json.loads((estimates.parent / "benchmark.json").read_text())
    nanoseconds = json.loads(estimates.read_text())["median"]["point_estimate"]
    name = f"{package}/{benchmark['full_id']}".replace(" ", "-")
    throughput = benchmark["throughput"]
    if throughput is None:
        return Number(name, nanoseconds, "ns")
    ((kind, amount),) = throughput.items()
    unit, elements = _ELEMENTS.get(target, (f"{kind.lower()}/s", 1))
    return Number(name, amount / nanoseconds * 1e9 / elements, unit)


def _per_second(amount: float, seconds: float) -> float:
    if seconds <= 0:
        raise SpinkitError(f"{amount:g} took {seconds:g} s: too short to be measured by this clock")
    return amount / seconds


def _compile(home: Path, tools: Toolchain, folder: Path, name: str) -> str:
    program = str(folder.resolve() / name)
    _call([str(tools.spincc), "-O2", str(home / "experiments" / "bench" / f"{name}.c"), "-o", program])
    return program


def _messages(home: Path, tools: Toolchain, folder: Path) -> Iterator[Number]:
    """Measure messages per CPU second of simulator and ranks, which includes the start and end of the job."""
    program = _compile(home, tools, folder, "messages")
    for pattern, ranks, rounds in MESSAGES:
        job = [str(tools.spinrun), "-n", str(ranks), "--nic", "portals4", "--post-ahead", "128", program]
        job += ["--pattern", pattern, "--rounds", str(rounds)]
        runs = [_timed(job) for _ in range(3)]
        rate = max(_per_second(json.loads(output)["messages"], _cpu(usage)) for output, usage in runs)
        yield Number(f"messages/{pattern}/{ranks}", rate, "messages/s")


def _ranks(home: Path, tools: Toolchain, folder: Path) -> Number:
    program = _compile(home, tools, folder, "barrier")
    _, usage = _timed([str(tools.spinrun), "-n", str(RANKS), program])
    return Number(f"ranks/start-barrier-end/{RANKS}", _cpu(usage), "s")


def _loggops(folder: Path) -> Iterator[Number]:
    """Measure events per CPU second (best of three runs), reading of text, memory beyond the file, and two threads."""
    goal, room = str(_paths.command("spinkit-goal")), folder.resolve()
    schedule, text, report = room / "loggops.bin", room / "loggops.goal", room / "loggops.json"
    empty = room / "empty.goal"
    empty.write_text("num_ranks 1 rank 0 { }\n", encoding="ascii")
    _call([goal, "run", "loggops", str(empty), "--json", str(report)])
    least = json.loads(report.read_bytes())["peak_memory_bytes"]
    for pattern, ranks, *options in LOGGOPS:
        _call([goal, "gen", pattern, "--ranks", ranks, *options, "-o", str(schedule)])
        name = f"goal/loggops/{pattern}/{ranks}"
        two, result = _two_threads([goal, "run", "loggops", str(schedule), "--json", str(report)], report)
        yield Number(name, result["best_events_per_cpu_second"], "events/s")
        yield Number(f"{name}/two-threads", *two)
        beyond = result["peak_memory_bytes"] - least - schedule.stat().st_size
        yield Number(f"{name}/memory", beyond / result["operations"], "bytes/operation")
    yield _threads_beside_another(goal, schedule, report, name)
    _call([goal, "convert", str(schedule), str(text)])
    _, usage = _timed([goal, "stats", str(text)])
    yield Number("goal/text/read", text.stat().st_size / 1e6 / _cpu(usage), "MB/s")
    beyond = usage.ru_maxrss * 1024 - least - schedule.stat().st_size
    yield Number("goal/text/memory", beyond / result["operations"], "bytes/operation")


def _threads_beside_another(goal: str, schedule: Path, report: Path, name: str) -> Number:
    """Compare `--threads 2` with one thread while another process keeps a processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            two, _ = _two_threads([goal, "run", "loggops", str(schedule), "--json", str(report)], report)
        finally:
            busy.kill()
    return Number(f"{name}/two-threads-beside-a-busy-process", *two)


def _two_threads(command: list[str], report: Path) -> tuple[tuple[float, str, str], dict[str, Any]]:
    """Compare the wall-clock times of two threads and of one, the best of three runs each.

    Return the value, unit and remark of a number, and the last report of one thread with its best rate. A command with
    `--threads 2` uses one thread if two would be slower: such runs compare one thread with one, which the remark says.
    """
    rate, used = 0.0, {1: inf, 2: inf}
    fallback = inf
    for threads in (2, 1) * 3:
        _call([*command, "--threads", str(threads)])
        result = json.loads(report.read_bytes())
        seconds = result["wall_seconds"]
        if threads == result["threads"]:
            used[threads] = min(used[threads], seconds)
        else:
            fallback = min(fallback, seconds)
        if threads == 1:
            rate = max(rate, _per_second(result["events"], result["cpu_seconds"]))
    result["best_events_per_cpu_second"] = rate
    if used[2] < inf:
        return (used[1] / used[2], "times-as-fast", ""), result
    return (used[1] / fallback, "times-as-fast", "one thread was used, as two would be slower"), result


def _timed(command: list[str]) -> tuple[bytes, resource.struct_rusage]:
    """Run a command; return its output, and the resources used by it and its awaited children."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        output = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SpinkitError(f"{' '.join(command[:3])} ended with status {process.returncode}")
    return output, usage


def _cpu(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _packets(folder: Path) -> Iterator[Number]:
    """Measure hops per CPU second, the best of three, in a network that fits into the cache and in larger ones."""
    goal = str(_paths.command("spinkit-goal"))
    for ranks, size, network in PACKETS:
        schedule = str(folder.resolve() / f"packets-{ranks}.bin")
        _call([goal, "gen", "dissemination", "--ranks", ranks, "--size", size, "-o", schedule])
        file = folder.resolve() / "packets.json"
        two, report = _two_threads([goal, "run", "packet", schedule, *network, "--json", str(file)], file)
        rate = report["network"]["packet_hops"] / report["events"] * report["best_events_per_cpu_second"]
        topology = report["network"]["topology"].split(" of ")[0].replace(" ", "-")
        name = f"goal/packet/dissemination/{ranks}/{topology}"
        yield Number(name, rate, "hops/s")
        yield Number(f"{name}/two-threads", *two)


def _cards(home: Path, tools: Toolchain, folder: Path) -> Iterator[Number]:
    """Measure a broadcast by handlers: ranks and messages per CPU second, including the creation of cards."""
    goal, room = str(_paths.command("spinkit-goal")), folder.resolve()
    program, schedule = str(room / "broadcast"), str(room / "broadcast.bin")
    source = home / "experiments" / "sc17" / "broadcast" / "broadcast.c"
    _call([str(tools.spincc), "-O2", str(source), "-o", program])
    _call([goal, "gen", "bcast-spin", "--ranks", str(CARDS), "--size", "8", "-o", schedule])
    report = json.loads(_call([goal, "run", "nic", schedule, "--device", program, "--json", "-"]))
    for what in ("ranks", "messages"):
        yield Number(
            f"goal/nic/bcast-spin/{CARDS}/{what}", _per_second(report[what], report["cpu_seconds"]), f"{what}/s"
        )
    if _free_memory() >= MANY_CARDS_MEMORY:
        name = f"goal/nic/bcast-spin/{MANY_CARDS}"
        _call([goal, "gen", "bcast-spin", "--ranks", str(MANY_CARDS), "--size", "8", "-o", schedule])
        report = json.loads(_call([goal, "run", "nic", schedule, "--device", program, "--json", "-"]))
        yield Number(name, 1e6 * report["cpu_seconds"] / report["messages"], "us/message")
        yield Number(f"{name}/memory", report["peak_memory_bytes"] / 1e9, "GB")
    _call([goal, "gen", "dissemination", "--ranks", str(CARDS), "--size", "8", "-o", schedule])
    report = json.loads(_call([goal, "run", "nic", schedule, "--json", "-"]))
    each = 1e6 * report["cpu_seconds"] / report["messages"]
    yield Number(f"goal/nic/dissemination/{CARDS}", each, "us/message")


def _experiments(home: Path, tools: Toolchain, folder: Path) -> Number:
    experiments = [_reader.load(home, name) for name in _reader.available(home)]
    before = _cpu(resource.getrusage(resource.RUSAGE_CHILDREN))
    for _, outcome in run_all(
        experiments,
        Settings(home, tools, _paths.command("spinkit-machines"), folder / "reproduce", quick=True, fresh=True),
        lambda _: None,
    ):
        if isinstance(outcome, SpinkitError):
            raise outcome
    return Number("reproduce/all/quick", _cpu(resource.getrusage(resource.RUSAGE_CHILDREN)) - before, "s")


def _free_memory() -> int:
    """Return the memory in bytes that programs can use without swapping."""
    line = next((line for line in _lines("/proc/meminfo") if line.startswith("MemAvailable")), "MemAvailable: 0 kB")
    return int(line.split()[1]) << 10


def _machine() -> dict[str, Any]:
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_kib": int(memory),
        "load": list(os.getloadavg()),
        "kernel": platform.release(),
        "rustc": _call(["rustc", "--version"]).strip(),
        "python": platform.python_version(),
    }


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()
