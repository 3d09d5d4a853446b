// SPDX-License-Identifier: Apache-2.0
//! A card's handler state: accelerator, HPU memory and statistics.

use std::collections::VecDeque;
use std::rc::Rc;

use accel::{Accelerator, CommandId, Env, Event, HpuMemory, Reply, Role};
use sim::memory::push_frugally;

use super::env::{CardEnv, Work};
use super::lazy::LazyAccelerator;
use super::verdict::SpinMessage;
use crate::accelerator::CardModel;
use crate::message::MessageId;
use crate::portals::InternalError;
use crate::portals::slab::Slab;
use crate::ports::Ports;
use crate::stats::HandlerStats;

/// Handler state of a card.
#[repr(C)] // see `Nic`
pub struct Spin {
    /// HPU memory that the program allocated, by interface; `None` before the first allocation.
    pub(super) hpu_memory: [Option<Box<Slab<Rc<HpuMemory>>>>; 4],
    /// Statistics of each handler. The list is short, and searched by pointer comparison.
    stats: Vec<(Rc<str>, HandlerStats)>,
    /// Accelerator that runs the handlers.
    pub accelerator: LazyAccelerator,
    /// Work that the accelerator queued for the card.
    pub(crate) work: VecDeque<Work>,
}

impl Spin {
    /// Creates the handler state of a node's card without a program.
    pub fn new(model: Rc<CardModel>, node: u32) -> Spin {
        Spin {
            accelerator: LazyAccelerator::new(model, node),
            hpu_memory: [const { None }; 4],
            work: VecDeque::new(),
            stats: Vec::new(),
        }
    }

    /// Returns the next work item that the accelerator queued, if it is for this process. The card empties the queue after
    /// each event.
    pub fn next_work(&mut self, process: u32) -> Option<Work> {
        let is_for_process = self.work.front().is_some_and(|work| work.process() == process);
        if is_for_process { self.work.pop_front() } else { None }
    }

    /// Releases memory that an idle card does not need.
    pub fn trim(&mut self) {
        if let Some(accelerator) = self.accelerator.made_mut() {
            accelerator.trim();
            self.work.shrink_to_fit();
        }
    }

    /// Handles a due event of the accelerator.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    pub fn handle(&mut self, event: Event, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.handle(event, env))
    }

    /// Replies to a command of a handler.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    pub fn reply(&mut self, id: CommandId, reply: Reply, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.complete(id, reply, env))
    }

    /// Frees the context of a handler after the card acted on its outcome.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    pub fn resume(&mut self, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.resume(env))
    }

    /// Notifies the accelerator that a message has no further handlers.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    pub fn message_ended(&mut self, message: MessageId, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.call(ports, |accelerator, env| accelerator.message_ended(message, env))
    }

    /// Ends the handlers of `messages`, sorted by number, which no longer have a receiver. Their packet buffers and
    /// contexts are freed; completions of their DMA transfers have no effect.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
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

    /// Returns the statistics of a handler.
    pub(super) fn stats_of(&mut self, handler: &Rc<str>) -> &mut HandlerStats {
        let known = self.stats.iter().position(|(other, _)| Rc::ptr_eq(other, handler));
        let index = known.unwrap_or_else(|| {
            push_frugally(&mut self.stats, (handler.clone(), HandlerStats::default()));
            self.stats.len() - 1
        });
        &mut self.stats[index].1
    }

    /// Returns the statistics of all handlers.
    pub fn stats(&self) -> impl Iterator<Item = (&str, &HandlerStats)> {
        self.stats.iter().map(|(name, stats)| (&**name, stats))
    }

    /// Calls the accelerator, which may queue work for the card.
    pub(super) fn call<R>(
        &mut self,
        ports: &mut impl Ports,
        call: impl FnOnce(&mut dyn Accelerator, &mut dyn Env) -> Result<R, accel::InternalError>,
    ) -> Result<R, InternalError> {
        let mut env = CardEnv { ports, work: &mut self.work };
        Ok(call(&mut *self.accelerator, &mut env)?)
    }
}
