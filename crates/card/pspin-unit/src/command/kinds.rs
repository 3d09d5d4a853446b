//! What commands say.

use crate::her::{HpuId, Range};

/// The number by which a handler knows its command: the place in the HPU driver, and how often that was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u32);

impl CommandId {
    /// The number of the command that uses a place for the time `uses`.
    pub fn new(slot: u8, uses: u32) -> CommandId {
        CommandId(uses << 8 | u32::from(slot))
    }

    /// The place in the HPU driver.
    pub fn slot(self) -> u8 {
        self.0 as u8
    }

    /// How often the place was used before.
    pub fn uses(self) -> u32 {
        self.0 >> 8
    }
}

/// Where a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// The destination.
    pub node: u32,
    /// 0 for a raw packet, otherwise the flow of an RDMA put.
    pub flow: u32,
    /// The number that the handler gave it.
    pub user: u32,
}

/// A command of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends data over the network.
    Send {
        /// The data, in L1 or L2.
        data: Range,
        /// Where it goes.
        send: Send,
    },
    /// Copies data to host memory.
    ToHost {
        /// The address in host memory.
        host: u64,
        /// The data, in L1 or L2.
        data: Range,
        /// The number that the driver is told when the data is in host memory, if it is to be told.
        event: Option<u32>,
    },
    /// Copies data from host memory.
    FromHost {
        /// The address in host memory.
        host: u64,
        /// Where the data goes, in L1 or L2.
        data: Range,
        /// The number that the driver is told when the data is there, if it is to be told.
        event: Option<u32>,
    },
    /// Writes data of the command itself to host memory.
    HostDirect {
        /// The address in host memory.
        host: u64,
        /// The data.
        data: [u8; 64],
        /// How many bytes of it.
        size: u8,
    },
    /// Reads data of host memory into the HPU driver.
    HostDirectRead {
        /// The address in host memory.
        host: u64,
        /// How many bytes.
        size: u8,
    },
    /// Leaves the unit for a card that executes it, and tells the unit when it is done.
    Card {
        /// The engine through which it leaves.
        through: Through,
        /// The data that it takes along, in L1 or L2.
        data: Option<Range>,
        /// The number by which its HPU knows it.
        number: u32,
    },
}

/// The engine through which a command leaves the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The outbound engine, to the network.
    Outbound,
    /// The off-cluster DMA engine, to the host.
    OffCluster,
}

impl Command {
    /// The number that the driver is told when the command is done, if it is to be told.
    pub fn event(&self) -> Option<u32> {
        match self {
            Command::ToHost { event, .. } | Command::FromHost { event, .. } => *event,
            _ => None,
        }
    }

    /// The address in host memory that it reads or writes; 0 when it names none.
    pub fn host(&self) -> u64 {
        match self {
            Command::Send { .. } | Command::Card { .. } => 0,
            Command::ToHost { host, .. }
            | Command::FromHost { host, .. }
            | Command::HostDirect { host, .. }
            | Command::HostDirectRead { host, .. } => *host,
        }
    }

    /// The memory of the unit that it reads or writes.
    pub fn local(&self) -> Option<Range> {
        match self {
            Command::Send { data, .. } | Command::ToHost { data, .. } | Command::FromHost { data, .. } => Some(*data),
            Command::Card { data, .. } => *data,
            Command::HostDirect { .. } | Command::HostDirectRead { .. } => None,
        }
    }
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
pub struct Issued {
    /// The HPU that has issued it.
    pub hpu: HpuId,
    /// Its place in the HPU driver.
    pub slot: u8,
    /// What it says.
    pub command: Command,
}

/// A port of the unit whose other side may make beats wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Feedback to the NIC.
    Feedback,
    /// Packets to the network.
    Outbound,
    /// Writes to host memory.
    HostWrite,
    /// Requests to read host memory.
    HostRead,
    /// What is read there.
    HostData,
}
