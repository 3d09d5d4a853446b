// SPDX-License-Identifier: Apache-2.0
//! Portals 4 (4.3) and P4sPIN constants and structures, as in `sdk/include/portals4.h` and `sdk/include/spin.h`.
//!
//! A structure that derives `Pod` has no implicit padding, and every bit pattern is valid. The compiler checks both, so
//! such structures cross boundaries as bytes.

use bytemuck::{Pod, Zeroable};

/// A handle: kind (4 bits), interface (2), generation (10), index (16). Processes that create the same objects in the
/// same order get the same values, as programs expect of interface handles.
pub type Handle = u32;

/// `PTL_INVALID_HANDLE`.
pub const INVALID_HANDLE: Handle = 0xffff_ffff;
/// `PTL_EQ_NONE`.
pub const EQ_NONE: Handle = 0xffff_fffe;
/// `PTL_CT_NONE`.
pub const CT_NONE: Handle = 0xffff_fffd;

/// `PTL_IFACE_DEFAULT`, the only interface of a node.
pub const IFACE_DEFAULT: u32 = 0;
/// `PTL_SIZE_MAX`.
pub const SIZE_MAX: u64 = u64::MAX;
/// `PTL_TIME_FOREVER`.
pub const TIME_FOREVER: u32 = u32::MAX;
/// `PTL_PT_ANY`.
pub const PT_ANY: u32 = u32::MAX;
/// `PTL_RANK_ANY`, `PTL_NID_ANY`, `PTL_PID_ANY` and `PTL_UID_ANY` share one value.
pub const ID_ANY: u32 = u32::MAX;
/// `PTL_PID_MAX`.
pub const PID_MAX: u32 = 1024;

macro_rules! codes {
    ($(#[$meta:meta])* $name:ident: $repr:ident { $($variant:ident = $value:literal $c:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr($repr)]
        pub enum $name { $(#[doc = concat!("`", $c, "`")] $variant = $value),+ }

        impl $name {
            /// All values and their names in C.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $c)),+];

            /// Returns the value with number `raw`.
            pub fn from_raw(raw: u64) -> Option<$name> {
                match raw { $($value => Some($name::$variant),)+ _ => None }
            }

            /// Returns its name in C.
            pub fn c_name(self) -> &'static str {
                match self { $($name::$variant => $c),+ }
            }
        }
    };
}

codes! {
    /// Return codes of the library calls.
    ReturnCode: i32 {
        Ok = 0 "PTL_OK", ArgInvalid = 1 "PTL_ARG_INVALID", CtNoneReached = 2 "PTL_CT_NONE_REACHED",
        EqDropped = 3 "PTL_EQ_DROPPED", EqEmpty = 4 "PTL_EQ_EMPTY", Fail = 5 "PTL_FAIL", Ignored = 6 "PTL_IGNORED",
        InUse = 7 "PTL_IN_USE", ListTooLong = 8 "PTL_LIST_TOO_LONG", NoInit = 9 "PTL_NO_INIT",
        NoSpace = 10 "PTL_NO_SPACE", PidInUse = 11 "PTL_PID_IN_USE", PtFull = 12 "PTL_PT_FULL",
        PtEqNeeded = 13 "PTL_PT_EQ_NEEDED", PtInUse = 14 "PTL_PT_IN_USE", Aborted = 15 "PTL_ABORTED",
        Interrupted = 16 "PTL_INTERRUPTED",
    }
}

codes! {
    /// Kinds of full events. 0 to 15 belong to Portals 4, `HandlerError` to P4sPIN (App. B.3).
    EventKind: u8 {
        Get = 0 "PTL_EVENT_GET", GetOverflow = 1 "PTL_EVENT_GET_OVERFLOW", Put = 2 "PTL_EVENT_PUT",
        PutOverflow = 3 "PTL_EVENT_PUT_OVERFLOW", Atomic = 4 "PTL_EVENT_ATOMIC",
        AtomicOverflow = 5 "PTL_EVENT_ATOMIC_OVERFLOW", FetchAtomic = 6 "PTL_EVENT_FETCH_ATOMIC",
        FetchAtomicOverflow = 7 "PTL_EVENT_FETCH_ATOMIC_OVERFLOW", Reply = 8 "PTL_EVENT_REPLY",
        Send = 9 "PTL_EVENT_SEND", Ack = 10 "PTL_EVENT_ACK", PtDisabled = 11 "PTL_EVENT_PT_DISABLED",
        Link = 12 "PTL_EVENT_LINK", AutoUnlink = 13 "PTL_EVENT_AUTO_UNLINK", AutoFree = 14 "PTL_EVENT_AUTO_FREE",
        Search = 15 "PTL_EVENT_SEARCH", HandlerError = 16 "PTL_EVENT_HANDLER_ERROR",
    }
}

codes! {
    /// `ni_fail_type` of an event. 0 to 7 belong to Portals 4, the last two to P4sPIN.
    NiFail: u8 {
        Ok = 0 "PTL_NI_OK", Undeliverable = 1 "PTL_NI_UNDELIVERABLE", Dropped = 2 "PTL_NI_DROPPED",
        PtDisabled = 3 "PTL_NI_PT_DISABLED", PermViolation = 4 "PTL_NI_PERM_VIOLATION",
        OpViolation = 5 "PTL_NI_OP_VIOLATION", NoMatch = 6 "PTL_NI_NO_MATCH", Segv = 7 "PTL_NI_SEGV",
        HandlerFail = 8 "PTL_NI_HANDLER_FAIL", HandlerTimeout = 9 "PTL_NI_HANDLER_TIMEOUT",
    }
}

codes! {
    /// Lists of a portal table entry.
    List: u8 { Priority = 0 "PTL_PRIORITY_LIST", Overflow = 1 "PTL_OVERFLOW_LIST" }
}

codes! {
    /// Operations of a search on a matching header.
    SearchOp: u8 { Only = 0 "PTL_SEARCH_ONLY", Delete = 1 "PTL_SEARCH_DELETE" }
}

codes! {
    /// Kinds of acknowledgements that a put can request.
    AckReq: u8 {
        None = 0 "PTL_NO_ACK_REQ", Ack = 1 "PTL_ACK_REQ", Ct = 2 "PTL_CT_ACK_REQ", Oc = 3 "PTL_OC_ACK_REQ",
    }
}

codes! {
    /// Atomic operations.
    AtomicOp: u8 {
        Min = 0 "PTL_MIN", Max = 1 "PTL_MAX", Sum = 2 "PTL_SUM", Prod = 3 "PTL_PROD", Lor = 4 "PTL_LOR",
        Land = 5 "PTL_LAND", Bor = 6 "PTL_BOR", Band = 7 "PTL_BAND", Lxor = 8 "PTL_LXOR", Bxor = 9 "PTL_BXOR",
        Swap = 10 "PTL_SWAP", Cswap = 11 "PTL_CSWAP", CswapNe = 12 "PTL_CSWAP_NE", CswapLe = 13 "PTL_CSWAP_LE",
        CswapLt = 14 "PTL_CSWAP_LT", CswapGe = 15 "PTL_CSWAP_GE", CswapGt = 16 "PTL_CSWAP_GT",
        Mswap = 17 "PTL_MSWAP",
    }
}

codes! {
    /// Datatypes of atomic operations.
    Datatype: u8 {
        Int8 = 0 "PTL_INT8_T", Uint8 = 1 "PTL_UINT8_T", Int16 = 2 "PTL_INT16_T", Uint16 = 3 "PTL_UINT16_T",
        Int32 = 4 "PTL_INT32_T", Uint32 = 5 "PTL_UINT32_T", Float = 6 "PTL_FLOAT", Int64 = 7 "PTL_INT64_T",
        Uint64 = 8 "PTL_UINT64_T", Double = 9 "PTL_DOUBLE", FloatComplex = 10 "PTL_FLOAT_COMPLEX",
        DoubleComplex = 11 "PTL_DOUBLE_COMPLEX", LongDouble = 12 "PTL_LONG_DOUBLE",
        LongDoubleComplex = 13 "PTL_LONG_DOUBLE_COMPLEX",
    }
}

codes! {
    /// Status registers of an interface.
    StatusRegister: u32 {
        DropCount = 0 "PTL_SR_DROP_COUNT", PermissionViolations = 1 "PTL_SR_PERMISSION_VIOLATIONS",
        OperationViolations = 2 "PTL_SR_OPERATION_VIOLATIONS",
    }
}

macro_rules! bits {
    ($(#[$meta:meta])* $module:ident { $($name:ident = $bit:literal $c:literal),+ $(,)? }) => {
        $(#[$meta])*
        pub mod $module {
            $(#[doc = concat!("`", $c, "`")] pub const $name: u32 = 1 << $bit;)+
            /// All bits and their names in C.
            pub const ALL: &[(u32, &str)] = &[$(($name, $c)),+];
            /// All valid bits.
            pub const MASK: u32 = $(1 << $bit)|+;
        }
    };
}

bits! {
    /// Options of `PtlNIInit`.
    ni {
        MATCHING = 0 "PTL_NI_MATCHING", NO_MATCHING = 1 "PTL_NI_NO_MATCHING",
        LOGICAL = 2 "PTL_NI_LOGICAL", PHYSICAL = 3 "PTL_NI_PHYSICAL",
    }
}

bits! {
    /// Feature bits of [`NiLimits`].
    feature {
        TARGET_BIND_INACCESSIBLE = 0 "PTL_TARGET_BIND_INACCESSIBLE", TOTAL_DATA_ORDERING = 1 "PTL_TOTAL_DATA_ORDERING",
        COHERENT_ATOMICS = 2 "PTL_COHERENT_ATOMICS",
    }
}

bits! {
    /// Options of `PtlPTAlloc`.
    pt {
        ONLY_USE_ONCE = 0 "PTL_PT_ONLY_USE_ONCE", FLOWCTRL = 1 "PTL_PT_FLOWCTRL",
        ONLY_TRUNCATE = 2 "PTL_PT_ONLY_TRUNCATE", MATCH_UNORDERED = 3 "PTL_PT_MATCH_UNORDERED",
        ALLOC_DISABLED = 4 "PTL_PT_ALLOC_DISABLED",
    }
}

bits! {
    /// Options of a memory descriptor. `IOVEC` and `EVENT_CT_BYTES` have the same bit in [`me`].
    md {
        IOVEC = 0 "PTL_IOVEC", EVENT_SUCCESS_DISABLE = 1 "PTL_MD_EVENT_SUCCESS_DISABLE",
        EVENT_CT_SEND = 2 "PTL_MD_EVENT_CT_SEND", EVENT_CT_REPLY = 3 "PTL_MD_EVENT_CT_REPLY",
        EVENT_CT_ACK = 4 "PTL_MD_EVENT_CT_ACK", UNORDERED = 5 "PTL_MD_UNORDERED", VOLATILE = 6 "PTL_MD_VOLATILE",
        EVENT_SEND_DISABLE = 7 "PTL_MD_EVENT_SEND_DISABLE", UNRELIABLE = 8 "PTL_MD_UNRELIABLE",
        EVENT_CT_BYTES = 15 "PTL_MD_EVENT_CT_BYTES",
    }
}

bits! {
    /// Options of a list entry or match list entry; `PTL_LE_x` equals `PTL_ME_x`.
    me {
        IOVEC = 0 "PTL_IOVEC", OP_PUT = 1 "PTL_ME_OP_PUT", OP_GET = 2 "PTL_ME_OP_GET", USE_ONCE = 3 "PTL_ME_USE_ONCE",
        UNEXPECTED_HDR_DISABLE = 4 "PTL_ME_UNEXPECTED_HDR_DISABLE", IS_ACCESSIBLE = 5 "PTL_ME_IS_ACCESSIBLE",
        EVENT_LINK_DISABLE = 6 "PTL_ME_EVENT_LINK_DISABLE", EVENT_COMM_DISABLE = 7 "PTL_ME_EVENT_COMM_DISABLE",
        EVENT_FLOWCTRL_DISABLE = 8 "PTL_ME_EVENT_FLOWCTRL_DISABLE",
        EVENT_SUCCESS_DISABLE = 9 "PTL_ME_EVENT_SUCCESS_DISABLE", EVENT_OVER_DISABLE = 10 "PTL_ME_EVENT_OVER_DISABLE",
        EVENT_UNLINK_DISABLE = 11 "PTL_ME_EVENT_UNLINK_DISABLE", EVENT_CT_COMM = 12 "PTL_ME_EVENT_CT_COMM",
        EVENT_CT_OVERFLOW = 13 "PTL_ME_EVENT_CT_OVERFLOW", ACK_DISABLE = 14 "PTL_ME_ACK_DISABLE",
        EVENT_CT_BYTES = 15 "PTL_ME_EVENT_CT_BYTES", MANAGE_LOCAL = 16 "PTL_ME_MANAGE_LOCAL",
        NO_TRUNCATE = 17 "PTL_ME_NO_TRUNCATE", MAY_ALIGN = 18 "PTL_ME_MAY_ALIGN",
        LOCAL_INC_UH_RLENGTH = 19 "PTL_ME_LOCAL_INC_UH_RLENGTH",
    }
}

/// Bits of [`me`] that a list entry of a non-matching interface may set (`PTL_LE_APPEND_OPTIONS_MASK`).
pub const LE_OPTIONS_MASK: u32 = me::MASK & 0xffff;
/// `PTL_HANDLER_IOVEC`, only for entries with handlers: the handler host memory is an array of `ptl_iovec_t`.
pub const ME_HANDLER_IOVEC: u32 = 1 << 24;

/// `ptl_process_t`, a union of a rank and a (nid, pid) pair: the low word is the rank or nid, the high word the pid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Process {
    /// `rank`, or `phys.nid`.
    pub nid: u32,
    /// `phys.pid`; undefined for a rank.
    pub pid: u32,
}

/// `ptl_iovec_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Iovec {
    /// `iov_base`
    pub base: u64,
    /// `iov_len`
    pub len: u64,
}

/// `ptl_md_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Md {
    /// `start`
    pub start: u64,
    /// `length`
    pub length: u64,
    /// `options`
    pub options: u32,
    /// `eq_handle`
    pub eq_handle: Handle,
    /// `ct_handle`
    pub ct_handle: Handle,
    /// Padding.
    pub pad: u32,
}

/// `ptl_le_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Le {
    /// `start`
    pub start: u64,
    /// `length`
    pub length: u64,
    /// `ct_handle`
    pub ct_handle: Handle,
    /// `uid`
    pub uid: u32,
    /// `options`
    pub options: u32,
    /// Padding.
    pub pad: u32,
}

/// `ptl_me_t`. The fields after `min_free` belong to P4sPIN (sPIN App. B.1). Only `PtlMEAppendHandlers`, to which
/// `spin.h` maps `PtlMEAppend`, reads them, so a plain Portals program may leave them uninitialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Me {
    /// Fields that an ME shares with an LE.
    pub le: Le,
    /// `match_id`
    pub match_id: Process,
    /// `match_bits`
    pub match_bits: u64,
    /// `ignore_bits`
    pub ignore_bits: u64,
    /// `min_free`
    pub min_free: u64,
    /// `header_handler`: address of the handler's host function, 0 for none.
    pub header_handler: u64,
    /// `payload_handler`
    pub payload_handler: u64,
    /// `completion_handler`
    pub completion_handler: u64,
    /// `hpu_initial_state`: copied into the HPU memory when the entry is appended; 0 leaves that memory unchanged.
    pub hpu_initial_state: u64,
    /// `hpu_initial_state_length`, bytes
    pub hpu_initial_state_length: u64,
    /// `handler_host_mem_start`
    pub handler_host_mem_start: u64,
    /// `handler_host_mem_length`, bytes, or elements with `PTL_HANDLER_IOVEC`
    pub handler_host_mem_length: u64,
    /// `user_hdr_size`: size of the user header at the start of the message, in bytes
    pub user_hdr_size: u64,
    /// `hpu_memory`: handle from `PtlHPUAllocMem`, or `PTL_INVALID_HANDLE`
    pub hpu_memory: Handle,
    /// Padding.
    pub pad: u32,
}

/// `ptl_ct_event_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct CtEvent {
    /// `success`
    pub success: u64,
    /// `failure`
    pub failure: u64,
}

/// `ptl_event_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Event {
    /// `start`
    pub start: u64,
    /// `user_ptr`
    pub user_ptr: u64,
    /// `hdr_data`
    pub hdr_data: u64,
    /// `match_bits`
    pub match_bits: u64,
    /// `rlength`
    pub rlength: u64,
    /// `mlength`
    pub mlength: u64,
    /// `remote_offset`
    pub remote_offset: u64,
    /// `initiator`
    pub initiator: Process,
    /// `uid`
    pub uid: u32,
    /// `pt_index`
    pub pt_index: u32,
    /// `type`, an [`EventKind`]
    pub kind: u8,
    /// `ptl_list`, a [`List`]
    pub ptl_list: u8,
    /// `ni_fail_type`, a [`NiFail`]
    pub ni_fail_type: u8,
    /// `atomic_operation`, an [`AtomicOp`]
    pub atomic_operation: u8,
    /// `atomic_type`, a [`Datatype`]
    pub atomic_type: u8,
    /// Padding.
    pub pad: [u8; 3],
}

/// `ptl_ni_limits_t`; the fields after `features` belong to P4sPIN (sPIN App. B.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NiLimits {
    /// `max_entries`
    pub max_entries: i32,
    /// `max_unexpected_headers`
    pub max_unexpected_headers: i32,
    /// `max_mds`
    pub max_mds: i32,
    /// `max_cts`
    pub max_cts: i32,
    /// `max_eqs`
    pub max_eqs: i32,
    /// `max_pt_index`
    pub max_pt_index: i32,
    /// `max_iovecs`
    pub max_iovecs: i32,
    /// `max_list_size`
    pub max_list_size: i32,
    /// `max_triggered_ops`
    pub max_triggered_ops: i32,
    /// Padding.
    pub pad0: i32,
    /// `max_msg_size`
    pub max_msg_size: u64,
    /// `max_atomic_size`
    pub max_atomic_size: u64,
    /// `max_fetch_atomic_size`
    pub max_fetch_atomic_size: u64,
    /// `max_waw_ordered_size`
    pub max_waw_ordered_size: u64,
    /// `max_war_ordered_size`
    pub max_war_ordered_size: u64,
    /// `max_volatile_size`
    pub max_volatile_size: u64,
    /// `features`
    pub features: u32,
    /// Padding.
    pub pad1: u32,
    /// `max_user_hdr_size`, bytes
    pub max_user_hdr_size: u64,
    /// `max_payload_size`, bytes
    pub max_payload_size: u64,
    /// `max_handler_mem`, bytes
    pub max_handler_mem: u64,
    /// `max_initial_state`, bytes
    pub max_initial_state: u64,
    /// `min_fragmentation_limit`, bytes
    pub min_fragmentation_limit: u64,
    /// `max_cycles_per_byte`
    pub max_cycles_per_byte: u64,
}
