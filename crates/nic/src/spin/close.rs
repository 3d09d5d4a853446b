//! What is left of handlers when their interface is closed.

use super::{Role, SpinMessage, SpinUnit, Task};
use crate::card::Card;
use crate::message::MessageId;
use crate::ports::Ports;

impl Card {
    /// Ends the handlers of these messages, sorted by number, which nobody receives any more, wherever they are. Their
    /// packet buffers and contexts are free then; their DMA transfers change nothing when they are done.
    pub(crate) fn end_handlers(&mut self, messages: &[MessageId], ports: &mut impl Ports) {
        let ends = |message: MessageId| messages.binary_search(&message).is_ok();
        for task in std::mem::take(&mut self.spin.tasks) {
            if ends(task.message) {
                self.end_task(&task);
            } else {
                self.spin.tasks.push_back(task);
            }
        }
        let resident = |context: &u16| {
            let resident = self.spin.contexts[usize::from(*context)].as_ref();
            resident.is_some_and(|resident| ends(resident.task.message))
        };
        let ended: Vec<u16> = (0..self.spin.contexts.len() as u16).filter(resident).collect();
        for &context in &ended {
            if self.spin.core(context).running == Some(context) {
                self.end_stay(context, ports);
            }
            let Some(resident) = self.spin.contexts[usize::from(context)].take() else { continue };
            let core = self.spin.core(context);
            core.resident -= 1;
            core.ready.retain(|other| *other != context);
            self.spin.drop_transfers(context);
            self.end_task(&resident.task);
        }
        for context in ended {
            self.next_on_hpu(context, ports);
        }
        self.dispatch(ports);
    }

    /// Frees what a handler has for itself. The packet of a header handler belongs to its message.
    fn end_task(&mut self, task: &Task) {
        if task.role == Role::Payload {
            self.free_packet(task);
        }
    }
}

impl SpinUnit {
    /// Drops the packets of a message that wait for its header handler.
    pub(crate) fn drop_waiting(&mut self, message: SpinMessage) {
        self.free_buffers.extend(message.waiting.iter().map(|packet| packet.buffer));
    }

    /// Frees the HPU memory of an interface.
    pub(crate) fn free_all(&mut self, interface: u8) {
        self.memory.free_all(interface);
    }
}
