// SPDX-License-Identifier: Apache-2.0
//! Accelerators of cluster cards: creation and limits.

use machine::{Accelerator as Kind, Machine};

use accel::convention::P4spin;
use accel::{Accelerator, sc17};
use pspin_unit::card::{self, Card};

/// The machine's accelerator does not fit a cluster card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOnCards {
    /// The accelerator has more HPUs than handlers can address.
    #[error(
        "machine {machine}: a cluster card has at most {MAX_HPUS} HPUs (PTL_MAX_HPUS), and accelerator.clusters times \
         accelerator.hpus_per_cluster is {hpus}"
    )]
    Hpus {
        /// Name of the machine.
        machine: String,
        /// Number of its HPUs.
        hpus: u32,
    },
    /// The L1 memories cannot hold the stacks of the HPUs.
    #[error(
        "machine {machine}: the L1 of a cluster (accelerator.l1.bytes) has no room for {hpus} stacks of {stack} bytes behind \
         accelerator.cluster.runtime_bytes and accelerator.cluster.packet_buffer_bytes"
    )]
    Stacks {
        /// Name of the machine.
        machine: String,
        /// Number of HPUs of a cluster.
        hpus: u32,
        /// Stack size in bytes.
        stack: u32,
    },
}

/// Maximum number of HPUs of a cluster card: `PTL_MAX_HPUS`.
const MAX_HPUS: u32 = 64;

/// Checks that a machine's accelerator fits a cluster card.
///
/// # Errors
/// Returns an error if it has too many HPUs, or too little memory for their stacks.
pub fn check_card(machine: &Machine) -> Result<(), NotOnCards> {
    let Kind::Pspin(unit) = &machine.accelerator else { return Ok(()) };
    let machine = || machine.name.clone();
    if unit.hpus() > MAX_HPUS {
        return Err(NotOnCards::Hpus { machine: machine(), hpus: unit.hpus() });
    }
    match card::scratchpad(unit) {
        Some(_) => Ok(()),
        None => {
            let (hpus, stack) = (unit.units.hpus, card::stack_bytes(unit));
            Err(NotOnCards::Stacks { machine: machine(), hpus, stack })
        }
    }
}

/// Keys of a PsPIN unit's surrounding NIC. A cluster card replaces them by its own engines, path to host memory and
/// flow control.
const OF_THE_NIC: [&str; 10] = [
    "accelerator.overload",
    "accelerator.mpq.idle_cycles",
    "accelerator.mpq.lru",
    "accelerator.dma.queue",
    "accelerator.commands.in_flight_per_target",
    "accelerator.commands.host_direct_bytes",
    "accelerator.inbound.",
    "accelerator.outbound.",
    "accelerator.host.",
    "accelerator.limits.contexts",
];

/// Returns true if a key of a machine file has no effect on cluster cards.
pub fn is_unused_on_cards(machine: &Machine, key: &str) -> bool {
    let is_of_the_nic = OF_THE_NIC.iter().any(|unused| key.starts_with(unused));
    is_of_the_nic && key != "accelerator.inbound.write_cycles" && matches!(machine.accelerator, Kind::Pspin(_))
}

/// Returns the bytes of HPU memory available to a handler beside a program with `data` bytes of static data (sPIN App.
/// B.2.1, `max_handler_mem`). For an accelerator with several memories, that of the one with the most room.
pub fn most_memory(accelerator: &Kind, data: u32) -> u32 {
    match accelerator {
        Kind::Sc17(unit) => unit.memory,
        Kind::Pspin(unit) => card::most_memory(unit, data),
    }
}

/// Returns true if the machine's accelerator counts instruction executions.
pub fn counts_instructions(machine: &Machine) -> bool {
    matches!(machine.accelerator, Kind::Sc17(_))
}

/// Creates the accelerator of a machine.
///
/// # Panics
/// Panics if [`check_card`] rejects the machine; callers check machines for cards when they read them.
pub fn create(machine: &Machine) -> Box<dyn Accelerator> {
    match (&machine.accelerator, check_card(machine)) {
        (Kind::Sc17(unit), _) => {
            Box::new(sc17::Unit::new(unit, machine.hpu.clock, machine.network.mtu, Box::new(P4spin)))
        }
        (Kind::Pspin(unit), Ok(())) => Box::new(Card::new(unit, machine.hpu.clock, machine.network.mtu)),
        (Kind::Pspin(_), Err(refusal)) => panic!("{refusal}"),
    }
}
