//! Machine files and topologies.

use std::rc::Rc;

use machine::Machine;
use net::{Latency, Topology};

use crate::cards::ping;

/// A file beside those of the project, so that `base = "sc17-int"` is found.
const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/fuzz.toml");
/// What separates the file from the words of `--set`, one a line.
const SET: &str = "\n--set\n";
/// Largest card memory, packet buffer and scratchpad of a machine that is built.
const SMALL: u32 = 16 << 20;

/// A machine beside those of the project.
pub fn beside(file: &str, set: &[String]) -> Machine {
    Machine::parse(BESIDE, file, set).expect("a machine")
}

/// A machine file, overrides behind it. What is accepted can carry a message.
pub fn machine(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (file, set) = text.split_once(SET).unwrap_or((text, ""));
    let set: Vec<String> = set.lines().map(str::to_owned).collect();
    // A base elsewhere is another file, perhaps a device.
    if text.contains("base") && text.contains(['/', '\\']) {
        return;
    }
    let Ok(machine) = Machine::parse(BESIDE, file, &set) else { return };
    let unit = &machine.accelerator;
    let sizes = [unit.memory(), unit.program(), unit.data(), unit.packet_buffer()];
    let too_large = sizes.iter().any(|size| *size > SMALL) || machine.network.mtu > SMALL;
    if too_large || Latency::new(&machine.network, 3).is_err() {
        return;
    }
    ping(&Rc::new(machine));
}

/// A topology in DOT.
pub fn topology(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(topology) = Topology::from_dot(text) {
        assert!(topology.hosts() >= 1);
        assert!(!topology.description().is_empty());
    }
}
