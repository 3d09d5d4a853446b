// SPDX-License-Identifier: Apache-2.0
//! Tasks: handlers to run, their packets and their inputs.

use std::rc::Rc;

use abi::portals::Process;

use crate::memory::HpuMemory;
use crate::program::Handler;
use crate::shares::Share;

/// Number of a message, unique in a run.
pub type MessageId = u64;

/// Role of the handler that a task runs (sPIN §2, PsPIN §III-B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Header handler: runs first, alone, once for each message.
    Header,
    /// Payload handler: runs once for each packet with payload, in parallel.
    Payload,
    /// Completion handler: runs last, alone, once for each message.
    Completion,
}

impl Role {
    /// All roles, in their order within a message.
    pub const ALL: [Role; 3] = [Role::Header, Role::Payload, Role::Completion];

    /// Returns the role's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Header => "header",
            Role::Payload => "payload",
            Role::Completion => "completion",
        }
    }
}

/// Handlers of a match entry, and their shared memory.
#[derive(Debug, Default)]
pub struct HandlerSet {
    /// Header handler.
    pub header: Option<Handler>,
    /// Payload handler.
    pub payload: Option<Handler>,
    /// Completion handler.
    pub completion: Option<Handler>,
    /// HPU memory that they share.
    pub state: Option<Rc<HpuMemory>>,
    /// Length of the user header at the start of a message in bytes.
    pub user_hdr: u32,
}

impl HandlerSet {
    /// Returns the handler for a role.
    pub fn get(&self, role: Role) -> Option<&Handler> {
        match role {
            Role::Header => self.header.as_ref(),
            Role::Payload => self.payload.as_ref(),
            Role::Completion => self.completion.as_ref(),
        }
    }
}

/// A packet in a packet buffer of the accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the buffer.
    pub buffer: u32,
    /// Card address of the packet's data.
    pub start: u32,
    /// Offset of the packet's data in the message in bytes.
    pub offset: u64,
    /// Length of the data in bytes.
    pub length: u32,
    /// Leading bytes of the data that belong to the user header.
    pub user_header: u32,
}

impl Packet {
    /// Returns the length of the payload in bytes.
    pub fn payload_bytes(&self) -> u32 {
        self.length - self.user_header
    }

    /// Returns the card address of the payload.
    pub fn payload_address(&self) -> u32 {
        self.start + self.user_header
    }

    /// Returns the offset of the payload in the message in bytes.
    pub fn payload_offset(&self) -> u64 {
        self.offset + u64::from(self.user_header)
    }
}

/// Request type of a message, as handlers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A put.
    Put,
    /// A get.
    Get,
    /// An atomic operation without a result.
    Atomic,
    /// An atomic operation that returns the previous value.
    FetchAtomic,
}

/// Header of a message, as its header handler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Type of the request.
    pub kind: MessageKind,
    /// Length of the message in bytes, user header included.
    pub length: u64,
    /// Target, as named by the initiator.
    pub target: Process,
    /// Initiator, as named by the target's interface.
    pub source: Process,
    /// Match bits.
    pub match_bits: u64,
    /// Offset in the match entry in bytes.
    pub offset: u64,
    /// Header data.
    pub hdr_data: u64,
}

/// Input of a handler, apart from its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Header of the message, for a header handler.
    Header(MessageHeader),
    /// Packet only, for a payload handler.
    Payload,
    /// Losses of the message, for a completion handler.
    Completion {
        /// Number of dropped bytes of the message.
        dropped: u64,
        /// True if flow control dropped packets of the message.
        flow_control: bool,
    },
}

/// A handler to run.
#[derive(Clone, Debug)]
pub struct Task {
    /// Message of the handler. Tasks of one message have the same number, so that an accelerator can group them.
    pub message: MessageId,
    /// Process that receives the message, among those that share the accelerator.
    pub process: u32,
    /// Handlers of the message.
    pub handlers: Rc<HandlerSet>,
    /// Handler to run, and its name.
    pub handler: Handler,
    /// Input of the handler; its variant is the handler's role.
    pub input: Input,
    /// Packet of a payload handler, or first packet for a header handler.
    pub packet: Option<Packet>,
    /// True if the message ends with the task's packet or with its completion handler.
    pub end_of_message: bool,
    /// Tenant of the message: its portal table entry or, on a shared card, its process or job.
    pub tenant: u32,
    /// Tenant's entitlement.
    pub share: Share,
}

impl Task {
    /// Returns the role of the handler.
    pub fn role(&self) -> Role {
        match self.input {
            Input::Header(_) => Role::Header,
            Input::Payload => Role::Payload,
            Input::Completion { .. } => Role::Completion,
        }
    }

    /// Returns the number of payload bytes that the handler sees in its packet.
    pub fn payload_bytes(&self) -> u64 {
        self.packet.map_or(0, |packet| u64::from(packet.payload_bytes()))
    }
}
