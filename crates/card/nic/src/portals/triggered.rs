//! Operations as the program describes them, now or for later.

use std::rc::Rc;

use abi::portals::{AckReq, CtEvent, Handle, List, Process};

use super::descriptor::MemoryDescriptor;
use crate::atomic::{AtomicSpec, MAX_OPERAND};

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

/// What a transfer does at the target.
#[derive(Clone, Debug)]
pub enum Action {
    /// `PtlPut`
    Put(AckReq),
    /// `PtlGet`
    Get,
    /// `PtlAtomic`
    Atomic(AckReq, AtomicSpec),
    /// `PtlFetchAtomic`, `PtlSwap`
    Fetch(Box<FetchAction>),
}

/// The rest of a fetching atomic: where its data comes from.
#[derive(Clone, Debug)]
pub struct FetchAction {
    /// Memory that the data is read from.
    pub put_md: Rc<MemoryDescriptor>,
    /// Offset in it.
    pub put_offset: u64,
    /// The operation.
    pub spec: AtomicSpec,
    /// Operand of a conditional swap.
    pub operand: [u8; MAX_OPERAND],
}

/// An operation that moves data (RMA: remote memory access), with its arguments checked.
#[derive(Clone, Debug)]
pub struct RmaOp {
    /// What it does.
    pub action: Action,
    /// Interface of the MD.
    pub interface: u8,
    /// Local memory: the source of puts and atomics, the destination of gets and fetching atomics.
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
    /// `PtlTriggeredPut` and its kin
    Transfer(RmaOp),
    /// `PtlTriggeredCTInc`
    CtInc(Handle, CtEvent),
    /// `PtlTriggeredCTSet`
    CtSet(Handle, CtEvent),
    /// `PtlTriggeredMEAppend`: the entry, which exists but is in no list, and its list.
    Append(Handle, List),
    /// `PtlTriggeredMEUnlink`
    Unlink(Handle),
}
