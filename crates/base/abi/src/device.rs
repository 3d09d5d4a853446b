// SPDX-License-Identifier: Apache-2.0
//! Interface between handlers and the card, and the embedding of device code in a host executable.

use bytemuck::{Pod, Zeroable};

/// Addresses in the card's address space. The bases follow PsPIN's memory map, so one device program runs on every
/// card. The machine file sets the sizes.
pub mod map {
    /// HPU memory, allocated by `PtlHPUAllocMem` (PsPIN: cluster L1).
    pub const HPU_MEMORY: u32 = 0x1000_0000;
    /// Stacks and argument blocks: one window of [`CONTEXT_STRIDE`] bytes for each HPU context.
    pub const CONTEXTS: u32 = 0x1a00_0000;
    /// Distance between the windows of two contexts, in bytes. A window starts with the argument block of
    /// [`ARGS_BYTES`]; the stack grows down from the window's end.
    pub const CONTEXT_STRIDE: u32 = 0x4000;
    /// Size of the argument block at the start of a context's window, in bytes.
    pub const ARGS_BYTES: u32 = 0x400;
    /// Static data of the handlers (PsPIN: L2 handler memory).
    pub const DATA: u32 = 0x1c00_0000;
    /// Packet buffers (PsPIN: L2 packet memory).
    pub const PACKETS: u32 = 0x1c40_0000;
    /// Code and constants of the handlers (PsPIN: program memory).
    pub const PROGRAM: u32 = 0x1d00_0000;
    /// Return address of a handler. A jump to it ends the handler.
    pub const RETURN: u32 = 0x1eff_fff0;
}

/// `ptl_header_t` in the card's layout, passed to a header handler (sPIN App. B.3); the user header follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct HeaderArgs {
    /// `type`: 0 put, 1 get, 2 atomic, 3 fetch-atomic
    pub kind: u32,
    /// Padding.
    pub pad: u32,
    /// `length`: bytes of the message, including the user header
    pub length: u64,
    /// `target_id`
    pub target_id: crate::portals::Process,
    /// `source_id`
    pub source_id: crate::portals::Process,
    /// `match_bits`
    pub match_bits: u64,
    /// `offset` in the ME
    pub offset: u64,
    /// `hdr_data`
    pub hdr_data: u64,
}

/// `ptl_payload_t` in the card's layout, passed to a payload handler (sPIN App. B.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PayloadArgs {
    /// `length`: bytes of payload
    pub length: u64,
    /// `offset` in the message, after the user header
    pub offset: u64,
    /// `base`: card address of the data. App. B.4 has a flexible array here; a pointer lets every ABI pass the
    /// structure by value, and `p.base` reads the same.
    pub base: u32,
    /// Padding.
    pub pad: u32,
}

/// Return codes of handlers (sPIN App. B.3–B.5).
pub mod ret {
    /// Returned by header and payload handlers.
    pub const DROP: u32 = 0;
    /// Returned by header handlers.
    pub const DROP_PENDING: u32 = 1;
    /// Returned by header handlers.
    pub const PROCESS_DATA: u32 = 2;
    /// Returned by header handlers.
    pub const PROCESS_DATA_PENDING: u32 = 3;
    /// Returned by header handlers.
    pub const PROCEED: u32 = 4;
    /// Returned by header handlers.
    pub const PROCEED_PENDING: u32 = 5;
    /// Returned by payload and completion handlers.
    pub const SUCCESS: u32 = 6;
    /// Returned by completion handlers.
    pub const SUCCESS_PENDING: u32 = 7;
    /// Returned by any handler: error.
    pub const FAIL: u32 = 8;
    /// Set by the card for any handler: error.
    pub const SEGV: u32 = 9;
}

/// Commands from a handler to the card. A command is an environment call with its number in `a7` and the arguments
/// below. `a0` returns the result: 0, or a negative number from [`err`].
pub mod cmd {
    /// `a0`: address of a [`super::PutCmd`].
    pub const PUT_FROM_DEVICE: u32 = 1;
    /// `a0`: address of a [`super::PutCmd`] whose `local` is an offset in the ME.
    pub const PUT_FROM_HOST: u32 = 2;
    /// `a0`: address of a [`super::DmaCmd`]. Returns at once and stores the handle in `DmaCmd::handle`.
    pub const DMA_TO_HOST: u32 = 3;
    /// Like [`DMA_TO_HOST`], from host memory to the card.
    pub const DMA_FROM_HOST: u32 = 4;
    /// `a0`: DMA handle. Returns 1 if the transfer is complete, otherwise 0.
    pub const DMA_TEST: u32 = 5;
    /// `a0`: DMA handle. Waits until the transfer is complete.
    pub const DMA_WAIT: u32 = 6;
    /// Lets another handler use the HPU.
    pub const YIELD: u32 = 7;
    /// `a0`: address of a `ptl_ct_event_t` to add to the ME's counter.
    pub const CT_INC: u32 = 8;
    /// `a0`: address of a `ptl_ct_event_t` to fill.
    pub const CT_GET: u32 = 9;
    /// `a0`: address of a `ptl_ct_event_t` to store.
    pub const CT_SET: u32 = 10;
    /// Returns the number of the HPU that runs the handler.
    pub const MY_HPU: u32 = 11;
    /// Returns the number of HPUs.
    pub const NUM_HPUS: u32 = 12;
    /// Ends the handler as [`super::ret::FAIL`].
    pub const ABORT: u32 = 13;
    /// `a0`: address of a [`super::PutCmd`] whose `local` is an offset in the ME; `hdr_data` and `ack_req` are ignored.
    pub const GET_TO_HOST: u32 = 14;
    /// Like [`GET_TO_HOST`], but `local` is a card address, and the call waits for the data.
    pub const GET_TO_DEVICE: u32 = 15;
    /// `a0`: address of an [`super::AtomicCmd`].
    pub const ATOMIC_FROM_DEVICE: u32 = 16;
    /// `a0`: address of an [`super::AtomicCmd`] whose `local` is an offset in the ME.
    pub const ATOMIC_FROM_HOST: u32 = 17;
    /// `a0`: address of a [`super::DmaAtomicCmd`]. Returns at once and stores the handle in `DmaAtomicCmd::handle`.
    pub const DMA_CAS: u32 = 18;
    /// Like [`DMA_CAS`].
    pub const DMA_FETCH_ADD: u32 = 19;
    /// `a0`: address of a [`super::CasCmd`]. Returns 1 if it swaps the value, and stores the previous value in
    /// `compare`.
    pub const CAS: u32 = 20;
    /// `a0`: address of a [`super::FetchAddCmd`].
    pub const FETCH_ADD: u32 = 21;
    /// `a0`: address of a [`super::PrintCmd`].
    pub const PRINT: u32 = 22;
    /// `a0`: address of an [`super::AssertCmd`]. Ends the handler as [`super::ret::FAIL`].
    pub const ASSERT: u32 = 23;
    /// `a0`: address of a [`super::FetchAtomicCmd`]. Waits for the previous data of the target.
    pub const FETCH_ATOMIC: u32 = 24;
}

/// Error results of commands.
pub mod err {
    /// An argument is out of range.
    pub const INVALID: i32 = -1;
    /// The read fails: the host memory does not exist, or the target sent no data.
    pub const FAILED: i32 = -2;
}

/// Arguments of `PtlHandlerPutFromDevice` and `PtlHandlerPutFromHost` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PutCmd {
    /// Card address of the data, or its offset in the ME.
    pub local: u64,
    /// Length in bytes.
    pub len: u64,
    /// `match_bits`
    pub match_bits: u64,
    /// `remote_offset`
    pub remote_offset: u64,
    /// `hdr_data`
    pub hdr_data: u64,
    /// `target_id`
    pub target_id: crate::portals::Process,
    /// `user_ptr`: a number on the card
    pub user_ptr: u32,
    /// `ct`: 0, or `PTL_LOCAL_ME_CT` to count the operation on the ME's counter
    pub ct: u16,
    /// `ack_req`
    pub ack_req: u16,
}

/// Arguments of the DMA calls (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DmaCmd {
    /// Offset in the host memory chosen by `options`.
    pub offset: u64,
    /// Card address.
    pub local: u32,
    /// Length in bytes.
    pub len: u32,
    /// `PTL_ME_HOST_MEM` (0) or `PTL_HANDLER_HOST_MEM` (1).
    pub options: u32,
    /// Written by the card.
    pub handle: u32,
}

/// Arguments of `PtlHandlerAtomicFromDevice` and `PtlHandlerAtomicFromHost` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct AtomicCmd {
    /// Arguments of the put.
    pub put: PutCmd,
    /// An [`AtomicOp`](crate::portals::AtomicOp).
    pub operation: u32,
    /// A [`Datatype`](crate::portals::Datatype).
    pub datatype: u32,
}

/// Arguments of `PtlHandlerFetchAtomicFromDevice` and `PtlHandlerSwapFromDevice` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FetchAtomicCmd {
    /// Arguments of the atomic.
    pub atomic: AtomicCmd,
    /// Operand of a conditional swap: one item.
    pub operand: [u8; 32],
    /// Card address that receives the target's previous data.
    pub result: u32,
    /// Padding.
    pub pad: u32,
}

/// Arguments of `PtlHandlerDMACAS*` and `PtlHandlerDMAFetchAdd*` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DmaAtomicCmd {
    /// Offset in the host memory chosen by `options`, naturally aligned.
    pub offset: u64,
    /// Comparison value, or increment.
    pub value: u64,
    /// Value to store if the comparison succeeds.
    pub swap: u64,
    /// Card address of 8 bytes for the previous value. A compare-and-swap writes it only if the comparison fails.
    pub result: u32,
    /// A [`Datatype`](crate::portals::Datatype); `PTL_UINT64_T` for a compare-and-swap.
    pub datatype: u32,
    /// Host memory, as in [`DmaCmd::options`].
    pub options: u32,
    /// Written by the card.
    pub handle: u32,
}

/// Arguments of `PtlHandlerCAS` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CasCmd {
    /// `cmpval`
    pub compare: u64,
    /// `swapval`
    pub swap: u64,
    /// Card address of the value, a multiple of 8.
    pub address: u32,
    /// Padding.
    pub pad: u32,
}

/// Arguments of `PtlHandlerFAdd` (sPIN App. B.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FetchAddCmd {
    /// `inc`
    pub increment: u64,
    /// Previous value; written by the card.
    pub before: u64,
    /// Card address of the value, a multiple of 8.
    pub address: u32,
    /// Padding.
    pub pad: u32,
}

/// Arguments of `spin_printf`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PrintCmd {
    /// Card address of the format.
    pub format: u32,
    /// Card address of the arguments, laid out like C's `va_list`.
    pub arguments: u32,
}

/// A failed assertion, with the fields that C's `assert` prints. All but the line number are card addresses of strings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct AssertCmd {
    /// Expression.
    pub expression: u32,
    /// Source file.
    pub file: u32,
    /// Function.
    pub function: u32,
    /// Line number in the file.
    pub line: u32,
}

pub mod image;
