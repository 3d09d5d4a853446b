// SPDX-License-Identifier: Apache-2.0
//! Critical path of a recorded run.

use sim::Time;

use super::outcome::{Match, Outcome, Span};
use super::parameters::LogGops;
use crate::op::Kind;
use crate::schedule::Schedule;

/// The chain of operations and messages that determines the end: each starts as soon as its predecessor allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CriticalPath {
    /// Steps from first to last. The only gaps between them are `waiting`.
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
    /// Unexplained time: zero, unless [other CPUs are ignored](super::Options::ignore_other_cpus)
    pub waiting: Time,
}

/// A step of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Rank
    pub rank: u32,
    /// Operation, or the send of the message
    pub op: u32,
    /// Part of the operation
    pub part: Part,
    /// Start
    pub start: Time,
    /// Time at which the next step can start
    pub end: Time,
}

/// Part of an operation on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A calculation
    Compute,
    /// A send on the CPU
    Send,
    /// From the start of the send to the arrival of its message: o + L
    Flight,
    /// Reception of the message on the CPU
    Receive,
    /// Occupation of the NIC by the send or the message
    Nic,
}

/// A point of the path: an event of a rank at a time. Its cause was recorded earlier.
#[derive(Clone, Copy, Debug)]
struct Point {
    rank: u32,
    at: Time,
    /// Number of earlier spans.
    spans: usize,
    /// Number of earlier matches.
    matches: usize,
}

/// Cause of a start.
enum Cause {
    /// The CPU of this span becomes free
    Cpu(usize),
    /// The NIC of this span becomes free
    Nic(usize),
    /// A send above S is matched
    Match(usize),
    /// A span starts: a message arrives, a start takes no time, or it unblocks others
    Start(usize),
}

/// Items of one kind, ordered by rank, time and number.
struct Index<'a> {
    order: Vec<u32>,
    key: Box<dyn Fn(u32) -> (u32, Time) + 'a>,
}

impl<'a> Index<'a> {
    fn new(numbers: impl Iterator<Item = usize>, key: impl Fn(u32) -> (u32, Time) + 'a) -> Index<'a> {
        let mut order: Vec<u32> = numbers.map(|number| number as u32).collect();
        order.sort_unstable_by_key(|&number| (key(number), number));
        Index { order, key: Box::new(key) }
    }

    /// Returns the last item up to a rank, time and number.
    fn before(&self, rank: u32, at: Time, number: usize) -> Option<u32> {
        let end = self.order.partition_point(|&other| ((self.key)(other), other as usize) < ((rank, at), number));
        self.order[..end].last().copied()
    }

    /// Returns the last item of a rank at a time with a smaller number.
    fn at(&self, rank: u32, at: Time, number: usize) -> Option<usize> {
        self.before(rank, at, number).filter(|&found| (self.key)(found) == (rank, at)).map(|found| found as usize)
    }

    /// Returns the time of the last item of a rank before a time.
    fn last(&self, rank: u32, at: Time) -> Time {
        self.before(rank, at, 0).map(&self.key).filter(|&(of, _)| of == rank).map_or(Time::ZERO, |(_, last)| last)
    }
}

/// Index of all possible causes.
struct Causes<'a> {
    outcome: &'a Outcome,
    cpu: Index<'a>,
    nic: Index<'a>,
    matches: Index<'a>,
    start: Index<'a>,
}

impl<'a> Causes<'a> {
    fn new(schedule: &'a Schedule, outcome: &'a Outcome) -> Causes<'a> {
        let of_spans = |time: fn(&Span) -> Time, takes_time: bool| {
            let spans = &outcome.details.spans;
            let numbers = (0..spans.len()).filter(|&number| !takes_time || time(&spans[number]) > spans[number].start);
            let key = move |number: u32| (spans[number as usize].rank, time(&spans[number as usize]));
            Index::new(numbers, key)
        };
        let matched = |number: u32| {
            let Match { op, at, .. } = outcome.details.matches[number as usize];
            (schedule.rank(op), at)
        };
        Causes {
            outcome,
            cpu: of_spans(|span| span.cpu_end, true),
            nic: of_spans(|span| span.nic_end, true),
            matches: Index::new(0..outcome.details.matches.len(), matched),
            start: of_spans(|span| span.start, false),
        }
    }

    fn of(&self, Point { rank, at, spans, matches }: Point) -> Option<Cause> {
        let cause = self.cpu.at(rank, at, spans).map(Cause::Cpu);
        let cause = cause.or_else(|| self.nic.at(rank, at, spans).map(Cause::Nic));
        let cause = cause.or_else(|| self.matches.at(rank, at, matches).map(Cause::Match));
        cause.or_else(|| self.start.at(rank, at, spans).map(Cause::Start))
    }

    /// Returns the start of a span.
    fn start_of(&self, number: usize) -> Point {
        let span = &self.outcome.details.spans[number];
        let matches = self.outcome.details.matches.partition_point(|found| found.spans <= number);
        Point { rank: span.rank, at: span.start, spans: number, matches }
    }
}

/// Follows the causes from the end back to the start. The outcome must be that of a [recorded](super::Options::record)
/// run.
pub fn critical_path(schedule: &Schedule, parameters: &LogGops, outcome: &Outcome) -> CriticalPath {
    let causes = Causes::new(schedule, outcome);
    let mut sends = vec![0_u32; schedule.len()];
    for (number, span) in outcome.details.spans.iter().enumerate().filter(|(_, span)| !span.is_message) {
        sends[span.op as usize] = number as u32;
    }
    let mut path = CriticalPath::default();
    let end = outcome.end();
    let rank = outcome.ends.iter().position(|&other| other == end).unwrap_or(0) as u32;
    let all = Point { rank, at: end, spans: outcome.details.spans.len(), matches: outcome.details.matches.len() };
    let mut point = all;
    while point.at > Time::ZERO {
        let number = match causes.of(point) {
            Some(Cause::Match(number)) => {
                let Match { op, at, spans } = outcome.details.matches[number];
                // The match was caused by its message, whose reception just started, or by a receive.
                let rank = schedule.ops[op as usize].peer;
                point = Point { rank, at, spans, matches: number };
                continue;
            }
            Some(Cause::Cpu(number)) => {
                path.add(schedule, parameters, &outcome.details.spans[number], true);
                number
            }
            Some(Cause::Nic(number)) => {
                path.add(schedule, parameters, &outcome.details.spans[number], false);
                number
            }
            Some(Cause::Start(number)) => number,
            None => {
                let at = causes.cpu.last(point.rank, point.at);
                path.waiting += point.at - at;
                point = Point { rank: point.rank, at, ..all };
                continue;
            }
        };
        let span = &outcome.details.spans[number];
        point = causes.start_of(number);
        if span.is_message && span.arrival == span.start {
            path.fly(schedule, parameters, span);
            point = causes.start_of(sends[span.op as usize] as usize);
        }
    }
    path.steps.reverse();
    path
}

impl CriticalPath {
    /// Adds a step that lasted until its CPU or its NIC became free.
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

    /// Adds the flight of a message.
    fn fly(&mut self, schedule: &Schedule, parameters: &LogGops, span: &Span) {
        self.overhead += parameters.overhead;
        self.latency += parameters.latency;
        let (rank, end) = (schedule.rank(span.op), span.arrival);
        let start = end - (parameters.overhead + parameters.latency);
        self.steps.push(Step { rank, op: span.op, part: Part::Flight, start, end });
    }
}
