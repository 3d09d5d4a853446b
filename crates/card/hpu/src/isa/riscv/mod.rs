// SPDX-License-Identifier: Apache-2.0
//! RV32 with the extensions M, A, F, D and C, Zicsr, Zifencei and Zicntr, and CORE-V: tables of encodings, and one
//! semantic function for each instruction.

mod atomic;
mod compressed;
mod control;
mod core;
mod corev;
mod csr;
mod decode;
mod elf;
mod extensions;
mod fields;
mod float;
mod integer;
mod row;
mod table;

pub(super) use self::core::{NAMES, by_name};
