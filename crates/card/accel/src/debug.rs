// SPDX-License-Identifier: Apache-2.0
//! Debugger interface for handlers of a card. Simulated time stands still while a handler is stopped.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Reason for a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The debugger requested it ([`Debugger::stops`]).
    Asked,
    /// The instruction failed; the handler ends when it resumes.
    Fault,
}

/// A handler that is resident on an HPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Context of the handler; a context holds at most one.
    pub context: u32,
    /// Number of the HPU.
    pub hpu: u32,
    /// Name of the handler.
    pub handler: Rc<str>,
    /// Registers of the handler.
    pub registers: Registers,
}

/// Registers of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// Integer registers `x0` to `x31`.
    pub integer: [u32; 32],
    /// Bits of the floating-point registers `f0` to `f31`; zeros for an HPU without them.
    pub float: [u64; 32],
    /// Address of the next instruction, or of the failed one.
    pub pc: u32,
}

/// Access to a card with a stopped handler.
pub trait Halted {
    /// Returns the resident handlers in the order of their contexts.
    fn residents(&self) -> Vec<Resident>;

    /// Returns the memory that the resident handlers may access, by card address.
    fn memory(&mut self) -> BTreeMap<u32, Vec<u8>>;

    /// Writes card memory if all of the range exists.
    fn write(&mut self, address: u32, bytes: &[u8]);

    /// Sets the registers of the handler in `context`.
    fn set_registers(&mut self, context: u32, registers: &Registers);
}

/// A debugger, which decides where handlers stop.
pub trait Debugger {
    /// Notifies the debugger that `handler` is about to run in `context`.
    fn starts(&mut self, context: u32, handler: &str);

    /// Returns true if the handler in `context` stops before its instruction at `pc`.
    fn stops(&mut self, context: u32, pc: u32) -> bool;

    /// Notifies the debugger that the handler in `context` stopped; the handler resumes when this returns.
    fn stopped(&mut self, context: u32, halt: Halt, card: &mut dyn Halted);

    /// Notifies the debugger that the handler in `context` ended.
    fn ended(&mut self, context: u32);
}
