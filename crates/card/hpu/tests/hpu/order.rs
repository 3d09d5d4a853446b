// SPDX-License-Identifier: Apache-2.0
//! Concurrent handlers, as a card runs them: each runs ahead of simulated time until it must synchronise. Their effects
//! on each other are in the order of time.

use abi::device::map;
use hpu::{Memory, Stop, Thread, Watcher};
use machine::TimingKind;

use crate::card::Card;
use hpu::testing::*;

/// Cycles by which a handler runs ahead, as on a card.
const QUANTUM: u64 = 512;
const ACQUIRE: u32 = 0x0230_000f;
const RELEASE: u32 = 0x0310_000f;
const FULL: u32 = 0x0330_000f;
const LOCK: i32 = 0;
const INSIDE: i32 = 8;
const OVERLAPS: i32 = 16;
const FLAG: i32 = 32;

/// Program of a handler, its start time, and its argument.
type Start<'a> = (&'a [u32], u64, u32);

/// Runs handlers, one on each HPU. Returns end time and result of each, and the memory.
fn race(timing: TimingKind, handlers: &[Start<'_>]) -> (Vec<(u64, u32)>, Card) {
    let mut code = vec![];
    let mut entries = vec![];
    for (words, ..) in handlers {
        entries.push(map::PROGRAM + 4 * code.len() as u32);
        code.extend_from_slice(words);
    }
    let mut card = Card::timed(&code, timing, 1);
    let mut threads: Vec<(u64, Thread)> = (handlers.iter().zip(entries))
        .map(|((_, start, argument), entry)| (*start, Thread::new(&card.program, entry, 0, [*argument, 0, 0])))
        .collect();
    let mut ends = vec![None; threads.len()];
    while let Some(next) = (0..threads.len()).filter(|i| ends[*i].is_none()).min_by_key(|i| (threads[*i].0, *i)) {
        let (time, thread) = &mut threads[next];
        let before = thread.cycles();
        let stop = card.resume(thread, before + QUANTUM);
        *time += thread.cycles() - before;
        assert!(thread.cycles() < 100_000, "handler {next} does not end");
        match stop {
            Stop::Return(value) => ends[next] = Some((*time, value)),
            Stop::Sync | Stop::Limit => {}
            stop => panic!("{stop:?}"),
        }
    }
    (ends.into_iter().map(Option::unwrap).collect(), card)
}

fn both(check: impl Fn(TimingKind)) {
    check(TimingKind::InOrder);
    check(TimingKind::OooA15);
}

fn amoswap_acquire(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0x2f, 2, 0b00_00110, rd, rs1, rs2)
}

/// Returns a loop of two instructions with `rounds` iterations.
fn delay(rounds: i32) -> [u32; 3] {
    [addi(A4, 0, rounds), addi(A4, A4, -1), branch(1, A4, 0, -4)]
}

/// Returns code that takes a lock, counts other holders for some hundred cycles, and releases the lock by `release`.
fn section(wait: &[u32], release: &[u32]) -> Vec<u32> {
    let back = -4 * (wait.len() as i32 + 1);
    let enter = [DATA_A5, addi(A1, 0, 1)];
    let take = [wait, &[amoswap_acquire(A2, A5, A1), branch(1, A2, 0, back)]].concat();
    let inside = [lw(A2, A5, INSIDE), lw(A3, A5, OVERLAPS), add(A3, A3, A2), sw(A3, A5, OVERLAPS), sw(A1, A5, INSIDE)];
    [&enter, &take[..], &inside, &delay(150), &[sw(0, A5, INSIDE)], release, &[RET]].concat()
}

#[test]
fn a_lock_is_released_at_its_time() {
    let plain_look = [lw(A2, A5, LOCK), branch(1, A2, 0, -4)];
    let releases: [&[u32]; 3] =
        [&[RELEASE, sw(0, A5, LOCK)], &[RELEASE, sw(0, A5, LOCK), FULL], &[RELEASE, NOP, sw(0, A5, LOCK)]];
    both(|timing| {
        for wait in [&[][..], &plain_look] {
            for release in releases {
                let program = section(wait, release);
                let alone = race(timing, &[(&program, 0, 0)]).0[0].0;
                // The first is in its critical section when the others arrive.
                let starts = [0, 50, 100, 150].map(|start| (&program[..], start, 0));
                let (mut ends, card) = race(timing, &starts);
                ends.sort_unstable();
                assert_eq!(card.word(OVERLAPS as usize), 0);
                // Only entry and return are outside the critical section.
                for (n, (end, _)) in ends.iter().enumerate() {
                    assert!(*end >= (n as u64 + 1) * (alone - 30), "{timing:?} {n}: {ends:?}, alone {alone}");
                }
            }
        }
    });
}

/// Returns the end times of a consumer that polls a flag, and of its producer, for producers that set the flag after
/// some time.
fn consumed(timing: TimingKind, look: &[u32], set: &[u32], starts: [u64; 2], rounds: i32) -> (u64, u64) {
    let back = -4 * (look.len() as i32);
    let producer = [&[DATA_A5, addi(A1, 0, 1)][..], &delay(rounds), set, &[RET]].concat();
    let consumer = [&[DATA_A5][..], look, &[branch(0, A0, 0, back), RET]].concat();
    let (ends, _) = race(timing, &[(&producer, starts[0], 0), (&consumer, starts[1], 0)]);
    assert_eq!(ends[1].1, 1);
    (ends[1].0, ends[0].0)
}

#[test]
fn a_flag_is_seen_when_it_is_set() {
    let polls: [&[u32]; 2] = [&[lw(A0, A5, FLAG), ACQUIRE], &[FULL, lw(A0, A5, FLAG), ACQUIRE]];
    let sets: [&[u32]; 2] = [&[RELEASE, sw(A1, A5, FLAG)], &[RELEASE, sw(A1, A5, FLAG), FULL]];
    both(|timing| {
        for (look, set) in polls.into_iter().flat_map(|look| sets.map(|set| (look, set))) {
            for (starts, rounds) in [([0, 0], 40), ([100, 0], 90), ([0, 100], 200), ([0, 90], 1000)] {
                let (seen, set) = consumed(timing, look, set, starts, rounds);
                // The store is the last instruction of the producer before its return.
                assert!((set - 10..set + 30).contains(&seen), "{timing:?}: set by {set}, seen at {seen}");
            }
        }
    });
}

#[test]
fn a_plain_store_is_seen_when_it_happens_where_another_waits() {
    let polls: [&[u32]; 3] = [
        &[lw(A0, A5, FLAG)],
        // Variants with an adjacent counter, and with a second word.
        &[lw(A0, A5, FLAG), addi(A2, A2, 1), lw(A3, A5, LOCK)],
        // Reads the byte of the word that is set.
        &[i(0x03, 4, A0, A5, FLAG)],
    ];
    both(|timing| {
        for look in polls {
            for (starts, rounds) in [([0, 0], 700), ([300, 0], 550), ([0, 200], 1500)] {
                let (seen, set) = consumed(timing, look, &[sw(A1, A5, FLAG)], starts, rounds);
                assert!((set - 10..set + 30).contains(&seen), "{timing:?}: set by {set}, seen at {seen}");
            }
        }
    });
}

#[test]
fn a_stop_for_a_watched_word_changes_no_time() {
    // A loop that reads one word, and does enough work that a wait in the middle of it would be noticed.
    let body = [lw(A2, A5, FLAG), mul(A3, A3, A2), add(A3, A3, A4), addi(A4, A4, -1), branch(1, A4, 0, -16)];
    let program = [&[DATA_A5, addi(A4, 0, 300), addi(A3, 0, 7)][..], &body, &[add(A0, A3, 0), RET]].concat();
    both(|timing| {
        let mut card = Card::timed(&program, timing, 1);
        let (first, watching) = card.run([0; 3]);
        // In this variant the loads need not wait: it stores to a word that no handler reads.
        let storing = [&program[..2], &[sw(0, A5, OVERLAPS)], &program[2..]].concat();
        let mut card = Card::timed(&storing, timing, 1);
        let (second, plain) = card.run([0; 3]);
        assert_eq!(first, second);
        assert_eq!(watching.instructions() + 1, plain.instructions());
        assert!(plain.cycles() - watching.cycles() <= 1, "{timing:?}: {} {}", watching.cycles(), plain.cycles());
    });
}

/// Two handlers each set their own word and read the other's: with full fences, at least one sees the other's.
#[test]
fn store_buffering() {
    let program = |own: i32, other: i32| {
        [&[DATA_A5, addi(A1, 0, 1)][..], &delay(20), &[sw(A1, A5, own), FULL, lw(A0, A5, other), RET]].concat()
    };
    let (first, second) = (program(FLAG, FLAG + 4), program(FLAG + 4, FLAG));
    both(|timing| {
        // A handler that starts later by more than its access times sees the other's word, and its own is not seen.
        for (starts, seen) in [([0, 0], None), ([0, 40], Some([0, 1])), ([40, 0], Some([1, 0]))] {
            let (ends, _) = race(timing, &[(&first, starts[0], 0), (&second, starts[1], 0)]);
            let values = [ends[0].1, ends[1].1];
            assert_ne!(values, [0, 0]);
            assert!(seen.is_none_or(|seen| seen == values), "{timing:?} {starts:?}: {values:?}");
        }
    });
}

/// A debugger that stops before each instruction of a handler and resumes it.
#[derive(Default)]
struct Everywhere {
    is_leaving: bool,
}

impl Watcher for Everywhere {
    fn stops(&mut self, _: u32) -> bool {
        self.is_leaving = !self.is_leaving;
        self.is_leaving
    }

    fn wants_accesses(&self) -> bool {
        false
    }

    fn accesses(&mut self, _: u32, _: u32, _: bool, _: bool) {}
}

/// A handler that stores a word and then repeatedly reads another one does not wait for it; debugger stops in between
/// do not change that.
#[test]
fn stops_of_a_debugger_make_no_handler_wait() {
    let body = [lw(A2, A5, FLAG), addi(A4, A4, -1), branch(1, A4, 0, -8)];
    let program = [&[DATA_A5, addi(A4, 0, 40), sw(0, A5, OVERLAPS)][..], &body, &[RET]].concat();
    both(|timing| {
        let mut card = Card::timed(&program, timing, 1);
        let (mut plain, mut stepped) = (card.thread([0; 3]), card.thread([0; 3]));
        let stop = card.resume(&mut plain, 10_000);
        assert_eq!(stop, Stop::Return(0));
        let mut debugger = Everywhere::default();
        let stops: Vec<Stop> = std::iter::repeat_with(|| {
            let mut memory = Memory { arena: &mut card.arena, windows: &card.windows, watched: &mut card.watched };
            card.engine.run_stepwise(&mut stepped, &mut memory, 10_000, &mut debugger)
        })
        .take_while(|stop| *stop != Stop::Return(0))
        .collect();
        assert!(stops.iter().all(|stop| *stop == Stop::Break), "{timing:?}: {stops:?}");
        assert_eq!(stops.len() as u64, stepped.instructions());
        // The predictor learned the loop in the first run.
        if timing == TimingKind::InOrder {
            assert_eq!(stepped.cycles(), plain.cycles());
        }
    });
}
