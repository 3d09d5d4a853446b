// SPDX-License-Identifier: Apache-2.0
//! Return codes of the functions of `pmi.h`.

use std::ffi::c_int;

/// `PMI_SUCCESS`
pub const SUCCESS: c_int = 0;
/// `PMI_FAIL`
pub const FAIL: c_int = -1;
/// `PMI_ERR_INIT`: `PMI_Init` was not called.
pub const NOT_INITIALISED: c_int = 1;
/// `PMI_ERR_INVALID_ARG`
pub const INVALID_ARGUMENT: c_int = 3;
/// `PMI_ERR_INVALID_KEY`
pub const INVALID_KEY: c_int = 4;
/// `PMI_ERR_INVALID_KEY_LENGTH`
pub const INVALID_KEY_LENGTH: c_int = 5;
/// `PMI_ERR_INVALID_VAL`
pub const INVALID_VALUE: c_int = 6;
/// `PMI_ERR_INVALID_VAL_LENGTH`
pub const INVALID_VALUE_LENGTH: c_int = 7;
/// `PMI_ERR_INVALID_LENGTH`: a buffer of the caller is too short.
pub const INVALID_LENGTH: c_int = 8;
