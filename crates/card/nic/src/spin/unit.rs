use std::collections::VecDeque;
use std::rc::Rc;

use accel::{Accelerator, CommandId, Env, Event, HpuMemory, Reply, Role};
use machine::Machine;
use sim::memory::push_frugally;

use super::env::{CardEnv, Work};
use super::lazy::LazyAccelerator;
use super::verdict::SpinMessage;
use crate::message::MessageId;
use crate::portals::InternalError;
use crate::portals::slab::Slab;
use crate::ports::Ports;
use crate::stats::HandlerStats;

/// What a card has for handlers.
#[repr(C)] // see `Nic`
pub struct Spin {
    /// The HPU memory that the program has allocated, by interface; none as long as it has not allocated any there.
    pub(super) hpu_memory: [Option<Box<Slab<Rc<HpuMemory>>>>; 4],
    /// Counts of each handler. There are few, and they are found by comparing pointers.
    stats: Vec<(Rc<str>, HandlerStats)>,
    /// What runs handlers.
    pub accelerator: LazyAccelerator,
    /// What the accelerator has left to the card.
    pub(crate) work: VecDeque<Work>,
}

impl Spin {
    /// The accelerator of a machine, without a program.
    pub fn new(machine: Rc<Machine>) -> Spin {
        Spin {
            accelerator: LazyAccelerator::new(machine),
            hpu_memory: [const { None }; 4],
            work: VecDeque::new(),
            stats: Vec::new(),
        }
    }

    /// The next piece of work that the accelerator has left to the card. The card does all of it after each event.
    pub fn next_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// Gives memory back that is not needed while no handler runs.
    pub fn trim(&mut self) {
        if let Some(accelerator) = self.accelerator.made_mut() {
            accelerator.trim();
            self.work.shrink_to_fit();
        }
    }

    /// The time of an event of the accelerator has come.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    pub fn handle(&mut self, event: Event, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.handle(event, env))
    }

    /// Replies to a command of a handler.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    pub fn reply(&mut self, id: CommandId, reply: Reply, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.complete(id, reply, env))
    }

    /// The card has acted on the outcome of a handler, whose place is free for the next one.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    pub fn resume(&mut self, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.resume(env))
    }

    /// The handlers of a message have ended, and none will follow.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    pub fn message_ended(&mut self, message: MessageId, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.message_ended(message, env))
    }

    /// Ends the handlers of these messages, sorted by number, which nobody receives any more, wherever they are. Their
    /// packet buffers and contexts are free then; their DMA transfers change nothing when they are done.
    ///
    /// # Errors
    /// When the accelerator is in a state that cannot occur.
    pub fn end_handlers(&mut self, messages: &[MessageId], ports: &mut impl Ports) -> Result<(), InternalError> {
        if self.accelerator.made().is_none() {
            return Ok(());
        }
        let withdrawn = self.call(ports, |accelerator, env| accelerator.withdraw(messages, env))?;
        // The packet of a header handler belongs to its message.
        let payload = withdrawn.iter().filter(|task| task.role() == Role::Payload);
        payload.filter_map(|task| task.packet).for_each(|packet| self.accelerator.free(packet));
        Ok(())
    }

    /// Drops the packets of a message that wait for its header handler.
    pub fn drop_waiting(&mut self, message: SpinMessage) {
        message.waiting.into_iter().for_each(|packet| self.accelerator.free(packet));
    }

    /// The counts of a handler.
    pub(super) fn stats_of(&mut self, handler: &Rc<str>) -> &mut HandlerStats {
        let known = self.stats.iter().position(|(other, _)| Rc::ptr_eq(other, handler));
        let index = known.unwrap_or_else(|| {
            push_frugally(&mut self.stats, (handler.clone(), HandlerStats::default()));
            self.stats.len() - 1
        });
        &mut self.stats[index].1
    }

    /// The counts of all handlers.
    pub fn stats(&self) -> impl Iterator<Item = (&str, &HandlerStats)> {
        self.stats.iter().map(|(name, stats)| (&**name, stats))
    }

    /// Calls the accelerator, which may leave work to the card.
    pub(super) fn call<R>(
        &mut self,
        ports: &mut impl Ports,
        call: impl FnOnce(&mut dyn Accelerator, &mut dyn Env) -> Result<R, accel::InternalError>,
    ) -> Result<R, InternalError> {
        let mut env = CardEnv { ports, work: &mut self.work };
        Ok(call(&mut *self.accelerator, &mut env)?)
    }
}
