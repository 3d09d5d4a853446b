// SPDX-License-Identifier: Apache-2.0
//! Structures and constants of `pmix_common.h`, in the PMIx Standard's ABI.

use std::ffi::{c_char, c_int, c_void};

/// Size of a namespace's name, including its final zero byte (`pmix_nspace_t`).
pub const NAMESPACE: usize = 256;
/// Size of a key, including its final zero byte (`pmix_key_t`).
pub const KEY: usize = 512;
/// All ranks of a namespace (`PMIX_RANK_WILDCARD`).
pub const ALL_RANKS: u32 = u32::MAX - 1;

/// `pmix_status_t`.
pub type Status = c_int;

/// Values of `pmix_status_t`.
pub mod status {
    use super::Status;

    /// `PMIX_SUCCESS`.
    pub const SUCCESS: Status = 0;
    /// `PMIX_ERR_UNREACH`: no server exists. A program then runs as the only rank.
    pub const UNREACHABLE: Status = -25;
    /// `PMIX_ERR_UNPACK_INADEQUATE_SPACE`: more values than the program has room for.
    pub const NO_SPACE: Status = -19;
    /// `PMIX_ERR_UNPACK_FAILURE`: the next values are of another kind.
    pub const OTHER_VALUES: Status = -20;
    /// `PMIX_ERR_BAD_PARAM`.
    pub const BAD_PARAMETER: Status = -27;
    /// `PMIX_ERR_OUT_OF_RESOURCE`.
    pub const NO_ROOM: Status = -29;
    /// `PMIX_ERR_INIT`: `PMIx_Init` was not called.
    pub const NOT_INITIALISED: Status = -31;
    /// `PMIX_ERR_NOT_FOUND`.
    pub const NOT_FOUND: Status = -46;
    /// `PMIX_ERR_NOT_SUPPORTED`.
    pub const NOT_SUPPORTED: Status = -47;
    /// `PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER`.
    pub const END_OF_BUFFER: Status = -50;
    /// `PMIX_ERR_NOMEM`.
    pub const NO_MEMORY: Status = -32;
    /// `PMIX_ERR_LOST_CONNECTION`.
    pub const LOST_CONNECTION: Status = -61;
}

/// Values of `pmix_data_type_t`.
pub mod kind {
    /// `PMIX_STRING`.
    pub const STRING: u16 = 3;
    /// `PMIX_UINT16`.
    pub const UINT16: u16 = 13;
    /// `PMIX_UINT32`.
    pub const UINT32: u16 = 14;
    /// `PMIX_PROC`.
    pub const PROCESS: u16 = 22;
    /// `PMIX_BYTE_OBJECT`.
    pub const BYTES: u16 = 27;

    /// Returns the size of a number of this kind.
    pub fn size_of_number(kind: u16) -> Option<usize> {
        match kind {
            1 | 2 | 7 | 12 => Some(1),                         // BOOL, BYTE, INT8, UINT8
            8 | UINT16 => Some(2),                             // INT16
            5 | 6 | 9 | 11 | UINT32 | 16 | 20 | 40 => Some(4), // PID, INT, INT32, UINT, FLOAT, STATUS, PROC_RANK
            4 | 10 | 15 | 17 | 19 => Some(8),                  // SIZE, INT64, UINT64, DOUBLE, TIME
            _ => None,
        }
    }
}

/// `pmix_proc_t`: a process.
#[repr(C)]
pub struct Process {
    /// Namespace, the job.
    pub namespace: [c_char; NAMESPACE],
    /// Rank in the namespace.
    pub rank: u32,
}

/// `pmix_byte_object_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// First byte, allocated by `malloc`.
    pub start: *mut c_char,
    /// Number of bytes.
    pub length: usize,
}

/// The union in `pmix_value_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Data {
    /// A number, in the first bytes.
    pub number: [u8; 8],
    /// A string, allocated by `malloc`.
    pub string: *mut c_char,
    /// Bytes.
    pub bytes: Bytes,
    /// The largest member, `pmix_envar_t`.
    pub largest: [usize; 3],
}

/// `pmix_value_t`.
#[repr(C)]
pub struct Value {
    /// Kind, which selects the member of the union.
    pub kind: u16,
    /// Member.
    pub data: Data,
}

/// `pmix_data_buffer_t`: a sequence of values. `PMIx_Data_buffer_destruct` frees its memory.
#[repr(C)]
pub struct Buffer {
    /// Memory, allocated by `malloc`.
    pub start: *mut c_char,
    /// Address of the next value to write.
    pub end: *mut c_char,
    /// Address of the next value to read.
    pub next: *mut c_char,
    /// Size of the memory in bytes.
    pub capacity: usize,
    /// Number of bytes with values.
    pub used: usize,
}

/// `pmix_op_cbfunc_t`: callback for the completion of an operation.
pub type Completed = unsafe extern "C" fn(Status, *mut c_void);
/// `pmix_hdlr_reg_cbfunc_t`: callback for the registration of an event handler.
pub type Registered = unsafe extern "C" fn(Status, usize, *mut c_void);
/// `pmix_info_cbfunc_t`: callback with the answer to a query, and the function that releases the answer.
pub type Answered = unsafe extern "C" fn(
    Status,
    *mut c_void,
    usize,
    *mut c_void,
    Option<unsafe extern "C" fn(*mut c_void)>,
    *mut c_void,
);

#[cfg(test)]
mod tests {
    use super::{Buffer, Data, Process, Value, kind};
    use std::mem::offset_of;

    /// Sizes according to a C compiler and `pmix_common.h` of PMIx 4 and 5.
    #[test]
    fn structures_have_the_layout_of_the_standard() {
        assert_eq!((size_of::<Process>(), offset_of!(Process, rank)), (260, 256));
        assert_eq!((size_of::<Buffer>(), offset_of!(Buffer, used)), (40, 32));
        assert_eq!((size_of::<Value>(), offset_of!(Value, data), size_of::<Data>()), (32, 8, 24));
    }

    #[test]
    fn kinds_with_pointers_are_no_numbers() {
        let of = |kind| kind::size_of_number(kind);
        assert_eq!([kind::STRING, kind::BYTES, 0, 21, 31, 39].map(of), [None; 6]);
        assert_eq!([kind::UINT16, kind::UINT32, 15, 2].map(of), [Some(2), Some(4), Some(8), Some(1)]);
    }
}
