//! A debugger at the handlers of a card: while a handler is stopped, simulated time stands still.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Why a handler has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The debugger has asked for it ([`Debugger::stops`]).
    Asked,
    /// Its instruction has failed; when it goes on, it ends.
    Fault,
}

/// A handler that is resident on a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The context in which it is; at most one handler is in a context at any time.
    pub context: u32,
    /// The number of the processor.
    pub hpu: u32,
    /// Its name.
    pub handler: Rc<str>,
    /// Its registers.
    pub registers: Registers,
}

/// The registers of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The integer registers, `x0` to `x31`.
    pub integer: [u32; 32],
    /// The bits of the floating-point registers, `f0` to `f31`; zeros where the processor has none.
    pub float: [u64; 32],
    /// Address of its next instruction, or of the one that has failed.
    pub pc: u32,
}

/// A card while one of its handlers is stopped.
pub trait Halted {
    /// The resident handlers, those of lower contexts first.
    fn residents(&self) -> Vec<Resident>;

    /// The memory that the resident handlers may use, by its card addresses.
    fn memory(&mut self) -> BTreeMap<u32, Vec<u8>>;

    /// Writes memory of the card, if all of it exists.
    fn write(&mut self, address: u32, bytes: &[u8]);

    /// Changes the registers of the handler in a context.
    fn set_registers(&mut self, context: u32, registers: &Registers);
}

/// A debugger, which decides where handlers stop.
pub trait Debugger {
    /// A handler gets a context, and is about to run.
    fn starts(&mut self, context: u32, handler: &str);

    /// Whether the handler in a context stops before its instruction at `pc`.
    fn stops(&mut self, context: u32, pc: u32) -> bool;

    /// The handler in a context has stopped; it goes on when this returns.
    fn stopped(&mut self, context: u32, halt: Halt, card: &mut dyn Halted);

    /// The handler in a context has ended.
    fn ended(&mut self, context: u32);
}
