use crate::op::Class;
use crate::state::further_words;
use crate::stop::Fault;

/// Why [`Stepper::run`](crate::Stepper::run) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The next instruction is this access; [`Stepper::perform`](crate::Stepper::perform) executes it.
    Access(Access),
    /// The next instructions are in this line, which the instruction cache does not hold.
    Line(u32),
    /// The handler issues a command; see [`Stop::Call`](crate::Stop::Call).
    Call {
        /// The number of the command.
        number: u32,
        /// Its argument.
        argument: u32,
    },
    /// The handler returned this value.
    Return(u32),
    /// The handler failed.
    Fault(Fault),
    /// The cycle up to which the thread was to run is there.
    Until,
}

/// An access to memory for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first cycle in which the access is in the execute stage and asks for its memory.
    pub at: u64,
    /// Address of its first byte.
    pub address: u32,
    /// Its size in bytes.
    pub bytes: u32,
    /// Whether it is a load, a store or an atomic operation.
    pub class: Class,
}

impl Access {
    /// Number of words that the access touches. A core transfers a word at a time, so each needs a grant of its own.
    pub fn words(&self) -> u32 {
        1 + further_words(self.address, self.bytes as usize)
    }
}
