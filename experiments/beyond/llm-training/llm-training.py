# SPDX-License-Identifier: Apache-2.0
"""Time of a training step of a language model on a network, for each number of accelerators.

Arguments: shape, network (`fat`, `dragonfly` or `wide`), place of the additions (`host`, `card`, `switch`, `free` or
`bound`), numbers of accelerators separated by commas. A line with a JSON object is printed for each number:

    ranks       accelerators
    time_ms     time of the step
    compute_ms  computation of an accelerator alone, with the bubble of the pipeline
    bound_ms    least time by the bytes that links must carry
    data_ok     whether the simulation ended
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from network import LINK, NODE, NVLINK, network
from spinkit import _paths

TFLOPS = 400.0
"""Rate of an accelerator."""
FREE_SHARE = (132 - 20) / 132
"""Processors that communication leaves to the computation: DeepSeek-V3 (arXiv 2412.19437 §3.2.2) reserves 20 of 132."""
MICRO_BATCHES, SEQUENCE, VOCABULARY, BYTES = 4, 2048, 51_200, 2
CHUNK = 4 << 20


@dataclass(frozen=True)
class Shape:
    """Shape of a model of Megatron-LM (Narayanan et al., SC'21, Table 1)."""

    layers: int
    hidden: int
    tensor: int
    pipeline: int


SHAPES = {"7.5B": Shape(36, 4096, 4, 1), "39.1B": Shape(48, 8192, 8, 2)}


def tflops(place: str) -> float:
    """Return the rate of an accelerator that adds itself, or not."""
    return TFLOPS * (FREE_SHARE if place == "host" else 1)


def collectives(shape: Shape, place: str) -> str:
    """Return the algorithms: rings within nodes and between them, or switches in two of eight planes."""
    if place == "switch":
        return f"allreduce=switch,tree={NODE}x{NODE},planes={NODE},channels={NODE // shape.tensor},chunk={CHUNK}"
    members = NODE // shape.tensor
    return f"allreduce={'card' if place == 'card' else 'hierarchical'},node={members},chunk={CHUNK}"


@dataclass(frozen=True)
class Times:
    """Times in ns of a micro-batch, both ways, on the last stage, which has the logits, and on the others."""

    last: float
    other: float

    def step(self, shape: Shape) -> float:
        """Return the time of a step: the other stages work before the first and after the last micro-batch."""
        return MICRO_BATCHES * self.last + (shape.pipeline - 1) * self.other


def computation(shape: Shape, place: str) -> Times:
    """Return the computation by the formulas of docs/workloads.md."""
    layer = 24 * SEQUENCE * shape.hidden**2 + 4 * SEQUENCE**2 * shape.hidden
    logits = 2 * SEQUENCE * shape.hidden * VOCABULARY
    in_ns = 3 / shape.tensor / (tflops(place) * 1e3)
    layers = layer * shape.layers / shape.pipeline
    return Times((layers + logits) * in_ns, layers * in_ns)


def ring(ranks: float, place: str) -> float:
    """Return the bytes on the link of a rank for each byte of the vector: a ring carries most of it twice."""
    return 1 if place == "switch" else 2 * (ranks - 1) / ranks


def bound(shape: Shape, place: str, ranks: int) -> float:
    """Return a lower bound of the step in ns.

    Computation and the all-reduces among tensor-parallel ranks follow each other in each micro-batch, and stages are
    idle for the bubble of the pipeline. The gradients of the first stage travel beside the backward pass of its last
    micro-batch, and after it.
    """
    layers = shape.layers / shape.pipeline
    activations = SEQUENCE * shape.hidden * BYTES
    tensor = 4 * layers * ring(shape.tensor, place) * activations * 8 / NVLINK
    compute = computation(shape, place)
    times = Times(compute.last + tensor, compute.other + tensor)
    # A node has as many copies as fit, each with a part of the sum on its link.
    members = NODE // shape.tensor
    nodes = ranks / NODE / shape.pipeline
    parameters = 12 * shape.hidden**2 * layers + VOCABULARY * shape.hidden
    gradients = ring(nodes, place) * parameters / shape.tensor * BYTES / members * 8 / LINK
    backward = (times.last if shape.pipeline == 1 else times.other) * 2 / 3
    return times.step(shape) + max(0.0, gradients - backward)


def simulate(shape: Shape, kind: str, place: str, ranks: int, folder: Path) -> dict[str, float]:
    """Return the report of a simulated step."""
    step, topology = folder / "step.bin", folder / "network.dot"
    topology.write_text(network(kind, ranks))
    copies = ranks // shape.tensor // shape.pipeline
    words = ["gen", "llm", "--dp", copies, "--tp", shape.tensor, "--pp", shape.pipeline, "--layers", shape.layers]
    words += ["--hidden", shape.hidden, "--seq", SEQUENCE, "--vocab", VOCABULARY, "--micro-batches", MICRO_BATCHES]
    words += ["--tflops", tflops(place), "--collectives", collectives(shape, place), "-o", step]
    goal(*words)
    options = ["-S", 1 << 40, "--mtu", CHUNK, "--buffer", 1 << 40, "--routing", "adaptive", "--topology", topology]
    return json.loads(goal("run", "packet", step, *options, "--json", "-"))


def goal(*words: object) -> str:
    """Run a command of `spinkit goal`, and return its output."""
    command = [str(_paths.command("spinkit-goal")), *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Print the points of a series."""
    name, kind, place, values = sys.argv[1:]
    shape = SHAPES[name]
    for ranks in map(int, values.split(",")):
        by_bytes = bound(shape, "host" if place == "bound" else place, ranks)
        compute = computation(shape, place).step(shape)
        point = {"ranks": ranks, "compute_ms": compute / 1e6, "bound_ms": by_bytes / 1e6, "data_ok": True}
        if place == "bound":
            point["time_ms"] = point["compute_ms"]
        else:
            with tempfile.TemporaryDirectory() as folder:
                report = simulate(shape, kind, place, ranks, Path(folder))
            point["time_ms"] = max(report["end_ns"]) / 1e6
        print(json.dumps(point), flush=True)


main()
