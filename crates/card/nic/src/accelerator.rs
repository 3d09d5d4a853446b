// SPDX-License-Identifier: Apache-2.0
//! Accelerators of cluster cards: creation and limits.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use machine::{Accelerator as Kind, Machine, Sc17};

use accel::convention::P4spin;
use accel::sc17::{self, Quota};
use accel::{Accelerator, Debugger, Observation};
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

/// The accelerator cannot be observed as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unobservable {
    /// Only the sc17 unit detects data races of handlers.
    #[error("handlers on cards with accelerator.kind = \"pspin\" cannot be watched")]
    Sanitizer,
    /// Only the sc17 unit stops handlers for a debugger.
    #[error("cards with accelerator.kind = \"pspin\" cannot be debugged")]
    Debugger,
}

/// Accelerator that fits a cluster card.
#[derive(Clone)]
enum Unit {
    Sc17(Sc17),
    Pspin(card::Layout),
}

/// Machine whose accelerator fits a cluster card, and the observation of its handlers. Every card of a run is created
/// from it.
pub struct CardModel {
    machine: Rc<Machine>,
    unit: Unit,
    observation: Observation,
    /// Debugger of the handlers of one node, until that node's card is created.
    debugger: Cell<Option<(u32, Box<dyn Debugger>)>>,
}

impl CardModel {
    /// Checks that a machine's accelerator fits a cluster card.
    ///
    /// # Errors
    /// Returns an error if it has too many HPUs, or too little memory for their stacks.
    pub fn new(machine: Machine) -> Result<CardModel, NotOnCards> {
        let unit = match &machine.accelerator {
            Kind::Sc17(unit) => Unit::Sc17(unit.clone()),
            Kind::Pspin(unit) if unit.hpus() > MAX_HPUS => {
                return Err(NotOnCards::Hpus { machine: machine.name.clone(), hpus: unit.hpus() });
            }
            Kind::Pspin(unit) => {
                let (hpus, stack) = (unit.units.hpus, card::stack_bytes(unit));
                let stacks = || NotOnCards::Stacks { machine: machine.name.clone(), hpus, stack };
                Unit::Pspin(card::Layout::new(unit).ok_or_else(stacks)?)
            }
        };
        Ok(CardModel {
            machine: Rc::new(machine),
            unit,
            observation: Observation::default(),
            debugger: Cell::default(),
        })
    }

    /// Observes the handlers of all cards.
    ///
    /// # Errors
    /// Returns an error if the accelerator has no sanitizer, and the observation requires it.
    pub fn observed(self, observation: Observation) -> Result<CardModel, Unobservable> {
        match self.unit {
            Unit::Pspin(_) if observation.sanitize => Err(Unobservable::Sanitizer),
            _ => Ok(CardModel { observation, ..self }),
        }
    }

    /// Attaches a debugger to the handlers of a node's card.
    ///
    /// # Errors
    /// Returns an error if the accelerator does not support debugging.
    pub fn debugged(self, node: u32, debugger: Box<dyn Debugger>) -> Result<CardModel, Unobservable> {
        match self.unit {
            Unit::Pspin(_) => Err(Unobservable::Debugger),
            Unit::Sc17(_) => Ok(CardModel { debugger: Cell::new(Some((node, debugger))), ..self }),
        }
    }

    /// Returns the model of a switch's card, with the same observation.
    pub fn of_switch(&self) -> CardModel {
        let machine = self.machine.of_switch();
        let unit = match (&machine.accelerator, &self.unit) {
            (Kind::Sc17(unit), _) => Unit::Sc17(unit.clone()),
            (Kind::Pspin(_), unit) => unit.clone(),
        };
        CardModel { machine: Rc::new(machine), unit, observation: self.observation, debugger: Cell::default() }
    }

    /// Returns the machine, for parts that keep it.
    pub fn machine(&self) -> &Rc<Machine> {
        &self.machine
    }

    /// Creates an accelerator without a program.
    pub(crate) fn accelerator(&self, debugger: Option<Box<dyn Debugger>>) -> Box<dyn Accelerator> {
        match &self.unit {
            Unit::Sc17(unit) => Box::new(self.paper_unit(unit, debugger)),
            Unit::Pspin(layout) => self.pspin_unit(layout),
        }
    }

    /// Creates an accelerator for processes with these quotas. A PsPIN unit has one process, see
    /// [`CardModel::is_divisible`].
    pub(crate) fn divided(&self, quotas: &[Quota]) -> Box<dyn Accelerator> {
        match &self.unit {
            Unit::Sc17(unit) => Box::new(self.paper_unit(unit, None).divided(quotas)),
            Unit::Pspin(layout) => self.pspin_unit(layout),
        }
    }

    fn paper_unit(&self, unit: &Sc17, debugger: Option<Box<dyn Debugger>>) -> sc17::Unit {
        let (clock, mtu) = (self.machine.hpu.clock, self.machine.network.mtu);
        sc17::Unit::new(unit, clock, mtu, Box::new(P4spin), self.observation, debugger)
    }

    fn pspin_unit(&self, layout: &card::Layout) -> Box<dyn Accelerator> {
        let (clock, mtu) = (self.machine.hpu.clock, self.machine.network.mtu);
        Box::new(Card::new(layout.clone(), clock, mtu, self.observation.print_cycles()))
    }

    /// Returns true if several processes can share a card: its accelerator runs no handlers, or keeps processes apart. The
    /// unit of the PsPIN paper runs one program.
    pub fn is_divisible(&self) -> bool {
        !self.machine.nic.runs_handlers() || matches!(self.unit, Unit::Sc17(_))
    }

    /// Returns the debugger of a node's card; `None` on later calls.
    pub(crate) fn take_debugger(&self, node: u32) -> Option<Box<dyn Debugger>> {
        let (observed, debugger) = self.debugger.take()?;
        if observed == node {
            return Some(debugger);
        }
        self.debugger.set(Some((observed, debugger)));
        None
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

impl Deref for CardModel {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use accel::{Halt, Halted};

    use super::*;

    fn model(name: &str, settings: &[&str]) -> Result<CardModel, NotOnCards> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        CardModel::new(Machine::load(name, &[folder], &settings).unwrap())
    }

    /// A debugger that stops nowhere.
    struct Idle;

    impl Debugger for Idle {
        fn starts(&mut self, _: u32, _: &str) {}
        fn stops(&mut self, _: u32, _: u32) -> bool {
            false
        }
        fn stopped(&mut self, _: u32, _: Halt, _: &mut dyn Halted) {}
        fn ended(&mut self, _: u32) {}
    }

    #[test]
    fn units_that_do_not_fit_a_card_have_no_model() {
        let error = model("pspin-400g", &["accelerator.clusters=16"]).err();
        assert_eq!(error, Some(NotOnCards::Hpus { machine: "pspin-400g".into(), hpus: 128 }));
        let error = model("pspin-400g", &["accelerator.cluster.packet_buffer_bytes=983040"]).err();
        let machine = "pspin-400g".into();
        assert_eq!(error, Some(NotOnCards::Stacks { machine, hpus: 8, stack: 8192 }));
    }

    #[test]
    fn only_the_paper_s_unit_is_watched_and_debugged() {
        let watched = Observation { sanitize: true, ..Observation::default() };
        let free = Observation { free_prints: true, profile: true, sanitize: false };
        let model = |name| model(name, &[]).unwrap();
        assert_eq!(model("pspin-400g").observed(watched).err(), Some(Unobservable::Sanitizer));
        assert_eq!(model("pspin-400g").debugged(0, Box::new(Idle)).err(), Some(Unobservable::Debugger));
        assert!(model("pspin-400g").observed(free).is_ok());
        assert!(model("sc17-int").observed(watched).is_ok());
        let debugged = model("sc17-int").debugged(1, Box::new(Idle)).unwrap().observed(watched).unwrap();
        assert!(debugged.of_switch().take_debugger(1).is_none());
        let found = [0, 1, 1].map(|node| debugged.take_debugger(node).is_some());
        assert_eq!(found, [false, true, false]);
    }
}
