// SPDX-License-Identifier: Apache-2.0
//! Windows and pulls of NDP (Handley et al.: Re-architecting datacenter networks and stacks for low latency and high
//! performance, SIGCOMM 2017, §3.2). A sender may send a window of packets to a receiver without pulls. Each packet
//! that arrives, with its data or trimmed, entitles the receiver to one pull. The receiver pulls from its senders in
//! turn, at most at the rate at which its link accepts the pulled packets.

use std::collections::{HashMap, VecDeque};

/// Windows of all flows, by sender and receiver.
#[derive(Debug)]
pub(super) struct Pulls {
    window: u32,
    flows: HashMap<(u32, u32), Flow>,
    receivers: Vec<Receiver>,
    /// For each sender, the receivers and numbers of packets with a NACK.
    refused: Vec<VecDeque<(u32, u32)>>,
}

/// Packets from a sender to a receiver. The window is the sum of packets that the sender may send, packets in flight,
/// arrived packets that the receiver has not answered by a pull, and pulls in flight.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// New packets that the sender may send without a pull. A card's answers need no permission and may make it
    /// negative.
    unasked: i64,
    /// Packets that it may send after a pull.
    asked: u64,
    /// New packets to send, and packets with a NACK; both wait for a pull. Sequence numbers and the mark of a last
    /// packet inform the receiver (§3.2).
    unsent: u64,
    refused: u64,
    /// Arrived packets without a pull in return.
    owed: u32,
    /// Pulls in flight.
    pulls: u64,
}

impl Flow {
    /// Returns true if the sender needs one more pull.
    fn needs_pull(&self) -> bool {
        self.refused + self.unsent.saturating_sub(self.unasked.max(0) as u64) > self.asked + self.pulls
    }
}

/// A receiver.
#[derive(Clone, Debug, Default)]
struct Receiver {
    /// Senders with outstanding pulls, in turn.
    turns: VecDeque<u32>,
    /// True while its next turn is scheduled.
    is_busy: bool,
}

impl Pulls {
    pub fn new(window: u32, hosts: u32) -> Pulls {
        let hosts = hosts as usize;
        let (receivers, refused) = (vec![Receiver::default(); hosts], vec![VecDeque::new(); hosts]);
        Pulls { window, flows: HashMap::new(), receivers, refused }
    }

    fn flow(&mut self, from: u32, to: u32) -> &mut Flow {
        let unasked = i64::from(self.window);
        self.flows.entry((from, to)).or_insert(Flow { unasked, asked: 0, unsent: 0, refused: 0, owed: 0, pulls: 0 })
    }

    /// Returns true if a sender may send a new packet.
    pub fn may_send(&self, from: u32, to: u32) -> bool {
        self.flows.get(&(from, to)).is_none_or(|flow| flow.unasked > 0 || flow.asked > 0)
    }

    /// Records that a sender has more packets to send.
    pub fn has_more(&mut self, from: u32, to: u32, packets: u64) {
        self.flow(from, to).unsent += packets;
    }

    /// Records a NACK at the sender: a packet arrived without its data.
    pub fn refused(&mut self, from: u32, to: u32, packet: u32) {
        self.refused[from as usize].push_back((to, packet));
    }

    /// Returns the first packet with a NACK that a sender may retransmit.
    pub fn next_refused(&self, from: u32) -> Option<u32> {
        let is_asked = |to: u32| self.flows.get(&(from, to)).is_some_and(|flow| flow.asked > 0);
        self.refused[from as usize].iter().find(|(to, _)| is_asked(*to)).map(|(_, packet)| *packet)
    }

    /// Records that a sender sends a packet.
    pub fn sent(&mut self, from: u32, to: u32, packet: u32) {
        let refused = &mut self.refused[from as usize];
        let place = refused.iter().position(|other| *other == (to, packet));
        if let Some(place) = place {
            refused.remove(place);
        }
        let flow = self.flow(from, to);
        match place {
            Some(_) => (flow.refused, flow.asked) = (flow.refused - 1, flow.asked - 1),
            None => {
                flow.unsent -= 1;
                match flow.unasked <= 0 && flow.asked > 0 {
                    true => flow.asked -= 1,
                    false => flow.unasked -= 1,
                }
            }
        }
    }

    /// Records a packet's arrival. Returns true if the receiver must take its [turn](Pulls::turn) now.
    pub fn received(&mut self, from: u32, to: u32, is_trimmed: bool) -> bool {
        let flow = self.flow(from, to);
        flow.refused += u64::from(is_trimmed);
        flow.owed += 1;
        let is_first = flow.owed == 1;
        let receiver = &mut self.receivers[to as usize];
        if is_first {
            receiver.turns.push_back(from);
        }
        !std::mem::replace(&mut receiver.is_busy, true)
    }

    /// Returns the sender from which a receiver must pull now, if any. Windows of senders without packets open without
    /// a pull.
    pub fn turn(&mut self, to: u32) -> Option<u32> {
        while let Some(from) = self.receivers[to as usize].turns.pop_front() {
            let flow = self.flow(from, to);
            flow.owed -= 1;
            let (is_owed, needs_it) = (flow.owed > 0, flow.needs_pull());
            match needs_it {
                true => flow.pulls += 1,
                false => flow.unasked += 1,
            }
            if is_owed {
                self.receivers[to as usize].turns.push_back(from);
            }
            if needs_it {
                return Some(from);
            }
        }
        self.receivers[to as usize].is_busy = false;
        None
    }

    /// Records a pull's arrival at the sender.
    pub fn pulled(&mut self, from: u32, to: u32) {
        let flow = self.flow(from, to);
        flow.pulls -= 1;
        flow.asked += 1;
    }
}
