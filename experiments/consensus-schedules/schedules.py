"""Consensus under random failures: runs the program on many schedules, and checks what clients and hosts have seen.

A schedule has replicas that die at random times, their cards or their processes; links that lose packets; and clients
that pause at random. Its number determines all of it. For each number of dead replicas a line with a JSON object is
printed:

    dead        replicas that die
    schedules   runs
    commands    commands that clients have given
    answered    those that were answered in time
    leaders     leaderships of all runs
    violations  runs in which clients saw what no order of commands explains, or two hosts were told of different
                commands for a slot of the log; the first five are described on standard error
    data_ok     whether all runs ended by themselves
"""

import argparse
import json
import random
import subprocess
import sys
from typing import Any

from linearizability import Command, is_linearizable
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


def disagreements(told: list[list[int]]) -> list[str]:
    """Return the slots for which hosts were told of different commands."""
    chosen: dict[int, tuple[int, int]] = {}
    found = []
    for term, slot, client, request in told:
        if chosen.setdefault(slot, (client, request)) != (client, request):
            found.append(f"slot {slot}: command {chosen[slot]}, and in term {term} {(client, request)}")
    return found


def run(options: argparse.Namespace, number: int, dead: int) -> dict[str, int]:
    """Run a schedule; return what was counted."""
    command = [str(_paths.command("spinrun")), "-n", str(REPLICAS + CLIENTS), "--machine", options.machine]
    command += [*schedule(number, dead), options.program, "--mode", "spin", "--replicas", str(REPLICAS)]
    command += ["--requests", str(REQUESTS), "--until", str(UNTIL_MS), "--seed", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    history = [Command(*one) for line in lines for one in line.get("history", ())]
    problems = disagreements([one for line in lines for one in line.get("chosen", ())])
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
        "violations": bool(problems),
    }


def main() -> None:
    """Run the schedules for each number of dead replicas."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="experiments/consensus/consensus.c, compiled")
    parser.add_argument("--dead", default="0,1,2,3", help="numbers of dead replicas of five, separated by commas")
    parser.add_argument("--schedules", type=int, default=100, help="for each of them")
    parser.add_argument("--first", type=int, default=1, help="number of the first schedule")
    parser.add_argument("--machine", default="sc17-int")
    options = parser.parse_args()
    options.shown = 0
    for dead in map(int, options.dead.split(",")):
        total = dict.fromkeys(("schedules", "commands", "answered", "leaders", "violations"), 0)
        for number in range(options.first, options.first + options.schedules):
            for name, count in run(options, number, dead).items():
                total[name] += count
        print(json.dumps({"dead": dead, **total, "data_ok": True}), flush=True)


if __name__ == "__main__":
    main()
