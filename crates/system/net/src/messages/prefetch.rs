// SPDX-License-Identifier: Apache-2.0
//! Prefetching for later events of a message network.

use super::network::{Event, MessageNetwork};
use super::scope::Scope;

/// Prefetching in three steps, as in the [fabric](crate::fabric).
impl<S: Scope> MessageNetwork<S> {
    /// First step: fetches the data of the event.
    #[inline(always)]
    pub fn prefetch(&self, event: Event) {
        match event {
            Event::Fabric(event) => self.fabric.prefetch(event),
            Event::Send(host) => {
                self.hosts.prefetch(host);
                self.fabric.prefetch_host(host);
            }
            Event::Sent(message) | Event::Arrived(message) => self.hosts.messages.prefetch(message),
            Event::Pull(_) => {}
        }
    }

    /// Second step: fetches the next hops of packets.
    #[inline(always)]
    pub fn prefetch_next(&self, event: Event) {
        match event {
            Event::Fabric(event) => self.fabric.prefetch_next(event),
            Event::Send(host) => self.hosts.prefetch_first(host),
            _ => {}
        }
    }

    /// Third step: fetches the hops after that, or the message of a packet on its last link.
    #[inline(always)]
    pub fn prefetch_last(&self, event: Event) {
        if let Event::Fabric(event) = event
            && let Some(message) = self.fabric.prefetch_last(event)
        {
            self.hosts.messages.prefetch(message);
        }
    }

    /// Returns the receiver of a message with a pending arrival event.
    #[inline]
    pub fn receiver(&self, event: Event) -> Option<u32> {
        match event {
            Event::Arrived(message) => Some(self.hosts.messages[message].to),
            _ => None,
        }
    }
}
