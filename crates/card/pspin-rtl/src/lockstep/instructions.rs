// SPDX-License-Identifier: Apache-2.0
//! Compares instructions of the hardware with the instruction-set simulator, one by one, as ibex' cosim does.
//!
//! The monitor of a core (`rtl/observe/pspin_retire.sv`) reports four streams, each in program order: addresses of
//! instructions, results of the execute stage, results of loads, and accessed words. The simulator executes the
//! hardware's instructions with the data that the hardware loaded; addresses, registers, values, and the address, bytes
//! and data of each access must be equal.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use abi::pspin::map;
use hpu::isa::Class;
use hpu::{Accessed, Interpreter, Program, Thread};
use pspin_unit::core::Runtime;
use pspin_unit::her::HpuId;
use pspin_unit::memory::{Arena, Place};

use crate::simulation::Event;

/// Address of an instruction.
pub const RETIRED: u16 = 1;
/// Result of the execute stage: register and value.
pub const RESULT: u16 = 2;
/// Result of a load: register and value.
pub const LOADED: u16 = 3;
/// Word of an access: address, kind, and written value.
pub const ACCESSED: u16 = 4;
/// Flag of an access: second word of one that crosses a word boundary.
pub const SECOND: u32 = 1 << 5;
/// Fields of an access: the bytes of the word, and the store flag. The operation of an atomic access is in the bits
/// above.
const BYTES: u32 = 0xF;
const STORE: u32 = 1 << 4;
const OPERATION: u32 = 6;

/// Address of the boot ROM, and its size in bytes.
const BOOT_ROM: u32 = 0x1A00_0000;
const BOOT_BYTES: u32 = 24;
/// Opcodes of instructions on control registers and of atomic operations; upper bits of load-reserved and
/// store-conditional.
const SYSTEM: u32 = 0x73;
const ATOMIC: u32 = 0x2F;
const LOAD_RESERVED: u32 = 0b00010;
const STORE_CONDITIONAL: u32 = 0b00011;
/// Registers of the calling convention.
const RA: u8 = 1;
const SP: u8 = 2;
const GP: u8 = 3;
const T0: u8 = 5;
const A0: u8 = 10;
const A1: u8 = 11;
/// Number of instructions shown before a difference.
const SHOWN: usize = 10;
/// Largest number of instructions that a reset of the core may leave without results.
const MOST_LOST: usize = 4;

/// Returns true if an event is an executed instruction outside the boot ROM.
pub fn is_of_program(event: &Event) -> bool {
    event.kind == RETIRED && event.values[0].wrapping_sub(BOOT_ROM) >= BOOT_BYTES
}

/// Difference between hardware and simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The HPU.
    pub hpu: HpuId,
    /// Cycle in which the hardware reported it.
    pub cycle: u64,
    /// Address of the instruction.
    pub pc: u32,
    /// Description of the difference.
    pub what: String,
    /// Preceding instructions, the latest last: cycles and addresses.
    pub before: Vec<(u64, u32)>,
}

impl Display for Difference {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Difference { hpu: HpuId { cluster, hpu }, cycle, pc, what, before } = self;
        write!(out, "HPU {hpu} of cluster {cluster}, cycle {cycle}, instruction at {pc:#010x}: {what}")?;
        before.iter().try_for_each(|(cycle, pc)| write!(out, "\n    cycle {cycle:>9}  {pc:#010x}"))
    }
}

/// Written register, and value.
type Written = (u8, u32);

/// Result that the simulator expects, with the address of the instruction; `None` accepts any value.
#[derive(Clone, Copy, Debug)]
struct Expected {
    pc: u32,
    register: u8,
    value: Option<u32>,
}

/// Accessed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    /// Address, a multiple of 4.
    address: u32,
    /// Byte mask.
    bytes: u32,
    /// Stored data, if known; bytes outside the mask are 0.
    stored: Option<u32>,
}

impl Word {
    /// Returns the access that the hardware reports. The data of an atomic operation is known only in its bank.
    fn told(address: u32, what: u32, value: u32) -> Word {
        let bytes = what & BYTES;
        let stores = what & STORE != 0 && what >> OPERATION == 0;
        Word { address: address & !3, bytes, stored: stores.then(|| value & lanes(bytes)) }
    }

    /// Returns the words of an access.
    fn all(access: Accessed, is_atomic: bool) -> impl Iterator<Item = Word> {
        let Accessed { address, bytes, stored, .. } = access;
        let offset = 8 * (address & 3);
        let touched = ((1_u32 << bytes) - 1) << (address & 3);
        let stored = stored.filter(|_| !is_atomic).map(|stored| stored << offset);
        let word = move |half: u32| {
            let bytes = touched >> (4 * half) & BYTES;
            let value = |stored: u64| (stored >> (32 * half)) as u32 & lanes(bytes);
            Word { address: (address & !3).wrapping_add(4 * half), bytes, stored: stored.map(value) }
        };
        (0..2).map(word).filter(|word| word.bytes != 0)
    }
}

impl Display for Word {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Word { address, bytes, stored } = self;
        match stored {
            Some(stored) => {
                write!(out, "a store of {stored:#010x} to bytes {bytes:#06b} of the word at {address:#010x}")
            }
            None => write!(out, "an access to bytes {bytes:#06b} of the word at {address:#010x}"),
        }
    }
}

/// Returns the bit mask of these bytes of a word.
fn lanes(bytes: u32) -> u32 {
    (0..4).filter(|byte| bytes >> byte & 1 != 0).map(|byte| 0xFF << (8 * byte)).sum()
}

/// Hardware thread: one HPU.
struct Hart {
    id: HpuId,
    stack_top: u32,
    /// `None` in the boot ROM.
    thread: Option<Thread>,
    retired: VecDeque<(u64, u32)>,
    results: VecDeque<(u64, Written)>,
    loads: VecDeque<Written>,
    expected: VecDeque<Expected>,
    /// Words accessed by the hardware, and by the simulator with the addresses of their instructions.
    accessed: VecDeque<(u64, Word)>,
    accesses: VecDeque<(u32, Word)>,
    /// Value of the latest load-reserved.
    reserved: u32,
    latest: VecDeque<(u64, u32)>,
}

/// Compares the instructions of all HPUs.
pub struct Instructions {
    program: Arc<Program>,
    runtime: Runtime,
    interpreter: Interpreter,
    harts: Vec<Hart>,
    /// Known bytes of memory, when only one HPU uses it.
    shadow: Option<HashMap<u32, u8>>,
    compared: Counts,
}

/// Numbers of comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Compared instructions.
    pub instructions: u64,
    /// Compared register writes.
    pub registers: u64,
    /// Compared word accesses.
    pub words: u64,
}

impl Instructions {
    /// Creates a checker for HPUs, each with the end address of its stack, that run this program.
    pub fn new(program: Arc<Program>, runtime: Runtime, hpus: impl IntoIterator<Item = (HpuId, u32)>) -> Instructions {
        let hart = |(id, stack_top)| Hart {
            id,
            stack_top,
            thread: None,
            retired: VecDeque::new(),
            results: VecDeque::new(),
            loads: VecDeque::new(),
            expected: VecDeque::new(),
            accessed: VecDeque::new(),
            accesses: VecDeque::new(),
            reserved: 0,
            latest: VecDeque::new(),
        };
        Instructions {
            interpreter: Interpreter::new(program.clone()),
            program,
            runtime,
            harts: hpus.into_iter().map(hart).collect(),
            shadow: None,
            compared: Counts::default(),
        }
    }

    /// States that only one HPU uses memory, so that loads are checked against earlier stores.
    pub fn is_alone(mut self) -> Instructions {
        self.shadow = Some(HashMap::new());
        self
    }

    /// Returns the numbers of comparisons.
    pub fn compared(&self) -> Counts {
        self.compared
    }

    /// Returns the number of hardware instructions and values without a counterpart yet. An HPU that waits for a task
    /// has a load, and the instructions behind it in its pipeline.
    pub fn waiting(&self) -> usize {
        let of = |hart: &Hart| hart.retired.len() + hart.expected.len() + hart.results.len() + hart.accesses.len();
        self.harts.iter().map(of).sum()
    }

    /// Takes an event of the hardware, if it is one of the monitor, and compares as far as possible.
    ///
    /// # Errors
    /// The first difference.
    pub fn take(&mut self, event: &Event) -> Result<(), Box<Difference>> {
        let Event { cycle, kind, unit, values: [a, b, c, ..] } = *event;
        let id = HpuId { cluster: unit >> 5, hpu: unit & 31 };
        let Some(index) = self.harts.iter().position(|hart| hart.id == id) else { return Ok(()) };
        let hart = &mut self.harts[index];
        match kind {
            RETIRED => {
                if a == BOOT_ROM {
                    hart.restart()?;
                    // A store in flight may be lost.
                    self.shadow.as_mut().map(HashMap::clear);
                }
                hart.retired.push_back((cycle, a));
            }
            // A result for register 0 is discarded; a load to it still takes place.
            RESULT if a != 0 => hart.results.push_back((cycle, (a as u8, b))),
            LOADED => hart.loads.push_back((a as u8, b)),
            ACCESSED => hart.accessed.push_back((cycle, Word::told(a, b, c))),
            _ => return Ok(()),
        }
        self.compare(index)
    }

    fn compare(&mut self, index: usize) -> Result<(), Box<Difference>> {
        loop {
            let hart = &mut self.harts[index];
            self.compared.registers += hart.match_results()?;
            self.compared.words += hart.match_accesses()?;
            let Some((cycle, pc)) = self.harts[index].retired.front().copied() else { return Ok(()) };
            if !self.execute(index, cycle, pc)? {
                return Ok(());
            }
            let hart = &mut self.harts[index];
            hart.retired.pop_front();
            hart.latest.push_back((cycle, pc));
            if hart.latest.len() > SHOWN {
                hart.latest.pop_front();
            }
            self.compared.instructions += 1;
        }
    }

    /// Executes the next instruction of the hardware. Returns true if all its inputs were available.
    fn execute(&mut self, index: usize, cycle: u64, pc: u32) -> Result<bool, Box<Difference>> {
        let Instructions { program, runtime, interpreter, harts, shadow, .. } = self;
        let hart = &mut harts[index];
        if pc.wrapping_sub(BOOT_ROM) < BOOT_BYTES {
            hart.boot(pc);
            return Ok(true);
        }
        if hart.thread.is_none() {
            if ![runtime.boot, runtime.again].contains(&pc) {
                let what = "the boot ROM jumps to another place than the program's loop".to_owned();
                return Err(hart.differs(cycle, pc, what));
            }
            hart.begin(program, pc);
        }
        let Some(thread) = hart.thread.as_mut().filter(|thread| thread.pc() == pc) else {
            let expected = hart.thread.as_ref().map_or(0, Thread::pc);
            return Err(hart.differs(cycle, pc, format!("the simulator executes the one at {expected:#010x}")));
        };
        let word = encoding(program, pc);
        let (is_atomic, operation) = (word & 0x7F == ATOMIC, word >> 27);
        let is_conditional = is_atomic && operation == STORE_CONDITIONAL;
        let (mut needs, loaded, reserved) = (false, hart.loads.front().copied(), hart.reserved);
        // The instruction is executed again once its inputs are available.
        let before = (loaded.is_none() || word & 0x7F == SYSTEM).then(|| thread.clone());
        let done = interpreter.step(thread, |_, _| {
            needs = true;
            let (_, value) = loaded.unwrap_or_default();
            // The hardware reports whether a store-conditional succeeded, but not the old value.
            let value = match value {
                0 if is_conditional => reserved,
                _ if is_conditional => !reserved,
                value => value,
            };
            u64::from(value).to_le_bytes()
        });
        if needs && loaded.is_none() {
            hart.thread = before;
            return Ok(false);
        }
        let retired = match done {
            Ok(retired) => retired,
            Err(fault) => return Err(hart.differs(cycle, pc, format!("the simulator fails: {fault:?}"))),
        };
        if let (Class::System, Some((register, _))) = (retired.class, retired.result) {
            // Counters take the hardware's values.
            let Some((_, (_, value))) = hart.results.get(hart.expected.len()).copied() else {
                hart.thread = before;
                return Ok(false);
            };
            if let Some(thread) = &mut hart.thread {
                thread.set_register(register, value);
            }
            hart.expected.push_back(Expected { pc, register, value: None });
            return Ok(true);
        }
        if let Some(access) = retired.access {
            hart.accesses.extend(Word::all(access, is_atomic).map(|word| (pc, word)));
        }
        if let (Some(shadow), Some(access)) = (shadow, retired.access.filter(|access| !is_register(access.address))) {
            let bytes = |value: u64| (access.address..).zip(value.to_le_bytes()).take(access.bytes as usize);
            let is_known = |(at, byte): (u32, u8)| shadow.get(&at).is_none_or(|known| *known == byte);
            if needs && !is_conditional && !bytes(access.loaded).all(is_known) {
                let what = format!(
                    "{:#x} is loaded from {:#010x}, where other bytes were stored",
                    access.loaded, access.address
                );
                return Err(hart.differs(cycle, pc, what));
            }
            shadow.extend(access.stored.into_iter().flat_map(bytes));
        }
        if let (true, Some((register, value))) = (needs, loaded) {
            hart.loads.pop_front();
            if is_atomic && operation == LOAD_RESERVED {
                hart.reserved = value;
            }
            if let Some(wanted) = retired.result.filter(|wanted| *wanted != (register, value)) {
                let (to, wanted) = wanted;
                let what = format!("x{register} = {value:#010x} is loaded, x{to} = {wanted:#010x} expected");
                return Err(hart.differs(cycle, pc, what));
            }
            self.compared.registers += 1;
        } else if let Some((register, value)) = retired.result {
            hart.expected.push_back(Expected { pc, register, value: Some(value) });
        }
        if let Some((register, value)) = retired.update {
            hart.expected.push_back(Expected { pc, register, value: Some(value) });
        }
        Ok(true)
    }
}

impl Hart {
    /// Restarts the core: the contents of its pipeline are lost.
    fn restart(&mut self) -> Result<(), Box<Difference>> {
        if self.retired.len() > MOST_LOST {
            let (cycle, pc) = self.retired[0];
            return Err(self.differs(cycle, pc, format!("{} instructions have no results", self.retired.len())));
        }
        self.thread = None;
        self.retired.clear();
        self.results.clear();
        self.loads.clear();
        self.expected.clear();
        self.accessed.clear();
        self.accesses.clear();
        Ok(())
    }

    /// Executes an instruction of the boot ROM (`rtl/src/hpu/pspin_boot_rom.sv`).
    fn boot(&mut self, pc: u32) {
        let mut expect = |register, value| self.expected.push_back(Expected { pc, register, value });
        match (pc - BOOT_ROM) / 4 {
            0 => expect(SP, Some(upper(self.stack_top))),
            1 => expect(SP, Some(self.stack_top)),
            2 => expect(A0, Some(self.id.cluster.into())),
            3 => expect(A1, Some(self.id.hpu.into())),
            4 => expect(T0, None),
            _ => {}
        }
    }

    /// Starts the program, with the registers that the boot ROM leaves.
    fn begin(&mut self, program: &Program, pc: u32) {
        let mut thread = Thread::new(program, pc, self.stack_top, [self.id.cluster.into(), self.id.hpu.into(), 0]);
        thread.set_register(RA, 0);
        thread.set_register(GP, 0);
        thread.set_register(T0, upper(pc));
        self.thread = Some(thread);
    }

    /// Compares results of the execute stage with those of the simulator. Returns the number compared.
    fn match_results(&mut self) -> Result<u64, Box<Difference>> {
        let mut matched = 0;
        while let (Some(expected), Some(result)) = (self.expected.front(), self.results.front()) {
            let Expected { pc, register: to, value: wanted } = *expected;
            let (cycle, (register, value)) = *result;
            if to != register || wanted.is_some_and(|wanted| wanted != value) {
                let wanted = wanted.map_or_else(|| "any value".to_owned(), |wanted| format!("{wanted:#010x}"));
                let what = format!("x{register} = {value:#010x} is written, x{to} = {wanted} expected");
                return Err(self.differs(cycle, pc, what));
            }
            self.expected.pop_front();
            self.results.pop_front();
            matched += 1;
        }
        Ok(matched)
    }

    /// Compares words accessed by the hardware with those of the simulator. Returns the number compared.
    fn match_accesses(&mut self) -> Result<u64, Box<Difference>> {
        let mut matched = 0;
        while let (Some((cycle, told)), Some((pc, wanted))) = (self.accessed.front(), self.accesses.front()) {
            if told != wanted {
                return Err(self.differs(*cycle, *pc, format!("{told}, {wanted} expected")));
            }
            self.accessed.pop_front();
            self.accesses.pop_front();
            matched += 1;
        }
        Ok(matched)
    }

    fn differs(&self, cycle: u64, pc: u32, what: String) -> Box<Difference> {
        Box::new(Difference { hpu: self.id, cycle, pc, what, before: self.latest.iter().copied().collect() })
    }
}

/// Returns true if an address belongs to a device, not to memory.
fn is_register(address: u32) -> bool {
    (map::OUTPUT..map::OWN_L1).contains(&address) || (map::TERMINATE..map::HANDLER).contains(&address)
}

/// Returns the `lui` immediate of an address to whose lower 12 bits the next instruction adds a signed immediate.
fn upper(address: u32) -> u32 {
    address.wrapping_add(0x800) & !0xFFF
}

/// Returns the encoding of an instruction; the upper half of a compressed one holds the next.
fn encoding(program: &Program, pc: u32) -> u32 {
    let at = pc.wrapping_sub(Arena::start(Place::Program)) as usize;
    let bytes = program.program_segment().get(at..).unwrap_or_default();
    bytes.iter().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
