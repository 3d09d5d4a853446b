//! What is left of handlers when their interface is closed.

use accel::Role;

use super::{Spin, SpinMessage};
use crate::card::Card;
use crate::message::MessageId;
use crate::ports::Ports;

impl Card {
    /// Ends the handlers of these messages, sorted by number, which nobody receives any more, wherever they are. Their
    /// packet buffers and contexts are free then; their DMA transfers change nothing when they are done.
    pub(crate) fn end_handlers(&mut self, messages: &[MessageId], ports: &mut impl Ports) {
        let mut withdrawn = Vec::new();
        self.accelerate(ports, |accelerator, env| {
            withdrawn = accelerator.withdraw(messages, env)?;
            Ok(())
        });
        // The packet of a header handler belongs to its message.
        let payload = withdrawn.iter().filter(|task| task.role() == Role::Payload);
        payload.filter_map(|task| task.packet).for_each(|packet| self.spin.accelerator.free(packet));
    }
}

impl Spin {
    /// Drops the packets of a message that wait for its header handler.
    pub(crate) fn drop_waiting(&mut self, message: SpinMessage) {
        message.waiting.into_iter().for_each(|packet| self.accelerator.free(packet));
    }
}
