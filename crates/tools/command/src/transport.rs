// SPDX-License-Identifier: Apache-2.0
//! Acknowledgements, pause frames, marks and trimmed packets in reports.

use net::fabric::Counts;
use serde::Serialize;
use serde_json::Value;

use crate::units::json_ns;

/// Packet counts of transport protocols in reports.
#[derive(Debug, Serialize)]
pub struct Transport {
    acknowledgements: u64,
    marked: u64,
    notifications: u64,
    trimmed: u64,
    pulls: u64,
    pauses: u64,
    paused_ns: Value,
}

impl Transport {
    /// Converts the counts for JSON.
    pub fn new(counts: &Counts) -> Transport {
        let &Counts { acknowledgements, marked, notifications, trimmed, pulls, pauses, paused } = counts;
        Transport { acknowledgements, marked, notifications, trimmed, pulls, pauses, paused_ns: json_ns(paused) }
    }
}

/// Formats the counts as a line for the terminal.
pub fn line(counts: &Counts) -> String {
    let Counts { acknowledgements, marked, notifications, trimmed, pulls, pauses, paused } = counts;
    format!(
        "{acknowledgements} acknowledgements, {marked} packets marked, {notifications} notifications, {trimmed} trimmed, \
         {pulls} pulls, {pauses} pauses of {paused} in all"
    )
}
