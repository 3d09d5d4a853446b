// SPDX-License-Identifier: Apache-2.0
//! Determines from the instructions of a few iterations which memory locations a loop waits for.
//!
//! This is a taint analysis. The label of a value holds the memory locations on which the value depends, and a bit that
//! is set if it changes between iterations. A branch with the same direction in every iteration may be an exit. If no
//! exit depends on a changing value, the loop ends only after another thread or a card writes one of the locations on
//! which its exits depend: it polls them. A loop with a further exit that depends on a changing value, such as a retry
//! limit, polls too, but can end by itself. All other loops compute.

use super::polling_loop::Location;
use super::single_step::{Access, Step, register_value};
use iced_x86::{FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use libc::user_regs_struct as Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Label bit of a value that changes between iterations. The other bits represent locations, by index.
const CHANGES: u128 = 1 << 127;
/// Maximum number of locations on which the exits of a loop may depend.
const MAX_LOCATIONS: usize = 127;
/// Maximum number of locations that a polling loop with indirect jumps to changing addresses reads.
const FEW: usize = 24;
/// Number of status flags.
const FLAGS: usize = 32;

/// A system call that reads a clock, and the location to which it writes the time.
type Clock = (i64, fn(&Registers) -> Location);

/// System calls that read a clock.
const CLOCKS: [Clock; 5] = [
    (libc::SYS_clock_gettime, |registers| Location { address: registers.rsi, length: 16 }),
    (libc::SYS_gettimeofday, |registers| Location { address: registers.rdi, length: 16 }),
    (libc::SYS_time, |registers| Location { address: registers.rdi, length: 8 }),
    (libc::SYS_getrusage, |registers| Location { address: registers.rsi, length: size_of::<libc::rusage>() as u64 }),
    (libc::SYS_times, |registers| Location { address: registers.rdi, length: size_of::<libc::tms>() as u64 }),
];
/// System calls whose results carry no information: they yield or sleep.
const DELAY_CALLS: [i64; 3] = [libc::SYS_sched_yield, libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// System calls that request data or events from other threads or processes.
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

/// Cause that ends a loop that reads locations written by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// A write to one of the locations, nothing else.
    Writes,
    /// Such a write, or a limit of retries or time.
    Tries,
    /// Such a write, and possibly more: its exits depend on locations at changing addresses, or it also computes. It
    /// polls if it keeps returning to the same locations.
    Chance,
    /// Such a write, an amount of CPU time, or the result of a repeated kernel query.
    Work,
    /// An amount of CPU time, nothing else: the loop computes.
    CpuTime,
}

/// Code and data to ignore in the analysis.
pub struct Exempt {
    /// Code of the kernel's clock functions, whose branches are no exits.
    pub clock_code: Range<u64>,
    /// Data that neither threads nor cards write: private read-only mappings, such as tables of the dynamic linker, and
    /// the data of the simulated clock library, which only the library itself writes.
    pub data: Vec<Range<u64>>,
}

/// Wait condition of a polling loop.
pub struct WaitCondition {
    /// Locations on which its exits depend.
    pub locations: BTreeSet<Location>,
    /// Cause that ends it.
    pub ends: ExitCause,
    /// Index of the first step of the first analyzed iteration.
    pub begins: usize,
    /// Index of the first step of the last iteration.
    pub last_round: usize,
}

/// Returns the wait condition of a loop if it polls. `heads` are the indices in `steps` at which its iterations begin;
/// `now` are the registers after the last one.
pub fn analyze(steps: &[Step], heads: &[usize], now: &Registers, exempt: &Exempt) -> Option<WaitCondition> {
    let (begins, last_round) = (*heads.first()?, *heads.last()?);
    let rounds: Vec<&[Step]> = heads
        .iter()
        .enumerate()
        .map(|(k, &head)| &steps[head..heads.get(k + 1).copied().unwrap_or(steps.len())])
        .collect();
    let heads: Vec<[u64; 16]> = rounds.iter().map(|round| general(&round[0].registers)).chain([general(now)]).collect();
    let moving = (0..16).filter(|&k| heads.iter().any(|head| head[k] != heads[0][k]));
    let mut flow = Flow::new(&rounds, moving.map(|k| GENERAL[k]).collect(), &exempt.data)?;
    for round in &rounds {
        flow.begin_round();
        for (k, step) in round.iter().enumerate() {
            let next = round.get(k + 1).map_or(round_head(&rounds), |next| next.registers.rip);
            flow.execute(step, next)?;
        }
    }
    let ways_out = flow.branches.iter().filter(|(at, branch)| branch.one_way() && !exempt.clock_code.contains(at));
    let (changing, fixed): (Vec<_>, Vec<_>) = ways_out.partition(|(_, branch)| branch.label & CHANGES != 0);
    let locations = |branches: &[(&u64, &Branch)]| -> BTreeSet<Location> {
        let label = branches.iter().fold(0, |label, (_, branch)| label | branch.label);
        flow.locations.iter().enumerate().filter(|(k, _)| label & 1 << k != 0).map(|(_, &location)| location).collect()
    };
    // If only the address changes, not the value compared with the contents, the location decides.
    let (certain, mixed) = (locations(&fixed), locations(&changing));
    let indexed: BTreeSet<Location> = mixed.intersection(&flow.indexed).copied().collect();
    let counts = || {
        let count = |pair: &[[u64; 16]]| -> Vec<u64> { (0..16).map(|k| pair[1][k].wrapping_sub(pair[0][k])).collect() };
        flow.clock || heads.windows(2).all(|pair| count(pair) == count(&heads[..2]))
    };
    let ends = match (certain.is_empty(), changing.is_empty()) {
        // Interpreters access many locations in each iteration.
        _ if flow.jumps && flow.locations.len() > FEW => return None,
        (true, _) if flow.cpu_clock && indexed.is_empty() && !flow.queries_kernel => ExitCause::CpuTime,
        _ if flow.cpu_clock || flow.queries_kernel && certain.is_empty() && indexed.is_empty() => ExitCause::Work,
        _ if flow.jumps => ExitCause::Chance,
        (false, true) => ExitCause::Writes,
        // A loop that can end by itself polls only if it merely counts or reads a clock. One that strides through
        // memory computes, unless it returns to the same locations.
        (false, false) if !flow.strides && counts() => ExitCause::Tries,
        _ => ExitCause::Chance,
    };
    let locations: BTreeSet<Location> = match ends {
        ExitCause::Writes | ExitCause::Tries => certain,
        ExitCause::Chance | ExitCause::Work | ExitCause::CpuTime => certain.union(&indexed).copied().collect(),
    };
    // Without locations, no write could end the loop.
    (!locations.is_empty() || flow.queries_kernel || ends == ExitCause::CpuTime).then_some(WaitCondition {
        locations,
        ends,
        begins,
        last_round,
    })
}

fn round_head(rounds: &[&[Step]]) -> u64 {
    rounds[0][0].registers.rip
}

/// Directions that a conditional branch took, and the label of its condition.
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

/// Labels of all values computed by the iterations so far.
struct Flow<'a> {
    registers: [u128; 256],
    flags: [u128; FLAGS],
    /// Label of each written byte.
    memory: BTreeMap<u64, u128>,
    /// Bytes written in this iteration.
    fresh: BTreeSet<u64>,
    /// Registers whose values differ between the beginnings of iterations.
    moving: Vec<Register>,
    /// Locations that carry a changing value from iteration to iteration.
    changing: BTreeSet<Location>,
    locations: Vec<Location>,
    /// Subset of the locations that were read at changing addresses.
    indexed: BTreeSet<Location>,
    /// Data that neither threads nor cards write.
    exempt: &'a [Range<u64>],
    branches: BTreeMap<u64, Branch>,
    clock: bool,
    /// Set if it reads a CPU-time clock.
    cpu_clock: bool,
    /// Set if it queries the kernel for data or events from others.
    queries_kernel: bool,
    /// Set if it jumps to changing addresses.
    jumps: bool,
    /// Set if it accesses memory at changing addresses.
    strides: bool,
    factory: InstructionInfoFactory,
}

impl<'a> Flow<'a> {
    /// Returns `None` if another thread is writing the locations that the loop reads.
    fn new(rounds: &[&[Step]], moving: Vec<Register>, exempt: &'a [Range<u64>]) -> Option<Flow<'a>> {
        let mut factory = InstructionInfoFactory::new();
        let mut registers = [0; 256];
        for step in rounds.iter().copied().flatten() {
            // The initial contents of vector registers are not compared.
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
            locations: Vec::new(),
            indexed: BTreeSet::new(),
            exempt,
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

    /// Returns the label of a value that an instruction reads from a location, or `None` for too many locations.
    fn read(&mut self, access: &Access, data: bool) -> Option<u128> {
        let bytes = access.location.bytes();
        let written = bytes.clone().filter_map(|byte| self.memory.get(&byte)).fold(0, |all, label| all | label);
        if bytes.clone().all(|byte| self.fresh.contains(&byte)) {
            return Some(written);
        }
        if self.changing.contains(&access.location) {
            return Some(written | CHANGES);
        }
        // Reads of thread-local data, function tables, constants and externally unreadable locations are no polls.
        let is_exempt = || self.exempt.iter().any(|range| range.contains(&access.location.address));
        if !data || access.value.is_none() || is_exempt() {
            return Some(written);
        }
        let index = self.locations.iter().position(|location| *location == access.location).unwrap_or_else(|| {
            self.locations.push(access.location);
            self.locations.len() - 1
        });
        (index < MAX_LOCATIONS).then_some(written | 1 << index)
    }

    fn write(&mut self, location: Location, label: u128) {
        self.memory.extend(location.bytes().map(|byte| (byte, label)));
        self.fresh.extend(location.bytes());
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
                self.indexed.extend(step.reads.iter().map(|access| access.location));
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
        // A repeated string instruction is stepped one repetition at a time, so it forms a loop.
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
            // The targets are unknown.
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
        for location in step.written() {
            self.write(location, label);
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

/// Returns true if a system call reads a CPU-time clock.
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

/// Returns the locations that a loop reads before writing them, with values that differ from the previous iteration.
/// Returns `None` if the loop itself does not write one of them, or if it writes a location that only one iteration has
/// read: more iterations must show whether it changes.
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
    // First value of each location, and the first and last iteration that read it.
    let mut seen = BTreeMap::new();
    let mut changing = BTreeSet::new();
    for (number, round) in rounds.iter().enumerate() {
        let mut fresh = BTreeSet::new();
        for step in *round {
            for access in &step.reads {
                if access.location.bytes().any(|byte| fresh.contains(&byte)) {
                    continue;
                }
                let (value, _, last) = seen.entry(access.location).or_insert((access.value, number, number));
                *last = number;
                if *value != access.value {
                    if access.location.bytes().all(|byte| !all.contains(&byte) && !clocks.contains(&byte)) {
                        return None;
                    }
                    changing.insert(access.location);
                }
            }
            fresh.extend(step.written().flat_map(Location::bytes));
        }
    }
    let read_once = seen.iter().filter(|(_, (_, first, last))| first == last).map(|(location, _)| location);
    let unknown = rounds.len() > 1 && read_once.flat_map(|location| location.bytes()).any(|byte| all.contains(&byte));
    (!unknown).then_some(changing)
}

/// General-purpose registers.
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
