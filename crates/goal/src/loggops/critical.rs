use sim::Time;

use super::engine::{Outcome, Span};
use super::parameters::LogGops;
use crate::op::Kind;
use crate::schedule::Schedule;

/// The chain of operations and messages that bounds the end: each begins when the one before lets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// From the first to the last; without gaps in time.
    pub steps: Vec<Step>,
    /// Calculations, with noise
    pub compute: Time,
    /// o, with noise
    pub overhead: Time,
    /// L
    pub latency: Time,
    /// g
    pub gap: Time,
    /// G and O
    pub bandwidth: Time,
    /// Time that none of these explains: nothing of the rank ended when the next began
    pub waiting: Time,
}

/// A part of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where
    pub rank: u32,
    /// The operation, or the send whose message it is
    pub op: u32,
    /// What of it
    pub part: Part,
    /// When it begins
    pub start: Time,
    /// When it lets the next begin
    pub end: Time,
}

/// What of an operation is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A calculation
    Compute,
    /// The CPU sends
    Send,
    /// From the start of the sending to the arrival: o + L
    Flight,
    /// The CPU takes the message in
    Receive,
    /// The NIC is busy with the sending or the message
    Nic,
}

/// What ran at each rank, in the order of time.
struct Ranks<'a> {
    spans: &'a [Span],
    order: Vec<u32>,
    first: Vec<usize>,
}

impl<'a> Ranks<'a> {
    fn new(spans: &'a [Span], ranks: usize) -> Ranks<'a> {
        let mut first = vec![0; ranks + 1];
        for span in spans {
            first[span.rank as usize + 1] += 1;
        }
        for rank in 0..ranks {
            first[rank + 1] += first[rank];
        }
        let (mut next, mut order) = (first.clone(), vec![0; spans.len()]);
        for (index, span) in spans.iter().enumerate() {
            order[next[span.rank as usize]] = index as u32;
            next[span.rank as usize] += 1;
        }
        Ranks { spans, order, first }
    }

    /// What began at a rank before a time, the last first.
    fn before(&self, rank: u32, at: Time) -> impl Iterator<Item = &'a Span> {
        let of_rank = &self.order[self.first[rank as usize]..self.first[rank as usize + 1]];
        let end = of_rank.partition_point(|&index| self.spans[index as usize].start < at);
        of_rank[..end].iter().rev().map(|&index| &self.spans[index as usize])
    }
}

/// Follows what bounds the end back to the beginning. The outcome must be of a [recorded](super::Options::record) run.
pub fn critical_path(schedule: &Schedule, parameters: &LogGops, outcome: &Outcome) -> CriticalPath {
    let ranks = Ranks::new(&outcome.spans, schedule.ranks() as usize);
    let mut path = CriticalPath::default();
    let mut at = outcome.end();
    let mut rank = outcome.ends.iter().position(|&end| end == at).unwrap_or(0) as u32;
    let flight = parameters.overhead + parameters.latency;
    while at > Time::ZERO {
        let by_cpu = ranks.before(rank, at).find(|span| span.cpu_end == at);
        let span = by_cpu.or_else(|| ranks.before(rank, at).find(|span| span.nic_end == at));
        let Some(span) = span else {
            // A send above S lets the next begin when the receiver matches it.
            let matched = ranks.before(rank, at).find(|span| {
                let record = &schedule.ops[span.op as usize];
                let is_rendezvous = record.kind() == Kind::Send && schedule.bytes(record) > parameters.eager;
                let receiver_acts = |receiver| {
                    ranks.before(receiver, at + Time::from_ps(1)).take_while(|other| other.start == at).next().is_some()
                };
                is_rendezvous && !span.is_message && span.start + flight <= at && receiver_acts(record.peer)
            });
            let from = matched.map(|span| (schedule.ops[span.op as usize].peer, span.op));
            let arrival = from.and_then(|(receiver, op)| {
                let later = at + Time::from_ps(1);
                ranks.before(receiver, later).find(|span| span.op == op && span.is_message && span.start == at)
            });
            match (from, arrival) {
                (Some((receiver, _)), Some(message)) => {
                    rank = receiver;
                    at = path.arrive(schedule, parameters, message, &mut rank);
                }
                (Some((receiver, _)), None) if ranks.before(receiver, at).any(|span| span.cpu_end == at) => {
                    rank = receiver;
                }
                _ => {
                    let end = ranks.before(rank, at).map(|span| span.cpu_end).filter(|&end| end < at).max();
                    path.waiting += at - end.unwrap_or(Time::ZERO);
                    at = end.unwrap_or(Time::ZERO);
                }
            }
            continue;
        };
        path.add(schedule, parameters, span, span.cpu_end == at);
        at = if span.is_message { path.arrive(schedule, parameters, span, &mut rank) } else { span.start };
    }
    path.steps.reverse();
    path
}

impl CriticalPath {
    /// Adds what ran until its CPU or its NIC was free.
    fn add(&mut self, schedule: &Schedule, parameters: &LogGops, span: &Span, by_cpu: bool) {
        let record = &schedule.ops[span.op as usize];
        let end = if by_cpu { span.cpu_end } else { span.nic_end };
        let took = end - span.start;
        let part = match record.kind() {
            Kind::Calc => Part::Compute,
            _ if !by_cpu => Part::Nic,
            _ if span.is_message => Part::Receive,
            _ => Part::Send,
        };
        let LogGops { gap_per_byte, overhead_per_byte, .. } = *parameters;
        let rate = match part {
            Part::Send => overhead_per_byte,
            Part::Receive => overhead_per_byte.max(gap_per_byte),
            _ => gap_per_byte,
        };
        if part == Part::Compute {
            self.compute += took;
        } else {
            let bytes = rate.time(schedule.bytes(record).saturating_sub(1)).min(took);
            self.bandwidth += bytes;
            *if by_cpu { &mut self.overhead } else { &mut self.gap } += took - bytes;
        }
        self.steps.push(Step { rank: span.rank, op: span.op, part, start: span.start, end });
    }

    /// Goes on before a message that began at `span.start`: at its sender if it had just arrived, else where it is. Returns
    /// the time there.
    fn arrive(&mut self, schedule: &Schedule, parameters: &LogGops, span: &Span, rank: &mut u32) -> Time {
        if span.arrival < span.start {
            return span.start;
        }
        self.overhead += parameters.overhead;
        self.latency += parameters.latency;
        let start = span.arrival.saturating_sub(parameters.overhead + parameters.latency);
        *rank = schedule.rank(span.op);
        self.steps.push(Step { rank: *rank, op: span.op, part: Part::Flight, start, end: span.arrival });
        start
    }
}
