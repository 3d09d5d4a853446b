use machine::{Accelerator as Kind, Machine};

use crate::accelerator::Accelerator;
use crate::convention::P4spin;
use crate::sc17;

/// The card of a cluster cannot have the accelerator of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "machine {machine}: a machine with accelerator.kind = \"{kind}\" cannot yet be used on a cluster card; use one with \
     accelerator.kind = \"sc17\", such as --machine sc17-int"
)]
pub struct NotOnCards {
    machine: String,
    kind: &'static str,
}

/// Checks that the cards of a cluster can have the accelerator of a machine.
///
/// # Errors
/// When its kind cannot be used on cards.
pub fn check_card(machine: &Machine) -> Result<(), NotOnCards> {
    match &machine.accelerator {
        Kind::Sc17(_) => Ok(()),
        Kind::Pspin(_) => Err(NotOnCards { machine: machine.name.clone(), kind: machine.accelerator.kind() }),
    }
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
        (Kind::Pspin(_), refusal) => panic!("{}", refusal.err().map_or_else(String::new, |error| error.to_string())),
    }
}
