// SPDX-License-Identifier: Apache-2.0
//! Live card on a simulated unit: the model, or the hardware.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use packets::rules::{Action, Rule};
use pspin_nic::inbound::Arrival;
use pspin_nic::program::Loaded;
use pspin_nic::report::{self, Report};
use pspin_nic::system::System;
use pspin_nic::watch::Watch;
use pspin_unit::her::{DriverEvent, ExecutionContext};
use pspin_unit::{Cycle, Unit};
use sim::{Clock, Time};
use spincc::{Error, Result};

use super::super::alone::{Contexts, boot};
use super::super::options::ContextArguments;
use super::super::unit_machine::Unit as Machine;
use super::card::{Card, Output, Packet};

/// Packets that wait in front of the card; further ones stay in the interface's queue.
const MOST_COMING: usize = 1_024;
/// Real time of one call of `work`.
const TURN: Duration = Duration::from_millis(2);

/// Card on a simulated unit. While packets are inside, simulated time passes as fast as the simulation is; otherwise it
/// does not pass the real time since the start, so that limits of idle messages are real times.
pub struct Simulated<U> {
    system: System<U>,
    loaded: Loaded,
    name: String,
    engine: &'static str,
    clock: Clock,
    /// Context of each rule; `None` for rules without handlers.
    contexts: Vec<Option<Rc<ExecutionContext>>>,
    start: Instant,
    /// Simulated time at the start.
    origin: Time,
}

impl<U: Unit<Observer = Watch>> Simulated<U> {
    /// Creates the contexts of the rules, and boots the card.
    ///
    /// # Errors
    /// When a context does not fit, or the program does not boot.
    pub fn new(
        mut system: System<U>,
        file: &Path,
        arguments: &ContextArguments,
        (machine, engine): (&Machine, &'static str),
        loaded: Loaded,
        rules: &[Rule],
    ) -> Result<Simulated<U>> {
        loaded.write(system.unit());
        let mut made = Contexts::new(arguments, machine, &loaded, rules);
        let mut contexts = Vec::new();
        for rule in rules {
            let Action::Context(processing) = &rule.action else {
                contexts.push(None);
                continue;
            };
            let context = made.make(&processing.context).map_err(|reason| Error::malformed(file, reason))?;
            system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
            system.unit().prepare(&context);
            contexts.push(Some(context));
        }
        boot(&mut system, file)?;
        let (name, clock) = (machine.name.clone(), machine.clock);
        let origin = clock.time(system.unit().now().0);
        Ok(Simulated { system, loaded, name, engine, clock, contexts, start: Instant::now(), origin })
    }

    /// Returns the simulated time that belongs to the present.
    fn present(&self) -> Time {
        let nanoseconds = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.origin.saturating_add(Time::from_ns(nanoseconds))
    }

    fn take_out(&mut self, outputs: &mut Vec<Output>) {
        // Data of RDMA puts has no headers.
        let sent = self.system.take_sent().into_iter().filter(|sent| sent.send.flow == 0);
        outputs.extend(sent.map(|sent| Output::Frame(sent.bytes)));
        for (hpu, line) in self.system.unit().take_output() {
            outputs.push(Output::Line(format!("[{},{}] {}", hpu.cluster, hpu.hpu, String::from_utf8_lossy(&line))));
        }
        for (at, event) in self.system.take_events() {
            match event {
                DriverEvent::Failed { hpu, role, message, outcome, .. } => outputs.push(Output::Failed(format!(
                    "the {} handler of message {message} on HPU {} of cluster {} {}, in cycle {}",
                    role.name(),
                    hpu.hpu,
                    hpu.cluster,
                    report::ending(outcome, self.system.killed_at(hpu), self.loaded.program()),
                    at.0
                ))),
                DriverEvent::Idle { message, .. } => outputs.push(Output::Forgotten(message.into())),
                // The end is an error of `advance`; commands report to nobody here.
                DriverEvent::Terminated { .. } | DriverEvent::Command { .. } => {}
            }
        }
    }
}

impl<U: Unit<Observer = Watch>> Card for Simulated<U> {
    fn has_room(&self) -> bool {
        self.system.inbound().coming() < MOST_COMING
    }

    fn is_busy(&self) -> bool {
        self.system.inbound().coming() + self.system.inbound().inside() > 0
    }

    fn arrive(&mut self, packet: Packet) {
        let Some(Some(context)) = self.contexts.get(packet.rule) else { return };
        let at = self.present().max(self.clock.time(self.system.unit().now().0));
        self.system.push(Arrival {
            at,
            bytes: packet.bytes,
            // Numbers wrap after 2^32 messages; no run has that many in progress.
            message: packet.message as u32,
            is_last: packet.is_last,
            transfer: packet.transfer as u32,
            context: context.clone(),
            user: 0,
        });
    }

    fn work(&mut self) -> Result<Vec<Output>> {
        let (begin, mut outputs) = (Instant::now(), Vec::new());
        while begin.elapsed() < TURN {
            let until = if self.is_busy() { Cycle::NEVER } else { Cycle(self.clock.cycles(self.present())) };
            if self.system.unit().now() >= until {
                break;
            }
            let goes_on = self.system.advance(until, |_, _| {}).map_err(Error::other)?;
            self.take_out(&mut outputs);
            if !goes_on || !outputs.is_empty() {
                break;
            }
        }
        Ok(outputs)
    }

    fn wait_ms(&self) -> i32 {
        // An idle unit has at most the limits of idle messages to watch, for which this is often enough.
        if self.is_busy() { 0 } else { 10 }
    }

    fn report(&mut self) -> Report {
        Report { engine: self.engine.to_owned(), ..self.system.report(&self.name, self.clock) }
    }
}
