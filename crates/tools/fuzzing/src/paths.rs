// SPDX-License-Identifier: Apache-2.0
//! Runs arbitrary code on every execution path of the HPU engine and compares them step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use abi::device::map;
use accel::testing::code::{RET, executable};
use hpu::isa::{Class, instruction_set};
use hpu::testing::{branch, i, r, s};
use hpu::{Engine, Lines, Memory, Pause, Program, Sharing, Stall, Stepper, Stop, Thread, Watched, Watcher, Window};
use machine::TimingKind;

/// Bytes of shared memory and of each stack.
const DATA: usize = 256;
const STACK: usize = 256;
/// Threads sharing the memory.
const THREADS: usize = 2;
/// Limit of a thread in cycles.
const MAX_CYCLES: u64 = 6_000;
/// Number of stops, of all threads together, after which an input is abandoned.
const MAX_STOPS: usize = 4_000;

/// Execution parameters of an input.
struct Setting {
    timing: TimingKind,
    load_cycles: u32,
    /// Cycles that a thread may run ahead of the other.
    quantum: u64,
    /// Arguments of the first thread; those of the second differ by one.
    args: [u32; 3],
}

/// State of a thread, and of the memory, at a stop.
#[derive(Debug, PartialEq)]
struct Seen {
    thread: usize,
    stop: Stop,
    cycles: u64,
    instructions: u64,
    pc: u32,
    registers: Vec<u32>,
    floats: Vec<u64>,
    memory: Vec<u8>,
}

/// Execution path of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Plain,
    /// Counts executions.
    Profiled,
    /// One instruction at a time; reports each access to the watcher (`--sanitize`).
    Watched,
    /// One instruction at a time; a debugger stops before every instruction whose number is a multiple of this, and
    /// resumes the thread.
    Debugged(u64),
}

/// Watcher of a path.
struct Looker {
    path: Path,
    /// Instructions observed.
    seen: u64,
    is_leaving: bool,
    /// Address of the current instruction.
    pc: u32,
    accesses: Vec<Access>,
}

/// Access to shared memory: instruction address, first address, bytes, and write flag.
type Access = (u32, u32, u32, bool);

impl Looker {
    fn new(path: Path) -> Looker {
        Looker { path, seen: 0, is_leaving: false, pc: 0, accesses: Vec::new() }
    }
}

impl Watcher for Looker {
    fn stops(&mut self, pc: u32) -> bool {
        self.pc = pc;
        let Path::Debugged(every) = self.path else { return false };
        if std::mem::take(&mut self.is_leaving) {
            return false;
        }
        self.seen += 1;
        self.is_leaving = self.seen.is_multiple_of(every);
        self.is_leaving
    }

    fn wants_accesses(&self) -> bool {
        self.path == Path::Watched
    }

    fn accesses(&mut self, address: u32, bytes: u32, write: bool, _: bool) {
        self.accesses.push((self.pc, address, bytes, write));
    }
}

/// Runs an input: two 32-bit arguments, a byte each for the quantum and the memory, then code: unchanged, or, if the
/// lowest bit of the first argument is set, as [`translated`].
pub fn code(bytes: &[u8]) {
    let Some((start, rest)) = bytes.split_first_chunk::<10>() else { return };
    let word = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("4 bytes"));
    let (kind, args) = (start[0] & 1, [word(0) & !3, word(4), map::DATA]);
    let code = if kind == 0 { rest.to_vec() } else { translated(rest) };
    let isa = instruction_set("rv32imafdc").expect("an instruction set");
    let Ok(program) = Program::load(&executable(&code), isa, &accel::load_map()) else { return };
    let program = Arc::new(program);
    let quantum = [1, 7, 40, 512][usize::from(start[8] & 3)] + u64::from(start[8] >> 2);
    for timing in [TimingKind::InOrder, TimingKind::OooA15] {
        let setting = Setting { timing, load_cycles: 1 + u32::from(start[9] % 9), quantum, args };
        let plain = run(&program, &setting, Path::Plain);
        for path in [Path::Profiled, Path::Watched, Path::Debugged(1), Path::Debugged(3), Path::Debugged(u64::MAX)] {
            let seen = run(&program, &setting, path);
            same(&plain, &seen, path, timing);
        }
    }
    step(&program, args, 0);
    step(&program, args, 2);
}

/// Requires that a path stops at the same place as the plain one, with the same state.
fn same(plain: &[Seen], seen: &[Seen], path: Path, timing: TimingKind) {
    for (number, (one, other)) in plain.iter().zip(seen).enumerate() {
        let short = |seen: &Seen| (seen.thread, seen.stop, seen.cycles, seen.instructions, seen.pc);
        assert_eq!(short(one), short(other), "stop {number} of {path:?} is not the plain one, {timing:?}");
        assert_eq!(one.registers, other.registers, "registers at stop {number} of {path:?}, {timing:?}");
        assert!(one == other, "memory at stop {number} of {path:?}, {timing:?}");
    }
    assert_eq!(plain.len(), seen.len(), "stops of {path:?}");
}

/// Returns the windows of a thread: the shared memory, its stack, the code.
fn windows(program: &Program, thread: usize) -> [Window; 3] {
    let window = |base, len, offset, write, sharing| Window { base, len, offset, write, sharing };
    let code = program.program_segment().len() as u32;
    [
        window(map::DATA, DATA as u32, 0, true, Sharing::Shared),
        window(stack_top(thread) - STACK as u32, STACK as u32, DATA + thread * STACK, true, Sharing::Private),
        window(map::PROGRAM, code, DATA + THREADS * STACK, false, Sharing::Private),
    ]
}

fn stack_top(thread: usize) -> u32 {
    map::CONTEXTS + (thread as u32 + 1) * map::CONTEXT_STRIDE
}

fn memory(program: &Program) -> Vec<u8> {
    let mut arena = vec![0; DATA + THREADS * STACK];
    arena.extend_from_slice(program.program_segment());
    arena
}

/// Runs two threads with shared memory on one path, as a card does. Returns their states at each stop.
fn run(program: &Arc<Program>, setting: &Setting, path: Path) -> Vec<Seen> {
    let mut engine = Engine::new(program.clone(), setting.timing, setting.load_cycles);
    if path == Path::Profiled {
        engine.set_profiling();
    }
    let (mut arena, mut watched) = (memory(program), Watched::default());
    let mut looker = Looker::new(path);
    let [first, second, third] = setting.args;
    let mut threads: Vec<(u64, Thread)> = (0..THREADS)
        .map(|number| {
            let args = [first, second.wrapping_add(number as u32), third];
            (3 * number as u64, Thread::new(program, map::PROGRAM, stack_top(number), args))
        })
        .collect();
    let mut running = [true; THREADS];
    let mut seen = Vec::new();
    while seen.len() < MAX_STOPS
        && let Some(next) = (0..THREADS).filter(|next| running[*next]).min_by_key(|next| (threads[*next].0, *next))
    {
        let (time, thread) = &mut threads[next];
        let (before, windows) = (thread.cycles(), windows(program, next));
        let limit = (before + setting.quantum).min(MAX_CYCLES);
        let stop = loop {
            let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut watched };
            let stop = match path {
                Path::Plain | Path::Profiled => engine.run(thread, &mut memory, limit),
                _ => engine.run_stepwise(thread, &mut memory, limit, &mut looker),
            };
            if stop != Stop::Break {
                break stop;
            }
        };
        *time += thread.cycles() - before;
        match stop {
            // The card answers later.
            Stop::Call { number, argument } => thread.set_result(number ^ argument),
            Stop::Return(_) | Stop::Fault(_) => running[next] = false,
            _ => running[next] = thread.cycles() < MAX_CYCLES,
        }
        seen.push(Seen {
            thread: next,
            stop,
            cycles: thread.cycles(),
            instructions: thread.instructions(),
            pc: thread.pc(),
            registers: (0..32).map(|register| thread.register(register)).collect(),
            floats: (0..32).map(|register| thread.float_register(register)).collect(),
            memory: arena.clone(),
        });
    }
    seen
}

/// Runs one thread in an engine with an in-order core, and access by access in a [`Stepper`], which must agree. Loads
/// are `late` cycles late.
fn step(program: &Arc<Program>, args: [u32; 3], late: u64) {
    let mut engine = Engine::new(program.clone(), TimingKind::InOrder, 1 + late as u32);
    let (mut arena, mut watched) = (memory(program), Watched::default());
    let mut looker = Looker::new(Path::Watched);
    let (windows, mut thread) = (windows(program, 0), Thread::new(program, map::PROGRAM, stack_top(0), args));
    let stop = loop {
        let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut watched };
        match engine.run_stepwise(&mut thread, &mut memory, MAX_CYCLES, &mut looker) {
            Stop::Call { number, argument } => thread.set_result(number ^ argument),
            Stop::Sync => {}
            Stop::Limit => return,
            stop => break stop,
        }
    };
    let mut stepper = Stepper::new(program.clone(), 32);
    let (mut by_steps, lines) = (memory(program), Lines::all(stepper.lines()));
    let mut stepped = Thread::new(program, map::PROGRAM, stack_top(0), args);
    let (mut accesses, mut atomics) = (Vec::new(), BTreeSet::new());
    let end = loop {
        match stepper.run(&mut stepped, &lines, u64::MAX) {
            Pause::Call { number, argument } => stepped.set_result(number ^ argument),
            Pause::Access(access) => {
                let (pc, is_store) = (stepped.pc(), access.class == Class::Store);
                let inside = |window: &&Window| {
                    let skipped = u64::from(access.address.wrapping_sub(window.base));
                    skipped + u64::from(access.bytes) <= u64::from(window.len) && (window.write || !is_store)
                };
                let window = windows.iter().find(inside).copied().unwrap_or_default();
                let stall = Stall::answer(if is_store { 0 } else { late });
                if let Err(fault) = stepper.perform(&mut stepped, &mut by_steps, window, stall) {
                    break Stop::Fault(fault);
                }
                if access.class == Class::Atomic {
                    atomics.insert(pc);
                } else if window.sharing == Sharing::Shared {
                    accesses.push((pc, access.address, access.bytes, is_store));
                }
            }
            Pause::Return(value) => break Stop::Return(value),
            Pause::Fault(fault) => break Stop::Fault(fault),
            pause => panic!("{pause:?} without a reason"),
        }
    };
    assert_eq!(end, stop, "end of a stepper, {late} cycles late");
    let state = |thread: &Thread| {
        let words: Vec<u32> = (0..32).map(|register| thread.register(register)).collect();
        let floats: Vec<u64> = (0..32).map(|register| thread.float_register(register)).collect();
        (words, floats, thread.pc(), thread.instructions(), thread.cycles())
    };
    assert_eq!(state(&stepped), state(&thread), "state of a stepper, {late} cycles late");
    assert!(by_steps == arena, "memory of a stepper differs");
    // To the watcher, an atomic operation is a load and a store.
    looker.accesses.retain(|(pc, ..)| !atomics.contains(pc));
    assert_eq!(accesses, looker.accesses, "accesses of a stepper");
}

/// Returns valid instructions, one for every four bytes, and a return.
fn translated(bytes: &[u8]) -> Vec<u8> {
    let mut code = Vec::new();
    for word in bytes.chunks_exact(4) {
        let word: [u8; 4] = word.try_into().expect("4 bytes");
        translate(word, &mut code);
    }
    code.extend(RET.to_le_bytes());
    code
}

/// Appends the instructions encoded by four bytes.
fn translate([kind, a, b, c]: [u8; 4], code: &mut Vec<u8>) {
    const BASE: u32 = 12;
    const STACK: u32 = 2;
    const FREE: [u32; 8] = [10, 11, 13, 14, 15, 5, 6, 7];
    const NEAR: [u32; 8] = [10, 11, 13, 14, 15, 10, 11, 13];
    let register = |byte: u8| FREE[usize::from(byte & 7)];
    let (rd, rs1, rs2) = (register(a), register(b), register(c));
    let (fd, fs1, fs2) = (u32::from(a & 7), u32::from(b & 7), u32::from(c & 7));
    let [a, b, c] = [a, b, c].map(u32::from);
    // A few words are accessed often; accesses may cross a word boundary; half of them are on the stack.
    let (base, offset) = if b & 8 == 0 { (BASE, (c >> 3 & 31) as i32) } else { (STACK, (c >> 3 & 31) as i32 - 64) };
    let aligned = offset & !7;
    let word = match kind % 32 {
        0..4 => i(0x13, [0, 2, 3, 4, 6, 7, 0, 0][(c & 7) as usize], rd, rs1, (b << 1) as i32),
        4..6 => r(0x33, c >> 3 & 7, 0, rd, rs1, rs2),
        6 => r(0x33, 0, 1, rd, rs1, rs2),
        7 => r(0x33, 1 + (c >> 3) % 3, 1, rd, rs1, rs2),
        8 => r(0x33, 4 + (c >> 3 & 3), 1, rd, rs1, rs2),
        9 => (c << 12) | rd << 7 | 0x37,
        10..13 => {
            i(0x03, [0, 1, 2, 4, 5, 2, 2, 2][(c & 7) as usize], rd, base, if c & 4 == 0 { offset } else { offset & !3 })
        }
        13..16 => s(0x23, c % 3, base, rs1, if c & 4 == 0 { offset } else { offset & !3 }),
        16 => {
            code.extend(i(0x13, 0, 28, BASE, offset & 28).to_le_bytes());
            match c & 3 {
                0 => r(0x2f, 2, 8, rd, 28, 0),
                1 => r(0x2f, 2, 12, rd, 28, rs1),
                2 => r(0x2f, 2, 4, rd, 28, rs1),
                _ => r(0x2f, 2, 0, rd, 28, rs1),
            }
        }
        17 => [0x0230_000f, 0x0310_000f, 0x0330_000f, 0x0000_100f][(c & 3) as usize],
        18 => branch([0, 1, 4, 5, 6, 7, 0, 1][(c & 7) as usize], rs1, rs2, 4 + 4 * (b & 15) as i32),
        19 => branch([0, 1, 4, 5, 6, 7, 0, 1][(c & 7) as usize], rs1, rs2, -4 - 4 * (b & 15) as i32),
        20 => (4 + 4 * (b & 15)) << 20 | [0, 5][(c & 1) as usize] << 7 | 0x6f,
        21 => {
            code.extend((28_u32 << 7 | 0x17).to_le_bytes());
            i(0x67, 0, [0, 1, 5][(c % 3) as usize], 28, 8 + 4 * (b & 7) as i32)
        }
        22 => (0xc00 | if c & 1 == 0 { 0 } else { 2 }) << 20 | 2 << 12 | rd << 7 | 0x73,
        23 => 0x73,
        24 => match c & 3 {
            0 => i(0x07, 2, fd, base, offset & !3),
            1 => i(0x07, 3, fd, base, aligned),
            2 => s(0x27, 2, base, fs1, offset & !3),
            _ => s(0x27, 3, base, fs1, aligned),
        },
        25 => r(0x53, 7, [0, 4, 8, 1, 5, 9][((c >> 3) % 6) as usize], fd, fs1, fs2),
        26 => r(0x53, 7, [12, 13][(c >> 3 & 1) as usize], fd, fs1, fs2),
        27 => match c >> 3 & 3 {
            0 => r(0x53, 1, 0x60, rd, fs1, 0),
            1 => r(0x53, 7, 0x68, fd, rs1, 0),
            2 => r(0x53, 0, 0x70, rd, fs1, 0),
            _ => r(0x53, 0, 0x78, fd, rs1, 0),
        },
        // One 16-bit instruction: later ones then straddle two words.
        28 | 29 => {
            let near = NEAR[(a & 7) as usize];
            let half = if c & 1 == 0 { 0x0001 | near << 7 | (b & 31) << 2 } else { 0x8002 | near << 7 | rs2 << 2 };
            return code.extend((half as u16).to_le_bytes());
        }
        // A loop that polls a word until it changes, for at most some hundred rounds.
        30 => {
            let words = [
                i(0x13, 0, 28, 0, 8 + b as i32),
                i(0x03, 2, rd, BASE, offset & 28),
                i(0x13, 0, 28, 28, -1),
                branch(0, 28, 0, 8),
                branch(0, rd, 0, -12),
            ];
            return words.iter().for_each(|word| code.extend(word.to_le_bytes()));
        }
        _ => u32::from_le_bytes([kind & 0xf3 | 3, a as u8, b as u8, c as u8]),
    };
    code.extend(word.to_le_bytes());
}
