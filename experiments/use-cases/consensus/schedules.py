# SPDX-License-Identifier: Apache-2.0
"""Consensus under random failures: runs the program on many schedules, and checks clients and hosts.

A schedule has replicas that die at random times, their cards or their processes; links that lose packets; clients that
work in bursts; and hosts that stop now and then, for so long that others replace a leader whose card is still at work.
The log has room for 8, 32 or all commands, so that hosts take snapshots of it. The number of a schedule determines all
of this. For each number of dead replicas a line with a JSON object is printed:

    dead        replicas that die
    schedules   runs
    commands    commands that clients have given
    answered    those that were answered in time
    leaders     leaderships of all runs
    snapshots   snapshots that the hosts have had, and so truncations of logs
    violations  runs in which clients saw what no order of commands explains, two hosts were told of different
                commands for a slot of the log, or a snapshot is not what the commands before it give; the first
                five are described on standard error
    data_ok     whether all runs ended by themselves
"""

import argparse
import json
import random
import subprocess
import sys
from typing import Any

from linearizability import BITS, Command, is_linearizable
from spinkit import _paths

REPLICAS, CLIENTS, REQUESTS, UNTIL_MS = 5, 4, 40, 30
SHOWN = 5


def schedule(number: int, dead: int) -> list[str]:
    """Return the options of spinrun for a schedule."""
    chance = random.Random(number * 16 + dead)
    victims = [0, *range(1, REPLICAS)] if chance.random() < 2 / 3 else list(range(REPLICAS - 1, -1, -1))
    deaths: dict[str, list[str]] = {"--kill-card": [], "--fail": []}
    for rank in victims[:dead]:
        deaths[chance.choice(list(deaths))].append(f"{rank}@{chance.uniform(0, UNTIL_MS * 0.6):.6f}ms")
    losses = [f"*:{chance.choice([0, 0.01, 0.1, 0.3])}"]
    for _ in range(chance.randint(0, 4)):
        one, other = chance.sample(range(REPLICAS), 2)
        losses.append(f"{one}{chance.choice('->')}{other}:{chance.choice([0.5, 0.8, 1])}")
    options = [word for name, which in deaths.items() if which for word in (name, ",".join(which))]
    options += ["--drop", ",".join(losses), "--failure-seed", str(number)]
    return [*options, "--set", f"network.retries={chance.choice([0, 1, 7])}"]


def slots(number: int) -> int:
    """Return the size of the log in a schedule."""
    return (4096, 8, 32)[number % 3]


def pauses(number: int) -> int:
    """Return how long hosts stop at most in a schedule, in us: not, for as long as a message takes, or a leadership."""
    return (0, 30, 1000, 8000)[number % 4]


def disagreements(told: list[list[int]]) -> list[str]:
    """Return the slots for which hosts received different commands."""
    chosen: dict[int, tuple[int, int]] = {}
    found = []
    for term, slot, client, request in told:
        if chosen.setdefault(slot, (client, request)) != (client, request):
            found.append(f"slot {slot}: command {chosen[slot]}, and in term {term} {(client, request)}")
    return found


def check(slot: int, sessions: list[tuple[int, int]], numbers: list[int]) -> int:
    """Return the sum over a snapshot (consensus_check of consensus.h)."""
    total = 0xCBF29CE484222325 ^ slot
    for word in [*(half for session in sessions for half in session), *numbers]:
        total = (total ^ word) * 0x100000001B3 % (1 << BITS)
    return (total ^ total >> 32) % (1 << 32)


def wrong_snapshots(lines: list[dict[str, Any]]) -> list[str]:
    """Return the snapshots that differ from the result of the preceding commands, or between hosts."""
    histories = {line["client"]: [Command(*one) for one in line["history"]] for line in lines if "client" in line}
    chosen = {slot: (client, request) for line in lines for _, slot, client, request in line.get("chosen", ())}
    had: dict[int, set[int]] = {}
    for line in lines:
        for slot, total in line.get("snapshots", ()):
            had.setdefault(slot, set()).add(total)
    found = [f"the snapshots before slot {slot} differ: {totals}" for slot, totals in had.items() if len(totals) > 1]
    sessions, numbers = [(0, 0)] * 64, [0] * 64
    for slot in range(max(had, default=-1) + 1):
        if slot in had and had[slot] != {expected := check(slot, sessions, numbers)}:
            found.append(f"the snapshot before slot {slot} has the sum {had[slot]}, its commands give {expected}")
        if slot not in chosen:
            break  # only a process that has died was told of it
        client, request = chosen[slot]
        if request > sessions[client][0]:  # a command that does nothing has the number 0
            command = histories[client][request - 1]
            sessions[client] = (request, numbers[command.key])
            numbers[command.key] = command.after(numbers[command.key])
    return found


def run(options: argparse.Namespace, number: int, dead: int) -> dict[str, int]:
    """Run a schedule; return its counts."""
    command = [str(_paths.command("spinrun")), "-n", str(REPLICAS + CLIENTS), "--machine", options.machine]
    command += [*schedule(number, dead), options.program, "--mode", "spin", "--replicas", str(REPLICAS)]
    command += ["--requests", str(REQUESTS), "--until", str(UNTIL_MS), "--seed", str(number)]
    command += ["--slots", str(slots(number)), "--pauses", str(pauses(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    history = [Command(*one) for line in lines for one in line.get("history", ())]
    problems = disagreements([one for line in lines for one in line.get("chosen", ())])
    problems += wrong_snapshots(lines)
    if not is_linearizable(history):
        problems.append("the history of the clients is not linearizable")
    if problems and options.shown < SHOWN:
        options.shown += 1
        print(f"{' '.join(command)}: {'; '.join(problems)}", file=sys.stderr)
    return {
        "schedules": 1,
        "commands": len(history),
        "answered": sum(one.end is not None for one in history),
        "leaders": sum(line.get("terms", 0) for line in lines),
        "snapshots": sum(len(line.get("snapshots", ())) for line in lines),
        "violations": bool(problems),
    }


def main() -> None:
    """Run the schedules for each number of dead replicas."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="experiments/use-cases/consensus/consensus.c, compiled")
    parser.add_argument("--dead", default="0,1,2,3", help="numbers of dead replicas of five, separated by commas")
    parser.add_argument("--schedules", type=int, default=100, help="for each of them")
    parser.add_argument("--first", type=int, default=1, help="number of the first schedule")
    parser.add_argument("--machine", default="sc17-int")
    options = parser.parse_args()
    options.shown = 0
    for dead in map(int, options.dead.split(",")):
        total = dict.fromkeys(("schedules", "commands", "answered", "leaders", "snapshots", "violations"), 0)
        for number in range(options.first, options.first + options.schedules):
            for name, count in run(options, number, dead).items():
                total[name] += count
        print(json.dumps({"dead": dead, **total, "data_ok": True}), flush=True)


if __name__ == "__main__":
    main()
