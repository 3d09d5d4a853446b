// SPDX-License-Identifier: Apache-2.0
//! Results of handlers: verdicts, errors and resource usage.

use sim::Time;

use crate::task::Task;

/// Decision of a header handler about its message (sPIN App. B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The message is dropped.
    Drop,
    /// The payload handler processes the packets; without a payload handler, the default action applies.
    Process,
    /// The default action applies to all packets.
    Proceed,
}

/// Effect of a handler's end on its message.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A header handler returned a verdict.
    Header {
        /// Decision about the message.
        verdict: Verdict,
        /// True if the entry stays linked and waits for another message.
        pending: bool,
    },
    /// A payload handler processed its packet.
    Payload {
        /// True if the packet counts as dropped.
        dropped: bool,
    },
    /// A completion handler ended.
    Completion {
        /// True if the entry stays linked and waits for another message.
        pending: bool,
    },
    /// The handler failed.
    Failed(HandlerError),
}

impl Outcome {
    /// Appends to a failure the reason for which the card refused an earlier command, if any.
    #[must_use]
    pub fn after(mut self, refused: Option<String>) -> Outcome {
        if let (Outcome::Failed(error), Some(why)) = (&mut self, refused) {
            error.message += &format!("; before, a command of it was refused: {why}");
        }
        self
    }
}

/// Kinds of handler errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An access outside the handler's memory, or an instruction that cannot be executed.
    Segv,
    /// The watchdog ended the handler.
    Timeout,
    /// The handler reported an error.
    Failed,
}

/// An error of a handler.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// Kind of error.
    pub failure: Failure,
    /// Description of the error, as the continuation of a sentence that begins with the handler's name.
    pub message: String,
    /// Card address of the access, return code, or watchdog limit in cycles.
    pub detail: u64,
}

/// Resources used by one run of a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of completed instructions.
    pub instructions: u64,
    /// Cycles of the core, without waiting.
    pub cycles: u64,
    /// Time from its start to its end, including waiting.
    pub occupancy: Time,
}

/// A handler that ended.
#[derive(Debug)]
pub struct Finished {
    /// The offered task. Its packet, if any, is still in its buffer.
    pub task: Task,
    /// Effect on its message.
    pub outcome: Outcome,
    /// Resources that it used.
    pub usage: Usage,
}
