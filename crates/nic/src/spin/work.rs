use accel::{Accelerator, CommandId, Env, Event, InternalError, Reply};

use super::env::CardEnv;
use super::unit::Work;
use crate::card::Card;
use crate::ports::Ports;

impl Card {
    /// Calls the accelerator, and does what that has left to the card.
    pub(super) fn accelerate(
        &mut self,
        ports: &mut impl Ports,
        call: impl FnOnce(&mut dyn Accelerator, &mut dyn Env) -> Result<(), InternalError>,
    ) {
        let mut env = CardEnv { ports, work: &mut self.spin.work };
        let result = call(&mut *self.spin.accelerator, &mut env);
        self.report(result, ports);
        if std::mem::replace(&mut self.spin.working, true) {
            return; // the card is at this work already, and goes on with it
        }
        while let Some(work) = self.spin.work.pop_front() {
            match work {
                Work::Issued(issued) => self.execute(issued, ports),
                Work::Finished(finished) => self.handler_finished(finished, ports),
            }
        }
        self.spin.working = false;
    }

    /// Tells of an error of the simulator itself.
    pub(super) fn report<T>(&self, result: Result<T, InternalError>, ports: &mut impl Ports) -> Option<T> {
        result.map_err(|error| ports.warn(format!("node {}: internal error: {error}, please report", self.node))).ok()
    }

    /// The time of an event of the accelerator has come.
    pub(crate) fn accelerator_event(&mut self, event: Event, ports: &mut impl Ports) {
        self.accelerate(ports, |accelerator, env| accelerator.handle(event, env));
    }

    /// What a handler has waited for is over, with this result.
    pub(crate) fn command_done(&mut self, id: CommandId, result: i32, ports: &mut impl Ports) {
        self.accelerate(ports, |accelerator, env| accelerator.complete(id, Reply::Done(result), env));
    }

    /// Data has come for which a handler waits.
    pub(crate) fn deliver(&mut self, id: CommandId, address: u32, data: &[u8], ports: &mut impl Ports) {
        let delivered = self.spin.accelerator.deliver(id, address, data);
        self.report(delivered, ports);
    }
}
