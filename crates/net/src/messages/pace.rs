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
}
