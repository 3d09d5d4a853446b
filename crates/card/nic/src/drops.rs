//! What a card did not deliver, and why.

use std::collections::BTreeMap;

use sim::Time;

use crate::message::{Body, Header};

/// Why a message, or a part of it, was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The node or the process that it is for does not exist.
    NoProcess,
    /// The target has not opened the interface, or has closed it.
    NoInterface,
    /// The target closed the interface while the message was under way to it.
    Closed,
    /// The process that sent the message was killed before its card had read the data (`spinrun --fail`).
    SenderDied,
    /// The target has no such portal table entry.
    NoPortal,
    /// The portal table entry is disabled, by flow control or by `PtlPTDisable`.
    Disabled,
    /// No entry matched.
    NoEntry,
    /// The entry is not for this user.
    Permission,
    /// The entry does not permit the operation.
    Operation,
    /// An overflow entry matched, but the interface has no room for another unexpected header.
    NoHeader,
    /// The event queue of a flow-controlled portal table entry had no room for the message's events.
    QueueFull,
    /// No packet buffer was free for a packet that handlers are to see (sPIN §3.2), or for one that had overtaken its header
    /// packet.
    NoBuffer,
    /// Packets were lost again and again, or the target's card was dead: sender and target gave the message up.
    Unreachable,
    /// The target did not take a message whose initiator permits its loss (`PTL_MD_UNRELIABLE`).
    Unreliable,
    /// A header or payload handler returned DROP.
    HandlerDropped,
    /// The handler failed that the message or packet was for.
    HandlerFailed,
}

impl DropReason {
    /// A word for reports.
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

    /// Whether neither a handler nor the initiator permits it: such a loss is the program's or the machine's mistake. Failures
    /// of handlers have warnings of their own.
    pub fn is_loss(self) -> bool {
        !matches!(self, DropReason::Unreliable | DropReason::HandlerDropped | DropReason::HandlerFailed)
    }
}

/// What was dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drops {
    /// Messages that were dropped, in whole or in part.
    pub messages: u64,
    /// Packets that were dropped.
    pub packets: u64,
    /// Bytes of data in these packets.
    pub bytes: u64,
    /// The first of these messages.
    pub first: DroppedMessage,
}

/// A message of which something was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedMessage {
    /// When, in simulated time.
    pub at: Time,
    /// What it asked for, in a word.
    pub operation: &'static str,
    /// The node that sent it.
    pub source: u32,
    /// The node that it was for.
    pub target: u32,
    /// The portal table index that it was for.
    pub pt_index: u32,
    /// Its match bits.
    pub match_bits: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// What a card dropped, by reason.
pub type DropsByReason = BTreeMap<DropReason, Drops>;

/// A part of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Whether nothing of the message was dropped for this reason before.
    pub is_first: bool,
    pub packets: u64,
    pub bytes: u64,
}

/// Counts a part of a message as dropped. Returns this part alone; `None` for an answer, which no entry takes.
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
        target: header.target,
        pt_index: request.pt_index,
        match_bits: request.match_bits,
        length: request.length,
    };
    let now = Drops { messages: u64::from(part.is_first), packets: part.packets, bytes: part.bytes, first };
    add(drops, reason, &now);
    Some(now)
}

/// Adds drops to those of the same reason, of which the earliest message stays the first.
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

/// What all these cards dropped, by reason; the first message is that of the earliest time.
pub fn merge_drops<'a>(cards: impl IntoIterator<Item = &'a DropsByReason>) -> DropsByReason {
    let mut sum = DropsByReason::new();
    for (reason, drops) in cards.into_iter().flatten() {
        add(&mut sum, *reason, drops);
    }
    sum
}
