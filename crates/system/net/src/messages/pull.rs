//! The windows and pulls of NDP (Handley et al.: Re-architecting datacenter networks and stacks for low latency and high
//! performance, SIGCOMM 2017, §3.2): a sender may send a window of packets to a receiver unasked. Each packet that arrives, with
//! its data or without it, lets the receiver ask for one more. It asks its senders in turn, no faster than its link takes the
//! packets that it asks for.

use std::collections::{HashMap, VecDeque};

/// The windows of all flows, by sender and receiver.
#[derive(Debug)]
pub(super) struct Pulls {
    window: u32,
    flows: HashMap<(u32, u32), Flow>,
    receivers: Vec<Receiver>,
    /// For each sender, the receivers and numbers of packets that have arrived without data, as the sender knows.
    refused: Vec<VecDeque<(u32, u32)>>,
}

/// Packets from a sender to a receiver. Those that the sender may send, those on the way, those that the receiver has yet to
/// answer by a pull, and pulls on the way are as many as the window together.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// New packets that the sender may send unasked. Answers of a card do not ask and may make it negative.
    unasked: i64,
    /// Packets that it may send because it was asked.
    asked: u64,
    /// New packets that it has to send, and packets that have arrived without data, which wait for a pull. Sequence numbers
    /// and the mark of a last packet tell the receiver (§3.2).
    unsent: u64,
    refused: u64,
    /// Packets that have arrived and are not answered by a pull.
    owed: u32,
    /// Pulls on their way.
    pulls: u64,
}

impl Flow {
    /// Whether the sender needs one more pull.
    fn needs_pull(&self) -> bool {
        self.refused + self.unsent.saturating_sub(self.unasked.max(0) as u64) > self.asked + self.pulls
    }
}

/// A receiver.
#[derive(Clone, Debug, Default)]
struct Receiver {
    /// The senders that it owes pulls, in turn.
    turns: VecDeque<u32>,
    /// Whether its next turn is scheduled.
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

    /// Whether a sender may send a new packet.
    pub fn may_send(&self, from: u32, to: u32) -> bool {
        self.flows.get(&(from, to)).is_none_or(|flow| flow.unasked > 0 || flow.asked > 0)
    }

    /// A sender has more packets to send.
    pub fn has_more(&mut self, from: u32, to: u32, packets: u64) {
        self.flow(from, to).unsent += packets;
    }

    /// A sender knows that a packet has arrived without its data.
    pub fn refused(&mut self, from: u32, to: u32, packet: u32) {
        self.refused[from as usize].push_back((to, packet));
    }

    /// The first of these packets that a sender may send again.
    pub fn next_refused(&self, from: u32) -> Option<u32> {
        let is_asked = |to: u32| self.flows.get(&(from, to)).is_some_and(|flow| flow.asked > 0);
        self.refused[from as usize].iter().find(|(to, _)| is_asked(*to)).map(|(_, packet)| *packet)
    }

    /// A sender sends a packet.
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

    /// A packet has arrived. Returns whether the receiver is to take its [turn](Pulls::turn) now.
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

    /// The sender that a receiver is to pull from now, if there is one. Windows of senders that have nothing to send open without
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

    /// A pull has reached the sender.
    pub fn pulled(&mut self, from: u32, to: u32) {
        let flow = self.flow(from, to);
        flow.pulls -= 1;
        flow.asked += 1;
    }
}
