// SPDX-License-Identifier: Apache-2.0
//! Undelivered messages, for warnings and for reports.

use std::collections::BTreeMap;

use nic::{DropReason, DroppedMessage, Drops, DropsByReason};
use serde::Serialize;

/// Dropped parts of messages, for one reason.
#[derive(Serialize)]
pub struct DropReport {
    messages: u64,
    packets: u64,
    bytes: u64,
    first: FirstReport,
}

/// First message with a dropped part.
#[derive(Serialize)]
struct FirstReport {
    at_ps: u64,
    operation: &'static str,
    source: u32,
    target: u32,
    portal_table_entry: u32,
    match_bits: u64,
    length: u64,
}

/// Returns the drops for the report, by name of the reason.
pub fn report(drops: &DropsByReason) -> BTreeMap<&'static str, DropReport> {
    drops
        .iter()
        .map(|(reason, Drops { messages, packets, bytes, first })| {
            let first = FirstReport {
                at_ps: first.at.as_ps(),
                operation: first.operation,
                source: first.source,
                target: first.target,
                portal_table_entry: first.pt_index,
                match_bits: first.match_bits,
                length: first.length,
            };
            (reason.name(), DropReport { messages: *messages, packets: *packets, bytes: *bytes, first })
        })
        .collect()
}

/// Returns a sentence for each reason of lost messages, and one for flow control if it disabled portal table entries
/// (`disabled` times). Messages that handlers drop by their return code do not count.
pub fn sentences(drops: &DropsByReason, disabled: u64) -> Vec<String> {
    let lost = drops.iter().filter(|(reason, _)| reason.is_loss());
    let mut sentences: Vec<String> = lost.map(|(reason, drops)| sentence(*reason, drops)).collect();
    if disabled > 0 {
        sentences.push(format!(
            "flow control disabled portal table entries {}: they refuse messages until PtlPTEnable",
            count(disabled, "time")
        ));
    }
    sentences
}

fn sentence(reason: DropReason, Drops { messages, packets, bytes, first }: &Drops) -> String {
    let (why, remedy) = explain(reason);
    format!(
        "{why}: {} lost {} with {}; the first was {} ({remedy})",
        count(*messages, "message"),
        count(*packets, "packet"),
        count(*bytes, "byte"),
        describe(first),
    )
}

/// Describes a drop as it happens.
pub fn now(reason: DropReason, Drops { packets, bytes, first, .. }: &Drops) -> String {
    format!(
        "{} with {} of {}: {}",
        count(*packets, "packet"),
        count(*bytes, "byte"),
        describe(first),
        explain(reason).0
    )
}

fn describe(message: &DroppedMessage) -> String {
    let DroppedMessage { at, operation, source, target, pt_index, match_bits, length } = message;
    format!(
        "a {operation} of {} from rank {source} for portal table entry {pt_index} of rank {target}, match bits {match_bits:#x}, at {at}",
        count(*length, "byte"),
    )
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Describes the reason and the remedy.
fn explain(reason: DropReason) -> (&'static str, &'static str) {
    match reason {
        DropReason::NoProcess => {
            ("the target does not exist", "check the target of the operation, and the map of PtlSetMap")
        }
        DropReason::NoInterface => (
            "the target's interface was not open",
            "let all ranks meet after PtlNIInit and before PtlNIFini, and wait for what is under way",
        ),
        DropReason::Closed => (
            "the target's interface was closed while they were under way",
            "wait for what is under way, or let all ranks meet, before PtlNIFini, PtlFini and the end of the program",
        ),
        DropReason::SenderDied => (
            "their sender's process was killed before its card had read the data",
            "that is what --fail asks for; programs learn it from PTL_NI_DROPPED, or from answers that do not come",
        ),
        DropReason::NoPortal => {
            ("the target had no such portal table entry", "let all ranks meet after PtlPTAlloc, before anybody sends")
        }
        DropReason::Disabled => (
            "the portal table entry was disabled",
            "call PtlPTEnable when it can go on; initiators see PTL_NI_PT_DISABLED and send again",
        ),
        DropReason::NoEntry => (
            "no entry matched",
            "append the entry before messages come, check match bits and PTL_ME_USE_ONCE, or append to the overflow list",
        ),
        DropReason::Permission => ("the entry is for another user", "set its uid to PTL_UID_ANY or the sender's"),
        DropReason::Foreign => (
            "the target is a node of another job",
            "name nodes of the sender's job, in which rank r is node r; initiators see PTL_NI_PERM_VIOLATION for others",
        ),
        DropReason::Operation => ("the entry does not permit the operation", "give it PTL_ME_OP_PUT or PTL_ME_OP_GET"),
        DropReason::NoHeader => (
            "no room was left for the headers of unexpected messages",
            "append entries earlier, or ask for more max_unexpected_headers",
        ),
        DropReason::QueueFull => {
            ("the event queue was full", "give PtlEQAlloc a larger count, or take events more often")
        }
        DropReason::NoBuffer => (
            "no packet buffer was free because packets arrive faster than handlers process them",
            "use more HPUs, shorter handlers, a larger packet buffer (accelerator.packet_buffer_bytes, on PsPIN cards \
             accelerator.l2_packet.bytes), or fewer senders at once",
        ),
        DropReason::Unreachable => (
            "packets were lost again and again, or the target's card was dead",
            "that is what --drop and --kill-card ask for; raise network.retries to survive more losses",
        ),
        DropReason::Unreliable => ("their initiator permits their loss (PTL_MD_UNRELIABLE)", "that is its decision"),
        DropReason::HandlerDropped => ("a handler returned DROP", "that is its decision"),
        DropReason::HandlerFailed => ("a handler failed", "see its warning"),
    }
}
