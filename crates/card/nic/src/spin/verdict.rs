use std::rc::Rc;

use abi::portals::NiFail;
use accel::{Failure, Packet, Role};

use crate::drops::DropReason;
use crate::handlers::Handlers;
use crate::message::RequestKind;
use crate::portals::Placement;

/// What a card knows of a message whose entry has handlers.
#[derive(Debug)]
pub struct SpinMessage {
    /// Whether a handler's return code keeps the entry waiting for another message (`_PENDING`).
    pub pending: bool,
    /// The first error of a handler, of which the program is told when the message is done.
    pub error: Option<FirstError>,
    /// The handlers of the entry.
    pub(super) handlers: Rc<Handlers>,
    /// Whether payload handlers run: for puts only. Data of gets passes no handler (sPIN §5.4), and atomics are the
    /// card's own work.
    pub(super) has_payload_handler: bool,
    /// What the header handler decided.
    pub(super) verdict: MessageVerdict,
    /// Packets that wait for the header handler.
    pub(super) waiting: Vec<Packet>,
    /// Number of payload handlers that have been offered and have not ended.
    pub(super) running: u32,
    /// Number of DMA transfers of handlers that are not done, and for which the end of the message waits.
    pub(super) transfers: u32,
    /// Bytes that were dropped, as the completion handler is told.
    pub(super) dropped: u64,
    /// Bytes of these that would have been moved, as the event and the acknowledgement are told.
    pub(super) not_moved: u64,
    /// A bit for each reason for which something was dropped.
    pub(super) reasons: u32,
    /// Whether a packet found all buffers full.
    pub(super) flow_control: bool,
    /// The completion handler.
    pub(super) completion: Completion,
}

/// What is to be done with the packets of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageVerdict {
    /// They wait: the header handler has not returned.
    Open,
    /// Payload handlers process them; where there are none, the default action is done.
    Process,
    /// The default action is done.
    Proceed,
    /// They are dropped for this reason.
    Drop(DropReason),
}

/// How far a message's completion handler is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// It has not been offered.
    NotYet,
    /// It has been offered and has not ended.
    Running,
    /// It has ended.
    Done,
}

/// The first error of a message's handlers, as the program is told.
#[derive(Clone, Copy, Debug)]
pub struct FirstError {
    /// The error code of the event.
    pub fail: NiFail,
    /// The card address that the handler touched, its return code, or the cycles after which it was killed.
    pub detail: u64,
}

impl SpinMessage {
    /// The state of a message that has just been matched.
    pub fn new(handlers: Rc<Handlers>, kind: RequestKind) -> Box<SpinMessage> {
        let has = |role| handlers.set.get(role).is_some();
        Box::new(SpinMessage {
            pending: false,
            error: None,
            has_payload_handler: has(Role::Payload) && kind == RequestKind::Put,
            verdict: if has(Role::Header) { MessageVerdict::Open } else { MessageVerdict::Process },
            handlers,
            waiting: Vec::new(),
            running: 0,
            transfers: 0,
            dropped: 0,
            not_moved: 0,
            reasons: 0,
            flow_control: false,
            completion: Completion::NotYet,
        })
    }

    /// Counts bytes as dropped, of which those before `mlength` would have been moved. Returns whether they are the first
    /// that are dropped for this reason.
    pub fn note_dropped(&mut self, reason: Option<DropReason>, offset: u64, bytes: u64, mlength: u64) -> bool {
        self.dropped += bytes;
        self.not_moved += (offset + bytes).min(mlength) - offset.min(mlength);
        let bit = reason.map_or(0, |reason| 1 << reason as u32);
        let is_first = self.reasons & bit == 0;
        self.reasons |= bit;
        is_first
    }

    /// Whether the message was dropped as a whole.
    pub fn is_dropped(&self) -> bool {
        matches!(self.verdict, MessageVerdict::Drop(_))
    }

    /// How many of the bytes that the match has placed are moved, as far as that is known.
    pub fn moved(&self, placement: Placement) -> u64 {
        if self.is_dropped() { 0 } else { placement.mlength - self.not_moved }
    }
}

/// The error code by which a program is told of a handler's failure (sPIN App. B.3).
pub(super) fn fail_code(failure: Failure) -> NiFail {
    match failure {
        Failure::Segv => NiFail::Segv,
        Failure::Timeout => NiFail::HandlerTimeout,
        Failure::Failed => NiFail::HandlerFail,
    }
}
