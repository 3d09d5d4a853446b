// SPDX-License-Identifier: Apache-2.0
//! Helpers for the tests of all models.

use goal::{Schedule, text};

/// Returns the schedule whose ranks have these bodies, in GOAL text.
pub fn schedule(bodies: &[&str]) -> Schedule {
    let blocks: String = bodies.iter().enumerate().map(|(rank, body)| format!("rank {rank} {{ {body} }}\n")).collect();
    text::read(format!("num_ranks {}\n{blocks}", bodies.len()).as_bytes()).unwrap()
}
