// SPDX-License-Identifier: Apache-2.0
//! Runs model and hardware with the same packets, and compares them.

use std::fmt::Debug;
use std::path::Path;
use std::rc::Rc;

use machine::Pspin as Config;
use pspin_nic::host::HostMemory;
use pspin_nic::inbound::{Arrival, Counts};
use pspin_nic::program::Loaded;
use pspin_nic::system::{Sent, System};
use pspin_unit::core::{CoreCounters, Hpus};
use pspin_unit::her::{DriverEvent, ExecutionContext, HpuId, Range};
use pspin_unit::memory::{Arena, Place};
use pspin_unit::{Cycle, Port, Pspin, Unit};
use sim::{Clock, Time};
use thiserror::Error;

use super::instructions::Counts as Checked;
use super::loaded::{self, Numbers, Outside, Spread};
use super::tape::{Difference, Ending, Tape};
use super::traffic::{Packet, Random, is_held};
use crate::{Rtl, RtlError};

/// Limit for the boot of a program, in cycles.
const MOST_BOOT: u64 = 1_000_000;
/// Least number of cycles between the end of the longer boot and the first packet.
const AFTER_BOOT: u64 = 64;

/// Warm-up packets of each context, which fill the instruction caches: number, distance in cycles, and size.
const FIRST: usize = 32;
const APART: u64 = 40_000;
const FIRST_BYTES: u32 = 64;
/// Cycles per queue in which the hardware finds an idle message: it checks one message per cycle.
const IDLE_CYCLES: u64 = 2;
/// Tolerance of counts that depend on the order of handlers, in percent, with an absolute minimum.
const COUNT_PERCENT: u64 = 10;
/// Tolerance of the misses of instruction caches, in percent. The paper gives the size and ways of the cache (§III-C), not
/// the fetches of a core: that of the hardware prefetches the line behind a jump or return, and the model fetches only
/// executed lines. Of the 2,657 lines that the hardware fetches for `loops copies commands faults` with seed 52, which
/// exceed the cache, 264 are of such prefetches. For its executed instructions, the model's cache fetches 2,354.
const MISS_PERCENT: u64 = 20;
const COUNT_LEAST: u64 = 32;
/// Bytes shown of memory that differs.
const SHOWN: usize = 16;

/// Mode of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Every event in the same cycle.
    Exact,
    /// Packet by packet: the same tasks and ends, in about the same time ([`loaded`]).
    Loaded,
}

/// Error of a lockstep run.
#[derive(Debug, Error)]
pub enum LockstepError {
    /// The hardware cannot be simulated.
    #[error(transparent)]
    Rtl(#[from] RtlError),
    /// A side did not boot.
    #[error("the {0} has not booted after {MOST_BOOT} cycles")]
    Boot(&'static str),
    /// A side did not end.
    #[error("{0}: {1}")]
    Run(&'static str, String),
    /// Events differ.
    #[error("{0}")]
    Events(Box<Difference>),
    /// Packets take longer on one side.
    #[error("{0}")]
    Loaded(Box<Outside>),
    /// Outputs differ.
    #[error("{what} differ: model {model}, hardware {hardware}")]
    Output {
        /// Name of the output.
        what: &'static str,
        /// Output of the model.
        model: String,
        /// Output of the hardware.
        hardware: String,
    },
    /// Something was not compared.
    #[error("nothing was compared")]
    Nothing,
}

/// Amount compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Compared {
    /// Packets.
    pub packets: u64,
    /// Events.
    pub events: u64,
    /// Instructions, with the registers written and the words accessed.
    pub checked: Checked,
    /// Handlers that failed, and messages given up.
    pub failed: usize,
    /// Messages given up because no packet arrived.
    pub idle: usize,
    /// Bytes of memory.
    pub bytes: usize,
    /// Cycles from the first packet's arrival to the last feedback, in model and hardware.
    pub cycles: [u64; 2],
    /// Cycles in which HPUs waited for banks of L1, in model and hardware.
    pub conflicts: [u64; 2],
    /// Lines fetched into instruction caches, in model and hardware.
    pub misses: [u64; 2],
    /// Timing difference of packets, in [`Times::Loaded`].
    pub spread: Option<Spread>,
}

/// Inputs of both sides.
pub struct Lockstep<'a> {
    /// The library of the hardware.
    pub library: &'a Path,
    /// Additional inputs of the design, and their values.
    pub inputs: Vec<(&'a str, u64)>,
    /// Seed of random values.
    pub seed: u32,
    /// The unit.
    pub config: Rc<Config>,
    /// Its clock.
    pub clock: Clock,
    /// The program.
    pub loaded: &'a Loaded,
    /// The contexts.
    pub contexts: Vec<Rc<ExecutionContext>>,
    /// Packets, in order of arrival.
    pub packets: Vec<Packet>,
    /// Mode of comparison.
    pub times: Times,
    /// Number of cycles in 16 in which the NIC blocks feedback.
    pub held: u64,
    /// Number of cycles in 16 in which each other port is blocked: packets to the network, writes to the host, reads,
    /// and their data.
    pub held_data: u64,
    /// Set to run each handler on each HPU first, so that its instructions are cached.
    pub is_warm: bool,
    /// Limit of the run, in cycles.
    pub most_cycles: u64,
}

/// Outputs of a side.
struct Out {
    sent: Vec<Sent>,
    events: Vec<(Cycle, DriverEvent)>,
    counts: Counts,
    fed_back: u64,
    ended: Cycle,
    cores: CoreCounters,
}

/// Model side of the run.
type Model = System<Pspin<Hpus, Tape>>;
type Hardware = System<Rtl<Tape>>;

/// Returns the cycle in which packets reach both sides, which are idle.
fn after<U: Unit, V: Unit>(one: &mut System<U>, other: &mut System<V>) -> Cycle {
    Cycle(one.unit().now().0.max(other.unit().now().0) + AFTER_BOOT)
}

/// Checks that an output is the same on both sides.
fn same(what: &'static str, model: &impl Debug, hardware: &impl Debug) -> Result<(), LockstepError> {
    let [model, hardware] = [format!("{model:?}"), format!("{hardware:?}")];
    if model == hardware { Ok(()) } else { Err(LockstepError::Output { what, model, hardware }) }
}

impl Lockstep<'_> {
    /// Runs both sides and compares.
    ///
    /// # Errors
    /// The first difference, or a side that does not end.
    pub fn run(&self) -> Result<Compared, LockstepError> {
        let (config, clock, loaded) = (&self.config, self.clock, self.loaded);
        let mut hardware = Rtl::new(self.library, self.seed, config.clone(), clock, loaded, true, Tape::default())?;
        self.inputs.iter().try_for_each(|(name, value)| hardware.set_input(name, *value))?;
        let mut hardware = System::around(hardware, config.clone(), clock, HostMemory::default());
        let mut model = System::new(config.clone(), clock, loaded.hpus(config.clone()), Tape::default());
        self.prepare(&mut hardware, "hardware")?;
        self.prepare(&mut model, "model")?;
        if self.is_warm {
            let begin = after(&mut hardware, &mut model);
            self.packets(&mut hardware, begin, &self.first(), "hardware", &mut Numbers::new())?;
            self.packets(&mut model, begin, &self.first(), "model", &mut Numbers::new())?;
            std::mem::take(hardware.unit().observer());
            std::mem::take(model.unit().observer());
            self.clear(hardware.unit());
            self.clear(model.unit());
        }
        let begin = after(&mut hardware, &mut model);
        let (seed, held, held_data) = (u64::from(self.seed), self.held, self.held_data);
        let is_ready = move |cycle: Cycle, port: Port| {
            let sixteenths = if port == Port::Feedback { held } else { held_data };
            !is_held(seed + ((port as u64) << 32), cycle.0, sixteenths)
        };
        hardware.hold(is_ready);
        model.hold(is_ready);
        let mut numbers = [Numbers::new(), Numbers::new()];
        let [of_model, of_hardware] = &mut numbers;
        let from_hardware = self.packets(&mut hardware, begin, &self.packets, "hardware", of_hardware);
        let from_model = self.packets(&mut model, begin, &self.packets, "model", of_model);
        // If a side does not end, the first difference is more informative.
        let (one, other) = (&*model.unit().observer(), &*hardware.unit().observer());
        let spread = match self.times {
            Times::Exact => one.compare(other).map(|()| None).map_err(LockstepError::Events)?,
            Times::Loaded => {
                let arrived: Vec<u64> = self.packets.iter().map(|packet| begin.0 + packet.at).collect();
                let spread = loaded::compare((one, &numbers[0]), (other, &numbers[1]), &arrived);
                Some(spread.map_err(LockstepError::Loaded)?)
            }
        };
        let compared = self.compare(begin, (&mut model, from_model?), (&mut hardware, from_hardware?))?;
        Ok(Compared { spread, ..compared })
    }

    fn prepare<U: Unit>(&self, system: &mut System<U>, name: &'static str) -> Result<(), LockstepError> {
        self.loaded.write(system.unit());
        for context in &self.contexts {
            system.unit().prepare(context);
            system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
        }
        if system.boot(Cycle(MOST_BOOT)) { Ok(()) } else { Err(LockstepError::Boot(name)) }
    }

    /// Clears data written by handlers: a cycle counter in it reflects misses, which are not compared.
    fn clear(&self, unit: &mut impl Unit) {
        for context in &self.contexts {
            for Range { address, size } in context.scratchpads.iter().chain([&context.handler_memory]) {
                assert!(unit.load(*address, &vec![0; *size as usize]), "a context has memory of the unit");
            }
        }
    }

    /// Returns the warm-up packets, far apart, so that their order is the same on both sides.
    fn first(&self) -> Vec<Packet> {
        let clusters = self.config.units.clusters as usize;
        let all =
            (0..self.contexts.len()).flat_map(|context| (0..FIRST * clusters).map(move |number| (context, number)));
        let packet = |(index, (context, number)): (usize, (usize, usize))| {
            // The message number selects the cluster: each cluster gets the same packets.
            let mut random = Random::new((number / clusters) as u64);
            let bytes = (0..FIRST_BYTES).map(|_| random.number() as u8).collect();
            let (at, message) = (index as u64 * APART, number as u32);
            Packet { at, bytes, message, is_last: true, transfer: FIRST_BYTES, context }
        };
        all.enumerate().map(packet).collect()
    }

    fn packets<U: Unit>(
        &self,
        system: &mut System<U>,
        begin: Cycle,
        packets: &[Packet],
        name: &'static str,
        numbers: &mut Numbers,
    ) -> Result<Out, LockstepError> {
        system.pass(begin);
        let before = system.unit().core_counters();
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
        // A unit without packets still checks once for idle messages.
        let idle = self.contexts.iter().map(|context| context.idle_cycles).max().unwrap_or_default();
        let until = begin + (last + idle + self.most_cycles);
        let (mut ended, mut fed_back) = (begin, 0);
        // Run until everything ends, not only packets: memory is compared afterwards.
        let mut is_over = false;
        loop {
            let goes_on = system.advance(until, |at, packet| {
                (ended, fed_back) = (at, fed_back + 1);
                numbers.insert(packet.submitted, packet.user as usize);
            });
            if !goes_on.map_err(|error| LockstepError::Run(name, error.to_string()))? {
                break;
            }
            if is_over {
                let left = system.inbound().inside() + system.inbound().coming();
                let reason = format!("it is not idle after {} cycles, with {left} packets inside", self.most_cycles);
                return Err(LockstepError::Run(name, reason));
            }
            is_over = system.unit().now() >= until;
        }
        let after = system.unit().core_counters();
        let cores = CoreCounters {
            conflicts: after.conflicts - before.conflicts,
            misses: after.misses - before.misses,
            ..after
        };
        let (sent, events) = (system.take_sent(), system.take_events());
        Ok(Out { sent, events, counts: *system.inbound().counts(), fed_back, ended, cores })
    }

    fn compare(
        &self,
        begin: Cycle,
        (model, from_model): (&mut Model, Out),
        (hardware, from_hardware): (&mut Hardware, Out),
    ) -> Result<Compared, LockstepError> {
        let is_exact = self.times == Times::Exact;
        // Packets wait for each other in other cycles when these differ.
        let counts = |out: &Out| if is_exact { out.counts } else { Counts { waited: 0, marked: 0, ..out.counts } };
        same("counts of packets", &counts(&from_model), &counts(&from_hardware))?;
        let sent = |out: &Out| {
            let at = |sent: &Sent| if is_exact { sent.at } else { Cycle::ZERO };
            let mut all: Vec<_> = out.sent.iter().map(|sent| (at(sent), sent.send, sent.bytes.clone())).collect();
            if !is_exact {
                all.sort_by(|one, other| one.2.cmp(&other.2));
            }
            all
        };
        same("packets that were sent", &sent(&from_model), &sent(&from_hardware))?;
        let [one, other] = [&from_model, &from_hardware].map(|out| Told::new(&out.events, is_exact));
        same("failures of handlers", &one.failed, &other.failed)?;
        same("events of commands", &one.commands, &other.commands)?;
        self.compare_idle(&one.idle, &other.idle)?;
        let bytes = self.compare_memory(model, hardware)?;
        let checked = hardware.unit().checker().map(|checker| checker.compared()).unwrap_or_default();
        let (packets, events) = (from_hardware.fed_back, hardware.unit().observer().len() as u64);
        if packets != self.packets.len() as u64 || checked.instructions == 0 || checked.words == 0 {
            return Err(LockstepError::Nothing);
        }
        let both = |of: fn(&Out) -> u64| [of(&from_model), of(&from_hardware)];
        let cycles = both(|out| out.ended.0).map(|ended| ended - begin.0);
        let apart = 100.0 * cycles[0].abs_diff(cycles[1]) as f64 / cycles[0].max(1) as f64;
        if apart > if is_exact { 0.0 } else { loaded::PERCENT } {
            same("cycles in which all packets were processed", &cycles[0], &cycles[1])?;
        }
        let (conflicts, misses) = (both(|out| out.cores.conflicts), both(|out| out.cores.misses));
        let differs = |[one, other]: [u64; 2], percent: u64| {
            one.abs_diff(other) > COUNT_LEAST.max(one.max(other) * percent / 100)
        };
        if if is_exact { conflicts[0] != conflicts[1] } else { differs(conflicts, COUNT_PERCENT) } {
            same("cycles of waiting for banks of L1", &conflicts[0], &conflicts[1])?;
        }
        if differs(misses, MISS_PERCENT) {
            same("misses of instruction caches", &misses[0], &misses[1])?;
        }
        Ok(Compared {
            packets,
            events,
            checked,
            failed: one.failed.len(),
            idle: one.idle.len(),
            bytes,
            cycles,
            conflicts,
            misses,
            spread: None,
        })
    }

    /// Compares messages given up. The cycle depends on the messages that the hardware checks before.
    fn compare_idle(&self, model: &[(u32, Cycle)], hardware: &[(u32, Cycle)]) -> Result<(), LockstepError> {
        let messages = |idle: &[(u32, Cycle)]| idle.iter().map(|(message, _)| *message).collect::<Vec<_>>();
        same("messages that were given up", &messages(model), &messages(hardware))?;
        let most = IDLE_CYCLES * u64::from(self.config.mpq.queues);
        let is_late = |((_, one), (_, other)): (&(u32, Cycle), &(u32, Cycle))| one.0.abs_diff(other.0) > most;
        if self.times == Times::Exact && model.iter().zip(hardware).any(is_late) {
            same("cycles in which messages were given up", &model, &hardware)?;
        }
        Ok(())
    }

    /// Compares the memory of contexts on the card and on the host, and all of L1 and L2 in [`Times::Exact`]. Returns
    /// the number of bytes.
    fn compare_memory(&self, model: &mut Model, hardware: &mut Hardware) -> Result<usize, LockstepError> {
        let Config { l1, l2_handler, l2_packet, units, .. } = &*self.config;
        let whole = |place, size| Range { address: Arena::start(place), size };
        let mut ranges = Vec::new();
        if self.times == Times::Exact {
            ranges.extend((0..units.clusters as u16).map(|cluster| whole(Place::L1(cluster), l1.bytes)));
            ranges.extend([whole(Place::Handler, l2_handler.bytes), whole(Place::Packet, l2_packet.bytes)]);
        } else {
            ranges.extend(self.contexts.iter().map(|context| context.handler_memory));
            // The cluster of a task may differ.
            let scratchpads = self.contexts.iter().flat_map(|context| context.scratchpads.iter().copied());
            ranges.extend(scratchpads.filter(|_| units.clusters == 1));
        }
        let mut compared = 0;
        for Range { address, size } in ranges {
            let one = model.unit().memory().read(address, size).unwrap_or_default().to_vec();
            let other = hardware.unit().read(address, size).unwrap_or_default();
            compared += same_bytes("memory of the card", address.into(), &one, &other)?;
        }
        for context in &self.contexts {
            // The last failure in the descriptor depends on the order of handlers.
            let is_exact = self.times == Times::Exact;
            let (address, size) = if is_exact {
                (context.descriptor, context.host.address - context.descriptor + context.host.size)
            } else {
                (context.host.address, context.host.size)
            };
            let (mut one, mut other) = (vec![0; size as usize], vec![0; size as usize]);
            model.host().peek(address, &mut one);
            hardware.host().peek(address, &mut other);
            compared += same_bytes("memory of the host", address, &one, &other)?;
        }
        Ok(compared)
    }
}

/// Compares bytes from `address` on. Returns their number.
fn same_bytes(what: &'static str, address: u64, model: &[u8], hardware: &[u8]) -> Result<usize, LockstepError> {
    if model.len() == hardware.len() && model == hardware {
        return Ok(model.len());
    }
    let first = model.iter().zip(hardware).position(|(one, other)| one != other).unwrap_or(0);
    let shown = |bytes: &[u8]| {
        let end = bytes.len().min(first + SHOWN);
        format!("{:02x?} at {:#010x}", &bytes[first.min(end)..end], address + first as u64)
    };
    Err(LockstepError::Output { what, model: shown(model), hardware: shown(hardware) })
}

/// Notices to the driver on the host.
struct Told {
    /// HPU if compared, role of the handler, message, and end.
    failed: Vec<(Option<HpuId>, u8, u32, Ending)>,
    /// Command numbers.
    commands: Vec<u32>,
    /// Messages given up, and cycles.
    idle: Vec<(u32, Cycle)>,
}

impl Told {
    /// Keeps the order if it is compared.
    fn new(events: &[(Cycle, DriverEvent)], is_exact: bool) -> Told {
        let mut told = Told { failed: Vec::new(), commands: Vec::new(), idle: Vec::new() };
        for (at, event) in events {
            match *event {
                DriverEvent::Failed { hpu, role, message, outcome, .. } => {
                    told.failed.push((is_exact.then_some(hpu), role as u8, message, Ending::new(outcome)));
                }
                DriverEvent::Command { user } => told.commands.push(user),
                DriverEvent::Idle { message, .. } => told.idle.push((message, *at)),
                _ => {}
            }
        }
        // The order of two idle messages is not compared.
        told.idle.sort_unstable();
        if !is_exact {
            told.commands.sort_unstable();
            told.failed.sort_by_cached_key(|failed| format!("{failed:?}"));
        }
        told
    }
}
