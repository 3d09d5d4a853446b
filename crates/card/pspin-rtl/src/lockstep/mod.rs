// SPDX-License-Identifier: Apache-2.0
//! Hardware against model.
//!
//! * [`comparison`](comparison): the same packets on both; [`traffic`]: random packets
//! * [`tape`]: events of a unit, compared cycle by cycle; [`loaded`]: packet by packet
//! * [`instructions`]: each instruction of the hardware against the instruction-set simulator

pub mod comparison;
pub mod instructions;
pub mod loaded;
pub mod tape;
pub mod traffic;
