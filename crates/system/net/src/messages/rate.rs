// SPDX-License-Identifier: Apache-2.0
//! Rates of flows: DCQCN's reaction point (Zhu et al.: Congestion control for large-scale RDMA deployments, SIGCOMM
//! 2015, §3.1).

use std::collections::HashMap;

use machine::Dcqcn;
use sim::Time;

/// Rates of the flows that were notified of congestion and have not recovered the rate of their link.
#[derive(Debug)]
pub(super) struct Rates {
    dcqcn: Dcqcn,
    flows: HashMap<(u32, u32), Flow>,
}

/// A flow, with rates in bytes per picosecond.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// R_C and R_T, and the rate of the link.
    current: f64,
    target: f64,
    line: f64,
    /// α: congestion estimate.
    alpha: f64,
    /// Times of the next decrease of α, and of the next increase of the rate by the timer.
    alpha_falls: Time,
    timer_ends: Time,
    /// Increases by the timer and by the counter since the last notification, and bytes since the last increase by the
    /// counter.
    timers: u32,
    counters: u32,
    bytes: u64,
    /// Earliest departure of the next packet.
    next: Time,
}

/// Converts Mbit/s to bytes per picosecond.
fn mbit(rate: u32) -> f64 {
    f64::from(rate) / 8e6
}

impl Rates {
    pub fn new(dcqcn: Dcqcn) -> Rates {
        Rates { dcqcn, flows: HashMap::new() }
    }

    pub fn when(&self, from: u32, to: u32) -> Time {
        self.flows.get(&(from, to)).map_or(Time::ZERO, |flow| flow.next)
    }

    /// Records a notification at the sender; `line` is the rate of its link in bytes per picosecond.
    pub fn congested(&mut self, now: Time, from: u32, to: u32, line: f64) {
        let dcqcn = self.dcqcn;
        let fresh = Flow {
            current: line,
            target: line,
            line,
            alpha: 1.0,
            alpha_falls: now,
            timer_ends: now,
            timers: 0,
            counters: 0,
            bytes: 0,
            next: now,
        };
        let flow = self.flows.entry((from, to)).or_insert(fresh);
        flow.advance(now, &dcqcn);
        // Eq. 1; the timers restart.
        let gain = 1.0 / f64::from(dcqcn.gain_inverse);
        flow.target = flow.current;
        flow.current = (flow.current * (1.0 - flow.alpha / 2.0)).max(mbit(dcqcn.least_mbit).min(line));
        flow.alpha = (1.0 - gain) * flow.alpha + gain;
        (flow.timers, flow.counters, flow.bytes) = (0, 0, 0);
        (flow.alpha_falls, flow.timer_ends) = (now + dcqcn.alpha_timer, now + dcqcn.timer);
    }

    /// Records that a packet of a flow leaves at `start`.
    pub fn sent(&mut self, start: Time, from: u32, to: u32, bytes: u32) {
        let Some(flow) = self.flows.get_mut(&(from, to)) else { return };
        flow.advance(start, &self.dcqcn);
        flow.bytes += u64::from(bytes);
        while flow.bytes >= self.dcqcn.counter {
            flow.bytes -= self.dcqcn.counter;
            flow.counters += 1;
            flow.increase(&self.dcqcn);
        }
        if flow.current >= flow.line {
            self.flows.remove(&(from, to));
            return;
        }
        flow.next = start.saturating_add(Time::from_ps((f64::from(bytes) / flow.current).ceil() as u64));
    }

    /// Returns the rate of a flow in bytes per picosecond, if it is below that of the link.
    #[cfg(test)]
    pub fn rate(&mut self, now: Time, from: u32, to: u32) -> Option<f64> {
        let flow = self.flows.get_mut(&(from, to))?;
        flow.advance(now, &self.dcqcn);
        Some(flow.current)
    }
}

impl Flow {
    /// Handles the timers that expire until `now`, in order.
    fn advance(&mut self, now: Time, dcqcn: &Dcqcn) {
        while self.alpha_falls.min(self.timer_ends) < now && self.current < self.line {
            if self.alpha_falls <= self.timer_ends {
                // Eq. 2
                self.alpha *= 1.0 - 1.0 / f64::from(dcqcn.gain_inverse);
                self.alpha_falls += dcqcn.alpha_timer;
            } else {
                self.timers += 1;
                self.timer_ends += dcqcn.timer;
                self.increase(dcqcn);
            }
        }
    }

    /// Increases the rate by Fig. 7: fast recovery (Eq. 3), additive increase (Eq. 4), hyper increase.
    fn increase(&mut self, dcqcn: &Dcqcn) {
        if self.timers.max(self.counters) >= dcqcn.recovery {
            let is_hyper = self.timers.min(self.counters) > dcqcn.recovery;
            self.target += mbit(if is_hyper { dcqcn.hyper_mbit } else { dcqcn.additive_mbit });
        }
        self.target = self.target.min(self.line);
        self.current = (self.target + self.current) / 2.0;
        // Halving the distance alone never ends.
        if self.line - self.current < self.line * 1e-6 {
            self.current = self.line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 Gbit/s.
    const LINE: f64 = 0.05;

    #[test]
    fn a_flow_halves_its_rate_and_recovers_by_halves() {
        let mut rates = Rates::new(Dcqcn::PAPER);
        let at = |us: u64| Time::from_ns(us * 1000);
        assert_eq!((rates.when(0, 1), rates.rate(at(0), 0, 1)), (Time::ZERO, None));
        rates.congested(at(100), 0, 1, LINE);
        // α is initially 1.
        assert_eq!(rates.rate(at(100), 0, 1), Some(LINE / 2.0));
        rates.sent(at(101), 0, 1, 4096);
        assert_eq!(rates.when(0, 1), at(101) + Time::from_ps(4096 * 40));
        assert_eq!(rates.when(1, 0), Time::ZERO);
        // Each 55 us of fast recovery halve the distance to the former rate.
        let mut expected = LINE / 2.0;
        for step in 1..5 {
            expected = (LINE + expected) / 2.0;
            assert_eq!(rates.rate(at(101 + 55 * step), 0, 1), Some(expected));
        }
        // The second notification meets α = (1 - g)^4 after four decreases, as it was 1 after the first.
        let gain = 1.0 / 256.0;
        rates.congested(at(321), 0, 1, LINE);
        let alpha = (1.0f64 - gain).powi(4);
        let halved = expected * (1.0 - alpha / 2.0);
        assert!((rates.rate(at(321), 0, 1).unwrap() - halved).abs() < 1e-12);
    }

    #[test]
    fn increases_add_after_recovery_and_more_when_timer_and_bytes_have_passed_it() {
        let slow = Dcqcn { counter: 1000, ..Dcqcn::PAPER };
        let mut rates = Rates::new(slow);
        rates.congested(Time::ZERO, 0, 1, LINE);
        rates.congested(Time::ZERO, 0, 1, LINE);
        // Target and rate are now a half and a quarter of the line rate.
        let (mut target, mut current) = (LINE / 2.0, LINE / 4.0);
        for step in 1..=12 {
            rates.sent(Time::from_ps(step), 0, 1, 1000);
            target += if step >= 5 { mbit(40) } else { 0.0 };
            current = (target + current) / 2.0;
            assert!((rates.rate(Time::from_ps(step), 0, 1).unwrap() - current).abs() < 1e-12, "{step}");
        }
        // Six more timers: from the sixth on both exceed F = 5.
        for step in 1..=6u64 {
            target += if step > 5 { mbit(400) } else { mbit(40) };
            current = (target + current) / 2.0;
            let now = Time::from_ns(55_000 * step) + Time::from_ps(1);
            assert!((rates.rate(now, 0, 1).unwrap() - current).abs() < 1e-12, "{step}");
        }
    }

    #[test]
    fn a_flow_never_stops_and_ends_at_the_rate_of_its_link() {
        let mut rates = Rates::new(Dcqcn::PAPER);
        for at in 0..1000 {
            rates.congested(Time::from_ps(at), 0, 1, LINE);
        }
        assert_eq!(rates.rate(Time::from_ps(1000), 0, 1), Some(mbit(40)));
        rates.sent(Time::from_ns(10_000_000_000), 0, 1, 1);
        assert_eq!(rates.rate(Time::from_ns(10_000_000_000), 0, 1), None);
    }
}
