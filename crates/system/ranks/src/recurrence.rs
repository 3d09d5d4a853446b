// SPDX-License-Identifier: Apache-2.0
//! Detects exact recurrence: a thread whose registers and memory equal an earlier state, without outside influence
//! since then, repeats itself forever, until another thread or a card writes a location that it has read since.

use super::polling_loop::{Location, Polled, Value};
use super::single_step::{Step, register_value};
use iced_x86::{Mnemonic, OpAccess, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// System calls without influence on a loop: they let time pass, or return constant ids.
const NEUTRAL: [i64; 13] = [
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpgid,
    libc::SYS_getpgrp,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_gettid,
    libc::SYS_rt_sigprocmask,
];

/// All registers that determine the effect of integer instructions.
type State = [u64; 20];

/// Steps of a thread, with links between steps of equal register contents.
#[derive(Default)]
pub struct Recurrence {
    /// For each step, the latest earlier one with equal registers.
    same: Vec<Option<usize>>,
    last: HashMap<State, usize>,
    /// Contents last read or written by the thread at each location.
    known: BTreeMap<Location, Value>,
    /// First step after the last influence from outside.
    since: usize,
    /// Step count at which memory is compared next.
    compare_at: usize,
    /// Vector registers at the last step with otherwise equal state.
    vectors: Option<(usize, Vec<u8>)>,
}

impl Recurrence {
    /// Records the last of `steps`, which is complete.
    pub fn note(&mut self, steps: &[Step]) {
        let Some(step) = steps.last() else { return };
        let mut influenced = !is_closed(step);
        for access in &step.reads {
            let known = self.known.get(&access.location);
            influenced |= access.value.is_none() || known.is_some_and(|known| Some(*known) != access.value);
            self.known.extend(access.value.map(|value| (access.location, value)));
        }
        for write in &step.writes {
            influenced |= write.after.is_none() || write.before.is_none();
            // Locations that overlap the write are no longer known.
            let (start, end) = (write.location.address, write.location.bytes().end);
            let near = Location { address: start.saturating_sub(size_of::<Value>() as u64), length: 0 }..;
            let stale: Vec<Location> = self
                .known
                .range(near)
                .map(|(location, _)| *location)
                .take_while(|location| location.address < end)
                .filter(|location| location.bytes().end > start)
                .collect();
            for location in &stale {
                self.known.remove(location);
            }
            self.known.extend(write.after.map(|value| (write.location, value)));
        }
        if influenced {
            self.since = steps.len();
        }
    }

    /// Cancels step `at`, which was passed to [`Recurrence::find`] but not executed; it will be passed again.
    pub fn forget(&mut self, at: usize) {
        self.same.truncate(at);
        self.last.retain(|_, step| *step < at);
        self.since = at;
        self.known.clear();
    }

    /// Returns the earlier step with a state equal to the present one. `now` are the registers after all of `steps`;
    /// `vectors` reads the vector registers.
    pub fn find(&mut self, steps: &[Step], now: &Registers, vectors: impl Fn() -> Option<Vec<u8>>) -> Option<usize> {
        let at = steps.len();
        let before = self.last.insert(state(now), at);
        self.same.push(before);
        if at < self.compare_at || before.is_none_or(|before| before < self.since) {
            return None;
        }
        self.compare_at = at + at / 16;
        // Bytes that differ between a step and now, computed backwards, and their present contents.
        let mut differing = BTreeMap::new();
        let mut contents: BTreeMap<u64, u8> = BTreeMap::new();
        let mut candidate = before;
        for (number, step) in steps.iter().enumerate().skip(self.since).rev() {
            for write in step.writes.iter().rev() {
                let (Some(old), Some(new)) = (write.before, write.after) else { return None };
                for (k, byte) in write.location.bytes().enumerate() {
                    let present = *contents.entry(byte).or_insert(new[k]);
                    if old[k] == present {
                        differing.remove(&byte);
                    } else {
                        differing.insert(byte, ());
                    }
                }
            }
            if candidate == Some(number) {
                if differing.is_empty() {
                    return self.same_vectors(steps, number, vectors).then_some(number);
                }
                candidate = self.same[number];
            }
        }
        None
    }

    /// Returns true if the vector registers equal those at step `from`, or have no effect since.
    fn same_vectors(&mut self, steps: &[Step], from: usize, vectors: impl Fn() -> Option<Vec<u8>>) -> bool {
        let mut factory = iced_x86::InstructionInfoFactory::new();
        let mut is_vector_read = |step: &Step| {
            let info = factory.info(&step.instruction);
            info.used_registers().iter().any(|used| {
                let is_vector =
                    used.register().is_vector_register() || used.register().is_st() || used.register().is_mm();
                is_vector && !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite)
            })
        };
        if !steps[from..].iter().any(&mut is_vector_read) {
            return true;
        }
        let Some(now) = vectors() else { return false };
        let before = self.vectors.replace((steps.len(), now));
        let is_same =
            before.zip(self.vectors.as_ref()).is_some_and(|(before, now)| before.0 == from && before.1 == now.1);
        self.compare_at = steps.len(); // compare in the next iteration
        is_same
    }
}

/// Returns true if the effect of a step depends on registers and memory alone.
fn is_closed(step: &Step) -> bool {
    match step.instruction.mnemonic() {
        Mnemonic::Syscall => {
            let registers = &step.registers;
            let command = registers.rsi as i32 & libc::FUTEX_CMD_MASK;
            let wakes = registers.rax as i64 == libc::SYS_futex && command == libc::FUTEX_WAKE;
            wakes || NEUTRAL.contains(&(registers.rax as i64))
        }
        Mnemonic::Rdtsc
        | Mnemonic::Rdtscp
        | Mnemonic::Rdrand
        | Mnemonic::Rdseed
        | Mnemonic::Rdpmc
        | Mnemonic::Cpuid
        | Mnemonic::Xgetbv => false,
        _ => true,
    }
}

fn state(registers: &Registers) -> State {
    let general = super::loop_analysis::GENERAL.map(|register| register_value(registers, register).unwrap_or_default());
    let mut state = [0; 20];
    state[..16].copy_from_slice(&general);
    state[16..].copy_from_slice(&[registers.rip, registers.eflags, registers.fs_base, registers.gs_base]);
    state
}

/// Returns the locations that a period reads before writing them, with their contents at its step `at`. They carry over
/// from one period to the next, so a write by others changes the next period.
pub fn polled(period: &[Step], at: usize) -> BTreeMap<Location, Polled> {
    let own: BTreeSet<u64> = period.iter().flat_map(Step::written).flat_map(Location::bytes).collect();
    let (mut fresh, mut carried) = (BTreeSet::new(), BTreeSet::new());
    for step in period {
        let from_before = step.reads.iter().filter(|access| access.location.bytes().any(|byte| !fresh.contains(&byte)));
        carried.extend(from_before.map(|access| access.location));
        fresh.extend(step.written().flat_map(Location::bytes));
    }
    let mut reads = BTreeMap::new();
    // Last read of a location before the step or, because the period repeats, before its end.
    for step in period[at..].iter().chain(&period[..at]) {
        for access in step.reads.iter().filter(|access| carried.contains(&access.location)) {
            let is_own = access.location.bytes().any(|byte| own.contains(&byte));
            reads.insert(access.location, Polled { seen: access.value, is_own });
        }
        for write in &step.writes {
            let (start, end) = (write.location.address, write.location.bytes().end);
            for (location, polled) in
                reads.iter_mut().filter(|(location, _)| location.address < end && location.bytes().end > start)
            {
                if let (Some(seen), Some(after)) = (&mut polled.seen, &write.after) {
                    for byte in location.address.max(start)..location.bytes().end.min(end) {
                        seen[(byte - location.address) as usize] = after[(byte - start) as usize];
                    }
                }
            }
        }
    }
    reads
}

/// Returns the step of an iteration before which to stop a thread: one at which it holds no lock.
///
/// A lock is a word written by an atomic instruction. Guarded data are read only while the lock is held. The lock
/// contents under which most locations are read exclusively are therefore those of a held lock, and the thread stops
/// where the contents differ from them.
pub fn stop_point(round: &[Step]) -> usize {
    let is_atomic = |step: &&Step| {
        let exchanges =
            step.instruction.mnemonic() == Mnemonic::Xchg && step.instruction.memory_base() != Register::None;
        step.instruction.has_lock_prefix() || exchanges
    };
    let locks: BTreeSet<Location> = round.iter().filter(is_atomic).flat_map(Step::written).collect();
    if locks.is_empty() {
        return 0;
    }
    let own: BTreeSet<u64> = round.iter().flat_map(Step::written).flat_map(Location::bytes).collect();
    // Lock contents at each step. The second pass starts with known contents.
    let mut contents: BTreeMap<Location, Value> = BTreeMap::new();
    let mut at_step = Vec::new();
    for pass in 0..2 {
        for step in round {
            if pass == 1 {
                at_step.push(contents.clone());
            }
            for write in step.writes.iter().filter(|write| locks.contains(&write.location)) {
                contents.extend(write.after.map(|value| (write.location, value)));
            }
        }
    }
    let mut read_with: BTreeMap<Location, BTreeSet<&BTreeMap<Location, Value>>> = BTreeMap::new();
    for (step, contents) in round.iter().zip(&at_step).filter(|(step, _)| step.reads_data()) {
        for access in step.reads.iter().filter(|access| !access.location.bytes().any(|byte| own.contains(&byte))) {
            read_with.entry(access.location).or_default().insert(contents);
        }
    }
    let mut guarded: BTreeMap<&BTreeMap<Location, Value>, usize> = BTreeMap::new();
    for with in read_with.values().filter(|with| with.len() == 1) {
        *guarded.entry(with.first().expect("it has one")).or_default() += 1;
    }
    let Some(held) = guarded.iter().max_by_key(|(_, locations)| **locations).map(|(contents, _)| *contents) else {
        return 0;
    };
    let distance =
        |contents: &BTreeMap<Location, Value>| locks.iter().filter(|lock| contents.get(lock) != held.get(lock)).count();
    (0..round.len()).rev().max_by_key(|&step| distance(&at_step[step])).unwrap_or(0)
}
