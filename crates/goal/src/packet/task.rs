/// A task of a CPU: an operation, or the reception of a message of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task(u32);

/// A part of an operation, or a message of a send.
//
// The numbers are also part of the tokens of the network's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The operation itself, which is not a message
    Operation,
    /// An eager message, or the request to send a longer one
    Message,
    /// The data of a longer message
    Data,
    /// The answer that the data may be sent, which only the cards see
    Clear,
}

const SHIFT: u32 = 30;

impl Task {
    pub fn new(op: u32, phase: Phase) -> Task {
        Task(op | (phase as u32) << SHIFT)
    }

    /// Returns the task of a message with this token.
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
