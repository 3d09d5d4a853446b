// SPDX-License-Identifier: Apache-2.0
//! Multithreaded execution, with bit-identical results.
//!
//! Each thread executes a part of the ranks. A message reaches another rank o + L after it is sent, or later, so the
//! threads can run independently for that long from the earliest event on: a window. At its end they exchange their
//! messages.
//!
//! Events of the same time are executed in number order, and numbers depend on all earlier events of all ranks. Within
//! a window each thread numbers its own insertions, which suffices to order them among each other. At its end each
//! thread merges the logs of all threads by time and number, and so computes the final numbers, those that a single
//! thread would assign.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::RwLock;
use std::thread;

use super::engine::Engine;
use super::options::Options;
use super::order::Order;
use super::outcome::{Outcome, join};
use super::parameters::LogGops;
use super::queue::Entry;
use super::resources::Resources;
use crate::barrier::Barrier;
use crate::schedule::Schedule;
use sim::noise::CpuTime;

/// Flag of a provisional number; the other bits count the insertions of the thread in the window.
const IN_WINDOW: u32 = 1 << 31;

/// An event of a window that inserted others.
#[derive(Clone, Copy, Debug)]
struct Happened {
    at: u64,
    number: u32,
    /// Number of events that it inserted.
    inserted: u32,
}

/// Log of a thread's window.
#[derive(Debug)]
struct Log {
    /// Events that inserted others, in order.
    events: Vec<Happened>,
    /// For each part, the events to insert there at the end of the window, in order.
    kept: Vec<Vec<Entry>>,
    /// Lower bound of the times of all further events.
    next: u64,
    failed: bool,
}

impl Log {
    fn new(parts: usize) -> Log {
        Log { events: Vec::new(), kept: vec![Vec::new(); parts], next: u64::MAX, failed: false }
    }

    fn clear(&mut self) {
        self.events.clear();
        self.kept.iter_mut().for_each(Vec::clear);
        self.next = u64::MAX;
    }
}

/// Order of one thread's part.
#[derive(Debug)]
struct Part<'a> {
    /// First rank of each part, followed by the number of ranks.
    bounds: &'a [u32],
    me: usize,
    /// End of the window.
    limit: u64,
    /// Number of events inserted by this part in this window, and by all ranks in all earlier windows.
    inserted: u32,
    total: u32,
    /// Current event, if it has not yet inserted another.
    unlogged: Option<(u64, u32)>,
    /// Operations that started to wait in the window, and their numbers.
    waiting: Vec<(u32, u32)>,
    log: Log,
}

impl Order for Part<'_> {
    const IS_FINAL: bool = false;

    #[inline(always)]
    fn begin(&mut self, at: u64, number: u32) {
        self.unlogged = Some((at, number));
    }

    #[inline(always)]
    fn next(&mut self) -> u32 {
        if let Some((at, number)) = self.unlogged.take() {
            self.log.events.push(Happened { at, number, inserted: 0 });
        }
        if let Some(event) = self.log.events.last_mut() {
            event.inserted += 1;
        }
        self.inserted += 1;
        (self.inserted - 1) | IN_WINDOW
    }

    #[inline(always)]
    fn is_early(&mut self, at: u64, number: u32) -> bool {
        let is_early = number & IN_WINDOW != 0 && at >= self.limit;
        if is_early {
            self.log.next = self.log.next.min(at);
        }
        is_early
    }

    #[inline(always)]
    fn keeps(&mut self, rank: u32, entry: Entry) -> bool {
        if entry.at() < self.limit {
            return false;
        }
        let is_own = (self.bounds[self.me]..self.bounds[self.me + 1]).contains(&rank);
        let part = if is_own { self.me } else { self.bounds.partition_point(|&first| first <= rank) - 1 };
        self.log.kept[part].push(entry);
        self.log.next = self.log.next.min(entry.at());
        true
    }

    #[inline(always)]
    fn waits(&mut self, number: u32, op: u32) {
        if number & IN_WINDOW != 0 {
            self.waiting.push((number, op));
        }
    }
}

/// Merge position in a log.
#[derive(Debug, Default)]
struct Cursor {
    event: usize,
    kept: usize,
    /// Final numbers of the insertions in the window.
    numbers: Vec<u32>,
}

/// A key greater than all event keys.
const END: u128 = u128::MAX;

impl Cursor {
    /// Returns the final number of an event inserted in the window or before, if already known.
    #[inline]
    fn number(&self, number: u32) -> Option<u32> {
        if number & IN_WINDOW == 0 { Some(number) } else { self.numbers.get((number & !IN_WINDOW) as usize).copied() }
    }

    /// Returns time and number of the next event.
    #[inline]
    fn key(&self, log: &Log) -> u128 {
        let Some(&Happened { at, number, .. }) = log.events.get(self.event) else { return END };
        let number = self.number(number).expect("what inserts was inserted before");
        u128::from(at) << 32 | u128::from(number)
    }
}

impl<'a> Part<'a> {
    fn new(bounds: &'a [u32], me: usize) -> Part<'a> {
        Part {
            bounds,
            me,
            limit: 0,
            inserted: 0,
            total: 0,
            // All ranks start at the same time, in rank order.
            unlogged: Some((0, me as u32)),
            waiting: Vec::new(),
            log: Log::new(bounds.len() - 1),
        }
    }
}

impl<R: Resources, X: CpuTime> Engine<'_, R, X, Part<'_>> {
    /// Assigns final numbers to all events inserted in the window.
    fn merge(&mut self, logs: &[impl Deref<Target = Log>], cursors: &mut [Cursor]) {
        let me = self.order.me;
        for cursor in &mut *cursors {
            (cursor.event, cursor.kept) = (0, 0);
            cursor.numbers.clear();
        }
        let mut keys: Vec<u128> = cursors.iter().zip(logs).map(|(cursor, log)| cursor.key(log)).collect();
        while let Some((part, &key)) = keys.iter().enumerate().min_by_key(|(_, key)| **key)
            && key < END
        {
            let others = keys.iter().enumerate().filter(|&(other, _)| other != part);
            let until = others.map(|(_, &key)| key).min().unwrap_or(END);
            keys[part] = self.merge_until(until, &logs[part], &mut cursors[part]);
        }
        self.order.inserted = 0;
        let mut waiting = std::mem::take(&mut self.order.waiting);
        waiting.sort_unstable();
        for (number, op) in waiting.drain(..) {
            let is_final = cursors[me].number(number).expect("all that was inserted has a number");
            self.renumber(op, number, is_final);
        }
        self.order.waiting = waiting;
    }

    /// Merges one log until another's turn, and inserts the events stored for this part. Returns the key of the next
    /// event.
    #[inline]
    fn merge_until(&mut self, until: u128, log: &Log, cursor: &mut Cursor) -> u128 {
        let kept = &log.kept[self.order.me];
        loop {
            let first = self.order.total;
            self.order.total += log.events[cursor.event].inserted;
            cursor.numbers.extend(first..self.order.total);
            cursor.event += 1;
            while let Some(&entry) = kept.get(cursor.kept)
                && let Some(number) = cursor.number(entry.number())
            {
                self.queue.push(Entry::new(entry.at(), number, entry.event()));
                cursor.kept += 1;
            }
            let key = cursor.key(log);
            if key >= until {
                return key;
            }
        }
    }
}

/// Data shared by the threads.
struct Exchange {
    /// Two logs for each thread: it may write the log of one window while another thread still reads that of the
    /// previous one.
    logs: [Vec<RwLock<Log>>; 2],
    barrier: Barrier,
}

/// Divides the ranks into parts with about the same number of operations. Returns the first rank of each part, followed
/// by the number of ranks.
pub(super) fn bounds(schedule: &Schedule, parts: usize) -> Vec<u32> {
    let parts = parts.clamp(1, schedule.ranks().max(1) as usize);
    let starts = &schedule.ranks[..schedule.ranks() as usize];
    let bound = |part: usize| starts.partition_point(|&op| (op as usize) < schedule.len() * part / parts) as u32;
    (0..parts).map(bound).chain([schedule.ranks()]).collect()
}

/// Executes a schedule with one thread for each part. Returns `None` if the schedule cannot finish.
pub(super) fn run<R: Resources, X: CpuTime>(
    schedule: &Schedule,
    parameters: &LogGops,
    options: &Options,
    noise: &(impl Fn() -> X + Sync),
    bounds: &[u32],
) -> Option<Outcome> {
    let parts = bounds.len() - 1;
    let logs = || (0..parts).map(|_| RwLock::new(Log::new(parts))).collect();
    let exchange = Exchange { logs: [logs(), logs()], barrier: Barrier::new(parts) };
    let run_part = |me: usize| {
        let order = Part::new(bounds, me);
        let engine = Engine::<R, _, _>::new(schedule, parameters, options, noise(), order, bounds[me]..bounds[me + 1]);
        run_part(engine, (parameters.overhead + parameters.latency).as_ps(), &exchange)
    };
    let outcomes = thread::scope(|scope| {
        let others: Vec<_> = (1..parts).map(|me| scope.spawn(move || run_part(me))).collect();
        let first = run_part(0);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [first].into_iter().chain(others).collect::<Option<Vec<Outcome>>>()
    })?;
    outcomes.into_iter().reduce(join)
}

/// Executes a part in windows of `window` picoseconds.
fn run_part<R: Resources, X: CpuTime>(
    mut engine: Engine<R, X, Part>,
    window: u64,
    exchange: &Exchange,
) -> Option<Outcome> {
    let _member = exchange.barrier.member();
    let me = engine.order.me;
    let mut cursors: Vec<Cursor> = exchange.logs[0].iter().map(|_| Cursor::default()).collect();
    engine.begin();
    for logs in exchange.logs.iter().cycle() {
        let order = &mut engine.order;
        order.log.next = order.log.next.min(engine.queue.next_at().unwrap_or(u64::MAX));
        std::mem::swap(&mut *logs[me].write().expect("no thread has panicked"), &mut order.log);
        order.log.clear();
        exchange.barrier.wait();
        let logs: Vec<_> = logs.iter().map(|log| log.read().expect("no thread has panicked")).collect();
        if logs.iter().any(|log| log.failed) {
            return None;
        }
        engine.merge(&logs, &mut cursors);
        let start = logs.iter().map(|log| log.next).min().unwrap_or(u64::MAX);
        if start == u64::MAX {
            break;
        }
        drop(logs);
        engine.order.limit = start.saturating_add(window);
        engine.order.log.failed = engine.run(engine.order.limit).is_err();
    }
    engine.finish().ok()
}
