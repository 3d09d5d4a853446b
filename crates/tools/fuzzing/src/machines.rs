// SPDX-License-Identifier: Apache-2.0
//! Machine files and topologies.

use std::rc::Rc;

use machine::{Accelerator, Machine};
use net::{Latency, Topology};
use nic::CardModel;

use crate::base::BESIDE;
use crate::cards::ping;

/// Separator between the machine file and the values of `--set`, one per line.
const SET: &str = "\n--set\n";
/// Largest card memory, packet buffer and scratchpad of a simulated machine, in bytes.
const SMALL: u32 = 16 << 20;

/// Parses a machine file and its overrides, and sends a message between two such machines if they are accepted.
pub fn machine(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (file, set) = text.split_once(SET).unwrap_or((text, ""));
    let set: Vec<String> = set.lines().map(str::to_owned).collect();
    // A base in another folder could be an arbitrary file, even a device.
    if text.contains("base") && text.contains(['/', '\\']) {
        return;
    }
    let Ok(machine) = Machine::parse(BESIDE, file, &set) else { return };
    let Ok(machine) = CardModel::new(machine) else { return };
    let unit = &machine.accelerator;
    let memory = match unit {
        Accelerator::Sc17(unit) => unit.memory,
        Accelerator::Pspin(unit) => unit.units.clusters.saturating_mul(unit.l1.bytes),
    };
    let sizes = [memory, unit.program(), unit.data(), unit.packet_buffer()];
    let too_large = sizes.iter().any(|size| *size > SMALL) || machine.network.mtu > SMALL;
    if too_large || Latency::new(&machine.network, 3).is_err() {
        return;
    }
    ping(&Rc::new(machine));
}

/// Parses a topology in DOT.
pub fn topology(bytes: &[u8]) {
    parses(bytes, Topology::from_dot);
}

/// Parses a topology of htsim. Larger ones only take longer.
pub fn tiers(bytes: &[u8]) {
    let has_large_number = bytes.windows(4).any(|digits| digits.iter().all(u8::is_ascii_digit));
    if !has_large_number {
        parses(bytes, Topology::from_topo);
    }
}

fn parses(bytes: &[u8], parse: impl Fn(&str) -> Result<Topology, net::NetError>) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(topology) = parse(text) {
        assert!(topology.hosts() >= 1);
        assert!(!topology.description().is_empty());
    }
}
