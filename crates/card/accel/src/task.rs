use std::rc::Rc;

use abi::portals::Process;

use crate::memory::HpuMemory;
use crate::program::Handler;

/// The number of a message, unique in a run.
pub type MessageId = u64;

/// The role of the handler that a task runs (sPIN §2, PsPIN §III-B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The header handler, which runs first, alone, once for each message.
    Header,
    /// The payload handler, which runs once for each packet with payload, in parallel.
    Payload,
    /// The completion handler, which runs last, alone, once for each message.
    Completion,
}

impl Role {
    /// All roles, in their order within a message.
    pub const ALL: [Role; 3] = [Role::Header, Role::Payload, Role::Completion];

    /// The role as reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Header => "header",
            Role::Payload => "payload",
            Role::Completion => "completion",
        }
    }
}

/// The handlers of a match list entry, and the memory that they share.
#[derive(Debug, Default)]
pub struct HandlerSet {
    /// The header handler.
    pub header: Option<Handler>,
    /// The payload handler.
    pub payload: Option<Handler>,
    /// The completion handler.
    pub completion: Option<Handler>,
    /// The HPU memory that they share.
    pub state: Option<Rc<HpuMemory>>,
    /// Number of bytes at the start of a message that are the user header.
    pub user_hdr: u32,
}

impl HandlerSet {
    /// The handler for a role.
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
    /// The number of the buffer.
    pub buffer: u32,
    /// Card address of the packet's data.
    pub start: u32,
    /// Offset of the packet's data in the message, in bytes.
    pub offset: u64,
    /// Bytes of data.
    pub length: u32,
    /// Bytes at the start of the data that belong to the user header instead of the payload.
    pub user_header: u32,
}

impl Packet {
    /// Bytes of payload.
    pub fn payload_bytes(&self) -> u32 {
        self.length - self.user_header
    }

    /// Card address of the payload.
    pub fn payload_address(&self) -> u32 {
        self.start + self.user_header
    }

    /// Offset of the payload in the message, in bytes.
    pub fn payload_offset(&self) -> u64 {
        self.offset + u64::from(self.user_header)
    }
}

/// The type of a message's request, as handlers see it.
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

/// The header of a message, as its header handler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// The type of the request.
    pub kind: MessageKind,
    /// Bytes of the message, user header included.
    pub length: u64,
    /// The target as the initiator named it.
    pub target: Process,
    /// The initiator as the target's interface names it.
    pub source: Process,
    /// Match bits.
    pub match_bits: u64,
    /// Offset in the match list entry, in bytes.
    pub offset: u64,
    /// Header data.
    pub hdr_data: u64,
}

/// The input of a handler, apart from its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A header handler sees the header of the message.
    Header(MessageHeader),
    /// A payload handler sees its packet only.
    Payload,
    /// A completion handler sees what was lost.
    Completion {
        /// Bytes of the message that were dropped.
        dropped: u64,
        /// Whether flow control dropped packets of the message.
        flow_control: bool,
    },
}

/// A handler to be run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The message of the handler. Tasks of one message have the same number, so that an accelerator can group them.
    pub message: MessageId,
    /// The handlers of the message.
    pub handlers: Rc<HandlerSet>,
    /// The handler to be run and its name.
    pub handler: Handler,
    /// The input of the handler; its variant is the role of the handler.
    pub input: Input,
    /// The packet: that of a payload handler, and the first one for a header handler.
    pub packet: Option<Packet>,
    /// Whether the message ends here: with the task's packet, or with its completion handler.
    pub end_of_message: bool,
}

impl Task {
    /// The role of the handler.
    pub fn role(&self) -> Role {
        match self.input {
            Input::Header(_) => Role::Header,
            Input::Payload => Role::Payload,
            Input::Completion { .. } => Role::Completion,
        }
    }

    /// Bytes of payload that the handler sees in its packet.
    pub fn payload_bytes(&self) -> u64 {
        self.packet.map_or(0, |packet| u64::from(packet.payload_bytes()))
    }
}
