// SPDX-License-Identifier: Apache-2.0
//! Topology files of htsim (`.topo`): fat trees of two or three tiers, with different links in each tier.
//!
//! Tier 0 connects hosts, tier 1 the switches of a pod, tier 2 the pods. Keys describe the links below a tier's switches.

use std::fmt::Write as _;

use crate::NetError;

/// Links and switches of a tier.
#[derive(Clone, Copy, Debug, Default)]
struct Tier {
    /// Line of its heading; 0 if the file has none.
    line: usize,
    speed_gbps: u64,
    radix_up: u64,
    radix_down: u64,
    oversubscribed: u64,
    bundle: u64,
    switch_latency_ns: u64,
    link_latency_ns: u64,
}

/// Switches of each tier and the links between them.
#[derive(Clone, Debug, Default)]
struct Tree {
    nodes: u64,
    tiers: usize,
    pod: u64,
    each: [Tier; 3],
}

/// Most hosts of a file; each needs an entry of the routes.
const MAX_NODES: u64 = 1 << 20;
/// Largest number in a file; products of three numbers fit into 64 bits.
const MAX_NUMBER: u64 = 1 << 20;
/// Most links of a file, as of a DOT file.
const MAX_LINKS: u64 = 1 << 23;

/// Returns true if a text is a topology of htsim: its first line with contents states the number of nodes.
pub(super) fn is_topo(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().and_then(|line| line.split_whitespace().next()).is_some_and(|word| word.eq_ignore_ascii_case("nodes"))
}

/// Converts a topology to DOT.
///
/// # Errors
/// If the text has a mistake, with its line, or its numbers do not fit together.
pub(super) fn to_dot(text: &str) -> Result<String, NetError> {
    let tree = Tree::read(text)?;
    let [tor, agg, core] = tree.each;
    let switches = tree.switches()?;
    let mut dot = String::from("graph topology {\n");
    (0..tree.nodes).for_each(|host| dot.push_str(&format!("h{host};\n")));
    let mut join = |below: &str, above: &str, links: u64, tier: &Tier| {
        // The latency of a link includes that of the switch above; a packet passes as many switches upwards as links.
        let latency = tier.link_latency_ns + tier.switch_latency_ns;
        for _ in 0..links {
            // Writing to a string cannot fail.
            let _ = writeln!(dot, "{below} -- {above} [capacity={}, latency={latency}];", tier.speed_gbps);
        }
    };
    for host in 0..tree.nodes {
        join(&format!("h{host}"), &format!("tor{}", host / tor.radix_down), 1, &tor);
    }
    let tors_of_pod = tree.pod / tor.radix_down;
    for leaf in 0..switches[0] {
        let aggs = if tree.tiers == 3 {
            let of_pod = switches[1] / (tree.nodes / tree.pod);
            let first = leaf / tors_of_pod * of_pod;
            first..first + of_pod
        } else {
            0..switches[1]
        };
        for upper in aggs {
            join(&format!("tor{leaf}"), &format!("agg{upper}"), agg.bundle, &agg);
        }
    }
    if tree.tiers == 3 {
        let of_pod = switches[1] / (tree.nodes / tree.pod);
        for upper in 0..switches[1] {
            for link in 0..agg.radix_up / core.bundle {
                let top = upper % of_pod + of_pod * link;
                join(&format!("agg{upper}"), &format!("core{top}"), core.bundle, &core);
            }
        }
    }
    dot.push_str("}\n");
    Ok(dot)
}

fn wrong<T>(line: usize, problem: impl Into<String>) -> Result<T, NetError> {
    Err(NetError::Topo { line, problem: problem.into() })
}

impl Tree {
    fn read(text: &str) -> Result<Tree, NetError> {
        let mut tree = Tree::default();
        for tier in &mut tree.each {
            (tier.oversubscribed, tier.bundle) = (1, 1);
        }
        let mut current = None;
        for (line, content) in (1..).zip(text.lines()) {
            let mut words = content.split_whitespace();
            let Some(key) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let key = key.to_ascii_lowercase();
            let value = words.next().unwrap_or_default();
            let Ok(number) = value.parse::<u64>() else {
                return wrong(line, format!("{key} is a whole number, not {value:?}"));
            };
            if number > MAX_NUMBER {
                return wrong(line, format!("{key} {number} is beyond {MAX_NUMBER}"));
            }
            match (key.as_str(), current) {
                ("nodes", None) => tree.nodes = number,
                ("tiers", None) => tree.tiers = usize::try_from(number).unwrap_or(usize::MAX),
                ("podsize", None) => tree.pod = number,
                ("tier", _) => {
                    let Some(tier) = usize::try_from(number).ok().filter(|tier| *tier < tree.tiers.min(3)) else {
                        return wrong(line, format!("tier {number} is none of the {} tiers, from 0", tree.tiers));
                    };
                    if tree.each[tier].line != 0 {
                        return wrong(line, format!("tier {number} is also on line {}", tree.each[tier].line));
                    }
                    tree.each[tier].line = line;
                    current = Some(tier);
                }
                (_, None) => return wrong(line, format!("{key}: before the first tier are Nodes, Tiers and Podsize")),
                // Queues are those of the machine.
                ("queue_up" | "queue_down", Some(_)) => {}
                (key, Some(tier)) => {
                    let tier = &mut tree.each[tier];
                    *match key {
                        "downlink_speed_gbps" => &mut tier.speed_gbps,
                        "radix_up" => &mut tier.radix_up,
                        "radix_down" => &mut tier.radix_down,
                        "oversubscribed" => &mut tier.oversubscribed,
                        "bundle" => &mut tier.bundle,
                        "switch_latency_ns" => &mut tier.switch_latency_ns,
                        "downlink_latency_ns" => &mut tier.link_latency_ns,
                        _ => {
                            let keys = "Downlink_speed_Gbps, Radix_Up, Radix_Down, Oversubscribed, Bundle, \
                                        Switch_Latency_ns, Downlink_Latency_ns, Queue_Up and Queue_Down";
                            return wrong(line, format!("{key}: a tier has {keys}"));
                        }
                    } = number;
                }
            }
        }
        tree.check().map(|()| tree)
    }

    fn check(&self) -> Result<(), NetError> {
        if !(2..=3).contains(&self.tiers) {
            return wrong(1, format!("Tiers is 2 or 3, not {}", self.tiers));
        }
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return wrong(1, format!("Nodes is from 1 to {MAX_NODES}, not {}", self.nodes));
        }
        if self.pod == 0 || !self.nodes.is_multiple_of(self.pod) {
            return wrong(1, format!("Nodes {} is not divisible by Podsize {}", self.nodes, self.pod));
        }
        for (number, tier) in self.each[..self.tiers].iter().enumerate() {
            if tier.line == 0 {
                return wrong(1, format!("tier {number} is missing"));
            }
            let top = number + 1 == self.tiers;
            for (key, value) in [
                ("Downlink_speed_Gbps", tier.speed_gbps),
                ("Radix_Down", tier.radix_down),
                ("Oversubscribed", tier.oversubscribed),
                ("Bundle", tier.bundle),
                ("Radix_Up", if top { 1 } else { tier.radix_up }),
            ] {
                if value == 0 {
                    return wrong(tier.line, format!("tier {number} needs {key} above 0"));
                }
            }
        }
        Ok(())
    }

    /// Returns the number of switches of each tier, after checking that links, radixes and bundles fit together.
    fn switches(&self) -> Result<[u64; 3], NetError> {
        let [tor, agg, core] = self.each;
        let divided = |whole: u64, part: u64, line: usize, problem: &str| match whole.is_multiple_of(part) {
            true => Ok(whole / part),
            false => wrong(line, format!("{problem}: {whole} is not divisible by {part}")),
        };
        let tors = divided(self.nodes, tor.radix_down, tor.line, "Nodes, by Radix_Down of tier 0")?;
        divided(self.pod, tor.radix_down, tor.line, "Podsize, by Radix_Down of tier 0")?;
        let bandwidth = tor.radix_down * tor.speed_gbps;
        if bandwidth != tor.oversubscribed * tor.radix_up * agg.speed_gbps {
            let problem = format!(
                "tier 0 has {bandwidth} Gbit/s down and {} up, which is not Oversubscribed {}",
                tor.radix_up * agg.speed_gbps,
                tor.oversubscribed
            );
            return wrong(tor.line, problem);
        }
        let aggs =
            divided(tors * tor.radix_up, agg.radix_down, agg.line, "uplinks of tier 0, by Radix_Down of tier 1")?;
        let pods = if self.tiers == 3 { self.nodes / self.pod } else { 1 };
        let of_pod = divided(aggs, pods, agg.line, "switches of tier 1, by pods")?;
        if of_pod * agg.bundle != tor.radix_up {
            let problem = format!(
                "{of_pod} switches a pod and Bundle {} make {} uplinks of tier 0, not Radix_Up {}",
                agg.bundle,
                of_pod * agg.bundle,
                tor.radix_up
            );
            return wrong(agg.line, problem);
        }
        let uplinks = if self.tiers == 3 { aggs * agg.radix_up } else { 0 };
        let links = self.nodes + tors * tor.radix_up + uplinks;
        if links > MAX_LINKS {
            return wrong(1, format!("{links} links: at most {MAX_LINKS}"));
        }
        if self.tiers == 2 {
            return Ok([tors, aggs, 0]);
        }
        let cores = divided(uplinks, core.radix_down, core.line, "uplinks of tier 1, by Radix_Down of tier 2")?;
        if cores * core.bundle != of_pod * agg.radix_up {
            let problem = format!(
                "{cores} switches of tier 2 with Bundle {} do not take Radix_Up {} of {of_pod} switches of a pod",
                core.bundle, agg.radix_up
            );
            return wrong(core.line, problem);
        }
        divided(cores, of_pod, core.line, "switches of tier 2, by those of a pod in tier 1")?;
        Ok([tors, aggs, cores])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# two tiers
Nodes 32
Tiers 2
Podsize 32
Tier 0
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 4
Downlink_Latency_ns 500
Switch_Latency_ns 30
Oversubscribed 2
Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 700
";

    const THREE: &str = "Nodes 64
Tiers 3
Podsize 16
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 500
Tier 1
Downlink_speed_Gbps 100
Radix_Down 8
Radix_Up 4
Bundle 2
Oversubscribed 2
Downlink_Latency_ns 600
Tier 2
Downlink_speed_Gbps 200
Radix_Down 4
Downlink_Latency_ns 700
";

    /// Returns the number of lines with both words.
    fn count(dot: &str, below: &str, above: &str) -> usize {
        dot.lines().filter(|line| line.starts_with(below) && line.contains(&format!(" -- {above}"))).count()
    }

    #[test]
    fn two_tiers_have_the_links_of_their_radixes() {
        let dot = to_dot(TWO).unwrap();
        assert_eq!([count(&dot, "h", "tor"), count(&dot, "tor", "agg")], [32, 16]);
        assert_eq!(count(&dot, "tor0", "agg"), 4);
        assert!(dot.contains("h0 -- tor0 [capacity=100, latency=530];"), "{dot}");
        assert!(dot.contains("h31 -- tor3 ") && dot.contains("tor3 -- agg3 [capacity=100, latency=700];"), "{dot}");
    }

    #[test]
    fn three_tiers_have_pods_and_bundles() {
        let dot = to_dot(THREE).unwrap();
        assert_eq!([count(&dot, "h", "tor"), count(&dot, "tor", "agg"), count(&dot, "agg", "core")], [64, 64, 32]);
        // A leaf has two links to each of the two switches of its pod.
        assert_eq!([count(&dot, "tor5 ", "agg2 "), count(&dot, "tor5 ", "agg0 ")], [2, 0]);
        // The first switch of each pod reaches every second switch of tier 2.
        assert_eq!(
            (0..8).map(|top| count(&dot, "agg4 ", &format!("core{top} "))).collect::<Vec<_>>(),
            [1, 0, 1, 0, 1, 0, 1, 0]
        );
        assert!(is_topo(THREE) && is_topo(TWO) && !is_topo("graph { h1 -- s }"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (from, to, error) in [
            ("Podsize 32", "Podsize 5", "1: Nodes 32 is not divisible by Podsize 5"),
            ("Radix_Down 8", "Radix_Down 7", "5: Nodes, by Radix_Down of tier 0: 32 is not divisible by 7"),
            (
                "Oversubscribed 2",
                "Oversubscribed 4",
                "5: tier 0 has 800 Gbit/s down and 400 up, which is not Oversubscribed 4",
            ),
            (
                "Radix_Down 4",
                "Radix_Down 8",
                "12: 2 switches a pod and Bundle 1 make 2 uplinks of tier 0, not Radix_Up 4",
            ),
            ("Tiers 2", "Tiers 4", "1: Tiers is 2 or 3, not 4"),
            ("Tier 1", "Tier 0", "12: tier 0 is also on line 5"),
            ("Radix_Up 4", "Radix_Up four", "8: radix_up is a whole number, not \"four\""),
            ("Switch_Latency_ns", "Switch_Delay", "10: switch_delay: a tier has "),
            ("Tiers 2", "Colour 2", "3: colour: before the first tier are Nodes, Tiers and Podsize"),
        ] {
            let error_of = to_dot(&TWO.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error_of.starts_with(error), "{error_of} instead of {error}");
        }
    }
}
