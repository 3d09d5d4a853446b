//! Operations as the program describes them, now or for later.

use std::rc::Rc;

use abi::portals::{AckReq, CtEvent, Handle, Process};

use crate::interface::MemoryDescriptor;

/// Where an operation goes and what it carries along.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// `target_id`
    pub process: Process,
    /// `pt_index`
    pub pt_index: u32,
    /// `match_bits`
    pub match_bits: u64,
    /// `remote_offset`
    pub remote_offset: u64,
    /// `user_ptr`
    pub user_ptr: u64,
    /// `hdr_data`
    pub hdr_data: u64,
}

/// `PtlPut` or `PtlGet`, with its arguments checked.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Put (with this acknowledgement) or get.
    pub put: Option<AckReq>,
    /// Interface of the MD.
    pub interface: u8,
    /// Local memory.
    pub md: Rc<MemoryDescriptor>,
    /// Offset in it.
    pub local_offset: u64,
    /// Bytes.
    pub length: u64,
    /// The other side.
    pub target: Target,
}

/// An operation that waits for a counter (Portals 4.3 §3.17).
#[derive(Clone, Debug)]
pub enum TriggeredOp {
    /// `PtlTriggeredPut`, `PtlTriggeredGet`
    Transfer(Transfer),
    /// `PtlTriggeredCTInc`
    CtInc(Handle, CtEvent),
    /// `PtlTriggeredCTSet`
    CtSet(Handle, CtEvent),
}
