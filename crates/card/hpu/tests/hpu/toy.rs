// SPDX-License-Identifier: Apache-2.0
//! A small instruction set that differs from RISC-V in registers, calling convention, encodings, and instructions with
//! several results. It shows that engine and timing models depend only on micro-operations.
//!
//! Every instruction has four bytes: opcode, then three operands. Register `r`*n* (0 to 7) is register 40 + *n* of the
//! file.

use std::sync::Arc;

use abi::device::map;
use hpu::isa::{
    Access, Class, Convention, Decoded, DeviceElf, Fence, Flow, Isa, Offset, Op, RegisterSet, Run, State, View,
};
use hpu::{ElfError, Engine, Fault, Memory, Program, Sharing, Stop, Thread, Watched, Window};
use machine::TimingKind;

use crate::card::{STACK_TOP, load_map};
use crate::elf::image;

const MACHINE: u16 = 0x7017;
const FIRST: u8 = 40;

#[derive(Debug)]
struct Toy;

/// `ra, rb = [rc]`
const PAIR: u8 = 1;
/// `ra = [rc], rc += 4`
const LOAD_INCREMENT: u8 = 2;
/// `r0 … r(a-1) = [rc]`
const MANY: u8 = 3;
/// `[rc] = ra`
const STORE: u8 = 4;
/// `ra = rb + rc`
const ADD: u8 = 5;
/// `ra -= 1`, and a jump by the signed number `b` of instructions if `ra` is not 0
const COUNT_DOWN: u8 = 6;
const RETURN: u8 = 7;
const COMMAND: u8 = 8;
const FENCE: u8 = 9;

fn pair(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let [a, b, c, _] = op.registers;
    let Some(bytes) = s.load::<8>(m, s.word(c)) else { return Flow::Load };
    let both = u64::from_le_bytes(bytes);
    s.set_word(a, both as u32);
    s.set_word(b, (both >> 32) as u32);
    Flow::Next
}

fn load_increment(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let [a, _, c, _] = op.registers;
    let address = s.word(c);
    let Some(bytes) = s.load(m, address) else { return Flow::Load };
    s.set_word(a, u32::from_le_bytes(bytes));
    s.set_word(c, address + 4);
    Flow::Next
}

fn many(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let address = s.word(op.registers[2]);
    for at in 0..op.imm as u8 {
        let Some(bytes) = s.load(m, address + 4 * u32::from(at)) else { return Flow::Load };
        s.set_word(FIRST + at, u32::from_le_bytes(bytes));
    }
    s.count_accesses(op.imm - 1);
    Flow::Next
}

fn store(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let [a, _, c, _] = op.registers;
    s.store(m, s.word(c), s.word(a).to_le_bytes()).map_or(Flow::Store, |()| Flow::Next)
}

fn add(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let [a, b, c, _] = op.registers;
    s.set_word(a, s.word(b).wrapping_add(s.word(c)));
    Flow::Next
}

fn count_down(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let left = s.word(op.registers[0]) - 1;
    s.set_word(op.registers[0], left);
    if left == 0 {
        return Flow::Next;
    }
    s.pc = op.imm;
    Flow::Jump
}

fn return_to_link(s: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    s.pc = s.word(FIRST + 7);
    Flow::Jump
}

impl Isa for Toy {
    fn name(&self) -> String {
        "toy".into()
    }

    fn machine(&self) -> (u16, &'static str) {
        (MACHINE, "Toy")
    }

    fn check(&self, _: &DeviceElf<'_>) -> Result<(), String> {
        Ok(())
    }

    fn decode(&self, bytes: &[u8], pc: u32) -> Option<Decoded> {
        let [opcode, a, b, c] = *bytes.first_chunk()?;
        let register = |n: u8| RegisterSet::of(FIRST + n % 8);
        let (none, base) = (RegisterSet::NONE, FIRST + c % 8);
        let load = |bytes, updates| Access { bytes, updates, base, offset: Offset::default() };
        let no_access = load(0, none);
        let target = pc.wrapping_add_signed(4 * i32::from(b as i8));
        let (run, class, sources, results, access) = match opcode {
            PAIR => (Run::new(pair), Class::Load, register(c), register(a) | register(b), load(8, none)),
            LOAD_INCREMENT => (Run::new(load_increment), Class::Load, register(c), register(a), load(4, register(c))),
            MANY => {
                let results = (0..a).map(register).fold(none, |all, one| all | one);
                (Run::new(many), Class::Load, register(c), results, load(4 * u32::from(a), none))
            }
            STORE => (Run::new(store), Class::Store, register(a) | register(c), none, load(4, none)),
            ADD => (Run::new(add), Class::Alu, register(b) | register(c), register(a), no_access),
            COUNT_DOWN => (Run::new(count_down), Class::Branch, register(a), register(a), no_access),
            RETURN => (Run::new(return_to_link), Class::Return, register(7), none, no_access),
            COMMAND => (Run::new(|_, _, _| Flow::Command), Class::Command, none, none, no_access),
            FENCE => (Run::new(|_, _, _| Flow::Next), Class::Fence, none, none, no_access),
            _ => (Run::new(|_, _, _| Flow::Illegal), Class::Trap, none, none, no_access),
        };
        let imm = if opcode == MANY { a.into() } else { target };
        Some(Decoded {
            op: Op { run, imm, registers: [FIRST + a % 8, FIRST + b % 8, FIRST + c % 8, 0] },
            class,
            length: 4,
            sources,
            results,
            access,
            target: (class == Class::Branch).then_some(target),
            fence: (class == Class::Fence).then_some(Fence { after_stores: true, before_loads: true }),
            loop_end: None,
        })
    }

    fn convention(&self) -> &'static Convention {
        &Convention {
            arguments: &[FIRST, FIRST + 1, FIRST + 2],
            result: FIRST + 3,
            sink: None,
            stack_pointer: FIRST + 4,
            return_address: FIRST + 7,
            command: FIRST + 6,
            command_argument: FIRST + 5,
            global_pointer: None,
        }
    }
}

fn load(code: &[[u8; 4]]) -> Result<Program, ElfError> {
    let mut elf = image(&code.concat(), &[], &[]);
    elf[18..20].copy_from_slice(&MACHINE.to_le_bytes());
    Program::load(&elf, Arc::new(Toy), &load_map())
}

struct Card {
    program: Arc<Program>,
    engine: Engine,
    arena: Vec<u8>,
}

impl Card {
    fn new(code: &[[u8; 4]], timing: TimingKind) -> Card {
        let program = Arc::new(load(code).unwrap());
        let engine = Engine::new(program.clone(), timing, 1);
        // Word `n` has the value n + 1.
        Card { program, engine, arena: (1..=8_u32).flat_map(u32::to_le_bytes).collect() }
    }

    /// Returns a thread whose arguments are all the address of the data.
    fn thread(&self) -> Thread {
        Thread::new(&self.program, map::PROGRAM, STACK_TOP, [map::DATA; 3])
    }

    fn run(&mut self, thread: &mut Thread) -> Stop {
        let window = Window { base: map::DATA, len: 32, offset: 0, write: true, sharing: Sharing::Shared };
        let mut memory = Memory { arena: &mut self.arena, windows: &[window], watched: &mut Watched::default() };
        self.engine.run(thread, &mut memory, 1000)
    }
}

/// Returns result and cycles of a handler, on the in-order core and on the Cortex-A15.
fn run(code: &[[u8; 4]]) -> (u32, [u64; 2]) {
    let [one, other] = [TimingKind::InOrder, TimingKind::OooA15].map(|timing| {
        let mut card = Card::new(code, timing);
        let mut thread = card.thread();
        match card.run(&mut thread) {
            Stop::Return(value) => (value, thread.cycles()),
            stop => panic!("{stop:?}"),
        }
    });
    assert_eq!(one.0, other.0);
    (one.0, [one.1, other.1])
}

#[test]
fn instructions_wait_for_both_results_of_another() {
    // In order: load 1, stall 1, add 1, return 2, and 1 for the second word. Out of order: the load issues in cycle 1
    // and has its result in cycle 3; the addition issues then and ends in cycle 4.
    for (b, c, sum) in [(0, 0, 2), (1, 1, 4), (0, 1, 3)] {
        assert_eq!(run(&[[PAIR, 0, 1, 2], [ADD, 3, b, c], [RETURN, 0, 0, 0]]), (sum, [6, 4]), "r{b} + r{c}");
    }
    // An instruction that uses neither does not stall.
    let doubled = map::DATA.wrapping_mul(2);
    assert_eq!(run(&[[PAIR, 0, 1, 2], [ADD, 3, 2, 2], [RETURN, 0, 0, 0]]), (doubled, [5, 3]));
}

#[test]
fn an_incremented_address_is_ready_before_the_data() {
    let doubled = (map::DATA + 4).wrapping_mul(2);
    // Use of the address: in order 1 + 1 + 2; out of order it is ready in cycle 2, and the load, which ends in cycle 3,
    // is last.
    assert_eq!(run(&[[LOAD_INCREMENT, 0, 0, 2], [ADD, 3, 2, 2], [RETURN, 0, 0, 0]]), (doubled, [4, 3]));
    // Use of the data: a cycle later.
    assert_eq!(run(&[[LOAD_INCREMENT, 0, 0, 2], [ADD, 3, 0, 0], [RETURN, 0, 0, 0]]), (2, [5, 4]));
    // Each load reads the next word: 1 + 2, with the second load issued when the address is ready.
    let code = [[LOAD_INCREMENT, 0, 0, 2], [LOAD_INCREMENT, 1, 0, 2], [ADD, 3, 0, 1], [RETURN, 0, 0, 0]];
    assert_eq!(run(&code), (3, [6, 5]));
}

#[test]
fn a_load_of_many_registers_takes_its_port_for_longer() {
    // In order: load 1 and 3 for its further words, stall 1, add 1, return 2. Out of order: four registers are two
    // transfers, so the result is ready in cycle 4 and the sum in cycle 5.
    assert_eq!(run(&[[MANY, 4, 0, 2], [ADD, 3, 0, 3], [RETURN, 0, 0, 0]]), (5, [8, 5]));
}

#[test]
fn a_load_of_many_registers_delays_the_next_load() {
    // The next load, through r4, issues in cycle 2 after two registers and in cycle 3 after four, and takes 2 cycles.
    for (registers, cycles) in [(2, 4), (4, 5)] {
        let code = [[MANY, registers, 0, 2], [PAIR, 5, 6, 4], [RETURN, 0, 0, 0]];
        let mut card = Card::new(&code, TimingKind::OooA15);
        let mut thread = Thread::new(&card.program, map::PROGRAM, map::DATA, [map::DATA; 3]);
        assert!(matches!(card.run(&mut thread), Stop::Return(_)));
        assert_eq!(thread.cycles(), cycles, "{registers} registers");
    }
}

#[test]
fn jumps_commands_and_faults() {
    // r0 counts down from 3; r3 is the sum of three words.
    let code = [
        [PAIR, 5, 6, 2], // command 2, argument 1
        [COMMAND, 0, 0, 0],
        [ADD, 0, 3, 3],
        [LOAD_INCREMENT, 1, 0, 2],
        [ADD, 3, 3, 1],
        [COUNT_DOWN, 0, -2_i8 as u8, 0],
        [RETURN, 0, 0, 0],
    ];
    let mut card = Card::new(&code, TimingKind::InOrder);
    let mut thread = card.thread();
    assert_eq!(card.run(&mut thread), Stop::Call { number: 2, argument: 1 });
    assert_eq!((thread.command_pc(), thread.pc()), (map::PROGRAM + 4, map::PROGRAM + 8));
    thread.set_result(3);
    // r0 is 6 iterations; the first one reads the word with the value 1.
    assert_eq!(card.run(&mut thread), Stop::Return(3 + 1 + 2 + 3 + 4 + 5 + 6));
    assert_eq!(thread.instructions(), 2 + 1 + 6 * 3 + 1);

    let mut card = Card::new(&[[PAIR, 0, 1, 4], [RETURN, 0, 0, 0]], TimingKind::OooA15);
    let stop = card.run(&mut card.thread());
    assert_eq!(stop, Stop::Fault(Fault::Load { pc: map::PROGRAM, addr: STACK_TOP, len: 8 }));
    let mut card = Card::new(&[[0xee, 1, 2, 3]], TimingKind::InOrder);
    let stop = card.run(&mut card.thread());
    assert_eq!(stop, Stop::Fault(Fault::Illegal { pc: map::PROGRAM, word: 0x0302_01ee }));
}

#[test]
fn fences_and_waiting_loops_synchronise() {
    // The store next to the fence executes at its exact time.
    let mut card = Card::new(&[[STORE, 4, 0, 2], [FENCE, 0, 0, 0], [RETURN, 0, 0, 0]], TimingKind::InOrder);
    let mut thread = card.thread();
    assert_eq!(card.run(&mut thread), Stop::Sync);
    assert_eq!(card.arena[..4], [1, 0, 0, 0]);
    // So does the fence, because no access follows it.
    assert_eq!(card.run(&mut thread), Stop::Sync);
    assert_eq!(card.run(&mut thread), Stop::Return(0));
    assert_eq!(card.arena[..4], STACK_TOP.to_le_bytes());

    // A loop that only reads one word waits for it: the eighth read stops.
    let mut card = Card::new(&[[PAIR, 5, 6, 2], [COUNT_DOWN, 0, -1_i8 as u8, 0]], TimingKind::InOrder);
    let mut thread = card.thread();
    assert_eq!(card.run(&mut thread), Stop::Sync);
    assert_eq!((thread.pc(), thread.instructions()), (map::PROGRAM, 14));
}

#[test]
fn code_of_another_machine_is_refused() {
    let elf = image(&[RETURN, 0, 0, 0], &[], &[]);
    let error = Program::load(&elf, Arc::new(Toy), &load_map()).err().unwrap().to_string();
    assert_eq!(error, "device program: machine is 243, but toy cores execute Toy (28695)");
}
