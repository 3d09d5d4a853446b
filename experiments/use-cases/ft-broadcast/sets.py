# SPDX-License-Identifier: Apache-2.0
"""Broadcasts with dead ranks: runs the program for many sets of failures, and checks the received messages.

Every run has one set of dead cards, and a broadcast of each rank in turn. The ranks that live at the end must agree:
each broadcast has reached all of them or none, and all if its root lives; none has got one twice, and the data is
right. Prints a line with a JSON object for each number of failures:

    failures    the number of ranks that die
    sets        sets of that many ranks, each a run
    left_out    sets of that many ranks of which these runs say nothing
    broadcasts  broadcasts of roots that live, in all runs
    missed      messages that such a broadcast has not brought to a survivor
    split       broadcasts of a root that died on the way that some survivors have and some have not
    twice       survivors whose CPU was told of another number of messages than it has
    asymmetric  with --turned: sets whose outcome was another one when all ranks were turned
    data_ok     whether all data is right

Which sets: all of them (`--sets all`); one of each class of sets that differ only by a rotation of the ranks
(`rotations`); or so many random ones for each rank that dies (`--sets 20`: 60 sets of three). From log2 P failures on,
the set that cuts a rank off is run: all ranks that send to it. Cards die at the start, or (`--during NS`) at random
times up to that one, while broadcasts are under way.

One set of a class says the same as all of them if each rank broadcasts and cards die at the start. Rank r sends to
r + 1, r + 2, r + 4 and so on modulo P, and all cards run the same handlers; so if rank r gets the message of rank q
when the ranks D are dead, then rank r + k gets that of q + k when the ranks D + k are. For 16 ranks 45 classes stand
for 697 sets. That the program treats all ranks alike is tested, not assumed: with `--turned` each class is run a
second time, turned by a random k, and every rank must have got the same messages.
"""

import argparse
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator

from spinkit import _paths

NICS = {"rdma": "rdma", "triggered": "portals4", "spin": "spin", "tree": "spin"}
PICOSECONDS = 1000

Set = tuple[int, ...]


def cuts(ranks: int) -> list[Set]:
    """Return for each rank the ranks that send to it: those 1, 2, 4 and so on before it."""
    distances = [1 << i for i in range((ranks - 1).bit_length())]
    return [tuple(sorted((rank - distance) % ranks for distance in distances)) for rank in range(ranks)]


def turn(one: Set, by: int, ranks: int) -> Set:
    """Return a set of ranks, each that many places further on."""
    return tuple(sorted((rank + by) % ranks for rank in one))


def rotations(sets: list[Set], ranks: int) -> Iterator[Set]:
    """Yield the first set of each class."""
    seen: set[Set] = set()
    for one in sets:
        if one not in seen:
            yield one
            seen |= {turn(one, by, ranks) for by in range(ranks)}


def choose(ranks: int, failures: int, which: str, chance: random.Random) -> list[Set]:
    """Return the sets to run."""
    if failures >= (ranks - 1).bit_length():
        return list(rotations(cuts(ranks), ranks))
    if which.isdecimal() and failures > 0:
        return [tuple(sorted(chance.sample(range(ranks), failures))) for _ in range(int(which) * failures)]
    sets = list(itertools.combinations(range(ranks), failures))
    return sets if which == "all" else list(rotations(sets, ranks))


def rounds_of(options: argparse.Namespace) -> int:
    """Return the number of broadcasts in a run."""
    return int(options.rounds or (1 if options.mode == "tree" else min(options.ranks, 64)))


def run(options: argparse.Namespace, dead: Set, chance: random.Random) -> tuple[dict[str, int], dict[int, int]]:
    """Run one set; return its counts, and for each survivor a bit mask of the broadcasts that it received."""
    latest = round(options.during * PICOSECONDS)
    deaths = ",".join(f"{rank}@{chance.randint(0, latest) / PICOSECONDS:.3f}" for rank in dead)
    rounds = rounds_of(options)
    command: list[str] = [str(_paths.command("spinrun")), "-n", str(options.ranks), "--machine", options.machine]
    command += ["--nic", NICS[options.mode], *(["--kill-card", deaths] if deaths else []), *options.spinrun.split()]
    command += [options.program, "--mode", options.mode, "--bytes", str(options.bytes), "--rounds", str(rounds)]
    command += ["--links", options.links]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
    found = {line["rank"]: line for line in map(json.loads, done.stdout.splitlines())}
    survivors = [rank for rank in range(options.ranks) if rank not in dead]
    missing = [rank for rank in survivors if rank not in found or not found[rank]["lives"]]
    if missing:
        sys.exit(f"{' '.join(command)}\nranks {missing} live, but say nothing\n{done.stderr}")
    delivered = {rank: int(found[rank]["delivered"], 16) for rank in survivors}
    counted = dict.fromkeys(("broadcasts", "missed", "split", "twice", "wrong"), 0)
    for number in range(rounds):
        has = sum(bits >> number & 1 for bits in delivered.values())
        if number % options.ranks in delivered:
            counted["broadcasts"] += 1
            counted["missed"] += len(survivors) - has
        else:
            counted["split"] += 0 < has < len(survivors)
    for rank, bits in delivered.items():
        own = sum(1 << number for number in range(rank, rounds, options.ranks))
        counted["twice"] += options.mode == "spin" and found[rank]["told"] != (bits & ~own).bit_count()
        counted["wrong"] += found[rank]["wrong"]
    return counted, delivered


def turned(delivered: dict[int, int], by: int, ranks: int) -> dict[int, int]:
    """Return the received broadcasts of each rank after a rotation of all ranks."""
    return {
        (rank + by) % ranks: sum(1 << (root + by) % ranks for root in range(ranks) if bits >> root & 1)
        for rank, bits in delivered.items()
    }


def left_out(options: argparse.Namespace, failures: int, sets: list[Set]) -> int:
    """Return the number of sets that the runs of `sets` do not cover."""
    known = set(sets)
    if options.during == 0 and rounds_of(options) == options.ranks:
        known = {turn(one, by, options.ranks) for one in sets for by in range(options.ranks)}
    return math.comb(options.ranks, failures) - len(known)


def main() -> int:
    """Run the sets for each number of failures. Return the exit status: 1 after wrong data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="experiments/use-cases/ft-broadcast/ft-broadcast.c, compiled")
    parser.add_argument("--failures", default="0,1,2,3", help="numbers of dead ranks, separated by commas")
    parser.add_argument("--sets", default="rotations", help="all, rotations, or how many random ones for each failure")
    parser.add_argument("--turned", action="store_true", help="run each set a second time, with all ranks turned")
    parser.add_argument("--during", type=float, default=0, metavar="NS", help="the last time at which a card dies")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--rounds", type=int, help="broadcasts in a run; one of each rank if not given")
    parser.add_argument("--mode", default="spin", choices=NICS)
    parser.add_argument("--links", default="one", choices=("one", "both"))
    parser.add_argument("--bytes", type=int, default=8)
    parser.add_argument("--machine", default="sc17-int")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spinrun", default="", help="further options of spinrun")
    options = parser.parse_args()
    if options.turned and (options.during > 0 or rounds_of(options) != options.ranks):
        parser.error("--turned compares broadcasts of all ranks, among cards that are dead from the start")
    chance = random.Random(options.seed)
    is_wrong = False
    for failures in map(int, options.failures.split(",")):
        sets = choose(options.ranks, failures, options.sets, chance)
        total = dict.fromkeys(("broadcasts", "missed", "split", "twice", "asymmetric", "wrong"), 0)
        for dead in sets:
            counted, delivered = run(options, dead, chance)
            for name, count in counted.items():
                total[name] += count
            if options.turned:
                by = chance.randrange(1, options.ranks)
                _, others = run(options, turn(dead, by, options.ranks), chance)
                total["asymmetric"] += others != turned(delivered, by, options.ranks)
        wrong = total.pop("wrong")
        point = {"failures": failures, "sets": len(sets), "left_out": left_out(options, failures, sets), **total}
        print(json.dumps(point | {"data_ok": wrong == 0}), flush=True)
        is_wrong |= wrong > 0
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
