// SPDX-License-Identifier: Apache-2.0
//! The card as the accelerator's environment.

use std::collections::VecDeque;

use accel::{Env, Event, Finished, HandlerSlice, Issued, Printed};
use sim::Time;
use sim::memory::push_back_frugally;

use crate::event::NicEvent;
use crate::ports::{PacketId, Ports, Slice, Track};

/// Work that an accelerator queues for its card.
#[derive(Debug)]
pub enum Work {
    /// Execute a command of a handler.
    Issued(Issued),
    /// Act on the outcome of a handler.
    Finished(Finished),
}

impl Work {
    /// Returns the index of the process of the handler, among those that share the card.
    pub fn process(&self) -> u32 {
        match self {
            Work::Issued(issued) => issued.process,
            Work::Finished(finished) => finished.task.process,
        }
    }
}

/// The card as its accelerator's environment.
pub(super) struct CardEnv<'a, P> {
    /// Environment of the card.
    pub ports: &'a mut P,
    /// Work for the card once the accelerator returns.
    pub work: &'a mut VecDeque<Work>,
}

impl<P: Ports> Env for CardEnv<'_, P> {
    fn now(&self) -> Time {
        self.ports.now()
    }

    fn horizon(&self) -> Time {
        self.ports.horizon()
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.ports.schedule(at, NicEvent::Accelerator(event));
    }

    fn issue(&mut self, issued: Issued) {
        push_back_frugally(self.work, Work::Issued(issued));
    }

    fn finished(&mut self, finished: Finished) {
        push_back_frugally(self.work, Work::Finished(finished));
    }

    fn found(&mut self, process: u32, mistake: String) {
        self.ports.found(process, mistake);
    }

    fn print(&mut self, printed: Printed) {
        self.ports.print(printed);
    }

    fn tracing(&self) -> bool {
        self.ports.tracing()
    }

    fn slice(&mut self, HandlerSlice { process, hpu, start, end, name, packet }: HandlerSlice<'_>) {
        let bytes = packet.map(|(_, packet)| u64::from(packet.payload_bytes()));
        let packet = packet.map(|(message, packet)| PacketId { message, offset: packet.offset });
        self.ports.slice(Slice { track: Track::Hpu { process, hpu }, start, end, name, packet, bytes });
    }
}
