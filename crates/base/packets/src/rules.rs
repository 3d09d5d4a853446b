// SPDX-License-Identifier: Apache-2.0
//! Match-action rules: assignment of packets to messages, and their processing (PsPIN §III-A, §III-D).

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use toml::Value;

use crate::field::{Field, FieldError, Match};
use crate::frame::Frame;

/// A rule of a match-action table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Priority: the matching rule with the highest priority applies, among equals the first.
    pub priority: i64,
    /// Conditions; all must hold.
    pub matches: Vec<Match>,
    /// Action for the packets.
    pub action: Action,
}

/// Action of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Handlers process them, as messages.
    Context(Box<Processing>),
    /// The host receives them.
    Host,
    /// They are discarded.
    Drop,
}

/// Parameters of processing by handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processing {
    /// Name of the execution context.
    pub context: String,
    /// Fields that identify the message: its packets agree in all of them.
    pub message: Vec<Field>,
    /// Match of the header packet, for networks that may reorder packets. If empty, the first packet to arrive is the
    /// header packet.
    pub header: Vec<Match>,
    /// Condition for the last packet; without one, messages have no end.
    pub end: End,
    /// Part of each packet copied to the handlers' memory.
    pub transfer: Transfer,
}

/// End condition of a message: its last packet is the first for which one of these holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// All of these match the packet. They see only packets that have arrived, so the network must keep the order.
    pub matches: Vec<Match>,
    /// Number of packets of the message.
    pub packets: Option<u32>,
    /// Field of the header packet with the number of payload bytes of the message.
    pub bytes: Option<Field>,
}

/// Part of a packet that handlers get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// The whole packet.
    #[default]
    All,
    /// All known headers.
    Headers,
    /// At most this number of bytes.
    Bytes(u32),
}

impl Transfer {
    /// Returns the number of bytes copied to the handlers' memory, of those that are passed to them.
    pub fn of(self, frame: &Frame<'_>) -> usize {
        let handed = frame.handed.len();
        match self {
            Transfer::All => handed,
            Transfer::Headers => handed.min(frame.header_bytes().saturating_sub(frame.handed.start)),
            Transfer::Bytes(bytes) => handed.min(bytes as usize),
        }
    }
}

/// Error of a rules file.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The file is not TOML, or has unknown or missing keys.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A table of a context is invalid.
    #[error("context {number}: {reason}")]
    Context {
        /// Index in the file, from 1.
        number: usize,
        /// Reason.
        reason: String,
    },
    /// A rule is invalid.
    #[error("rule {number}: {reason}")]
    Rule {
        /// Index in the file, from 1.
        number: usize,
        /// Reason.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<RuleEntry>,
    #[serde(default)]
    context: Vec<ContextEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextEntry {
    name: String,
    weight: Option<u32>,
    priority: Option<u8>,
    watchdog_cycles: Option<u64>,
}

/// Limits of an execution context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Weight among contexts with work.
    pub weight: u32,
    /// Priority of a strict scheduler; higher first.
    pub priority: u8,
    /// Cycles after which a handler is killed; by default those of the machine.
    pub watchdog_cycles: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    r#match: BTreeMap<String, Value>,
    context: Option<String>,
    action: Option<String>,
    message: Option<Vec<String>>,
    #[serde(default)]
    header: BTreeMap<String, Value>,
    #[serde(default)]
    end: BTreeMap<String, Value>,
    packets: Option<u32>,
    bytes: Option<String>,
    transfer: Option<Value>,
}

/// Fields that identify a flow of UDP or TCP over IPv4 or IPv6.
pub const FLOW: [Field; 9] = [
    Field::Ipv4Source,
    Field::Ipv4Destination,
    Field::Ipv6Source,
    Field::Ipv6Destination,
    Field::Protocol,
    Field::UdpSource,
    Field::UdpDestination,
    Field::TcpSource,
    Field::TcpDestination,
];

/// Reads a rules file: `[[rule]]` tables of TOML.
///
/// | key | meaning |
/// | --- | --- |
/// | `priority` | the rule with the highest priority applies; default 0 |
/// | `match` | a table of fields and required values: `{"udp.dstport" = 9000, "ip.src" = "10.0.0.0/8"}` |
/// | `context` | the execution context whose handlers process the packets; or `action = "host"`, `action = "drop"` |
/// | `message` | fields that identify the message; default: addresses, protocol and ports |
/// | `header` | a table like `match` for the header packet, which handlers see first; default: the first to arrive |
/// | `end` | a table like `match` for the last packet |
/// | `packets` | the number of packets of each message |
/// | `bytes` | a field of the header packet with the number of payload bytes of the message |
/// | `transfer` | the part copied to the handlers' memory: `"all"`, `"headers"`, or a number of bytes |
///
/// # Errors
/// [`RulesError`] with the line or the number of the rule.
pub fn read(text: &str) -> Result<Vec<Rule>, RulesError> {
    let file: RuleFile = toml::from_str(text)?;
    let entries = file.rule.into_iter().zip(1..);
    entries.map(|(entry, number)| rule(entry).map_err(|reason| RulesError::Rule { number, reason })).collect()
}

/// Reads the `[[context]]` tables of a rules file: `name`, `weight`, `priority` and `watchdog_cycles` of contexts.
///
/// # Errors
/// [`RulesError`] if a context is named twice or by no rule, or has weight 0.
pub fn limits(text: &str) -> Result<BTreeMap<String, Limits>, RulesError> {
    let file: RuleFile = toml::from_str(text)?;
    let mut all = BTreeMap::new();
    for (ContextEntry { name, weight, priority, watchdog_cycles }, number) in file.context.into_iter().zip(1..) {
        let wrong = |reason: String| RulesError::Context { number, reason };
        if !file.rule.iter().any(|rule| rule.context.as_ref() == Some(&name)) {
            return Err(wrong(format!("no rule has the context \"{name}\"")));
        }
        if weight == Some(0) {
            return Err(wrong("weight is 0; it must be at least 1".to_owned()));
        }
        let limits = Limits { weight: weight.unwrap_or(1), priority: priority.unwrap_or_default(), watchdog_cycles };
        if all.insert(name.clone(), limits).is_some() {
            return Err(wrong(format!("\"{name}\" is there twice")));
        }
    }
    Ok(all)
}

fn rule(entry: RuleEntry) -> Result<Rule, String> {
    let matches = conditions("match", &entry.r#match)?;
    let has_message_keys = entry.message.is_some()
        || entry.packets.is_some()
        || entry.bytes.is_some()
        || entry.transfer.is_some()
        || !entry.header.is_empty()
        || !entry.end.is_empty();
    let action = match (entry.context, entry.action.as_deref()) {
        (Some(_), Some(_)) => return Err("it has both context and action; a rule has one of them".to_owned()),
        (None, Some("host" | "drop")) if has_message_keys => {
            return Err("message, header, end, packets, bytes and transfer need a context".to_owned());
        }
        (None, Some("host")) => Action::Host,
        (None, Some("drop")) => Action::Drop,
        (None, Some(other)) => return Err(format!("action is '{other}'; it may be \"host\" or \"drop\"")),
        (None, None) => return Err("it has neither context nor action".to_owned()),
        (Some(context), None) => {
            let message = match entry.message {
                None => FLOW.to_vec(),
                Some(names) => names.iter().map(|name| Field::parse(name)).collect::<Result<_, _>>().map_err(text)?,
            };
            if entry.packets == Some(0) {
                return Err("packets is 0; a message has at least one packet".to_owned());
            }
            let bytes = entry.bytes.as_deref().map(Field::parse).transpose().map_err(text)?;
            let end = End { matches: conditions("end", &entry.end)?, packets: entry.packets, bytes };
            let header = conditions("header", &entry.header)?;
            Action::Context(Box::new(Processing { context, message, header, end, transfer: transfer(entry.transfer)? }))
        }
    };
    Ok(Rule { priority: entry.priority, matches, action })
}

fn text(error: FieldError) -> String {
    error.to_string()
}

fn conditions(key: &str, table: &BTreeMap<String, Value>) -> Result<Vec<Match>, String> {
    let condition = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::Integer(number) => number.to_string(),
            Value::String(text) => text.clone(),
            other => return Err(format!("{key}.\"{name}\" is {other}; it must be a number or a text")),
        };
        Match::parse(name, &value).map_err(|error| format!("{key}: {error}"))
    };
    table.iter().map(condition).collect()
}

fn transfer(value: Option<Value>) -> Result<Transfer, String> {
    match value {
        None => Ok(Transfer::All),
        Some(Value::String(text)) if text == "all" => Ok(Transfer::All),
        Some(Value::String(text)) if text == "headers" => Ok(Transfer::Headers),
        Some(other) => {
            let bytes = if let Value::Integer(bytes) = other { u32::try_from(bytes).ok() } else { None };
            let wrong = || format!("transfer is {other}; it may be \"all\", \"headers\" or a number of bytes");
            bytes.map(Transfer::Bytes).ok_or_else(wrong)
        }
    }
}
