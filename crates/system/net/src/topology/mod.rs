// SPDX-License-Identifier: Apache-2.0
//! Network topologies: hosts, switches, links and next hops.

mod dot;
mod dragonfly;
mod fat_tree;
mod graph;
mod of_machine;
mod read;
mod table;
mod tiers;
mod torus;
mod wiring;

pub use dragonfly::Dragonfly;
pub use graph::Topology;
pub(crate) use wiring::{Link, RouteState};

#[cfg(test)]
mod tests;
