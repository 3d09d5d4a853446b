use super::rx::Completion;
use super::state::Pipeline;
use crate::message::OpToken;
use crate::portals::{Effect, InternalError, Notice};
use crate::ports::Ports;

impl Pipeline {
    /// Does what a change of Portals objects has left to the card, in its order.
    ///
    /// # Errors
    /// When the change has met a state that cannot occur.
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

    /// Leaves work to the CPU.
    pub fn leave_to_cpu(&mut self, completion: Completion, ports: &mut impl Ports) {
        self.completions.push_back(completion);
        ports.notify(Notice::Completion);
    }

    /// Flow control stops a portal table entry, and the program is told.
    ///
    /// # Errors
    /// When the change has met a state that cannot occur.
    pub fn stop_portal(&mut self, interface: u8, pt_index: u32, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.portals.disable_portal(interface, pt_index, true);
        self.apply(ports)
    }

    /// Forgets what has been left to the CPU for an interface. The initiators of messages have been answered.
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
