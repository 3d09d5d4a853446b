// SPDX-License-Identifier: Apache-2.0
//! Control packets that the ends of a fabric send autonomously: acknowledgements, congestion notifications, NACKs and
//! pulls. They travel like other packets, in the opposite direction.

use std::collections::HashMap;

use sim::{Time, random};

use super::parameters::{Parameters, RateControl};

/// Signal to a host from control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A packet is lost, and its host must inject it again.
    Resend(u32),
    /// Packets from the first to the second host meet long queues; the sender has been notified.
    Congested(u32, u32),
    /// A packet from the first to the second host has arrived, with its data or trimmed.
    Received { from: u32, to: u32, is_trimmed: bool },
    /// The sender of a packet received a NACK: the packet arrived without its data.
    Refused(u32),
    /// The second host requested one more packet from the first.
    Pulled(u32, u32),
}

/// State of the ends.
#[derive(Debug, Default)]
pub(super) struct Answers {
    are_sent: bool,
    has_marks: bool,
    seed: u64,
    /// For each link, the number of random numbers drawn for marking packets: each link has its own sequence.
    drawn: Vec<u32>,
    /// Time of the last notification of each flow, by sender and receiver.
    pub notified: HashMap<(u32, u32), Time>,
    pub counts: Counts,
}

/// Counts of control packets, and of packets that switches modified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acknowledgements.
    pub acknowledgements: u64,
    /// Data packets marked by switches.
    pub marked: u64,
    /// Congestion notifications.
    pub notifications: u64,
    /// Packets trimmed by switches.
    pub trimmed: u64,
    /// Pulls: requests for one more packet.
    pub pulls: u64,
    /// Pause frames.
    pub pauses: u64,
    /// Total pause time of virtual channels.
    pub paused: Time,
}

impl Counts {
    /// Adds other counts.
    pub(super) fn add(&mut self, other: &Counts) {
        let Counts { acknowledgements, marked, notifications, trimmed, pulls, pauses, paused } = *other;
        self.acknowledgements += acknowledgements;
        self.marked += marked;
        self.notifications += notifications;
        self.trimmed += trimmed;
        self.pulls += pulls;
        self.pauses += pauses;
        self.paused += paused;
    }
}

impl Answers {
    pub fn new(parameters: &Parameters, links: usize) -> Answers {
        let has_marks = parameters.transport.rate_control == RateControl::Dcqcn;
        Answers {
            are_sent: parameters.has_answers(),
            has_marks,
            seed: random::mix(parameters.seed),
            drawn: vec![0; if has_marks { links } else { 0 }],
            ..Answers::default()
        }
    }

    /// Draws a number in [0, 1) from the sequence of a link.
    pub fn fraction(&mut self, link: u32) -> f64 {
        let drawn = &mut self.drawn[link as usize];
        let mut state = random::mix(self.seed ^ u64::from(link) << 32 ^ u64::from(*drawn));
        *drawn = drawn.wrapping_add(1);
        random::fraction(&mut state)
    }

    /// Returns true if the arrival of a packet's last byte is an event.
    #[inline]
    pub fn are_sent(&self) -> bool {
        self.are_sent
    }

    /// Returns true if switches mark packets.
    #[inline]
    pub fn has_marks(&self) -> bool {
        self.has_marks
    }
}
