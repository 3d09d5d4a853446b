// SPDX-License-Identifier: Apache-2.0
//! Computation of a fabric's statistics.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use sim::Time;

use super::link::LinkState;
use super::links_and_hosts::Fabric;
use super::statistics::{LinkReport, Report, Traffic};

impl Fabric {
    /// Adds the counts of another part of the network, and takes the state of its links.
    pub fn absorb(&mut self, other: &Fabric, vertices: &[Range<usize>]) {
        for range in self.topology.links_of(vertices) {
            self.links[range.clone()].copy_from_slice(&other.links[range.clone()]);
            if !self.drops.is_empty() {
                self.drops[range.clone()].copy_from_slice(&other.drops[range]);
            }
        }
        self.sent_packets += other.sent_packets;
        self.hops += other.hops;
        self.resent += other.resent;
        self.answers.counts.add(&other.answers.counts);
    }

    /// Returns the statistics up to `end`, with at most `busiest` links of highest utilization.
    pub fn report(&self, end: Time, busiest: usize) -> Report {
        // Networks have many links, so a second pass over them would cost more than the work on each.
        let (mut order, mut busy, mut most, mut queued) = (BinaryHeap::new(), 0, 0, None::<usize>);
        for (number, link) in self.links.iter().enumerate() {
            busy += u128::from(link.counts.busy.as_ps());
            let place = (Reverse(link.counts.busy), number);
            if link.counts.packets > 0 && (order.len() < busiest || order.peek() > Some(&place)) {
                order.push(place);
                if order.len() > busiest {
                    order.pop();
                }
            }
            let is_longer = |other: &LinkState| other.kind != link.kind || other.counts.longest < link.counts.longest;
            if queued.is_none_or(|longest| is_longer(&self.links[longest])) {
                let bytes = self.kinds[link.kind as usize].bytes_in(link.counts.longest);
                // The first of the longest queues.
                if bytes > most {
                    (most, queued) = (bytes, Some(number));
                }
            }
        }
        Report {
            description: self.topology.description().to_owned(),
            hosts: self.hosts - self.topology.cards(),
            switches: self.topology.switches(),
            links: self.links.len(),
            packets: self.sent_packets,
            packet_hops: self.hops,
            drops: self.drops.iter().sum(),
            resent: self.resent,
            answers: self.answers.counts,
            mean_utilization: share(busy as f64, end) / self.links.len().max(1) as f64,
            longest_queue: queued.map(|link| self.link_report(link, end)),
            busiest: order.into_sorted_vec().into_iter().map(|(_, link)| self.link_report(link, end)).collect(),
        }
    }

    /// Returns packets and bytes of each used link.
    pub fn traffic(&self) -> Vec<Traffic> {
        let used = (0..self.links.len()).filter(|&link| self.links[link].counts.packets > 0);
        let traffic = |link: usize| {
            let (counts, (from, to)) = (&self.links[link].counts, self.link_name(link as u32));
            Traffic { from, to, packets: counts.packets, bytes: counts.bytes }
        };
        used.map(traffic).collect()
    }

    fn link_report(&self, link: usize, end: Time) -> LinkReport {
        let (counts, ends) = (&self.links[link].counts, self.topology.links()[link]);
        LinkReport {
            from: self.topology.name(ends.from),
            to: self.topology.name(ends.to),
            utilization: share(counts.busy.as_ps() as f64, end),
            packets: counts.packets,
            bytes: counts.bytes,
            drops: self.drops.get(link).copied().unwrap_or(0),
            longest_queue: self.kind(link as u32).bytes_in(counts.longest),
            mean_queue: share(counts.area, end) / 2.0,
        }
    }
}

fn share(part: f64, end: Time) -> f64 {
    if end == Time::ZERO { 0.0 } else { part / end.as_ps() as f64 }
}
