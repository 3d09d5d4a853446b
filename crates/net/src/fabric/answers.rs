//! What the ends of a fabric send by themselves: acknowledgements, notifications of congestion, refusals and pulls. They are
//! packets like others, on the way back.

use std::collections::HashMap;

use sim::{Time, random};

use super::engine::{Edge, Fabric};
use super::packet::{Hash, Mark, Packet, Role};
use super::parameters::{Flow, Parameters, RateControl};

/// What hosts learn from packets that the network's ends have sent by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A packet is lost, and its host is to inject it again.
    Resend(u32),
    /// Packets from the first to the second host meet long queues, and the sender knows.
    Congested(u32, u32),
    /// A packet from the first to the second host has arrived, with its data or without it.
    Received { from: u32, to: u32, is_trimmed: bool },
    /// The sender of a packet knows that it has arrived without its data.
    Refused(u32),
    /// The second host has asked the first for one more packet.
    Pulled(u32, u32),
}

/// The state of the ends.
#[derive(Debug, Default)]
pub(super) struct Answers {
    are_sent: bool,
    has_marks: bool,
    /// Decides which packets are marked.
    random: u64,
    /// When each flow, by sender and receiver, was last notified.
    notified: HashMap<(u32, u32), Time>,
    pub counts: Counts,
}

/// Number of packets of each role, and of those that switches have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acknowledgements.
    pub acknowledgements: u64,
    /// Packets of data that switches have marked.
    pub marked: u64,
    /// Notifications of congestion.
    pub notifications: u64,
    /// Packets that switches have trimmed.
    pub trimmed: u64,
    /// Requests for one more packet.
    pub pulls: u64,
    /// Pause frames.
    pub pauses: u64,
    /// The time for which virtual channels were paused, in all.
    pub paused: Time,
}

impl Answers {
    pub fn new(parameters: &Parameters) -> Answers {
        Answers {
            are_sent: parameters.has_answers(),
            has_marks: parameters.transport.rate_control == RateControl::Dcqcn,
            random: random::mix(parameters.seed),
            ..Answers::default()
        }
    }

    /// Whether the end of a packet's way is an event.
    #[inline]
    pub fn are_sent(&self) -> bool {
        self.are_sent
    }

    /// Whether switches mark packets.
    #[inline]
    pub fn has_marks(&self) -> bool {
        self.has_marks
    }
}

impl Fabric {
    /// Marks a packet of data that finds a queue of this many bytes (DCQCN §3.1, Fig. 5: RED with K_min, K_max and P_max).
    pub(super) fn mark(&mut self, id: u32, queue: u64) {
        let dcqcn = &self.parameters.transport.dcqcn;
        let (from, all) = (dcqcn.mark_from, dcqcn.mark_all);
        let marks = &mut self.packets[id].marks;
        if marks.role() != Role::Data || queue < from {
            return;
        }
        let share = f64::from(dcqcn.mark_percent) / 100.0 * (queue - from) as f64 / (all - from).max(1) as f64;
        if queue >= all || random::fraction(&mut self.answers.random) < share {
            self.answers.counts.marked += u64::from(!marks.has(Mark::Congested));
            marks.set(Mark::Congested, true);
        }
    }

    /// Sends a packet of the ends.
    fn answer(&mut self, now: Time, role: Role, from: u32, to: u32, token: u32, edge: &mut impl Edge) {
        let transport = &self.parameters.transport;
        let counts = &mut self.answers.counts;
        let (bytes, count) = match role {
            Role::Ack => (transport.ack, &mut counts.acknowledgements),
            Role::Notification => (transport.dcqcn.notify, &mut counts.notifications),
            Role::Pull => (transport.trim.header, &mut counts.pulls),
            _ => (transport.trim.header, &mut counts.trimmed),
        };
        *count += 1;
        // Packets of data do not have these numbers.
        let number = !(*count << 3 | role as u64);
        let number = if self.is_adaptive() { number } else { 0 };
        let hash = Hash::new(self.parameters.seed, from, to, number);
        let id = self.packets.insert(Packet { token, from, to, bytes, hash, marks: role.into(), ..Packet::NEW });
        self.inject(now, id, edge);
    }

    /// Asks a host for one more packet.
    pub fn pull(&mut self, now: Time, from: u32, to: u32, edge: &mut impl Edge) {
        self.answer(now, Role::Pull, to, from, 0, edge);
    }

    /// The last byte of a packet is at its host.
    pub(super) fn delivered(&mut self, now: Time, id: u32, edge: &mut impl Edge) -> Option<Signal> {
        let Packet { token, from, to, marks, .. } = self.packets[id];
        if marks.role() != Role::Data {
            self.packets.remove(id);
        }
        match marks.role() {
            Role::Data => return self.data_came(now, id, edge),
            Role::Ack => _ = self.packets.remove(token),
            Role::Notification => return Some(Signal::Congested(to, from)),
            Role::Refusal => {
                self.again(token);
                self.packets[token].marks.set(Mark::Trimmed, false);
                return Some(Signal::Refused(token));
            }
            Role::Pull => return Some(Signal::Pulled(to, from)),
        }
        None
    }

    fn data_came(&mut self, now: Time, id: u32, edge: &mut impl Edge) -> Option<Signal> {
        let Packet { from, to, marks, .. } = self.packets[id];
        if marks.has(Mark::Congested) {
            // DCQCN §3.1: at most one notification of a flow in N.
            let last = self.answers.notified.insert((from, to), now);
            match last.filter(|last| now < *last + self.parameters.transport.dcqcn.notify_gap) {
                Some(last) => _ = self.answers.notified.insert((from, to), last),
                None => self.answer(now, Role::Notification, to, from, 0, edge),
            }
        }
        let is_trimmed = marks.has(Mark::Trimmed);
        if is_trimmed {
            self.answer(now, Role::Refusal, to, from, id, edge);
        } else if self.parameters.transport.ack > 0 {
            // Its sender keeps it until it knows.
            self.packets[id].marks.set(Mark::Delivered, true);
            self.answer(now, Role::Ack, to, from, id, edge);
        } else {
            self.packets.remove(id);
        }
        (self.parameters.flow == Flow::Trim).then_some(Signal::Received { from, to, is_trimmed })
    }

    /// A packet of the ends, or one that is sent again although it had arrived, is lost. When an acknowledgement is missing,
    /// the data is sent again; notifications are not.
    pub(super) fn lose_answer(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        match self.packets[id].marks.role() {
            Role::Data => self.retransmit(now, id, edge),
            role => {
                let Packet { token, .. } = self.packets.remove(id);
                if role == Role::Ack {
                    self.retransmit(now, token, edge);
                }
            }
        }
    }
}
