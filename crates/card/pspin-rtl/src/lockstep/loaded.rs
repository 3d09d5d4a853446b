// SPDX-License-Identifier: Apache-2.0
//! Packet-by-packet comparison for a loaded unit, where a difference of one cycle changes the assignment of tasks to
//! HPUs and the waiting order. Both sides run the same tasks with the same ends for each packet, and the times of any
//! thousand consecutive packets agree within a few percent.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use pspin_unit::Cycle;

use super::tape::{Ending, Note, Stream, Tape};

/// Number of consecutive packets compared as one.
const WINDOW: usize = 1_000;
/// Allowed difference of their times, in percent.
pub const PERCENT: f64 = 2.0;
/// Number of events shown before and after a differing packet.
const SHOWN: usize = 10;

/// Task of a packet.
#[derive(Clone, Copy, Debug)]
struct Task {
    role: u8,
    sent: Cycle,
    copied: Cycle,
    start: Cycle,
    end: Cycle,
    ending: Option<Ending>,
}

/// Lifetime of a packet.
#[derive(Clone, Debug)]
struct Life {
    message: u32,
    accepted: Cycle,
    tasks: Vec<Task>,
    /// Cycle of its feedback, and kind of its end.
    fed_back: Option<(Cycle, u8)>,
}

/// Stages of a packet, the last one covering all of it. Packet order decides whether a packet waits in the NIC or in
/// the unit, so both are one stage.
const STAGES: [&str; 5] = ["queues", "copy", "HPU", "handlers", "all stages"];
const QUEUES: usize = 0;
const ALL: usize = STAGES.len() - 1;

/// Cycles of a packet in each stage, and after its request.
#[derive(Clone, Copy)]
struct Stages {
    cycles: [i64; STAGES.len()],
    inside: i64,
}

/// Properties that must agree on both sides: message, handlers with their ends, and end of the packet.
#[derive(Debug, PartialEq)]
struct Ends {
    message: u32,
    handlers: Vec<(u8, Option<Ending>)>,
    packet: Option<u8>,
}

impl Life {
    fn stages(&self, arrived: u64) -> Stages {
        let between = |from: u64, to: u64| to as i64 - from as i64;
        let sum = |of: fn(&Task) -> [Cycle; 2]| {
            let each = self.tasks.iter().map(of);
            each.map(|[from, to]| between(from.0, to.0)).sum()
        };
        let end = self.fed_back.map_or(self.accepted.0, |(at, _)| at.0);
        let mut cycles = [
            0,
            sum(|task| [task.sent, task.copied]),
            sum(|task| [task.copied, task.start]),
            sum(|task| [task.start, task.end]),
            between(arrived, end),
        ];
        cycles[QUEUES] = cycles[ALL] - cycles[1..ALL].iter().sum::<i64>();
        Stages { cycles, inside: between(self.accepted.0, end) }
    }

    fn ends(&self) -> Ends {
        let handlers = self.tasks.iter().map(|task| (task.role, task.ending)).collect();
        Ends { message: self.message, handlers, packet: self.fed_back.map(|(_, kind)| kind) }
    }
}

/// Returns streams in the order in which they report the stages of a packet within one cycle.
fn all(tape: &Tape) -> Vec<(Cycle, Stream, Note)> {
    let mut all: Vec<_> = tape.all().collect();
    all.sort_by_key(|(at, stream, _)| (*at, *stream));
    all
}

/// Packet numbers by the cycle of their request: one per cycle.
pub type Numbers = HashMap<Cycle, usize>;

/// Returns the lifetimes of `count` packets, by number; `None` for a packet without an accepted request or without an
/// end.
fn lives((tape, numbers): (&Tape, &Numbers), count: usize) -> Vec<Option<Life>> {
    let mut lives: Vec<Life> = Vec::new();
    let mut inside: HashMap<u64, usize> = HashMap::new();
    // Packet and task index by cluster slot, and by HPU.
    let mut places: HashMap<(u16, u8), (usize, usize)> = HashMap::new();
    let mut hpus: HashMap<(u16, u16), (usize, usize)> = HashMap::new();
    for (at, stream, note) in all(tape) {
        match (stream, note) {
            (Stream::Request, Note::Request(message, _, _, user)) => {
                inside.insert(user, lives.len());
                lives.push(Life { message, accepted: at, tasks: Vec::new(), fed_back: None });
            }
            (Stream::Task(cluster), Note::Task(place, role, user)) => {
                let Some(index) = inside.get(&user).copied() else { continue };
                places.insert((cluster, place), (index, lives[index].tasks.len()));
                lives[index].tasks.push(Task { role, sent: at, copied: at, start: at, end: at, ending: None });
            }
            (Stream::Copied(cluster), Note::Place(place)) => {
                let Some((index, task)) = places.get(&(cluster, place)).copied() else { continue };
                lives[index].tasks[task].copied = at;
            }
            (Stream::Hpu(cluster, hpu), Note::Place(place)) => {
                let Some(task) = places.get(&(cluster, place)) else { continue };
                hpus.insert((cluster, hpu), *task);
            }
            (Stream::Hpu(cluster, hpu), Note::Start(..) | Note::End(..)) => {
                let Some((index, task)) = hpus.get(&(cluster, hpu)).copied() else { continue };
                let task = &mut lives[index].tasks[task];
                match note {
                    Note::End(_, _, ending) => (task.end, task.ending) = (at, Some(ending)),
                    _ => task.start = at,
                }
            }
            (Stream::Feedback, Note::Feedback(_, user, kind, _)) => {
                let Some(index) = inside.remove(&user) else { continue };
                lives[index].fed_back = Some((at, kind));
            }
            _ => {}
        }
    }
    let mut numbered = vec![None; count];
    for life in lives {
        if let Some(target) = numbers.get(&life.accepted).and_then(|number| numbered.get_mut(*number)) {
            *target = Some(life);
        }
    }
    numbered
}

/// Timing difference between both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Packets with equal cycles on both sides.
    pub equal: usize,
    /// 50th, 90th, 99th and 100th percentile of the differences of single packets, in cycles.
    pub percentiles: [u64; 4],
    /// The consecutive packets that differ most: index of the first, stage, and difference in percent of all their
    /// cycles (for a stage after the request: of the cycles after it).
    pub worst: (usize, &'static str, f64),
}

impl Display for Spread {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Spread { equal, percentiles: [half, ninety, most, all], worst: (first, stage, percent) } = self;
        write!(
            out,
            "{equal} packets take the same time; 50, 90, 99, 100 % of them differ by at most {half}, {ninety}, {most}, {all} cycles; \
             worst window: {percent:+.2} % in {stage}, from packet {first} on"
        )
    }
}

/// Packets that differ too much, or a packet with a different end.
#[derive(Clone, Debug)]
pub struct Outside {
    packet: usize,
    what: String,
    /// Events of model and hardware around the packet.
    told: [Vec<(Cycle, Stream, Note)>; 2],
}

impl Display for Outside {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}; the first such packet is {}", self.what, self.packet)?;
        for (name, told) in ["model", "hardware"].iter().zip(&self.told) {
            write!(out, "\n  {name}:")?;
            for (cycle, stream, note) in told {
                write!(out, "\n    cycle {:>9}  {stream}: {note:?}", cycle.0)?;
            }
        }
        Ok(())
    }
}

/// Returns events of a side during the lifetime of a packet, and a few around it.
fn around(tape: &Tape, life: Option<&Life>) -> Vec<(Cycle, Stream, Note)> {
    let (Some(life), mut all) = (life, all(tape)) else { return Vec::new() };
    let first = all.partition_point(|(at, ..)| *at < life.accepted);
    let last = life.fed_back.map_or(all.len(), |(end, _)| all.partition_point(|(at, ..)| *at <= end));
    all.truncate((last + SHOWN).min(first + 4 * SHOWN));
    all.split_off(first.saturating_sub(SHOWN).min(all.len()))
}

/// Compares packets that arrived in these cycles. The NIC's request order may differ between the sides.
///
/// # Errors
/// The first packet with a different lifetime, or the first one of a window that differs too much.
pub fn compare(model: (&Tape, &Numbers), hardware: (&Tape, &Numbers), arrived: &[u64]) -> Result<Spread, Box<Outside>> {
    let sides = [lives(model, arrived.len()), lives(hardware, arrived.len())];
    let outside = |packet: usize, what: String| {
        let told = [(model.0, 0), (hardware.0, 1)].map(|(tape, side)| around(tape, sides[side][packet].as_ref()));
        Err(Box::new(Outside { packet, what, told }))
    };
    for (packet, lives) in sides[0].iter().zip(&sides[1]).enumerate() {
        let [one, other] = [lives.0, lives.1].map(|life| life.as_ref().map(Life::ends));
        if one != other || one.as_ref().is_none_or(|ends| ends.packet.is_none()) {
            let what = format!("packets end in other ways, {one:?} in the model, {other:?} in the hardware");
            return outside(packet, what);
        }
    }
    let stages = |side: usize| -> Vec<Stages> {
        sides[side].iter().flatten().zip(arrived).map(|(life, arrived)| life.stages(*arrived)).collect()
    };
    let (one, other) = (stages(0), stages(1));
    let windows: Vec<Window> = (0..STAGES.len()).flat_map(|stage| worst(stage, &one, &other)).collect();
    let worst = windows.into_iter().max_by(|one, other| one.percent.abs().total_cmp(&other.percent.abs()));
    let worst = worst.unwrap_or(Window { first: 0, stage: ALL, percent: 0.0, cycles: 0.0, more: 0.0 });
    let Window { first, stage, percent, cycles, more } = worst;
    // In a smaller window, a single overtaking packet weighs too much.
    if percent.abs() > PERCENT && one.len() >= WINDOW {
        let is_outside = |packet: &usize| {
            let (packet, more) = (&one[*packet], other[*packet].cycles[stage] - one[*packet].cycles[stage]);
            more.abs() as f64 > PERCENT / 100.0 * base(packet, stage) as f64
        };
        let what = format!(
            "{WINDOW} packets from packet {first} on take {cycles:.1} cycles each in the model; in the hardware, {} takes {more:+.1} \
             cycles more, {percent:+.2} % of that",
            STAGES[stage]
        );
        return outside((first..one.len()).find(is_outside).unwrap_or(first), what);
    }
    let mut apart: Vec<u64> =
        one.iter().zip(&other).map(|(one, other)| one.cycles[ALL].abs_diff(other.cycles[ALL])).collect();
    apart.sort_unstable();
    let percentile = |share: usize| apart.get((apart.len() * share).div_ceil(100).saturating_sub(1)).copied();
    Ok(Spread {
        equal: apart.iter().filter(|value| **value == 0).count(),
        percentiles: [50, 90, 99, 100].map(|share| percentile(share).unwrap_or_default()),
        worst: (first, STAGES[stage], percent),
    })
}

/// Window of consecutive packets.
struct Window {
    first: usize,
    stage: usize,
    /// Additional time of the stage in the hardware, in percent.
    percent: f64,
    /// Mean cycles of a packet in the model, and additional mean cycles of the stage in the hardware.
    cycles: f64,
    more: f64,
}

/// Returns the cycles to which a difference is relative: those of the whole packet, or those after its request.
fn base(packet: &Stages, stage: usize) -> i64 {
    if stage == QUEUES || stage == ALL { packet.cycles[ALL] } else { packet.inside }
}

/// Returns the window with the largest difference of a stage.
fn worst(stage: usize, model: &[Stages], hardware: &[Stages]) -> Option<Window> {
    let count = WINDOW.min(model.len());
    let (mut whole, mut more) = (0, 0);
    let windows = (0..model.len()).filter_map(|last| {
        let of =
            |packet: usize| (base(&model[packet], stage), hardware[packet].cycles[stage] - model[packet].cycles[stage]);
        let (new_whole, new_more) = of(last);
        (whole, more) = (whole + new_whole, more + new_more);
        if let Some(old) = last.checked_sub(count) {
            let (old_whole, old_more) = of(old);
            (whole, more) = (whole - old_whole, more - old_more);
        }
        let mean = |sum: i64| sum as f64 / count as f64;
        let percent = 100.0 * more as f64 / whole.max(1) as f64;
        let first = (last + 1).checked_sub(count)?;
        Some(Window { first, stage, percent, cycles: mean(whole), more: mean(more) })
    });
    windows.max_by(|one, other| one.percent.abs().total_cmp(&other.percent.abs()))
}
