//! What the ends of a fabric send by themselves: acknowledgements, notifications of congestion, refusals and pulls. They are
//! packets like others, on the way back.

use std::collections::HashMap;

use sim::{Time, random};

use super::parameters::{Parameters, RateControl};

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
    pub random: u64,
    /// When each flow, by sender and receiver, was last notified.
    pub notified: HashMap<(u32, u32), Time>,
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
