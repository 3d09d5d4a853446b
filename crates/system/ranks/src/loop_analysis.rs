//! Determines from the instructions of a few iterations of a loop what the loop waits for.
//!
//! Each value gets a label: the places in memory that it depends on, and whether it changes from iteration to
//! iteration. A branch that went the same way in every iteration may be an exit. If no exit depends on a value that
//! changes, the loop ends only after somebody else has written one of the places on which its exits depend: it polls
//! them. A loop that also has an exit which depends on a changing value, for example a limit of tries, polls too, but
//! can end by itself. All other loops compute.

use super::polling_loop::Location;
use super::single_step::{Access, Step, register_value};
use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The bit of a label for a value that changes from iteration to iteration. The other bits stand for places, by their
/// index.
const CHANGES: u128 = 1 << 127;
/// The maximum number of places on which the exits of a loop may depend.
const PLACES: usize = 127;
/// The largest number of places that a loop reads which waits and goes to addresses that change.
const FEW: usize = 24;
/// The number of status flags.
const FLAGS: usize = 32;

/// A system call that reads a clock, and the place to which it writes the time.
type Clock = (i64, fn(&Registers) -> Location);

/// The system calls that read a clock.
const CLOCKS: [Clock; 5] = [
    (libc::SYS_clock_gettime, |registers| Location { address: registers.rsi, length: 16 }),
    (libc::SYS_gettimeofday, |registers| Location { address: registers.rdi, length: 16 }),
    (libc::SYS_time, |registers| Location { address: registers.rdi, length: 8 }),
    (libc::SYS_getrusage, |registers| Location { address: registers.rsi, length: size_of::<libc::rusage>() as u64 }),
    (libc::SYS_times, |registers| Location { address: registers.rdi, length: size_of::<libc::tms>() as u64 }),
];
/// System calls whose results carry no information: they only let others run or time pass.
const DELAY_CALLS: [i64; 3] = [libc::SYS_sched_yield, libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// System calls that ask for data or events which another thread or process may send.
const KERNEL_QUERIES: [i64; 12] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_ioctl,
    libc::SYS_wait4,
];

/// The cause that ends a loop which reads places that somebody else may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// Only a write to one of them.
    Writes,
    /// Such a write, or a number of tries or a time.
    Tries,
    /// Such a write, and perhaps more: its exits depend on places whose addresses change, or it computes besides. If it comes back to the
    /// same places, it polls them.
    Chance,
    /// Such a write, or an amount of CPU time, which it must use, or what the kernel answers when it queries_kernel again.
    Work,
}

/// Code and data that say nothing about a loop.
pub struct Exempt {
    /// The code of the kernel's clocks, whose branches are no exits.
    pub clock_code: Range<u64>,
    /// The data of the library of simulated clocks, which nobody writes.
    pub clock_data: Range<u64>,
}

/// The condition that a polling loop waits for.
pub struct WaitCondition {
    /// The places on which its exits depend.
    pub places: BTreeSet<Location>,
    /// The cause that ends it.
    pub ends: ExitCause,
    /// The step at which its first round that was looked at begins.
    pub begins: usize,
    /// The step at which its last round begins.
    pub last_round: usize,
}

/// Returns what a loop waits for, if it polls. Its iterations begin at `heads` in `steps`, and `now` are the registers
/// after the last one.
pub fn analyze(steps: &[Step], heads: &[usize], now: &Registers, exempt: &Exempt) -> Option<WaitCondition> {
    let (begins, last_round) = (*heads.first()?, *heads.last()?);
    let rounds: Vec<&[Step]> = heads
        .iter()
        .enumerate()
        .map(|(k, &head)| &steps[head..heads.get(k + 1).copied().unwrap_or(steps.len())])
        .collect();
    let heads: Vec<[u64; 16]> = rounds.iter().map(|round| general(&round[0].registers)).chain([general(now)]).collect();
    let moving = (0..16).filter(|&k| heads.iter().any(|head| head[k] != heads[0][k]));
    let mut flow = Flow::new(&rounds, moving.map(|k| GENERAL[k]).collect(), exempt.clock_data.clone())?;
    for round in &rounds {
        flow.begin_round();
        for (k, step) in round.iter().enumerate() {
            let next = round.get(k + 1).map_or(round_head(&rounds), |next| next.registers.rip);
            flow.execute(step, next)?;
        }
    }
    let ways_out = flow.branches.iter().filter(|(at, branch)| branch.one_way() && !exempt.clock_code.contains(at));
    let (changing, fixed): (Vec<_>, Vec<_>) = ways_out.partition(|(_, branch)| branch.label & CHANGES != 0);
    let places = |branches: &[(&u64, &Branch)]| -> BTreeSet<Location> {
        let label = branches.iter().fold(0, |label, (_, branch)| label | branch.label);
        flow.places.iter().enumerate().filter(|(k, _)| label & 1 << k != 0).map(|(_, &place)| place).collect()
    };
    // If only the address changes, and not the value that the contents are compared with, the place decides.
    let (certain, mixed) = (places(&fixed), places(&changing));
    let indexed: BTreeSet<Location> = mixed.intersection(&flow.indexed).copied().collect();
    let counts = || {
        let count = |pair: &[[u64; 16]]| -> Vec<u64> { (0..16).map(|k| pair[1][k].wrapping_sub(pair[0][k])).collect() };
        flow.clock || heads.windows(2).all(|pair| count(pair) == count(&heads[..2]))
    };
    let ends = match (certain.is_empty(), changing.is_empty()) {
        // Interpreters come to many places in each round.
        _ if flow.jumps && flow.places.len() > FEW => return None,
        _ if flow.cpu_clock || flow.queries_kernel && certain.is_empty() && indexed.is_empty() => ExitCause::Work,
        _ if flow.jumps => ExitCause::Chance,
        (false, true) => ExitCause::Writes,
        // A loop that can end by itself polls only if it does no more than count or read a clock. One that strides through
        // memory computes, unless it comes back to the same places.
        (false, false) if !flow.strides && counts() => ExitCause::Tries,
        _ => ExitCause::Chance,
    };
    let places: BTreeSet<Location> = match ends {
        ExitCause::Writes | ExitCause::Tries => certain,
        ExitCause::Chance | ExitCause::Work => certain.union(&indexed).copied().collect(),
    };
    // Without any, nothing that anybody could write would end it.
    (!places.is_empty() || flow.queries_kernel).then_some(WaitCondition { places, ends, begins, last_round })
}

fn round_head(rounds: &[&[Step]]) -> u64 {
    rounds[0][0].registers.rip
}

/// The directions that a conditional branch took, and the label of its condition.
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

/// The labels of all values that the iterations have computed so far.
struct Flow {
    registers: [u128; 256],
    flags: [u128; FLAGS],
    /// The label of each byte that was written.
    memory: BTreeMap<u64, u128>,
    /// The bytes that were written in this iteration.
    fresh: BTreeSet<u64>,
    /// The registers whose values differ between the beginnings of iterations.
    moving: Vec<Register>,
    /// The places that carry a value from iteration to iteration, which changes.
    changing: BTreeSet<Location>,
    places: Vec<Location>,
    /// The places among them that were read at addresses that change.
    indexed: BTreeSet<Location>,
    /// The data of the simulated clock.
    clock_data: Range<u64>,
    branches: BTreeMap<u64, Branch>,
    clock: bool,
    /// Whether it reads a clock that shows CPU time.
    cpu_clock: bool,
    /// Whether it queries_kernel the kernel for data or events that others may send.
    queries_kernel: bool,
    /// Whether it goes to addresses that change.
    jumps: bool,
    /// Whether it accesses memory at addresses that change.
    strides: bool,
    factory: InstructionInfoFactory,
}

impl Flow {
    /// Returns `None` if somebody else is writing the places that the loop reads.
    fn new(rounds: &[&[Step]], moving: Vec<Register>, clock_data: Range<u64>) -> Option<Flow> {
        let mut factory = InstructionInfoFactory::new();
        let mut registers = [0; 256];
        for step in rounds.iter().copied().flatten() {
            // The initial contents of vector registers are not considered.
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
            indexed: BTreeSet::new(),
            clock_data,
            branches: BTreeMap::new(),
            clock: false,
            cpu_clock: false,
            queries_kernel: false,
            jumps: false,
            strides: false,
            factory,
        })
    }

    fn begin_round(&mut self) {
        self.fresh.clear();
        for register in &self.moving {
            self.registers[*register as usize] |= CHANGES;
        }
    }

    /// Returns the label of a value that an instruction reads from a place, or `None` if there are too many places.
    fn read(&mut self, access: &Access, data: bool) -> Option<u128> {
        let bytes = access.place.bytes();
        let written = bytes.clone().filter_map(|byte| self.memory.get(&byte)).fold(0, |all, label| all | label);
        if bytes.clone().all(|byte| self.fresh.contains(&byte)) {
            return Some(written);
        }
        if self.changing.contains(&access.place) {
            return Some(written | CHANGES);
        }
        // Reads of thread-local data, tables of functions and places that cannot be read from outside are no polls.
        if !data || access.value.is_none() || self.clock_data.contains(&access.place.address) {
            return Some(written);
        }
        let index = self.places.iter().position(|place| *place == access.place).unwrap_or_else(|| {
            self.places.push(access.place);
            self.places.len() - 1
        });
        (index < PLACES).then_some(written | 1 << index)
    }

    fn write(&mut self, place: Location, label: u128) {
        self.memory.extend(place.bytes().map(|byte| (byte, label)));
        self.fresh.extend(place.bytes());
    }

    fn execute(&mut self, step: &Step, next: u64) -> Option<()> {
        let instruction = &step.instruction;
        let data = step.reads_data();
        let mut label = 0;
        for access in &step.reads {
            label |= self.read(access, data)?;
        }
        let used = self.factory.info(instruction).used_registers().to_vec();
        let stack = instruction.is_stack_instruction();
        if !step.reads.is_empty() || !step.writes.is_empty() {
            let address = [instruction.memory_base(), instruction.memory_index()].map(Register::full_register);
            let changes = address.iter().any(|register| self.registers[*register as usize] & CHANGES != 0);
            self.strides |= changes;
            if changes {
                self.indexed.extend(step.reads.iter().map(|access| access.place));
            }
        }
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
        // A repeated string instruction is stepped one repetition at a time, so it is a loop of its own.
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
            // Its targets are not known.
            FlowControl::IndirectCall | FlowControl::IndirectBranch | FlowControl::Return if label & CHANGES != 0 => {
                self.jumps = true;
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
        for place in step.written() {
            self.write(place, label);
        }
        Some(())
    }

    fn system_call(&mut self, registers: &Registers) {
        let number = registers.rax as i64;
        self.cpu_clock |= reads_cpu_time(registers);
        self.queries_kernel |= KERNEL_QUERIES.contains(&number);
        let clock = CLOCKS.iter().find(|(clock, _)| *clock == number);
        if let Some((_, at)) = clock {
            self.clock = true;
            self.write(at(registers), CHANGES);
        }
        // Results of other system calls may end the loop.
        let tells = [libc::SYS_time, libc::SYS_times].contains(&number);
        let tells_nothing = DELAY_CALLS.contains(&number) || clock.is_some() && !tells;
        self.registers[Register::RAX as usize] = if tells_nothing { 0 } else { CHANGES };
        for clobbered in [Register::RCX, Register::R11] {
            self.registers[clobbered as usize] = 0;
        }
    }
}

/// Whether a system call reads a clock that shows CPU time.
fn reads_cpu_time(registers: &Registers) -> bool {
    let clock = registers.rdi as i32;
    match registers.rax as i64 {
        libc::SYS_getrusage | libc::SYS_times => true,
        libc::SYS_clock_gettime => {
            clock < 0 || [libc::CLOCK_PROCESS_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID].contains(&clock)
        }
        _ => false,
    }
}

/// Returns the places that a loop reads before it writes them, and whose values differ from the iteration before.
/// Returns `None` if the loop itself does not write one of them, or if it writes a place that only one iteration has
/// read: more iterations must show whether that changes.
fn changing(rounds: &[&[Step]]) -> Option<BTreeSet<Location>> {
    let steps = || rounds.iter().copied().flatten();
    let all: BTreeSet<u64> = steps().flat_map(Step::written).flat_map(Location::bytes).collect();
    let clocks: BTreeSet<u64> = steps()
        .filter(|step| step.instruction.mnemonic() == Mnemonic::Syscall)
        .filter_map(|step| {
            let number = step.registers.rax as i64;
            CLOCKS.iter().find(|(clock, _)| *clock == number).map(|(_, at)| at(&step.registers))
        })
        .flat_map(Location::bytes)
        .collect();
    // The first value of each place, and the first and the last iteration that has read it.
    let mut seen = BTreeMap::new();
    let mut changing = BTreeSet::new();
    for (number, round) in rounds.iter().enumerate() {
        let mut fresh = BTreeSet::new();
        for step in *round {
            for access in &step.reads {
                if access.place.bytes().any(|byte| fresh.contains(&byte)) {
                    continue;
                }
                let (value, _, last) = seen.entry(access.place).or_insert((access.value, number, number));
                *last = number;
                if *value != access.value {
                    if access.place.bytes().all(|byte| !all.contains(&byte) && !clocks.contains(&byte)) {
                        return None;
                    }
                    changing.insert(access.place);
                }
            }
            fresh.extend(step.written().flat_map(Location::bytes));
        }
    }
    let read_once = seen.iter().filter(|(_, (_, first, last))| first == last).map(|(place, _)| place);
    let unknown = rounds.len() > 1 && read_once.flat_map(|place| place.bytes()).any(|byte| all.contains(&byte));
    (!unknown).then_some(changing)
}

/// The general registers.
pub const GENERAL: [Register; 16] = [
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
