// SPDX-License-Identifier: Apache-2.0
//! Prefetching for later events of a fabric.

use sim::memory::prefetch;

use super::links_and_hosts::{Event, Fabric};
use super::packet::{NOWHERE, Role};
use super::parameters::Flow;
use crate::topology::RouteState;

/// Prefetching. Networks of many hosts exceed the processor's cache, and nearly every event accesses another part of
/// them than the event before. While a run loop handles events, it prefetches the data of later ones in steps: each
/// step reads the data that the previous one fetched. All steps are only hints.
impl Fabric {
    /// First step: fetches the data of the event.
    #[inline(always)]
    pub fn prefetch(&self, event: Event) {
        match event {
            Event::Hop(packet) | Event::Retransmit(packet) | Event::Delivered(packet) => self.packets.prefetch(packet),
            Event::Free(link) => self.prefetch_link(link, 0),
            Event::Credit(channel) | Event::Pause(channel) | Event::Resume(channel) => {
                self.prefetch_link(channel / self.vcs, (channel % self.vcs) as u8)
            }
        }
    }

    /// First step for the link of a host.
    #[inline(always)]
    pub fn prefetch_host(&self, host: u32) {
        self.prefetch_link(self.topology.first(host), 0);
    }

    /// Second step: fetches the next hops of packets.
    #[inline(always)]
    pub fn prefetch_next(&self, event: Event) {
        match event {
            Event::Hop(id) => {
                let packet = &self.packets[id];
                match self.parameters.flow {
                    Flow::Credits => self.credits.prefetch(packet.channel),
                    Flow::Pfc => self.queues.prefetch_channel(packet.channel),
                    _ => {}
                }
                if self.is_adaptive() {
                    self.prefetch_ways(packet.at, packet.to, packet.state);
                } else {
                    self.prefetch_link(packet.way.link, packet.way.vc);
                }
            }
            Event::Credit(channel) => {
                if let Some(first) = self.credits[channel].first() {
                    self.packets.prefetch(first);
                }
            }
            Event::Free(link) => {
                let port = &self.queues.ports[link as usize];
                if port.sending.came != NOWHERE {
                    self.queues.prefetch_channel(port.sending.came);
                }
                if let Some(first) = self.next_waiting(link) {
                    self.packets.prefetch(first);
                }
            }
            _ => {}
        }
    }

    /// Third step: fetches the hops after that. Returns the token of a data packet that may be on its last link.
    #[inline(always)]
    pub fn prefetch_last(&self, event: Event) -> Option<u32> {
        match event {
            Event::Hop(id) => {
                let packet = &self.packets[id];
                let token = (packet.marks.role() == Role::Data).then_some(packet.token);
                if self.is_adaptive() {
                    return token;
                }
                if self.queues.are_used()
                    && let Some(last) =
                        self.queues.channels[self.channel(packet.way.link, packet.way.vc) as usize].waiting.newest()
                {
                    self.packets.prefetch(last);
                }
                match self.links[packet.way.link as usize].to {
                    to if to < self.hosts => return token,
                    vertex => self.topology.prefetch(vertex, packet.to),
                }
            }
            Event::Free(link) => {
                if let Some(first) = self.next_waiting(link) {
                    match self.links[link as usize].to {
                        to if to < self.hosts => {}
                        vertex => self.topology.prefetch(vertex, self.packets[first].to),
                    }
                }
            }
            Event::Credit(channel) => {
                if let Some(first) = self.credits[channel].first() {
                    self.credits.prefetch(self.packets[first].channel);
                }
            }
            _ => {}
        }
        None
    }

    #[inline]
    fn prefetch_link(&self, link: u32, vc: u8) {
        prefetch(self.links.as_ptr().wrapping_add(link as usize));
        let channel = self.channel(link, vc);
        if self.queues.are_used() {
            self.queues.prefetch(link, channel);
        } else {
            self.credits.prefetch(channel);
        }
    }

    /// Returns the packet that a link with queues probably sends next.
    #[inline]
    fn next_waiting(&self, link: u32) -> Option<u32> {
        let channel = self.channel(link, self.queues.ports[link as usize].turn);
        self.queues.channels[channel as usize].waiting.first()
    }

    #[inline]
    fn channel(&self, link: u32, vc: u8) -> u32 {
        link * self.vcs + u32::from(vc)
    }

    fn prefetch_ways(&self, vertex: u32, to: u32, state: RouteState) {
        let first = self.topology.first(vertex);
        let hops = self.topology.next_hops(vertex - self.hosts, to, state);
        for (place, port) in hops.ports.iter().enumerate() {
            prefetch(self.links.as_ptr().wrapping_add((first + port) as usize));
            if hops.ports.len() == 1 {
                self.credits.prefetch(self.channel(first + port, hops.vc(place)));
            }
        }
    }
}
