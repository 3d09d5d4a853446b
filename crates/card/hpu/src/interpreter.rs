//! One instruction after the other, without time: for comparison with hardware.

use std::sync::Arc;

use crate::memory::View;
use crate::op::{Class, Decoded, Flow, Op};
use crate::program::Program;
use crate::state::State;
use crate::stop::Fault;
use crate::thread::Thread;
use crate::watch::Watched;
use crate::window::Window;

/// What an instruction has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Its address.
    pub pc: u32,
    /// Its class. What an instruction of class [`Class::System`] gives may be the time or a count, which an interpreter does not
    /// know: the caller takes it from the hardware ([`Thread::set_register`]).
    pub class: Class,
    /// The register that holds its result, and the value; none for an instruction without result, or whose result is discarded.
    pub result: Option<(u8, u32)>,
    /// The address register that it has changed, and the value (post-increment).
    pub update: Option<(u8, u32)>,
    /// Its access to memory.
    pub access: Option<Accessed>,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// The first address.
    pub address: u32,
    /// The number of bytes.
    pub bytes: u32,
    /// What was read, the first byte lowest; 0 for a store.
    pub loaded: u64,
    /// What was written, the first byte lowest. An atomic operation that writes has both.
    pub stored: Option<u64>,
}

/// Executes the instructions of a program one by one. Loads return what the caller says, and nothing is protected.
pub struct Interpreter {
    program: Arc<Program>,
    /// The instruction at each half-word of the program that has been executed.
    decoded: Vec<Option<Decoded>>,
    nothing: Watched,
}

impl Interpreter {
    /// An interpreter of the instructions of this program.
    pub fn new(program: Arc<Program>) -> Interpreter {
        let decoded = vec![None; program.program_segment().len() / 2];
        Interpreter { program, decoded, nothing: Watched::default() }
    }

    /// Executes the next instruction of `thread`. `load` gives the bytes at an address for an instruction that reads memory: the
    /// address, and the number of bytes. Cycles are not counted.
    ///
    /// # Errors
    /// When there is no instruction, or it fails; the thread stays at its address. A command of the environment fails as an
    /// illegal instruction.
    pub fn step(&mut self, thread: &mut Thread, load: impl FnOnce(u32, u32) -> [u8; 8]) -> Result<Retired, Fault> {
        let pc = thread.state.pc;
        let decoded = self.decode(pc).ok_or(Fault::Fetch { pc })?;
        let access = &decoded.access;
        let accesses = decoded.class.accesses_memory();
        let address = if accesses { access.offset.address(access.base, &thread.state) } else { 0 };
        let reads = matches!(decoded.class, Class::Load | Class::Atomic);
        let before = if reads { load(address, access.bytes) } else { [0; 8] };
        let window = Window { base: address, len: if accesses { 8 } else { 0 }, write: true, ..Window::default() };

        thread.ways.forget();
        let state = &mut thread.state;
        // An atomic operation that may not write fails if it would.
        let read_only = Window { write: false, ..window };
        let stores = match decoded.class {
            Class::Store => true,
            Class::Atomic => self.execute(&decoded, &mut state.clone(), &mut { before }, read_only).0 == Flow::Store,
            _ => false,
        };
        let mut bytes = before;
        state.pc = pc.wrapping_add(decoded.length);
        let (flow, denied) = self.execute(&decoded, state, &mut bytes, window);
        if !matches!(flow, Flow::Next | Flow::Jump) {
            state.pc = pc;
            return Err(Fault::of(flow, pc, denied, self.program.encoding(pc).map_or(0, |(word, _)| word)));
        }
        if flow == Flow::Next
            && let Some(op) = self.program.isa().loop_end(state.pc)
        {
            Op::run_all(&[op], state, &mut View::of_window(&mut [], Window::default(), &mut self.nothing));
        }
        state.instructions += 1;
        let first = |registers: crate::op::RegisterSet| registers.iter().next().filter(|register| *register < 32);
        let value = |register: u8| (register, state.word(register));
        let word = |bytes: [u8; 8]| {
            let kept = std::array::from_fn(|at| if (at as u32) < access.bytes { bytes[at] } else { 0 });
            u64::from_le_bytes(kept)
        };
        Ok(Retired {
            pc,
            class: decoded.class,
            result: first(decoded.results).map(value),
            update: first(access.updates).map(value),
            access: accesses.then(|| Accessed {
                address,
                bytes: access.bytes,
                loaded: word(before),
                stored: stores.then(|| word(bytes)),
            }),
        })
    }

    /// Executes an instruction on these bytes. Returns what happens after it, and the access that failed.
    fn execute(
        &mut self,
        decoded: &Decoded,
        state: &mut State,
        bytes: &mut [u8],
        window: Window,
    ) -> (Flow, (u32, u32)) {
        let mut view = View::of_window(bytes, window, &mut self.nothing);
        let flow = Op::run_all(&[decoded.op], state, &mut view);
        (flow, view.denied)
    }

    /// The instruction at an address, if there is one.
    fn decode(&mut self, pc: u32) -> Option<Decoded> {
        let at = pc.wrapping_sub(self.program.base()) as usize;
        let known = self.decoded.get_mut(at / 2)?;
        if known.is_none() {
            *known = self.program.isa().decode(&self.program.program_segment()[at..], pc);
        }
        *known
    }
}
