"""Broadcasts among ranks of which some are dead: runs the program for many sets of failures, and checks who has what.

Every run has one set of dead cards, and a broadcast of each rank in turn. The ranks that live at the end must agree:
each broadcast has reached all of them or none, and all if its root lives; none has got one twice, and the data is
right. Prints a line with a JSON object for each number of failures:

    failures    the number of ranks that die
    sets        sets of that many ranks, each a run
    broadcasts  broadcasts of roots that live, in all runs
    missed      messages that such a broadcast has not brought to a survivor
    split       broadcasts of a root that died on the way that some survivors have and some have not
    twice       survivors whose CPU was told of another number of messages than it has
    data_ok     whether all data is right

Which sets: all of them (`--sets all`); one of each class of sets that differ only by a rotation of the ranks
(`rotations`), which is enough for a graph that looks the same from each rank, with broadcasts of all ranks; or so many
random ones (`--sets 20`). From log2 P failures on, the set that cuts a rank off is run: all ranks that send to it.
Cards die at the start, or (`--during NS`) at random times up to that one, while broadcasts are under way.
"""

import argparse
import itertools
import json
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


def rotations(sets: list[Set], ranks: int) -> Iterator[Set]:
    """Yield the first set of each class."""
    seen: set[Set] = set()
    for one in sets:
        if one not in seen:
            yield one
            seen |= {tuple(sorted((rank + by) % ranks for rank in one)) for by in range(ranks)}


def choose(ranks: int, failures: int, which: str, chance: random.Random) -> list[Set]:
    """Return the sets to run."""
    if failures >= (ranks - 1).bit_length():
        return list(rotations(cuts(ranks), ranks))
    if which.isdecimal() and failures > 0:
        return [tuple(sorted(chance.sample(range(ranks), failures))) for _ in range(int(which))]
    sets = list(itertools.combinations(range(ranks), failures))
    return sets if which == "all" else list(rotations(sets, ranks))


def run(options: argparse.Namespace, dead: Set, chance: random.Random) -> dict[str, int]:
    """Run one set; return what was counted."""
    latest = round(options.during * PICOSECONDS)
    deaths = ",".join(f"{rank}@{chance.randint(0, latest) / PICOSECONDS:.3f}" for rank in dead)
    rounds = options.rounds or (1 if options.mode == "tree" else min(options.ranks, 64))
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
    return counted


def main() -> None:
    """Run the sets for each number of failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="experiments/ft-broadcast/ft-broadcast.c, compiled")
    parser.add_argument("--failures", default="0,1,2,3", help="numbers of dead ranks, separated by commas")
    parser.add_argument("--sets", default="rotations", help="all, rotations, or how many random ones")
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
    chance = random.Random(options.seed)
    for failures in map(int, options.failures.split(",")):
        sets = choose(options.ranks, failures, options.sets, chance)
        total = dict.fromkeys(("broadcasts", "missed", "split", "twice", "wrong"), 0)
        for dead in sets:
            for name, count in run(options, dead, chance).items():
                total[name] += count
        wrong = total.pop("wrong")
        print(json.dumps({"failures": failures, "sets": len(sets), **total, "data_ok": wrong == 0}), flush=True)


if __name__ == "__main__":
    main()
