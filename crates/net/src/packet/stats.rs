use sim::Time;

use super::PacketNetwork;

/// What a link has seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    packets: u64,
    busy: Time,
    /// The longest time that the bytes in the queue would have taken, those on their way onto the link included.
    longest: Time,
    /// Twice the time, in ps, times the bytes in the queue.
    area: f64,
}

impl Counts {
    pub const NONE: Counts = Counts { packets: 0, busy: Time::ZERO, longest: Time::ZERO, area: 0.0 };

    /// A packet that had to wait for the link.
    #[inline]
    pub fn add(&mut self, wait: Time, transmission: Time, bytes: u32) {
        self.packets += 1;
        self.busy += transmission;
        // While it leaves, half of its bytes are still there on average.
        self.area += (2 * wait.as_ps() + transmission.as_ps()) as f64 * f64::from(bytes);
    }

    /// The queue, as a time, with a new packet.
    #[inline]
    pub fn see(&mut self, backlog: Time) {
        self.longest = self.longest.max(backlog);
    }
}

/// What became of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// Name of the vertex where it starts.
    pub from: String,
    /// Name of the vertex where it ends.
    pub to: String,
    /// Fraction of the time in which it transmitted.
    pub utilization: f64,
    /// Packets that passed it.
    pub packets: u64,
    /// Packets that found its queue full.
    pub drops: u64,
    /// Most bytes in its queue, what is on its way onto the link included. Of a switch's port; cards keep no count.
    pub longest_queue: u64,
    /// Bytes in its queue, averaged over time.
    pub mean_queue: f64,
}

/// What became of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Of the topology.
    pub description: String,
    /// Hosts
    pub hosts: u32,
    /// Switches
    pub switches: u32,
    /// Links, counted in each direction
    pub links: usize,
    /// Packets that were made of messages
    pub packets: u64,
    /// Packets times links that they passed
    pub packet_hops: u64,
    /// Packets lost
    pub drops: u64,
    /// Packets sent again
    pub resent: u64,
    /// Of all links
    pub mean_utilization: f64,
    /// The link with the longest queue, if any had one.
    pub longest_queue: Option<LinkReport>,
    /// Those with the highest utilization, first the highest.
    pub busiest: Vec<LinkReport>,
}

impl PacketNetwork {
    /// What became of the network until `end`; `busiest` links are listed.
    pub fn report(&self, end: Time, busiest: usize) -> Report {
        let longest = |&link: &usize| self.kind(link as u32).bytes_in(self.wires[link].counts.longest);
        // The first of the longest.
        let queued = (0..self.wires.len()).filter(|link| longest(link) > 0).rev().max_by_key(longest);
        let mut order: Vec<usize> = (0..self.wires.len()).filter(|&link| self.wires[link].counts.packets > 0).collect();
        order.sort_by_key(|&link| std::cmp::Reverse(self.wires[link].counts.busy));
        order.truncate(busiest);
        let busy: u128 = self.wires.iter().map(|wire| u128::from(wire.counts.busy.as_ps())).sum();
        Report {
            description: self.topology.description().to_owned(),
            hosts: self.hosts,
            switches: self.topology.switches(),
            links: self.wires.len(),
            packets: self.sent_packets,
            packet_hops: self.hops,
            drops: self.drops.iter().sum(),
            resent: self.resent,
            mean_utilization: share(busy as f64, end) / self.wires.len().max(1) as f64,
            longest_queue: queued.map(|link| self.link_report(link, end)),
            busiest: order.into_iter().map(|link| self.link_report(link, end)).collect(),
        }
    }

    fn link_report(&self, link: usize, end: Time) -> LinkReport {
        let (counts, ends) = (&self.wires[link].counts, self.topology.links()[link]);
        LinkReport {
            from: self.topology.name(ends.from),
            to: self.topology.name(ends.to),
            utilization: share(counts.busy.as_ps() as f64, end),
            packets: counts.packets,
            drops: self.drops.get(link).copied().unwrap_or(0),
            longest_queue: self.kind(link as u32).bytes_in(counts.longest),
            mean_queue: share(counts.area, end) / 2.0,
        }
    }

    /// Messages that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.transfers.len()
    }
}

fn share(part: f64, end: Time) -> f64 {
    if end == Time::ZERO { 0.0 } else { part / end.as_ps() as f64 }
}
