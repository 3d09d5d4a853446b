use machine::{Accelerator as Kind, Machine};

use accel::convention::P4spin;
use accel::{Accelerator, sc17};
use pspin_unit::card::{self, Card};

/// The card of a cluster cannot have the accelerator of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOnCards {
    /// Handlers could not name all of its HPUs.
    #[error(
        "machine {machine}: a cluster card has at most {MAX_HPUS} HPUs (PTL_MAX_HPUS), and accelerator.clusters times \
         accelerator.hpus_per_cluster is {hpus}"
    )]
    Hpus {
        /// The machine.
        machine: String,
        /// Number of its HPUs.
        hpus: u32,
    },
    /// The L1 memories have no room for the stacks that handlers expect.
    #[error(
        "machine {machine}: the L1 of a cluster (accelerator.l1.bytes) has no room for {hpus} stacks of {stack} bytes behind \
         accelerator.cluster.runtime_bytes and accelerator.cluster.packet_buffer_bytes"
    )]
    Stacks {
        /// The machine.
        machine: String,
        /// Number of HPUs of a cluster.
        hpus: u32,
        /// Bytes of a stack.
        stack: u32,
    },
}

/// The maximum number of HPUs of a cluster card: `PTL_MAX_HPUS`.
const MAX_HPUS: u32 = 64;

/// Checks that the cards of a cluster can have the accelerator of a machine.
///
/// # Errors
/// When it has too many HPUs, or too little memory for their stacks.
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

/// What a PsPIN unit has for the NIC around it alone; on the card of a cluster, the card's own engines, its path to host memory
/// and its flow control are in the place of these.
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

/// Whether a key of a machine file decides nothing on the cards of a cluster.
pub fn is_unused_on_cards(machine: &Machine, key: &str) -> bool {
    let is_of_the_nic = OF_THE_NIC.iter().any(|unused| key.starts_with(unused));
    is_of_the_nic && key != "accelerator.inbound.write_cycles" && matches!(machine.accelerator, Kind::Pspin(_))
}

/// Bytes of HPU memory that a handler can have beside a program with `data` bytes of static data (sPIN App. B.2.1,
/// `max_handler_mem`): of an accelerator with several memories, those of the one with the most room.
pub fn most_memory(accelerator: &Kind, data: u32) -> u32 {
    match accelerator {
        Kind::Sc17(unit) => unit.memory,
        Kind::Pspin(unit) => card::most_memory(unit, data),
    }
}

/// Whether the accelerator of a machine counts how often each instruction is executed.
pub fn counts_instructions(machine: &Machine) -> bool {
    matches!(machine.accelerator, Kind::Sc17(_))
}

/// Creates the accelerator of a machine.
///
/// # Panics
/// When [`check_card`] refuses the machine: whoever reads a machine for cards calls it first.
pub fn create(machine: &Machine) -> Box<dyn Accelerator> {
    match (&machine.accelerator, check_card(machine)) {
        (Kind::Sc17(unit), _) => {
            Box::new(sc17::Unit::new(unit, machine.hpu.clock, machine.network.mtu, Box::new(P4spin)))
        }
        (Kind::Pspin(unit), Ok(())) => Box::new(Card::new(unit, machine.hpu.clock, machine.network.mtu)),
        (Kind::Pspin(_), Err(refusal)) => panic!("{refusal}"),
    }
}
