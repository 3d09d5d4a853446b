// SPDX-License-Identifier: Apache-2.0
//! Tests of topologies: path lengths, deadlock freedom and DOT files.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sim::{Time, TimePerByte};

use super::*;
use crate::NetError;
use crate::Tree;

fn neighbours(topology: &Topology) -> Vec<Vec<u32>> {
    let vertices = topology.hosts() + topology.switches();
    let of = |vertex: u32| topology.first(vertex) as usize..topology.first(vertex + 1) as usize;
    (0..vertices).map(|vertex| topology.links()[of(vertex)].iter().map(|link| link.to).collect()).collect()
}

/// Returns the number of links from each vertex to one, by search.
fn distances(neighbours: &[Vec<u32>], to: u32) -> Vec<u32> {
    // Every link of these topologies has a reverse link.
    let mut distance = vec![u32::MAX; neighbours.len()];
    distance[to as usize] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(vertex) = queue.pop_front() {
        for &next in &neighbours[vertex as usize] {
            if distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[vertex as usize] + 1;
                queue.push_back(next);
            }
        }
    }
    distance
}

/// A link and a virtual channel.
type Channel = (u32, u8);

/// Follows every path that a packet may take between two hosts; returns the lengths of these paths in links, and
/// records the wait dependencies between channels.
fn walk(topology: &Topology, from: u32, to: u32, waits: &mut BTreeMap<Channel, BTreeSet<Channel>>) -> BTreeSet<u32> {
    let first = topology.first(from);
    let mut lengths = BTreeSet::new();
    for class in 0..topology.classes() {
        let mut stack = vec![((first, 0), RouteState { hops: 0, class })];
        let mut seen = BTreeSet::new();
        while let Some((channel, state)) = stack.pop() {
            let vertex = topology.links()[channel.0 as usize].to;
            if vertex == to {
                lengths.insert(u32::from(state.hops) + 1);
                continue;
            }
            assert!(vertex >= topology.hosts(), "{} came to another host", topology.name(to));
            assert!(u32::from(state.hops) < topology.longest_path(), "on and on");
            let ways = topology.next_hops(vertex - topology.hosts(), to, state);
            assert!(!ways.ports.is_empty());
            for (place, port) in ways.ports.iter().enumerate() {
                let link = topology.first(vertex) + port;
                assert_eq!(topology.links()[link as usize].from, vertex);
                let vc = ways.vc(place);
                let is_between = topology.links()[link as usize].to >= topology.hosts();
                assert!(!is_between || u32::from(vc) < topology.vcs(topology.classes()));
                waits.entry(channel).or_default().insert((link, vc));
                if seen.insert(((link, vc), state.hops)) {
                    stack.push(((link, vc), RouteState { hops: state.hops + 1, class }));
                }
            }
        }
    }
    lengths
}

/// Returns true if channels wait for each other in a cycle.
fn has_circle(waits: &BTreeMap<Channel, BTreeSet<Channel>>) -> bool {
    let mut left: BTreeMap<Channel, BTreeSet<Channel>> = waits.clone();
    loop {
        let before = left.len();
        let keys: BTreeSet<Channel> = left.keys().copied().collect();
        left.retain(|_, next| next.iter().any(|channel| keys.contains(channel)));
        if left.len() == before {
            return before > 0;
        }
    }
}

/// Checks that all path lengths satisfy `is_right(from, to, links)`, that each link has a reverse link, and that
/// packets cannot wait for each other cyclically.
fn check(topology: &Topology, is_right: impl Fn(u32, u32, u32, u32) -> bool) {
    let neighbours = neighbours(topology);
    for (from, all) in neighbours.iter().enumerate() {
        for &to in all {
            assert!(neighbours[to as usize].contains(&(from as u32)), "{from} {to}");
        }
    }
    let mut waits = BTreeMap::new();
    for to in 0..topology.hosts() {
        let distance = distances(&neighbours, to);
        for from in (0..topology.hosts()).filter(|&from| from != to) {
            for length in walk(topology, from, to, &mut waits) {
                assert!(length <= topology.longest_path());
                assert!(is_right(from, to, length, distance[from as usize]), "{from} to {to}: {length}");
            }
        }
    }
    assert!(!has_circle(&waits), "{}", topology.description());
}

#[test]
fn fat_trees_have_the_distances_of_the_tree() {
    for (radix, hosts) in
        [(4, 2), (4, 5), (4, 8), (4, 9), (4, 16), (4, 23), (6, 20), (6, 54), (8, 40), (8, 128), (4, 40)]
    {
        let topology = Topology::fat_tree(radix, 1, hosts).unwrap();
        let tree = Tree::fat_tree(radix, hosts).unwrap();
        assert_eq!((topology.hosts() as usize, topology.longest_path()), (hosts, 2 * tree.levels()));
        check(&topology, |from, to, length, distance| {
            length == distance && length == tree.hops(from as usize, to as usize).wires
        });
        assert!(neighbours(&topology)[hosts..].iter().all(|ports| ports.len() <= radix as usize));
    }
}

#[test]
fn a_full_fat_tree_uses_every_port() {
    let topology = Topology::fat_tree(16, 1, 1024).unwrap();
    assert_eq!((topology.hosts(), topology.switches(), topology.links().len()), (1024, 320, 6 * 1024));
    assert!(neighbours(&topology)[1024..].iter().all(|ports| ports.len() == 16));
    assert_eq!(topology.description(), "fat tree of 16-port switches, 3 levels");
}

#[test]
fn tapered_trees_have_fewer_uplinks() {
    // 36 = 27 + 9: 27 hosts on a leaf, 9 switches above.
    let topology = Topology::fat_tree(36, 3, 27 * 36).unwrap();
    assert_eq!(topology.switches(), 36 + 9);
    assert_eq!(topology.description(), "fat tree of 36-port switches, 2 levels tapered 3:1");
    let ways = topology.next_hops(0, 27, RouteState::default());
    assert_eq!(ways.ports, (27..36).collect::<Vec<u32>>());
    for (taper, hosts) in [(2, 12), (3, 20), (3, 40)] {
        check(&Topology::fat_tree(8, taper, hosts).unwrap(), |_, _, length, distance| length == distance);
    }
    let error = Topology::fat_tree(4, 5, 100).unwrap_err();
    assert_eq!(error.to_string(), "switches with 4 ports cannot be tapered 5:1: that takes at least 6 ports");
    assert_eq!(Topology::fat_tree(36, 0, 100).unwrap_err(), NetError::Taper { radix: 36, taper: 0 });
}

#[test]
fn a_switch_has_them_all() {
    let topology = Topology::single_switch(70_000).unwrap();
    assert_eq!(topology.next_hops(0, 69_999, RouteState::default()).ports, [69_999]);
    assert_eq!((topology.name(3), topology.name(70_000)), ("host 3".into(), "switch".into()));
    check(&Topology::single_switch(5).unwrap(), |_, _, length, _| length == 2);
}

#[test]
fn dragonflies_pass_one_global_link() {
    for (hosts, routers, global, groups) in [(1, 2, 1, 3), (2, 4, 2, 9), (1, 4, 2, 3), (2, 3, 2, 5), (3, 4, 0, 1)] {
        let topology = Topology::dragonfly(Dragonfly { hosts, routers, global, groups }).unwrap();
        assert_eq!((topology.hosts(), topology.switches()), (hosts * routers * groups, routers * groups));
        check(&topology, |from, to, length, distance| {
            let of_group = |host| host / hosts / routers;
            distance <= length && length <= if of_group(from) == of_group(to) { 3 } else { 5 }
        });
        // Each pair of groups has the same number of links, and no router exceeds its maximum.
        let mut between = BTreeMap::new();
        for link in topology.links() {
            if let (Some(from), Some(to)) =
                (link.from.checked_sub(topology.hosts()), link.to.checked_sub(topology.hosts()))
                && from / routers != to / routers
            {
                *between.entry((from / routers, to / routers)).or_insert(0) += 1;
            }
        }
        let each = (routers * global).checked_div(groups - 1).unwrap_or(0);
        assert_eq!(between.len() as u32, groups * (groups - 1));
        assert!(between.values().all(|&links| links == each));
        assert!(neighbours(&topology).iter().all(|ports| ports.len() as u32 <= hosts + routers - 1 + global));
    }
    let shape = Dragonfly { hosts: 2, routers: 4, global: 2, groups: 10 };
    let expected = "a dragonfly with 4 routers per group (a) and 2 global links each (h) has at most 9 groups, not 10";
    assert_eq!(Topology::dragonfly(shape).unwrap_err().to_string(), expected);
    assert_eq!(Topology::dragonfly(Dragonfly { hosts: 0, ..shape }).unwrap_err(), NetError::DragonflyEmpty);
    assert_eq!(Dragonfly::for_hosts(73), Dragonfly { hosts: 3, routers: 6, global: 3, groups: 19 });
}

#[test]
fn tori_take_the_shorter_way_around() {
    for (sides, hosts) in [
        (&[5][..], 1),
        (&[4], 2),
        (&[2, 2, 2], 1),
        (&[3, 4], 1),
        (&[4, 1, 4], 1),
        (&[4, 4, 4], 1),
        (&[3, 2, 2, 2, 3], 1),
    ] {
        let topology = Topology::torus(sides, hosts).unwrap();
        check(&topology, |_, _, length, distance| length == distance);
    }
    let topology = Topology::torus(&[4, 3], 1).unwrap();
    assert_eq!((topology.hosts(), topology.links().len(), topology.longest_path()), (12, 24 + 48, 5));
    assert_eq!(topology.name(12 + 7), "switch (3,1)");
    // From (0,0) to (2,1), two paths lead around the first dimension, which comes first.
    assert_eq!(topology.next_hops(0, 6, RouteState::default()).ports.len(), 2);
    assert_eq!(topology.next_hops(0, 6, RouteState { hops: 0, class: 1 }).ports.len(), 1);
    for sides in [&[][..], &[1, 2, 3, 4, 5, 6], &[3, 0]] {
        assert_eq!(Topology::torus(sides, 1).unwrap_err(), NetError::TorusSides);
    }
    assert_eq!(Topology::torus(&[4_000_000_000, 4], 1).unwrap_err(), NetError::TooLarge);
}

/// An example of LogGOPSim.
const STAR: &str = r#"digraph mycoolnetwork {
    H0 -> S1 [comment="H1,H2"];
    H1 -> S1 [comment="*"] // all
    H2 -> S1 [hostname="monch01", comment="H0, H1"];
    S1 -> H0 [comment="H0"];
    S1 -> H1 [comment="H1"];
    S1 -> H2 [comment="H2"];
}"#;

#[test]
fn dot_files_of_the_ancestor_are_networks() {
    let topology = Topology::from_dot(STAR).unwrap();
    assert_eq!((topology.hosts(), topology.switches(), topology.description()), (3, 1, "network from a file"));
    assert_eq!((topology.name(2), topology.name(3)), ("H2".into(), "S1".into()));
    check(&topology, |_, _, length, _| length == 2);
    // A ring of three, with routes in the longer direction.
    let ring = "digraph { H0->A H1->B H2->C A->H0 B->H1 C->H2 [comment=H2]
        A->B [comment=\"H1,H2\"] B->C [comment=\"H2, H0\"] C->A [comment=\"H0 H1\"] }";
    let topology =
        Topology::from_dot(&ring.replace("A->H0", "A->H0[comment=H0]").replace("B->H1", "B->H1[comment=H1]"));
    let topology = topology.unwrap();
    assert_eq!((topology.vcs(1), topology.longest_path()), (2, 4));
    let mut waits = BTreeMap::new();
    assert_eq!(walk(&topology, 0, 2, &mut waits), BTreeSet::from([4]));
    assert_eq!(walk(&topology, 1, 2, &mut waits), BTreeSet::from([3]));
}

#[test]
fn dot_files_without_routes_take_shortest_paths() {
    let text = "strict graph \"two levels\" { // a small tree
        node [shape=box]; edge [capacity=100 latency=10]
        # of the preprocessor
        rankdir = LR
        subgraph cluster_1 { leaf0 -- { 0 1 host2 } }
        leaf1:p:n -- 3 -- {} [capacity=50, \"latency\" = \"2.5\";]
        { leaf0; leaf1 } -- { spine0 \"spine\" + \"1\" } /* all
        four */
    }";
    let topology = Topology::from_dot(text).unwrap();
    assert_eq!((topology.hosts(), topology.switches(), topology.vcs(1)), (4, 4, 1));
    assert_eq!(topology.name(7), "spine1");
    check(&topology, |_, _, length, distance| length == distance);
    assert_eq!(topology.next_hops(0, 3, RouteState::default()).ports.len(), 2);
    let to_3 = topology.links().iter().find(|link| link.to == 3).unwrap();
    assert_eq!(
        (to_3.gap_per_byte, to_3.latency),
        (Some(TimePerByte::from_fs_per_byte(160_000)), Some(Time::from_ps(2_500)))
    );
    assert_eq!(topology.links()[0].gap_per_byte, Some(TimePerByte::from_fs_per_byte(80_000)));
    // Rings need virtual channels, trees do not.
    let ring = "graph { a -- b -- c -- d -- e -- a h1 -- a h2 -- b h3 -- c h4 -- d h5 -- e }";
    let topology = Topology::from_dot(ring).unwrap();
    assert_eq!((topology.vcs(1), topology.longest_path()), (2, 4));
    check(&topology, |_, _, length, distance| length == distance);
}

#[test]
fn hosts_of_a_switch_may_have_routes_of_their_own() {
    // A network with two spines. Two hosts of the right leaf are reached over one, the third over the other; the left
    // leaf is symmetric.
    let text = "digraph {
        H0->L H1->L H2->R H3->R H4->R L->H0 [comment=H0] L->H1 [comment=H1]
        R->H2 [comment=H2] R->H3 [comment=H3] R->H4 [comment=H4]
        L->S [comment=\"H2 H4\"] L->T [comment=\"H3,H3\"] R->S [comment=\"H0\"] R->T [comment=\"H1, H0\"]
        S->L S->R T->L T->R
    }";
    let topology = Topology::from_dot(text).unwrap();
    // Switches are in the order of their names' appearance: L, R, S, T.
    let left: Vec<&[u32]> = (0..5).map(|to| topology.next_hops(0, to, RouteState::default()).ports).collect();
    assert_eq!(left, [&[0][..], &[1], &[2], &[3], &[2]]);
    let right: Vec<&[u32]> = (0..5).map(|to| topology.next_hops(1, to, RouteState::default()).ports).collect();
    assert_eq!(right, [&[3, 4][..], &[4], &[0], &[1], &[2]]);
    check(&topology, |_, _, length, distance| length == distance);
    // The first of two hosts of a switch sends to another switch, which has no path to the second host.
    let astray = "digraph { H0->A H1->B H2->B B->H0 B->H1 A->C C->A B->H2 }";
    let expected = "host H1 cannot be reached from H0: A has no way to it";
    assert_eq!(Topology::from_dot(astray).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_wrong_with_a_dot_file_is_said() {
    let cases = [
        ("", "1:1: expected `graph` or `digraph`, found the end of the file"),
        ("digraph {\n  H0 -> S1 [comment=]\n}", "2:21: expected a value, found `]`"),
        ("digraph { H0 -- S1 }", "1:14: a digraph has `->`, not `--`"),
        ("graph { H0 -> S1 }", "1:12: a graph has `--`, not `->`"),
        ("graph { a -- ; }", "1:14: expected a node, an edge or `}`, found `;`"),
        ("graph { a -- \"b }", "1:14: this string has no end"),
        ("graph { a -- <b }", "1:14: this HTML string has no end"),
        ("graph { /* a -- b }", "1:9: this comment has no end"),
        ("graph { a -- b", "1:15: expected a node, an edge or `}`, found the end of the file"),
        ("graph {\n \t# a -- b c\n a # }", "3:4: unexpected character `#`"),
        ("graph { a -- b } c", "1:18: expected the end of the file, found `c`"),
        ("graph { ä ? }", "1:11: unexpected character `?`"),
        ("graph { 1.2.3 }", "1:9: `1.2.3` is no number"),
        ("graph { a -- b }", "no host: the names of hosts start with H, or are numbers"),
        ("graph { h1 -- s h2 -- s [capacity=0] }", "the link h2 -- s has no capacity"),
        ("graph { h1 -- s [capacity=much] }", "the link h1 -- s has capacity=much, which is not a number of Gbit/s"),
        ("graph { h1 -- s [capacity=\"1e-30\"] }", "the link h1 -- s has a capacity of less than a byte a second"),
        ("graph { h1 -- s [latency=-1] }", "the link h1 -- s has latency=-1, which is not a number of nanoseconds"),
        ("graph { h1 -- s [latency=\"1e10\"] }", "the link h1 -- s has a latency of more than a second"),
        ("graph { h1 -- s h2 -- t }", "host h1 cannot be reached from h2: t has no way to it"),
        ("graph { h1 -- h2 }", "the link h1 -- h2 joins two hosts; there must be a switch between"),
        ("graph { h1 -- s s -- s }", "the link s -- s leads nowhere"),
        ("graph { h1 -- s h1 -- t }", "host h1 has 2 links from it, a host has one"),
        ("digraph { H1 -> S }", "host H1 has 0 links to it, a host has one"),
        ("graph { h1 s }", "host h1 has 0 links from it, a host has one"),
        (
            "graph { h1 -- s [comment=h1] }",
            "the link h1 -- s has a comment with routes, which are of one direction: this needs a digraph",
        ),
        (
            "digraph { H1 -> S S -> H1 [comment=H9] }",
            "the comment of link S -> H1 names H9, which is no host of the file",
        ),
        (
            "digraph { H1->A A->H1 H2->B B->H2 A->B [comment=H2] B->A [comment=\"H1 H2\"] }",
            "host H1 cannot be reached from H2: A has no way to it",
        ),
        (
            "digraph { H1->A A->H1[comment=H1] H2->B B->H2[comment=H1] A->B [comment=H2] B->A [comment=H2] }",
            "the routes send packets for host H1 from B to H2 and never on",
        ),
        (
            "digraph { H1->A A->H1[comment=H1] H2->B B->H2 [comment=H0] H0->B B->H0 A->B [comment=\"H2 H0\"] B->A [comment=\"H1 H2\"] }",
            "the routes send packets for host H2 from B to A and never on",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(Topology::from_dot(text).unwrap_err().to_string(), expected, "{text}");
    }
    let deep = "{".repeat(200);
    assert_eq!(
        Topology::from_dot(&format!("graph {deep}")).unwrap_err().to_string(),
        "1:107: braces more than 100 deep"
    );
}

#[test]
fn small_dot_files_make_no_huge_networks() {
    let group =
        |letter: char, count: u32| -> String { (0..count).map(|number| format!("{letter}{number};")).collect() };
    let text = format!("graph {{\n  {{{}}} -- {{{}}} }}", group('S', 2897), group('R', 2897));
    let error = Topology::from_dot(&text).unwrap_err();
    assert_eq!(error.to_string(), "2:3: with this statement the file has more than 8388608 edges");
    // One string of many pieces.
    let name = "\"S\"+".repeat(200_000);
    let text = format!("graph {{ H0 -- {name}\"1\"; H1 -- {name}\"1\" }}");
    assert_eq!(Topology::from_dot(&text).unwrap().hosts(), 2);
}
