use sim::Time;

use crate::task::Task;

/// The decision of a header handler about its message (sPIN App. B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is dropped.
    Drop,
    /// The payload handler processes the packets; without one the default action does.
    Process,
    /// The card does the default action with all packets.
    Proceed,
}

/// The meaning of a handler's end for its message.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A header handler has decided.
    Header {
        /// The decision about the message.
        verdict: Verdict,
        /// Whether the entry stays linked and waits for another message.
        pending: bool,
    },
    /// A payload handler has processed its packet.
    Payload {
        /// Whether the packet counts as dropped.
        dropped: bool,
    },
    /// A completion handler has ended.
    Completion {
        /// Whether the entry stays linked and waits for another message.
        pending: bool,
    },
    /// The handler has failed.
    Failed(HandlerError),
}

impl Outcome {
    /// Adds to a failure why the card refused an earlier command of the handler, if it did.
    #[must_use]
    pub fn after(mut self, refused: Option<String>) -> Outcome {
        if let (Outcome::Failed(error), Some(why)) = (&mut self, refused) {
            error.message += &format!("; before, a command of it was refused: {why}");
        }
        self
    }
}

/// The kinds of errors of handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An access to memory that is not the handler's, or an instruction that cannot be executed.
    Segv,
    /// The watchdog ended the handler.
    Timeout,
    /// The handler reported an error itself.
    Failed,
}

/// An error of a handler.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// The kind of error.
    pub failure: Failure,
    /// Text that describes what happened: it continues a sentence that begins with the handler's name.
    pub message: String,
    /// The card address that the handler accessed, its return code, or the cycles after which it was killed.
    pub detail: u64,
}

/// The resources that one run of a handler has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Instructions that have completed.
    pub instructions: u64,
    /// Cycles of the core, without waiting.
    pub cycles: u64,
    /// Time from its start to its end, including waiting.
    pub occupancy: Time,
}

/// A handler that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The task as it was offered. Its packet, if it has one, is still in its buffer.
    pub task: Task,
    /// The meaning of its end.
    pub outcome: Outcome,
    /// The resources that it has used.
    pub usage: Usage,
}
