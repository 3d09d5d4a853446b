//! What a card does when the time of an event has come.

use super::state::Card;
use crate::event::CardEvent;
use crate::pipeline::Completion;
use crate::portals::InternalError;
use crate::ports::Ports;
use crate::spin::Work;

impl Card {
    /// Handles an event whose time has come.
    pub fn handle(&mut self, event: CardEvent, ports: &mut impl Ports) {
        let handled = self.handle_event(event, ports).and_then(|()| self.work(ports));
        self.check(handled, ports);
    }

    fn handle_event(&mut self, event: CardEvent, ports: &mut impl Ports) -> Result<(), InternalError> {
        match event {
            CardEvent::Send(outgoing) => self.send(*outgoing, ports),
            CardEvent::Fetched(fetch) => {
                self.pipeline.fetched(*fetch, ports);
                Ok(())
            }
            CardEvent::Refill => {
                self.pipeline.refill(ports);
                Ok(())
            }
            CardEvent::Departs(departure) => self.pipeline.departs(departure, ports),
            CardEvent::Sent(sent) => self.sent(sent, ports),
            CardEvent::Arrive(packet) => self.arrive(packet, ports),
            CardEvent::Received(packet) => self.received(*packet, ports),
            CardEvent::Written(write) => {
                self.pipeline.written(self.messages.live(write.message)?, &write, ports);
                self.finish_if_done(write.message, ports)
            }
            CardEvent::Atomic(work) => {
                let message = work.message;
                self.pipeline.atomic(self.messages.live(message)?, *work, ports)?;
                self.finish_if_done(message, ports)
            }
            CardEvent::ResponseDone(message) => self.response_done(message, ports),
            CardEvent::Complete(message) => self.complete(message, ports),
            CardEvent::Accelerator(event) => self.spin.handle(event, ports),
            CardEvent::CommandDone(command) => self.command_done(command, 0, ports),
            CardEvent::HostTransferDone(transfer) => self.host_transfer_done(&transfer, ports),
        }
    }

    /// Does what the accelerator has left to the card.
    pub(crate) fn work(&mut self, ports: &mut impl Ports) -> Result<(), InternalError> {
        while let Some(work) = self.spin.next_work() {
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

    /// Lets the CPU do the next piece of work; its time is charged by the caller.
    pub fn process_completion(&mut self, ports: &mut impl Ports) {
        let done = match self.pipeline.completions.pop_front() {
            Some(Completion::Arrived(arrived)) => self.finish_delivery(arrived.0, ports),
            Some(Completion::Operation(token, response)) => self.finish_operation(token, response, ports),
            Some(Completion::Triggered(interface, op)) => {
                self.fire(interface, op);
                self.pipeline.apply(ports)
            }
            None => Ok(()),
        };
        self.check(done, ports);
    }
}
