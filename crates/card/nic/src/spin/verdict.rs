// SPDX-License-Identifier: Apache-2.0
//! Handler state of a message.

use std::rc::Rc;

use abi::portals::NiFail;
use accel::{Failure, Packet, Role, Share};

use crate::drops::DropReason;
use crate::handlers::Handlers;
use crate::message::RequestKind;
use crate::portals::Placement;

/// Handler state of a message.
#[derive(Debug)]
pub struct SpinMessage {
    /// True if a handler's return code keeps the entry waiting for another message (`_PENDING`).
    pub pending: bool,
    /// First error of a handler, reported to the program when the message completes.
    pub error: Option<FirstError>,
    /// Handlers of the entry.
    pub(super) handlers: Rc<Handlers>,
    /// Process and tenant of the entry.
    pub(super) owner: Owner,
    /// True if payload handlers run: only for puts. Data of gets passes no handler (sPIN §5.4), and the card executes
    /// atomics.
    pub(super) has_payload_handler: bool,
    /// Verdict of the header handler.
    pub(super) verdict: MessageVerdict,
    /// Packets that wait for the header handler.
    pub(super) waiting: Vec<Packet>,
    /// Number of offered payload handlers that have not ended.
    pub(super) running: u32,
    /// Number of outstanding DMA transfers of handlers for which the end of the message waits.
    pub(super) transfers: u32,
    /// Number of dropped bytes, for the completion handler.
    pub(super) dropped: u64,
    /// Number of dropped bytes that would have been moved, for the event and the acknowledgement.
    pub(super) not_moved: u64,
    /// Bit set of the reasons for drops.
    pub(super) reasons: u32,
    /// True if a packet found all buffers full.
    pub(super) flow_control: bool,
    /// State of the completion handler.
    pub(super) completion: Completion,
}

/// Process and tenant of a message's handlers.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Index of the process among those that share the card.
    pub process: u32,
    /// Tenant.
    pub tenant: u32,
    /// Entitlement of the tenant.
    pub share: Share,
}

/// Processing of a message's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageVerdict {
    /// They wait for the header handler.
    Open,
    /// Payload handlers process them; without a payload handler, the default action applies.
    Process,
    /// The default action applies.
    Proceed,
    /// They are dropped for this reason.
    Drop(DropReason),
}

/// State of a message's completion handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// Not yet offered.
    NotYet,
    /// Offered, and not yet ended.
    Running,
    /// Ended.
    Done,
}

/// First error of a message's handlers, as reported to the program.
#[derive(Clone, Copy, Debug)]
pub struct FirstError {
    /// Error code of the event.
    pub fail: NiFail,
    /// Card address of the access, return code, or watchdog limit in cycles.
    pub detail: u64,
}

impl SpinMessage {
    /// Creates the state of a message that was just matched.
    pub fn new(handlers: Rc<Handlers>, kind: RequestKind, owner: Owner) -> Box<SpinMessage> {
        let has = |role| handlers.set.get(role).is_some();
        Box::new(SpinMessage {
            pending: false,
            error: None,
            has_payload_handler: has(Role::Payload) && kind == RequestKind::Put,
            verdict: if has(Role::Header) { MessageVerdict::Open } else { MessageVerdict::Process },
            handlers,
            owner,
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

    /// Counts bytes as dropped; those before `mlength` would have been moved. Returns true if they are the first drop
    /// for this reason.
    pub fn note_dropped(&mut self, reason: Option<DropReason>, offset: u64, bytes: u64, mlength: u64) -> bool {
        self.dropped += bytes;
        self.not_moved += (offset + bytes).min(mlength) - offset.min(mlength);
        let bit = reason.map_or(0, |reason| 1 << reason as u32);
        let is_first = self.reasons & bit == 0;
        self.reasons |= bit;
        is_first
    }

    /// Returns true if the whole message was dropped.
    pub fn is_dropped(&self) -> bool {
        matches!(self.verdict, MessageVerdict::Drop(_))
    }

    /// Returns the number of moved bytes of the placement, as far as known.
    pub fn moved(&self, placement: Placement) -> u64 {
        if self.is_dropped() { 0 } else { placement.mlength - self.not_moved }
    }
}

/// Returns the event's error code for a handler's failure (sPIN App. B.3).
pub(super) fn fail_code(failure: Failure) -> NiFail {
    match failure {
        Failure::Segv => NiFail::Segv,
        Failure::Timeout => NiFail::HandlerTimeout,
        Failure::Failed => NiFail::HandlerFail,
    }
}
