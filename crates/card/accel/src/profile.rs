// SPDX-License-Identifier: Apache-2.0
//! Execution counts by source line.

use std::collections::BTreeMap;

/// Execution counts of instructions, by handler name and source location.
pub type Profile = BTreeMap<String, BTreeMap<SourcePlace, u64>>;

/// Source location of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// Function of the device program that contains the instruction.
    pub function: Option<String>,
    /// File as the compiler recorded it, and line from 1; `None` without `-g`.
    pub line: Option<(String, u32)>,
}
