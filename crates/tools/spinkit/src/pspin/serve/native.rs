// SPDX-License-Identifier: Apache-2.0
//! Live card whose handlers are machine code of this computer.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use ::native::clock::Clock;
use ::native::engine::{Engine, Event, Setup};
use ::native::image::Image;
use ::native::process::Parameters;
use packets::rules::{Action, Rule};
use pspin_nic::report::Report;
use spincc::{Error, Result};

use super::super::alone::SUFFIXES;
use super::super::unit_machine::Unit;
use super::card::{Card, Output, Packet};
use super::options::Arguments;

/// Default memories of a context, as for `spinkit pspin run`.
const HANDLER_MEMORY: u32 = 65_536;
const SCRATCHPAD: u32 = 65_536;
const HOST_MEMORY: u64 = 1 << 30;
/// Least limit of handlers and of idle messages by default: this computer may run other programs meanwhile.
const LEAST_WATCHDOG_NS: u64 = 100_000_000;
const LEAST_IDLE_NS: u64 = 1_000_000_000;
/// Free slots with which the card takes packets: those of one turn of the event loop.
const ROOM: usize = 64;

/// Card with the native engine.
pub struct Native {
    engine: Engine,
    machine: String,
    /// Context of each rule; `None` for rules without handlers.
    contexts: Vec<Option<usize>>,
    events: Vec<Event>,
}

impl Native {
    /// Starts the processes of the contexts that the rules name. Their packets leave through `port`.
    ///
    /// # Errors
    /// When a context has no handlers, a memory exceeds a limit, or a process does not start.
    pub fn new(
        arguments: &Arguments,
        unit: &Unit,
        image: Image,
        rules: &[Rule],
        port: BorrowedFd<'_>,
    ) -> Result<Native> {
        let mut numbers = BTreeMap::new();
        let mut names = Vec::new();
        let mut contexts = Vec::new();
        for rule in rules {
            let Action::Context(processing) = &rule.action else {
                contexts.push(None);
                continue;
            };
            let name = &processing.context;
            let has = |suffix: &&str| image.symbols.entry(&format!("{name}{suffix}")).is_some();
            if !SUFFIXES.iter().any(has) {
                let reason = format!("it has none of the handlers {name}_hh, {name}_ph and {name}_th");
                return Err(Error::malformed(&arguments.program, reason));
            }
            let number = *numbers.entry(name.clone()).or_insert_with(|| {
                names.push(name.clone());
                names.len() - 1
            });
            contexts.push(Some(number));
        }
        let (config, context, clock) = (&unit.config, &arguments.context, Clock::measure());
        let all = config.units.clusters * config.units.hpus;
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let own = image.handler_data.len() as u32;
        let period = |cycles: u64, least: u64| (unit.clock.time(cycles).as_ps() / 1_000).max(least);
        let setup = Setup {
            parameters: Parameters {
                hpus: arguments.threads.unwrap_or(cores.min(all)).clamp(1, all),
                hpus_per_cluster: config.units.hpus,
                spin: u32::try_from(clock.ticks(u64::from(arguments.spin) * 1_000)).unwrap_or(u32::MAX),
                handler_memory: context.handler_memory.unwrap_or(HANDLER_MEMORY.max(own)),
                scratchpad: context.scratchpad.unwrap_or(SCRATCHPAD.min(config.scratchpad())),
                host: context.host_memory.unwrap_or(HOST_MEMORY),
            },
            image,
            config,
            contexts: names,
            watchdog_ns: match context.watchdog {
                Some(cycles) => period(cycles, 1),
                None => period(config.units.watchdog_cycles, LEAST_WATCHDOG_NS),
            },
            idle_ns: period(config.mpq.idle_cycles, LEAST_IDLE_NS),
            port: port.try_clone_to_owned().map_err(Error::other)?,
            clock,
        };
        let engine = Engine::new(setup).map_err(|error| Error::malformed(&arguments.program, error))?;
        Ok(Native { engine, machine: unit.name.clone(), contexts, events: Vec::new() })
    }
}

impl Card for Native {
    fn has_room(&self) -> bool {
        self.engine.has_room(ROOM)
    }

    fn is_busy(&self) -> bool {
        self.engine.is_busy()
    }

    fn arrive(&mut self, packet: Packet) {
        let Some(Some(context)) = self.contexts.get(packet.rule) else { return };
        self.engine.arrive(*context, packet.bytes, packet.message, packet.is_last, packet.transfer as u32);
    }

    fn work(&mut self) -> Result<Vec<Output>> {
        self.engine.collect(&mut self.events).map_err(Error::other)?;
        let outputs = self.events.drain(..).map(|event| match event {
            Event::Line(line) => Output::Line(line),
            Event::Failed(text) => Output::Failed(text),
            Event::Forgotten(message) => Output::Forgotten(message),
        });
        Ok(outputs.collect())
    }

    fn wait_ms(&self) -> i32 {
        // The watchdog, slots of ended tasks, and processes that end.
        match (self.has_room(), self.engine.is_busy()) {
            (false, _) => 0,
            (true, true) => 5,
            (true, false) => 100,
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.engine.bell())
    }

    fn unsent(&self) -> (u64, u64) {
        self.engine.unsent()
    }

    fn report(&mut self) -> Report {
        self.engine.report(&self.machine)
    }
}
