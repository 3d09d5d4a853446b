//! A run of model and hardware with the same packets, and the comparison of what they do.

use std::path::Path;
use std::rc::Rc;

use accel::pspin::her::{DriverEvent, ExecutionContext};
use accel::pspin::{Cycle, Unit};
use machine::Pspin as Config;
use sim::{Clock, Time};
use smartnic::host::HostMemory;
use smartnic::inbound::{Arrival, Counts};
use smartnic::program::Loaded;
use smartnic::system::{Sent, System};
use thiserror::Error;

use super::tape::{Difference, Tape, Times};
use super::traffic::{Packet, is_held};
use crate::{Rtl, RtlError};

/// Cycles that a program may take to prepare itself.
const MOST_BOOT: u64 = 1_000_000;
/// The cycles behind the end of the longer boot in which the first packet may arrive.
const AFTER_BOOT: u64 = 64;

/// Cycles between the packets that bring instructions into the caches.
const APART: u64 = 40_000;

/// The error of a lockstep.
#[derive(Debug, Error)]
pub enum LockstepError {
    /// The hardware cannot be simulated.
    #[error(transparent)]
    Rtl(#[from] RtlError),
    /// A side has not booted.
    #[error("the {0} has not booted after {MOST_BOOT} cycles")]
    Boot(&'static str),
    /// A side does not end.
    #[error("{0}: {1}")]
    Run(&'static str, String),
    /// Events are not the same.
    #[error("{0}")]
    Events(Box<Difference>),
    /// What comes out is not the same.
    #[error("{what} differ: model {model}, hardware {hardware}")]
    Output {
        /// What.
        what: &'static str,
        /// What the model says.
        model: String,
        /// What the hardware says.
        hardware: String,
    },
    /// Something was not compared.
    #[error("nothing was compared")]
    Nothing,
}

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Packets.
    pub packets: u64,
    /// Events.
    pub events: u64,
    /// Instructions, and registers that they have written.
    pub instructions: u64,
    /// Registers that were written.
    pub registers: u64,
    /// Cycles from the first packet's arrival to the last feedback, of model and hardware.
    pub cycles: [u64; 2],
}

/// What both sides get.
pub struct Lockstep<'a> {
    /// The library of the hardware.
    pub library: &'a Path,
    /// Random values come from it.
    pub seed: u32,
    /// The unit.
    pub config: Rc<Config>,
    /// Its clock.
    pub clock: Clock,
    /// The program.
    pub loaded: &'a Loaded,
    /// The contexts.
    pub contexts: Vec<Rc<ExecutionContext>>,
    /// The packets, in the order of their arrivals.
    pub packets: Vec<Packet>,
    /// How cycles are compared.
    pub times: Times,
    /// In how many of 16 cycles the NIC takes no feedback.
    pub held: u64,
    /// Whether each handler runs on each HPU before: instructions are in the caches then.
    pub is_warm: bool,
    /// A run that takes longer has failed.
    pub most_cycles: u64,
}

/// What came out of a side.
#[derive(Debug, PartialEq, Eq)]
struct Out {
    sent: Vec<Sent>,
    events: Vec<DriverEvent>,
    counts: Counts,
    fed_back: u64,
    ended: Cycle,
}

/// The cycle in which packets come to both sides, which are idle.
fn after<U: Unit, V: Unit>(one: &mut System<U>, other: &mut System<V>) -> Cycle {
    Cycle(one.unit().now().0.max(other.unit().now().0) + AFTER_BOOT)
}

impl Lockstep<'_> {
    /// Runs both sides and compares.
    ///
    /// # Errors
    /// The first difference, or a side that does not end.
    pub fn run(&self) -> Result<Compared, LockstepError> {
        let (config, clock, loaded) = (&self.config, self.clock, self.loaded);
        let hardware = Rtl::new(self.library, self.seed, config.clone(), loaded, true, Tape::default())?;
        let mut hardware = System::around(hardware, config.clone(), clock, HostMemory::default());
        let mut model = System::new(config.clone(), clock, loaded.hpus(config.clone()), Tape::default());
        self.prepare(&mut hardware, "hardware")?;
        self.prepare(&mut model, "model")?;
        if self.is_warm {
            let begin = after(&mut hardware, &mut model);
            self.packets(&mut hardware, begin, &self.first(), "hardware")?;
            self.packets(&mut model, begin, &self.first(), "model")?;
            std::mem::take(hardware.unit().observer());
            std::mem::take(model.unit().observer());
        }
        let begin = after(&mut hardware, &mut model);
        let (seed, held) = (u64::from(self.seed), self.held);
        hardware.hold_feedback(move |cycle| is_held(seed, cycle.0, held));
        model.hold_feedback(move |cycle| is_held(seed, cycle.0, held));
        let from_hardware = self.packets(&mut hardware, begin, &self.packets, "hardware");
        let from_model = self.packets(&mut model, begin, &self.packets, "model");
        // Where a side does not end, the first difference says more.
        let tape = hardware.unit().observer().clone();
        model.unit().observer().compare(&tape, self.times).map_err(LockstepError::Events)?;
        self.compare(begin, from_model?, (&mut hardware, from_hardware?))
    }

    fn prepare<U: Unit>(&self, system: &mut System<U>, name: &'static str) -> Result<(), LockstepError> {
        self.loaded.write(system.unit());
        for context in &self.contexts {
            system.unit().prepare(context);
            system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
        }
        if system.boot(Cycle(MOST_BOOT)) { Ok(()) } else { Err(LockstepError::Boot(name)) }
    }

    /// The packets that bring instructions into the caches: far apart, so that the order is the same on both sides.
    fn first(&self) -> Vec<Packet> {
        let hpus = self.config.units.clusters * self.config.units.hpus;
        let all = (0..self.contexts.len()).flat_map(|context| (0..2 * hpus).map(move |number| (context, number)));
        let packet = |(index, (context, message))| Packet {
            at: index as u64 * APART,
            bytes: vec![31; 64],
            message,
            is_last: true,
            transfer: 64,
            context,
        };
        all.enumerate().map(packet).collect()
    }

    fn packets<U: Unit>(
        &self,
        system: &mut System<U>,
        begin: Cycle,
        packets: &[Packet],
        name: &'static str,
    ) -> Result<Out, LockstepError> {
        system.pass(begin);
        for (user, packet) in packets.iter().enumerate() {
            let Packet { at, bytes, message, is_last, transfer, context } = packet.clone();
            system.push_apart(
                Arrival {
                    at: self.clock.time(begin.0 + at),
                    bytes,
                    message,
                    is_last,
                    transfer,
                    context: self.contexts[context].clone(),
                    user: user as u64,
                },
                Time::ZERO,
            );
        }
        let last = packets.last().map_or(0, |packet| packet.at);
        let until = begin + (last + self.most_cycles);
        let (mut ended, mut fed_back) = (begin, 0);
        loop {
            let goes_on = system.advance(until, |at, _| (ended, fed_back) = (at, fed_back + 1));
            let goes_on = goes_on.map_err(|error| LockstepError::Run(name, error.to_string()))?;
            let left = system.inbound().inside() + system.inbound().coming();
            if !goes_on || left == 0 {
                break;
            }
            if system.unit().now() >= until {
                let reason = format!("{left} packets are left after {} cycles", self.most_cycles);
                return Err(LockstepError::Run(name, reason));
            }
        }
        let events = system.take_events().into_iter().map(|(_, event)| event).collect();
        Ok(Out { sent: system.take_sent(), events, counts: *system.inbound().counts(), fed_back, ended })
    }

    fn compare(
        &self,
        begin: Cycle,
        from_model: Out,
        (hardware, from_hardware): (&mut System<Rtl<Tape>>, Out),
    ) -> Result<Compared, LockstepError> {
        let same = |what: &'static str, model: String, hardware: String| {
            if model == hardware { Ok(()) } else { Err(LockstepError::Output { what, model, hardware }) }
        };
        same("counts of packets", format!("{:?}", from_model.counts), format!("{:?}", from_hardware.counts))?;
        let sent =
            |out: &Out| format!("{:?}", out.sent.iter().map(|sent| (sent.send, &sent.bytes)).collect::<Vec<_>>());
        same("packets that were sent", sent(&from_model), sent(&from_hardware))?;
        if self.times == Times::Exact {
            let at = |out: &Out| format!("{:?}", out.sent.iter().map(|sent| sent.at).collect::<Vec<_>>());
            same("cycles in which packets were sent", at(&from_model), at(&from_hardware))?;
        }
        let kinds = |out: &Out| out.events.len().to_string();
        same("numbers of events of the driver", kinds(&from_model), kinds(&from_hardware))?;
        let (instructions, registers) = hardware.unit().checker().map_or((0, 0), |checker| checker.compared());
        let (packets, events) = (from_hardware.fed_back, hardware.unit().observer().len() as u64);
        if packets != self.packets.len() as u64 || instructions == 0 {
            return Err(LockstepError::Nothing);
        }
        let cycles = [from_model.ended - begin, from_hardware.ended - begin];
        Ok(Compared { packets, events, instructions, registers, cycles })
    }
}
