// SPDX-License-Identifier: Apache-2.0
//! Operations of schedules, and their 24-byte records.

use std::fmt;

use bytemuck::{Pod, Zeroable};

use crate::nic::NicOp;

/// Maximum number of operations of a schedule. The LogGOPS engine uses two bits of an operation's number as flags.
pub const MAX_OPS: usize = 1 << 30;
/// Maximum number of ranks of a schedule.
pub const MAX_RANKS: u32 = 1 << 30;
/// Highest matching space.
pub const MAX_SPACE: u16 = (1 << 12) - 1;
/// Maximum length of a calculation in nanoseconds. The simulated clock counts picoseconds in 64 bits.
pub const MAX_CALC_NS: u64 = u64::MAX / 1000;
/// Wildcard in `peer` or `tag` of a receive. No rank and no tag has this number.
pub(crate) const ANY: u32 = u32::MAX;
/// Edge flag: the dependent waits for the start (`irequires`).
pub(crate) const ON_START: u32 = 1 << 31;

/// Kind of an operation. Operations of a rank that become ready at the same instant are executed in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sends a message.
    Send,
    /// Receives a message.
    Recv,
    /// Occupies a CPU.
    Calc,
    /// An operation of a Portals or sPIN card.
    Nic,
}

/// Action of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Occupies the CPU for this number of nanoseconds.
    Calc(u64),
    /// Sends a message.
    Send {
        /// Size of the message
        bytes: u64,
        /// Receiver
        to: u32,
        /// Tag that the receive must match
        tag: u32,
        /// Matching space; a wildcard matches only messages of the same space
        space: u16,
    },
    /// Receives a message.
    Recv {
        /// Size of the buffer
        bytes: u64,
        /// Sender, or `None` for any
        from: Option<u32>,
        /// Tag, or `None` for any
        tag: Option<u32>,
        /// Matching space
        space: u16,
    },
    /// A card operation.
    Nic(&'a NicOp),
}

impl fmt::Display for Action<'_> {
    /// Formats the operation as GOAL text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct OrAny(Option<u32>);
        impl fmt::Display for OrAny {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    Some(number) => number.fmt(f),
                    None => f.write_str("any"),
                }
            }
        }
        let space = match *self {
            Action::Calc(ns) => return write!(f, "calc {ns}"),
            Action::Nic(op) => return op.fmt(f),
            Action::Send { bytes, to, tag, space } => {
                write!(f, "send {bytes}b to {to} tag {tag}")?;
                space
            }
            Action::Recv { bytes, from, tag, space } => {
                write!(f, "recv {bytes}b from {} tag {}", OrAny(from), OrAny(tag))?;
                space
            }
        };
        if space != 0 { write!(f, " space {space}") } else { Ok(()) }
    }
}

/// An operation as stored in memory and in files, in 24 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub(crate) struct Op {
    /// Size in bytes, or its index in the table of wide sizes; low half of a calculation's nanoseconds; index of a card
    /// operation.
    pub size: u32,
    /// Peer rank; high half of a calculation's nanoseconds.
    pub peer: u32,
    pub tag: u32,
    /// Start of this operation's dependents in the edge table. They end at the start of the next operation's.
    pub edges: u32,
    pub rank: u32,
    /// Kind (2 bits), wide size flag (1), cpu (8), nic (8), matching space (12).
    pub bits: u32,
}

impl Op {
    pub const USED_BITS: u32 = u32::MAX >> 1;

    pub fn new(kind: Kind, cpu: u8, nic: u8, space: u16) -> Op {
        let bits = kind as u32 | u32::from(cpu) << 3 | u32::from(nic) << 11 | u32::from(space) << 19;
        Op { bits, ..Op::default() }
    }

    /// Replaces the size by an index in the table of wide sizes.
    pub fn widen(&mut self, place: u32) {
        self.bits |= 1 << 2;
        self.size = place;
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        match self.bits & 3 {
            0 => Kind::Send,
            1 => Kind::Recv,
            2 => Kind::Calc,
            _ => Kind::Nic,
        }
    }

    #[inline]
    pub fn is_wide(&self) -> bool {
        self.bits & 4 != 0
    }

    #[inline]
    pub fn cpu(&self) -> usize {
        (self.bits >> 3) as usize & 0xff
    }

    #[inline]
    pub fn nic(&self) -> usize {
        (self.bits >> 11) as usize & 0xff
    }

    #[inline]
    pub fn space(&self) -> u32 {
        self.bits >> 19 & 0xfff
    }

    pub fn has_unused_bits(&self) -> bool {
        self.bits & !Self::USED_BITS != 0
    }

    /// Returns the nanoseconds of a calculation.
    #[inline]
    pub fn calc_ns(&self) -> u64 {
        u64::from(self.peer) << 32 | u64::from(self.size)
    }
}
