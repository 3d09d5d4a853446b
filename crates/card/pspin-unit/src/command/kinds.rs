// SPDX-License-Identifier: Apache-2.0
//! Kinds of commands and their fields.

use crate::her::{HpuId, Range, Share};

/// A handler's number for its command: the slot in the HPU driver, and the number of earlier uses of that slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u32);

impl CommandId {
    /// Returns the number of the command in a slot with `uses` earlier uses.
    pub fn new(slot: u8, uses: u32) -> CommandId {
        CommandId(uses << 8 | u32::from(slot))
    }

    /// Returns the slot in the HPU driver.
    pub fn slot(self) -> u8 {
        self.0 as u8
    }

    /// Returns the number of earlier uses of the slot.
    pub fn uses(self) -> u32 {
        self.0 >> 8
    }
}

/// Destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Destination node.
    pub node: u32,
    /// 0 for a raw packet, otherwise the flow of an RDMA put.
    pub flow: u32,
    /// Handler's tag.
    pub user: u32,
}

/// A command of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends data over the network.
    Send {
        /// Data, in L1 or L2.
        data: Range,
        /// Destination.
        send: Send,
    },
    /// Copies data to host memory.
    ToHost {
        /// Address in host memory.
        host: u64,
        /// Data, in L1 or L2.
        data: Range,
        /// Tag of the event that tells the driver that the data is in host memory, if requested.
        event: Option<u32>,
    },
    /// Copies data from host memory.
    FromHost {
        /// Address in host memory.
        host: u64,
        /// Destination, in L1 or L2.
        data: Range,
        /// Tag of the event that tells the driver that the data has arrived, if requested.
        event: Option<u32>,
    },
    /// Writes immediate data to host memory.
    HostDirect {
        /// Address in host memory.
        host: u64,
        /// Immediate data.
        data: [u8; 64],
        /// Number of bytes.
        size: u8,
    },
    /// Reads host memory into the HPU driver.
    HostDirectRead {
        /// Address in host memory.
        host: u64,
        /// Number of bytes.
        size: u8,
    },
    /// Leaves the unit for the card, which executes it and reports its completion.
    Card {
        /// Engine through which it leaves.
        through: Through,
        /// Data to read, in L1 or L2.
        data: Option<Range>,
        /// HPU's number for it.
        number: u32,
    },
}

/// Engine through which a command leaves the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// Outbound engine, to the network.
    Outbound,
    /// Off-cluster DMA engine, to the host.
    OffCluster,
}

impl Command {
    /// Returns the data that the command reads or writes in L1 or L2.
    pub fn data(&self) -> Option<Range> {
        match self {
            Command::Send { data, .. } | Command::ToHost { data, .. } | Command::FromHost { data, .. } => Some(*data),
            Command::Card { data, .. } => *data,
            Command::HostDirect { .. } | Command::HostDirectRead { .. } => None,
        }
    }

    /// Returns the tag of the completion event, if requested.
    pub fn event(&self) -> Option<u32> {
        match self {
            Command::ToHost { event, .. } | Command::FromHost { event, .. } => *event,
            _ => None,
        }
    }

    /// Returns the address in host memory that it reads or writes; 0 if none.
    pub fn host(&self) -> u64 {
        match self {
            Command::Send { .. } | Command::Card { .. } => 0,
            Command::ToHost { host, .. }
            | Command::FromHost { host, .. }
            | Command::HostDirect { host, .. }
            | Command::HostDirectRead { host, .. } => *host,
        }
    }

    /// Returns the memory of the unit that it reads or writes.
    pub fn local(&self) -> Option<Range> {
        match self {
            Command::Send { data, .. } | Command::ToHost { data, .. } | Command::FromHost { data, .. } => Some(*data),
            Command::Card { data, .. } => *data,
            Command::HostDirect { .. } | Command::HostDirectRead { .. } => None,
        }
    }
}

/// A command in flight.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// HPU that issued it.
    pub hpu: HpuId,
    /// Slot in the HPU driver.
    pub slot: u8,
    /// Kind and fields.
    pub command: Command,
    /// Tenant of the handler.
    pub tenant: u32,
    /// Tenant's entitlement.
    pub share: Share,
    /// Part of the data that an engine moves; the whole if absent.
    pub part: Option<Part>,
}

/// Part of a command's data (`accelerator.sharing.fragment_bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of its first byte.
    pub start: u32,
    /// Number of bytes.
    pub size: u32,
    /// Set for the last part, which completes the command.
    pub is_last: bool,
}

impl Issued {
    /// Creates a whole command of tenant 0.
    pub fn new(hpu: HpuId, slot: u8, command: Command) -> Issued {
        Issued { hpu, slot, command, tenant: 0, share: Share::default(), part: None }
    }

    /// Returns the memory of the unit that the command, or this part of it, reads or writes.
    #[inline]
    pub fn range(&self) -> Range {
        let data = self.command.local().unwrap_or_default();
        match self.part {
            Some(Part { start, size, .. }) => Range { address: data.address.wrapping_add(start), size },
            None => data,
        }
    }

    /// Returns true if the command is complete with this part.
    #[inline]
    pub fn completes(&self) -> bool {
        self.part.is_none_or(|part| part.is_last)
    }
}

/// A port of the unit with back-pressure from the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Feedback to the NIC.
    Feedback,
    /// Packets to the network.
    Outbound,
    /// Writes to host memory.
    HostWrite,
    /// Read requests to host memory.
    HostRead,
    /// Read data from host memory.
    HostData,
}
