/// Something for a CPU to do: an operation, or to take what came of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task(u32);

/// Which part of an operation, or of the message of a send.
//
// The numbers also tell the network's messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The operation itself; never a message
    Operation,
    /// An eager message, or the request to send a longer one
    Message,
    /// The data of a longer message
    Data,
    /// The answer that the way is clear; no CPU's business
    Clear,
}

const SHIFT: u32 = 30;

impl Task {
    pub fn new(op: u32, phase: Phase) -> Task {
        Task(op | (phase as u32) << SHIFT)
    }

    /// From the token of a message.
    #[inline]
    pub fn from_token(token: u32) -> Task {
        Task(token)
    }

    #[inline]
    pub fn token(self) -> u32 {
        self.0
    }

    #[inline]
    pub fn op(self) -> u32 {
        self.0 & ((1 << SHIFT) - 1)
    }

    #[inline]
    pub fn phase(self) -> Phase {
        match self.0 >> SHIFT {
            0 => Phase::Operation,
            1 => Phase::Message,
            2 => Phase::Data,
            _ => Phase::Clear,
        }
    }
}
