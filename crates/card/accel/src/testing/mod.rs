// SPDX-License-Identifier: Apache-2.0
//! Utilities shared by the tests of accelerators and cards.

pub mod code;
