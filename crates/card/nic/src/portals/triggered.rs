// SPDX-License-Identifier: Apache-2.0
//! Operations described by the program, for immediate or triggered execution.

use std::rc::Rc;

use abi::portals::{AckReq, CtEvent, Handle, List, Process};

use super::descriptor::MemoryDescriptor;
use crate::atomic::{AtomicSpec, MAX_OPERAND};

/// Target of an operation, and its header fields.
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

/// Operation of a transfer at the target.
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

/// Additional parameters of a fetching atomic, with the source of its data.
#[derive(Clone, Debug)]
pub struct FetchAction {
    /// Source memory of the data.
    pub put_md: Rc<MemoryDescriptor>,
    /// Offset in it.
    pub put_offset: u64,
    /// Operation.
    pub spec: AtomicSpec,
    /// Operand of a conditional swap.
    pub operand: [u8; MAX_OPERAND],
}

/// A checked operation that moves data (RMA: remote memory access).
#[derive(Clone, Debug)]
pub struct RmaOp {
    /// Operation.
    pub action: Action,
    /// Interface of the MD.
    pub interface: u8,
    /// Local memory: the source of puts and atomics, the destination of gets and fetching atomics.
    pub md: Rc<MemoryDescriptor>,
    /// Offset in it.
    pub local_offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Target of the operation.
    pub target: Target,
}

/// An operation that waits for a counter (Portals 4.3 §3.17).
#[derive(Clone, Debug)]
pub enum TriggeredOp {
    /// `PtlTriggeredPut` and the other triggered transfers.
    Transfer(RmaOp),
    /// `PtlTriggeredCTInc`
    CtInc(Handle, CtEvent),
    /// `PtlTriggeredCTSet`
    CtSet(Handle, CtEvent),
    /// `PtlTriggeredMEAppend`: the entry, which is not yet linked, and its list.
    Append(Handle, List),
    /// `PtlTriggeredMEUnlink`
    Unlink(Handle),
}
