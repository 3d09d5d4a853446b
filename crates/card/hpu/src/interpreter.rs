// SPDX-License-Identifier: Apache-2.0
//! Untimed instruction-by-instruction interpreter, for comparison with hardware.

use std::sync::Arc;

use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Class, Decoded, Flow, Op};
use crate::program::Program;
use crate::stop::Fault;
use crate::thread::Thread;
use crate::watch::Watched;
use crate::window::Window;

/// Effects of an executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Address of the instruction.
    pub pc: u32,
    /// Class of the instruction. The result of a [`Class::System`] instruction may be a time or a count, which the
    /// interpreter does not model: the caller takes it from the hardware ([`Thread::set_register`]).
    pub class: Class,
    /// Result register and value; `None` without a result, or if the result is discarded.
    pub result: Option<(u8, u32)>,
    /// Updated address register and its value (post-increment).
    pub update: Option<(u8, u32)>,
    /// Memory access.
    pub access: Option<Accessed>,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// Address of the first byte.
    pub address: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Loaded bytes, the first byte lowest; 0 for a store.
    pub loaded: u64,
    /// Stored bytes, the first byte lowest. An atomic operation that writes has both.
    pub stored: Option<u64>,
}

/// Executes the instructions of a program one by one. The caller supplies the loaded data; memory is not protected.
pub struct Interpreter {
    program: Arc<Program>,
    /// Decoded instruction at each executed half-word of the program.
    decoded: Vec<Option<Decoded>>,
    nothing: Watched,
}

impl Interpreter {
    /// Creates an interpreter of a program.
    pub fn new(program: Arc<Program>) -> Interpreter {
        let decoded = vec![None; program.program_segment().len() / 2];
        Interpreter { program, decoded, nothing: Watched::default() }
    }

    /// Executes the next instruction of `thread`. For a load, `load` receives the address and the number of bytes, and
    /// returns the bytes. Cycles are not counted.
    ///
    /// # Errors
    /// Returns a fault if no instruction is at the pc or if it fails; the pc stays at that address. An environment call
    /// fails as an illegal instruction.
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
        // An atomic operation on a read-only window fails if it would write.
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

    /// Executes an instruction on these bytes. Returns its flow and the denied access.
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

    /// Decodes the instruction at an address, if there is one.
    fn decode(&mut self, pc: u32) -> Option<Decoded> {
        let at = pc.wrapping_sub(self.program.base()) as usize;
        let known = self.decoded.get_mut(at / 2)?;
        if known.is_none() {
            *known = self.program.isa().decode(&self.program.program_segment()[at..], pc);
        }
        *known
    }
}
