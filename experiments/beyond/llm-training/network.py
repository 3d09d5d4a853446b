# SPDX-License-Identifier: Apache-2.0
"""Networks of nodes with eight accelerators, with hosts for the switches that add.

A node has a switch with a link of 3,600 Gbit/s to each accelerator (NVLink 4: 450 GB/s in each direction) and eight
links of 400 Gbit/s, one to each leaf switch of its pod. A pod has eight nodes. In a fat tree a leaf has a link to each
of eight spines. In a dragonfly each pair of pods (groups) has links between leaves, and a pod has as many links to
others as in the fat tree; `wide` gives each pair at least eight, so that each leaf has a link to each group.

Hosts after the accelerators stand for switches that add, as `spinkit goal gen llm` numbers them with `--collectives
allreduce=switch,tree=8x8,planes=8`: in each plane one at each node's switch, one at a leaf of each pod, and one root.
Their links are faster than all ports of a switch together.
"""

NODE = 8
"""Accelerators of a node, links of a node, leaves and nodes of a pod."""
NVLINK, LINK, ADDER = 3600, 400, 64 * 3600
"""Gbit/s"""


def _edge(one: str, other: str, gbit_s: int) -> str:
    return f"{one} -- {other} [capacity={gbit_s}]"


def _spines(pods: int) -> list[str]:
    """Return the links of a fat tree above the leaves."""
    return [
        _edge(f"leaf{pod}x{leaf}", f"spine{spine}", LINK)
        for pod in range(pods)
        for leaf in range(NODE)
        for spine in range(NODE)
    ]


def _groups(pods: int, least: int) -> list[str]:
    """Return the links between the groups of a dragonfly: those of a pair start at consecutive leaves."""
    links = []
    for one in range(pods):
        for other in range(one):
            of_pair = max(least, NODE * NODE // (pods - 1))
            for link in range(of_pair):
                leaf = (one + other + link) % NODE
                links.append(_edge(f"leaf{one}x{leaf}", f"leaf{other}x{leaf}", LINK))
    return links


def network(kind: str, ranks: int) -> str:
    """Return a network in DOT for a number of accelerators."""
    nodes, pods = -(-ranks // NODE), -(-ranks // NODE**2)
    has_roots = pods > 1
    hosts = ranks + NODE * (nodes + (pods if nodes > 1 else 0) + has_roots)
    edges = [_edge(f"h{rank}", f"node{rank // NODE}", NVLINK) for rank in range(ranks)]
    edges += [_edge(f"node{node}", f"leaf{node // NODE}x{leaf}", LINK) for node in range(nodes) for leaf in range(NODE)]
    edges += _spines(pods) if kind == "fat" else _groups(pods, NODE if kind == "wide" else 1)
    places = [f"node{node}" for node in range(nodes) for _ in range(NODE)]
    if nodes > 1:
        places += [f"leaf{pod}x{plane}" for pod in range(pods) for plane in range(NODE)]
    if has_roots:
        places += [f"spine{plane}" if kind == "fat" else f"leaf{plane % pods}x{plane}" for plane in range(NODE)]
    edges += [_edge(f"h{ranks + number}", place, ADDER) for number, place in enumerate(places)]
    names = " ".join(f"h{number};" for number in range(hosts))
    return f"graph {{\n{names}\n" + "\n".join(edges) + "\n}\n"
