// SPDX-License-Identifier: Apache-2.0
//! A32 of ARMv7-A (ARM ARM, DDI 0406C) with VFPv4 and Advanced SIMD, as in a Cortex-A15: tables of encodings, and one
//! semantic function for each instruction. Thumb code is refused when a program is loaded.

mod control;
mod core;
mod data;
mod decode;
#[cfg(test)]
mod differential;
mod elf;
mod exclusive;
mod fields;
mod flags;
mod float;
mod form;
mod guard;
mod media;
mod memory;
mod multiple;
mod multiply;
mod neon;
mod operands;
mod row;
mod table;
mod vfp;

pub use self::core::{NAMES, by_name};
