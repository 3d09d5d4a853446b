//! What a loop waits for, found from the instructions of a few of its rounds.
//!
//! Each value carries a label: which places in memory it comes from, and whether it changes from round to round. A
//! branch that went the same way in every round is a way out. If no way out depends on a value that changes, the loop
//! goes on for ever unless somebody else writes one of the places that its ways out depend on: it polls them. A loop
//! that has such a way out and another one, for example a limit of tries, polls too, but can end by itself. All else
//! computes.

use super::memory_loop::Place;
use super::step::{Access, Step, register_value};
use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bit of a label: the value changes from round to round. The other bits are places, by their index.
const CHANGES: u128 = 1 << 127;
/// Different places that the ways out of a loop may depend on.
const PLACES: usize = 127;
/// The status flags of conditions.
const FLAGS: usize = 32;

/// A system call that reads a clock, and where the time goes.
type Clock = (i64, fn(&Registers) -> u64);

/// System calls that read a clock, with the argument that says where the time goes.
const CLOCKS: [Clock; 3] = [
    (libc::SYS_clock_gettime, |registers| registers.rsi),
    (libc::SYS_gettimeofday, |registers| registers.rdi),
    (libc::SYS_time, |registers| registers.rdi),
];
/// System calls whose result tells nothing: they let others run, or time pass.
const PAUSES: [i64; 3] = [libc::SYS_sched_yield, libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// What a loop waits for.
pub struct Waits {
    /// The places that its ways out depend on, and nothing else that changes.
    pub places: BTreeSet<Place>,
    /// Whether it can only end when one of these places is written.
    pub endless: bool,
}

/// What the rounds of a loop wait for, when it polls. They begin at `heads` in `steps`; `now` are the registers after the
/// last one. `exempt` is code whose branches lead back anyway: that of the kernel's clocks.
pub fn judge(steps: &[Step], heads: &[usize], now: &Registers, exempt: &Range<u64>) -> Option<Waits> {
    let rounds: Vec<&[Step]> = heads
        .iter()
        .enumerate()
        .map(|(k, &head)| &steps[head..heads.get(k + 1).copied().unwrap_or(steps.len())])
        .collect();
    let heads: Vec<[u64; 16]> = rounds.iter().map(|round| general(&round[0].registers)).chain([general(now)]).collect();
    let moving = (0..16).filter(|&k| heads.iter().any(|head| head[k] != heads[0][k]));
    let mut flow = Flow::new(&rounds, moving.map(|k| GENERAL[k]).collect())?;
    for round in &rounds {
        flow.begin_round();
        for (k, step) in round.iter().enumerate() {
            let next = round.get(k + 1).map_or(round_head(&rounds), |next| next.registers.rip);
            flow.execute(step, next)?;
        }
    }
    let ways_out = flow.branches.iter().filter(|(at, branch)| branch.one_way() && !exempt.contains(at));
    let (changing, fixed): (Vec<_>, Vec<_>) = ways_out.partition(|(_, branch)| branch.label & CHANGES != 0);
    let label = fixed.iter().fold(0, |label, (_, branch)| label | branch.label);
    let places: BTreeSet<Place> =
        flow.places.iter().enumerate().filter(|(k, _)| label & 1 << k != 0).map(|(_, &place)| place).collect();
    if places.is_empty() {
        return None; // nothing that anybody could write would end it
    }
    let endless = changing.is_empty();
    // A loop that can end by itself polls only if it does no more than count or look at a clock.
    let counts = || {
        let count = |pair: &[[u64; 16]]| -> Vec<u64> { (0..16).map(|k| pair[1][k].wrapping_sub(pair[0][k])).collect() };
        flow.clock || heads.windows(2).all(|pair| count(pair) == count(&heads[..2]))
    };
    (endless || counts()).then_some(Waits { places, endless })
}

fn round_head(rounds: &[&[Step]]) -> u64 {
    rounds[0][0].registers.rip
}

/// The ways that a conditional branch went, and what its condition comes from.
#[derive(Default)]
struct Branch {
    taken: bool,
    passed: bool,
    label: u128,
}

impl Branch {
    fn one_way(&self) -> bool {
        self.taken != self.passed
    }
}

/// Labels of all that the rounds have computed so far.
struct Flow {
    registers: [u128; 256],
    flags: [u128; FLAGS],
    /// The label of each byte that was written.
    memory: BTreeMap<u64, u128>,
    /// Bytes written in this round.
    fresh: BTreeSet<u64>,
    /// Registers that differ at the beginnings of rounds.
    moving: Vec<Register>,
    /// Places that keep a value from round to round, and not the same one.
    changing: BTreeSet<Place>,
    places: Vec<Place>,
    branches: BTreeMap<u64, Branch>,
    clock: bool,
    factory: InstructionInfoFactory,
}

impl Flow {
    /// `None` when somebody else writes what the loop reads just now.
    fn new(rounds: &[&[Step]], moving: Vec<Register>) -> Option<Flow> {
        let mut factory = InstructionInfoFactory::new();
        let mut registers = [0; 256];
        for step in rounds.iter().copied().flatten() {
            // What vector registers hold at the beginning of a round is not looked at.
            for used in factory.info(&step.instruction).used_registers() {
                let vector = used.register().is_vector_register() || used.register().is_st();
                if vector && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                    registers[used.register().full_register() as usize] = CHANGES;
                }
            }
        }
        Some(Flow {
            registers,
            flags: [0; FLAGS],
            memory: BTreeMap::new(),
            fresh: BTreeSet::new(),
            moving,
            changing: changing(rounds)?,
            places: Vec::new(),
            branches: BTreeMap::new(),
            clock: false,
            factory,
        })
    }

    fn begin_round(&mut self) {
        self.fresh.clear();
        for register in &self.moving {
            self.registers[*register as usize] |= CHANGES;
        }
    }

    /// The label of what an instruction reads at a place; `None` when there are too many.
    fn read(&mut self, access: &Access, data: bool) -> Option<u128> {
        let bytes = access.place.bytes();
        let written = bytes.clone().filter_map(|byte| self.memory.get(&byte)).fold(0, |all, label| all | label);
        if bytes.clone().all(|byte| self.fresh.contains(&byte)) {
            return Some(written);
        }
        if self.changing.contains(&access.place) {
            return Some(written | CHANGES);
        }
        // Thread-local data, tables of functions and what cannot be read from outside are read to get on.
        if !data || access.value.is_none() {
            return Some(written);
        }
        let index = self.places.iter().position(|place| *place == access.place).unwrap_or_else(|| {
            self.places.push(access.place);
            self.places.len() - 1
        });
        (index < PLACES).then_some(written | 1 << index)
    }

    fn write(&mut self, place: Place, label: u128) {
        self.memory.extend(place.bytes().map(|byte| (byte, label)));
        self.fresh.extend(place.bytes());
    }

    fn execute(&mut self, step: &Step, next: u64) -> Option<()> {
        let instruction = &step.instruction;
        let own_segment = matches!(instruction.memory_segment(), Register::FS | Register::GS);
        let data = instruction.flow_control() != FlowControl::IndirectCall
            && instruction.flow_control() != FlowControl::IndirectBranch
            && instruction.flow_control() != FlowControl::Return
            && !own_segment;
        let mut label = 0;
        for access in &step.reads {
            label |= self.read(access, data)?;
        }
        let used = self.factory.info(instruction).used_registers().to_vec();
        let stack = instruction.is_stack_instruction();
        let reads = used.iter().filter(|used| !matches!(used.access(), OpAccess::Write | OpAccess::CondWrite));
        for register in reads.map(|used| used.register().full_register()) {
            label |= if stack && register == Register::RSP { 0 } else { self.registers[register as usize] };
        }
        let flags = |mask: u32| (0..FLAGS).filter(move |bit| mask & 1 << bit != 0);
        label |= flags(instruction.rflags_read()).fold(0, |all, bit| all | self.flags[bit]);
        match instruction.mnemonic() {
            Mnemonic::Rdtsc | Mnemonic::Rdtscp => {
                self.clock = true;
                label |= CHANGES;
            }
            Mnemonic::Rdrand | Mnemonic::Rdseed | Mnemonic::Rdpmc => label |= CHANGES,
            Mnemonic::Syscall => {
                self.system_call(&step.registers);
                return Some(());
            }
            _ => {}
        }
        // A repeated string instruction is stepped one repetition at a time, and counts them itself.
        if instruction.has_rep_prefix() || instruction.has_repne_prefix() {
            let branch = self.branches.entry(step.registers.rip).or_default();
            branch.label |= label | self.registers[Register::RCX as usize];
            *(if next == step.registers.rip { &mut branch.taken } else { &mut branch.passed }) = true;
        }
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => {
                let branch = self.branches.entry(step.registers.rip).or_default();
                branch.label |= label;
                *(if next == instruction.next_ip() { &mut branch.passed } else { &mut branch.taken }) = true;
            }
            // Where it goes next is not known.
            FlowControl::IndirectCall | FlowControl::IndirectBranch | FlowControl::Return if label & CHANGES != 0 => {
                return None;
            }
            _ => {}
        }
        for used in used.iter().filter(|used| !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)) {
            let register = used.register().full_register();
            if stack && register == Register::RSP {
                continue;
            }
            let part = used.register().is_gpr8() || used.register().is_gpr16();
            let kept = part || used.access() != OpAccess::Write;
            let before = self.registers[register as usize];
            self.registers[register as usize] = if kept { before | label } else { label };
        }
        for bit in flags(instruction.rflags_modified()) {
            self.flags[bit] = label;
        }
        for &place in &step.writes {
            self.write(place, label);
        }
        Some(())
    }

    fn system_call(&mut self, registers: &Registers) {
        let number = registers.rax as i64;
        let clock = CLOCKS.iter().find(|(clock, _)| *clock == number);
        if let Some((_, at)) = clock {
            self.clock = true;
            self.write(Place { address: at(registers), length: 16 }, CHANGES);
        }
        // What others say may end the loop.
        let tells_nothing = PAUSES.contains(&number) || clock.is_some_and(|&(clock, _)| clock != libc::SYS_time);
        self.registers[Register::RAX as usize] = if tells_nothing { 0 } else { CHANGES };
        for clobbered in [Register::RCX, Register::R11] {
            self.registers[clobbered as usize] = 0;
        }
    }
}

/// The places that a loop reads before it writes them, with another value than in the round before. `None` when it does
/// not write one of them at all.
fn changing(rounds: &[&[Step]]) -> Option<BTreeSet<Place>> {
    let steps = || rounds.iter().copied().flatten();
    let all: BTreeSet<u64> = steps().flat_map(|step| &step.writes).flat_map(|place| place.bytes()).collect();
    let clocks: BTreeSet<u64> = steps()
        .filter(|step| step.instruction.mnemonic() == Mnemonic::Syscall)
        .filter_map(|step| {
            let number = step.registers.rax as i64;
            CLOCKS.iter().find(|(clock, _)| *clock == number).map(|(_, at)| at(&step.registers))
        })
        .flat_map(|address| Place { address, length: 16 }.bytes())
        .collect();
    let mut seen = BTreeMap::new();
    let mut changing = BTreeSet::new();
    for round in rounds {
        let mut fresh = BTreeSet::new();
        for step in *round {
            for access in &step.reads {
                if access.place.bytes().any(|byte| fresh.contains(&byte)) {
                    continue;
                }
                if *seen.entry(access.place).or_insert(access.value) != access.value {
                    if access.place.bytes().all(|byte| !all.contains(&byte) && !clocks.contains(&byte)) {
                        return None;
                    }
                    changing.insert(access.place);
                }
            }
            fresh.extend(step.writes.iter().flat_map(|place| place.bytes()));
        }
    }
    Some(changing)
}

const GENERAL: [Register; 16] = [
    Register::RAX,
    Register::RBX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::RSP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

fn general(registers: &Registers) -> [u64; 16] {
    GENERAL.map(|register| register_value(registers, register).unwrap_or_default())
}
