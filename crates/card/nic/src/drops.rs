// SPDX-License-Identifier: Apache-2.0
//! Undelivered messages and packets, by reason.

use std::collections::BTreeMap;

use sim::Time;

use crate::message::{Body, Header};
use crate::portals::FOREIGN;

/// Reason for which a message, or a part of it, was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The target node or process does not exist.
    NoProcess,
    /// The interface is not open at the target.
    NoInterface,
    /// The target closed the interface while the message was in flight.
    Closed,
    /// The sending process was killed before its card read the data (`spinrun --fail`).
    SenderDied,
    /// The target lacks the portal table entry.
    NoPortal,
    /// The portal table entry is disabled, by flow control or by `PtlPTDisable`.
    Disabled,
    /// No entry matched.
    NoEntry,
    /// The entry is for another user.
    Permission,
    /// Sender and target belong to different jobs.
    Foreign,
    /// The entry does not permit the operation.
    Operation,
    /// An overflow entry matched, but the interface has no room for another unexpected header.
    NoHeader,
    /// The event queue of a flow-controlled portal table entry has no room for the message's events.
    QueueFull,
    /// No packet buffer was free for a packet for handlers (sPIN §3.2), or for one that arrived before its header
    /// packet.
    NoBuffer,
    /// Packets were lost repeatedly, or the target's card died: sender and target abandoned the message.
    Unreachable,
    /// The target did not take a message with an initiator that permits its loss (`PTL_MD_UNRELIABLE`).
    Unreliable,
    /// A header or payload handler returned DROP.
    HandlerDropped,
    /// The handler for the message or packet failed.
    HandlerFailed,
}

impl DropReason {
    /// Returns a word for reports.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::NoProcess => "no_process",
            DropReason::NoInterface => "no_interface",
            DropReason::Closed => "interface_closed",
            DropReason::SenderDied => "sender_died",
            DropReason::NoPortal => "no_portal_table_entry",
            DropReason::Disabled => "portal_table_entry_disabled",
            DropReason::NoEntry => "no_entry",
            DropReason::Permission => "permission_violation",
            DropReason::Foreign => "other_job",
            DropReason::Operation => "operation_violation",
            DropReason::NoHeader => "no_unexpected_header",
            DropReason::QueueFull => "event_queue_full",
            DropReason::NoBuffer => "no_packet_buffer",
            DropReason::Unreachable => "unreachable",
            DropReason::Unreliable => "unreliable",
            DropReason::HandlerDropped => "handler_dropped",
            DropReason::HandlerFailed => "handler_failed",
        }
    }

    /// Returns true if neither a handler nor the initiator permits the loss: it is a mistake of the program or the
    /// machine. Failures of handlers have separate warnings.
    pub fn is_loss(self) -> bool {
        !matches!(self, DropReason::Unreliable | DropReason::HandlerDropped | DropReason::HandlerFailed)
    }
}

/// Drops for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drops {
    /// Number of messages that were dropped, in whole or in part.
    pub messages: u64,
    /// Number of dropped packets.
    pub packets: u64,
    /// Bytes of data in these packets.
    pub bytes: u64,
    /// First of these messages.
    pub first: DroppedMessage,
}

/// A message that was dropped in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedMessage {
    /// Simulated time of the drop.
    pub at: Time,
    /// Name of the requested operation.
    pub operation: &'static str,
    /// Sending node.
    pub source: u32,
    /// Target node.
    pub target: u32,
    /// Portal table index at the target.
    pub pt_index: u32,
    /// Match bits.
    pub match_bits: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Drops of a card, by reason.
pub type DropsByReason = BTreeMap<DropReason, Drops>;

/// A part of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// True if nothing of the message was dropped for this reason before.
    pub is_first: bool,
    pub packets: u64,
    pub bytes: u64,
}

/// Counts a part of a message as dropped. Returns the drops of this part alone; `None` for an answer, which no entry
/// takes.
pub(crate) fn count(
    drops: &mut DropsByReason,
    reason: DropReason,
    header: &Header,
    part: Part,
    at: Time,
) -> Option<Drops> {
    let Body::Request(request) = header.body else { return None };
    let reason = if request.may_be_lost { DropReason::Unreliable } else { reason };
    let first = DroppedMessage {
        at,
        operation: header.name(),
        source: header.source,
        target: if header.target == FOREIGN { request.target.nid } else { header.target },
        pt_index: request.pt_index,
        match_bits: request.match_bits,
        length: request.length,
    };
    let now = Drops { messages: u64::from(part.is_first), packets: part.packets, bytes: part.bytes, first };
    add(drops, reason, &now);
    Some(now)
}

/// Adds drops to those of the same reason, keeping the earliest message as the first.
fn add(sum: &mut DropsByReason, reason: DropReason, drops: &Drops) {
    sum.entry(reason)
        .and_modify(|all| {
            all.messages += drops.messages;
            all.packets += drops.packets;
            all.bytes += drops.bytes;
            if drops.first.at < all.first.at {
                all.first = drops.first.clone();
            }
        })
        .or_insert_with(|| drops.clone());
}

/// Merges the drops of several cards by reason, keeping the earliest message of each as the first.
pub fn merge_drops<'a>(cards: impl IntoIterator<Item = &'a DropsByReason>) -> DropsByReason {
    let mut sum = DropsByReason::new();
    for (reason, drops) in cards.into_iter().flatten() {
        add(&mut sum, *reason, drops);
    }
    sum
}
