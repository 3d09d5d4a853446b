// SPDX-License-Identifier: Apache-2.0
//! Builds a topology from a DOT file.

use std::collections::HashMap;
use std::rc::Rc;

use sim::{Time, TimePerByte};

use super::dot::{self, Attributes};
use super::table::{self, Route, TableRoutes};
use super::wiring::{Link, too_large};
use crate::NetError;

/// Contents of a file.
pub(super) struct Network {
    pub hosts: u32,
    pub vertices: usize,
    pub links: Vec<Link>,
    pub routes: TableRoutes,
}

pub(super) fn read(text: &str) -> Result<Network, NetError> {
    let graph = dot::parse(text)?;
    too_large(2 * graph.edges.len().max(graph.nodes.len()) as u64)?;
    // Hosts precede switches, both in file order.
    let (hosts, switches): (Vec<usize>, Vec<usize>) =
        (0..graph.nodes.len()).partition(|&node| is_host(&graph.nodes[node]));
    if hosts.is_empty() {
        return Err(NetError::Graph("no host: the names of hosts start with H, or are numbers".into()));
    }
    let order: Vec<usize> = hosts.iter().chain(&switches).copied().collect();
    let mut vertex_of = vec![0; order.len()];
    for (vertex, &node) in order.iter().enumerate() {
        vertex_of[node] = vertex as u32;
    }
    let names: Vec<String> = order.iter().map(|&node| graph.nodes[node].clone()).collect();
    let numbers: HashMap<&str, u32> =
        (0..).zip(&names[..hosts.len()]).map(|(host, name)| (name.as_str(), host)).collect();

    // Many edges may share a long comment.
    let mut routes = HashMap::new();
    let mut links = Vec::new();
    for edge in &graph.edges {
        let (from, to) = (vertex_of[edge.from as usize], vertex_of[edge.to as usize]);
        let arrow = if graph.directed { "->" } else { "--" };
        let title = format!("{} {arrow} {}", names[from as usize], names[to as usize]);
        if from == to {
            return Err(NetError::Graph(format!("the link {title} leads nowhere")));
        }
        if from.max(to) < hosts.len() as u32 {
            return Err(NetError::Graph(format!("the link {title} joins two hosts; there must be a switch between")));
        }
        let link = link(&edge.attributes, from, to, &title)?;
        let route = match &edge.attributes.comment {
            None => Route::Unsaid,
            Some(comment) => match routes.get(comment) {
                Some(route) => Route::clone(route),
                None => {
                    let route = route(comment, &title, &numbers)?;
                    routes.insert(Rc::clone(comment), route.clone());
                    route
                }
            },
        };
        if !graph.directed {
            if route != Route::Unsaid {
                let what = "has a comment with routes, which are of one direction: this needs a digraph";
                return Err(NetError::Graph(format!("the link {title} {what}")));
            }
            links.push((Link { from: to, to: from, ..link }, Route::Unsaid));
        }
        links.push((link, route));
    }
    // The ports of a switch are in file order.
    links.sort_by_key(|(link, _)| link.from);
    let hosts = hosts.len() as u32;
    one_link_each(&links, &names, hosts)?;
    let (links, routes): (Vec<Link>, Vec<Route>) = links.into_iter().unzip();
    let routes = table::build(names, hosts, &links, &routes)?;
    Ok(Network { hosts, vertices: order.len(), links, routes })
}

fn is_host(name: &str) -> bool {
    name.starts_with(['H', 'h']) || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks that each host has one outgoing and one incoming link.
fn one_link_each(links: &[(Link, Route)], names: &[String], hosts: u32) -> Result<(), NetError> {
    let (mut out, mut into) = (vec![0; names.len()], vec![0; names.len()]);
    for (link, _) in links {
        out[link.from as usize] += 1;
        into[link.to as usize] += 1;
    }
    for host in 0..hosts as usize {
        for (count, which) in [(out[host], "from"), (into[host], "to")] {
            if count != 1 {
                let name = &names[host];
                return Err(NetError::Graph(format!("host {name} has {count} links {which} it, a host has one")));
            }
        }
    }
    Ok(())
}

fn link(attributes: &Attributes, from: u32, to: u32, title: &str) -> Result<Link, NetError> {
    let number = |name: &str, value: &Option<Rc<str>>, unit: &str| -> Result<Option<f64>, NetError> {
        let Some(value) = value else { return Ok(None) };
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.map(Some).ok_or_else(|| {
            NetError::Graph(format!("the link {title} has {name}={value}, which is not a number of {unit}"))
        })
    };
    let gap_per_byte = match number("capacity", &attributes.capacity, "Gbit/s")? {
        None => None,
        Some(0.0) => return Err(NetError::Graph(format!("the link {title} has no capacity"))),
        // 1 Gbit/s is 8 ns per byte.
        Some(capacity) => {
            Some((8e6 / capacity).round()).filter(|fs| *fs < 1e15).map(|fs| TimePerByte::from_fs_per_byte(fs as u64))
        }
    };
    if gap_per_byte.is_none() && attributes.capacity.is_some() {
        return Err(NetError::Graph(format!("the link {title} has a capacity of less than a byte a second")));
    }
    let latency = number("latency", &attributes.latency, "nanoseconds")?;
    if latency.is_some_and(|ns| ns > 1e9) {
        return Err(NetError::Graph(format!("the link {title} has a latency of more than a second")));
    }
    let latency = latency.map(|ns| Time::from_ps((ns * 1e3).round() as u64));
    Ok(Link { from, to, gap_per_byte, latency })
}

/// Returns the hosts named by a comment.
fn route(comment: &str, title: &str, numbers: &HashMap<&str, u32>) -> Result<Route, NetError> {
    if comment.trim() == "*" {
        return Ok(Route::All);
    }
    let listed = comment.split([',', ' ', '\t', '\n']).filter(|name| !name.is_empty());
    let hosts: Result<Vec<u32>, NetError> = listed
        .map(|name| {
            let unknown = || format!("the comment of link {title} names {name}, which is no host of the file");
            numbers.get(name).copied().ok_or_else(|| NetError::Graph(unknown()))
        })
        .collect();
    let mut hosts = hosts?;
    hosts.sort_unstable();
    hosts.dedup();
    Ok(Route::Hosts(hosts.into()))
}
