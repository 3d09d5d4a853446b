// SPDX-License-Identifier: Apache-2.0
//! Executes the effects of changed Portals objects.

use super::pipelines::Pipeline;
use super::rx::Completion;
use crate::message::OpToken;
use crate::portals::{Effect, InternalError, Notice};
use crate::ports::Ports;

impl Pipeline {
    /// Executes the queued effects of changed Portals objects, in order.
    ///
    /// # Errors
    /// Returns an error if the change met an impossible state.
    pub fn apply(&mut self, ports: &mut impl Ports) -> Result<(), InternalError> {
        for effect in std::mem::take(&mut self.portals.effects) {
            match effect {
                Effect::Notify(notice) => ports.notify(notice),
                Effect::Start(transfer) => self.start(*transfer, ports.now(), ports),
                Effect::Due(interface, op) => self.leave_to_cpu(Completion::Triggered(interface, *op), ports),
                Effect::Internal(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Queues work for the CPU.
    pub fn leave_to_cpu(&mut self, completion: Completion, ports: &mut impl Ports) {
        self.completions.push_back(completion);
        ports.notify(Notice::Completion);
    }

    /// Stops a portal table entry by flow control, and notifies the program.
    ///
    /// # Errors
    /// Returns an error if the change met an impossible state.
    pub fn stop_portal(&mut self, interface: u8, pt_index: u32, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.portals.disable_portal(interface, pt_index, true);
        self.apply(ports)
    }

    /// Discards the CPU's work for an interface. The initiators of its messages are already answered.
    pub fn drop_completions(&mut self, index: u8) {
        for completion in std::mem::take(&mut self.completions) {
            match completion {
                Completion::Arrived(ref arrived) if arrived.0.header.interface == index => {}
                Completion::Triggered(interface, _) if interface == index => {}
                Completion::Operation(token, answer) if !self.is_open(token) => {
                    self.portals.note_operation(token, answer.is_some());
                }
                other => self.completions.push_back(other),
            }
        }
    }

    fn is_open(&mut self, token: OpToken) -> bool {
        self.portals.operations.is_open(token)
    }
}
