// SPDX-License-Identifier: Apache-2.0
//! Pacing: the conditions, besides a free link, for a host to send to a receiver.

use sim::Time;

use super::pull::Pulls;
use super::rate::Rates;
use crate::fabric::{Flow, Parameters, RateControl};

/// Pacing rule.
#[derive(Debug)]
pub(super) enum Pace {
    /// No pacing.
    Free,
    /// Pacing by the rate of the flow.
    Rate(Rates),
    /// Pacing by pulls of the receiver.
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

    /// Returns true if all messages of a host may leave in their order.
    #[inline]
    pub fn is_free(&self) -> bool {
        matches!(self, Pace::Free)
    }

    /// Returns the earliest departure of a packet of a flow; [`Time::MAX`] if not yet known.
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

    /// Records that the sender of a flow has `bytes` more bytes to send, in packets of up to `mtu` bytes.
    #[inline]
    pub fn has_more(&mut self, from: u32, to: u32, bytes: u64, mtu: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.has_more(from, to, bytes.div_ceil(mtu.into()));
        }
    }

    /// Records that the sender of a flow passes a packet to its link.
    #[inline]
    pub fn starts(&mut self, from: u32, to: u32, packet: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.sent(from, to, packet);
        }
    }

    /// Records that a packet of a flow leaves its sender at `start`.
    #[inline]
    pub fn leaves(&mut self, start: Time, from: u32, to: u32, bytes: u32) {
        if let Pace::Rate(rates) = self {
            rates.sent(start, from, to, bytes);
        }
    }

    /// Records a congestion notification at the sender; `line` is the rate of its link in bytes per picosecond.
    pub fn congested(&mut self, now: Time, from: u32, to: u32, line: f64) {
        if let Pace::Rate(rates) = self {
            rates.congested(now, from, to, line);
        }
    }

    /// Records a packet's arrival. Returns true if the receiver must take its [turn](Pace::turn) now.
    pub fn received(&mut self, from: u32, to: u32, is_trimmed: bool) -> bool {
        match self {
            Pace::Pull(pulls) => pulls.received(from, to, is_trimmed),
            _ => false,
        }
    }

    /// Records a NACK at the sender: a packet arrived without its data.
    pub fn refused(&mut self, from: u32, to: u32, packet: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.refused(from, to, packet);
        }
    }

    /// Returns the first packet with a NACK that a sender may retransmit.
    #[inline]
    pub fn next_refused(&self, from: u32) -> Option<u32> {
        match self {
            Pace::Pull(pulls) => pulls.next_refused(from),
            _ => None,
        }
    }

    /// Records a pull's arrival at the sender.
    pub fn pulled(&mut self, from: u32, to: u32) {
        if let Pace::Pull(pulls) = self {
            pulls.pulled(from, to);
        }
    }

    /// Returns the sender from which a receiver must pull now, if any.
    pub fn turn(&mut self, to: u32) -> Option<u32> {
        match self {
            Pace::Pull(pulls) => pulls.turn(to),
            _ => None,
        }
    }
}
