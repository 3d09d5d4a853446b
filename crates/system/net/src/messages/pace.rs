//! What decides when a host may send to a receiver, beyond its link being free.

use sim::Time;

use super::pull::Pulls;
use super::rate::Rates;
use crate::fabric::{Flow, Parameters, RateControl};

/// The rule.
#[derive(Debug)]
pub(super) enum Pace {
    /// Always.
    Free,
    /// At the rate of the flow.
    Rate(Rates),
    /// When the receiver has asked for a packet.
    Pull(Pulls),
}

impl Pace {
    pub fn new(parameters: &Parameters, hosts: u32) -> Pace {
        match (parameters.flow, parameters.transport.rate_control) {
            (Flow::Trim, _) => Pace::Pull(Pulls::new(parameters.transport.trim.window, hosts)),
            (_, RateControl::Dcqcn) => Pace::Rate(Rates::new(parameters.transport.dcqcn)),
            _ => Pace::Free,
        }
    }

    /// Whether all messages of a host may leave in their order.
    #[inline]
    pub fn is_free(&self) -> bool {
        matches!(self, Pace::Free)
    }

    /// When a packet of a flow may leave; [`Time::MAX`] if that is not known yet.
    pub fn when(&self, from: u32, to: u32) -> Time {
        match self {
            Pace::Free => Time::ZERO,
            Pace::Rate(rates) => rates.when(from, to),
            Pace::Pull(pulls) => {
                if pulls.may_send(from, to) {
                    Time::ZERO
                } else {
                    Time::MAX
                }
            }
        }
    }

    /// The sender of a flow has more to send, in packets of up to `mtu` bytes.
    #[inline]
    pub fn has_more(&mut self, from: u32, to: u32, bytes: u64, mtu: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.has_more(from, to, bytes.div_ceil(mtu.into()));
        }
    }

    /// The sender of a flow hands a packet to its link.
    #[inline]
    pub fn starts(&mut self, from: u32, to: u32, packet: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.sent(from, to, packet);
        }
    }

    /// A packet of a flow leaves its sender at `start`.
    #[inline]
    pub fn leaves(&mut self, start: Time, from: u32, to: u32, bytes: u32) {
        if let Pace::Rate(rates) = self {
            rates.sent(start, from, to, bytes);
        }
    }

    /// A notification of congestion has reached the sender, whose link has this rate in bytes a picosecond.
    pub fn congested(&mut self, now: Time, from: u32, to: u32, line: f64) {
        if let Pace::Rate(rates) = self {
            rates.congested(now, from, to, line);
        }
    }

    /// A packet has arrived. Returns whether the receiver is to take its [turn](Pace::turn) now.
    pub fn received(&mut self, from: u32, to: u32, is_trimmed: bool) -> bool {
        match self {
            Pace::Pull(pulls) => pulls.received(from, to, is_trimmed),
            _ => false,
        }
    }

    /// A sender knows that a packet has arrived without its data.
    pub fn refused(&mut self, from: u32, to: u32, packet: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.refused(from, to, packet);
        }
    }

    /// The first of these packets that a sender may send again.
    #[inline]
    pub fn next_refused(&self, from: u32) -> Option<u32> {
        match self {
            Pace::Pull(pulls) => pulls.next_refused(from),
            _ => None,
        }
    }

    /// A pull has reached the sender.
    pub fn pulled(&mut self, from: u32, to: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.pulled(from, to);
        }
    }

    /// The sender that a receiver is to pull from now, if there is one.
    pub fn turn(&mut self, to: u32) -> Option<u32> {
        match self {
            Pace::Pull(pulls) => pulls.turn(to),
            _ => None,
        }
    }
}
