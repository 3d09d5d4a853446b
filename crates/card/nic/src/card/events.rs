// SPDX-License-Identifier: Apache-2.0
//! Events of a card.

use super::nic::Nic;
use crate::event::NicEvent;
use crate::pipeline::Completion;
use crate::portals::InternalError;
use crate::ports::Ports;
use crate::spin::Work;

impl Nic {
    /// Handles an event at its time.
    pub fn handle(&mut self, event: NicEvent, ports: &mut impl Ports) {
        let handled = self.handle_event(event, ports).and_then(|()| self.work(ports));
        self.check(handled, ports);
    }

    fn handle_event(&mut self, event: NicEvent, ports: &mut impl Ports) -> Result<(), InternalError> {
        match event {
            NicEvent::Send(message) => self.send(message, ports),
            NicEvent::Fetched(message, offset) => {
                self.pipeline.fetched(message, offset, ports);
                Ok(())
            }
            NicEvent::Ready(message, packet) => {
                self.pipeline.ready(&message, packet, ports);
                Ok(())
            }
            NicEvent::Refill => {
                self.pipeline.refill(ports);
                Ok(())
            }
            NicEvent::Lost(packet) => {
                self.lost(packet, ports);
                Ok(())
            }
            NicEvent::Resend(packet) => self.resend(packet, ports),
            NicEvent::GivenUp(header, place) => self.given_up(&header, place, ports),
            NicEvent::PeerIsDead(node) => self.peer_is_dead(node, ports),
            NicEvent::Departs(departure) => self.pipeline.departs(*departure, ports),
            NicEvent::Sent(sent) => self.sent(sent, ports),
            NicEvent::Arrive(packet) => self.arrive(packet, ports),
            NicEvent::Received(packet) => self.received(packet, ports),
            NicEvent::Written(message, packet) => {
                self.pipeline.written(self.messages.live(message)?, &packet, ports);
                self.finish_if_done(message, ports)
            }
            NicEvent::Atomic(work) => {
                let message = work.message;
                self.pipeline.atomic(self.messages.live(message)?, *work, ports)?;
                self.finish_if_done(message, ports)
            }
            NicEvent::ResponseDone(message) => self.response_done(message, ports),
            NicEvent::Complete(message) => self.complete(message, ports),
            NicEvent::Accelerator(event) => self.spin.handle(event, ports),
            NicEvent::CommandDone(command) => self.command_done(command, 0, ports),
            NicEvent::HostTransferDone(transfer) => self.host_transfer_done(&transfer, ports),
        }
    }

    /// Does the work that the accelerator queued for the process; work for another one stays in the queue.
    pub fn catch_up(&mut self, ports: &mut impl Ports) {
        let done = self.work(ports);
        self.check(done, ports);
    }

    /// Does the work that the accelerator queued for the process, up to the first one for another process.
    pub(crate) fn work(&mut self, ports: &mut impl Ports) -> Result<(), InternalError> {
        let process = self.pipeline.portals.index();
        while let Some(work) = self.spin.next_work(process) {
            match work {
                Work::Issued(issued) => {
                    let rx = self.messages.live(issued.message)?;
                    self.spin.execute(issued, rx, &mut self.pipeline, ports)?;
                }
                Work::Finished(finished) => {
                    let message = finished.task.message;
                    self.spin.ended(self.messages.live(message)?, finished, &mut self.pipeline, ports)?;
                    self.finish_if_done(message, ports)?;
                    self.spin.resume(ports)?;
                }
            }
        }
        Ok(())
    }

    /// Completes the next work item of the CPU; the caller charges its time.
    pub fn process_completion(&mut self, ports: &mut impl Ports) {
        let done = match self.pipeline.completions.pop_front() {
            Some(Completion::Arrived(arrived)) => self.finish_delivery(arrived.0, ports),
            Some(Completion::Operation(token, response)) => self.finish_operation(token, response, ports),
            Some(Completion::Triggered(interface, op)) => {
                self.pipeline.portals.fire(interface, op);
                self.pipeline.apply(ports)
            }
            None => Ok(()),
        };
        self.check(done, ports);
    }
}
