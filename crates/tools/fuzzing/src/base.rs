// SPDX-License-Identifier: Apache-2.0
//! Machine files that inherit from those of the project.

use machine::Machine;

/// Path of a nonexistent file in the project's folder of machines, so that `base = "sc17-int"` is found.
pub const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/fuzz.toml");

/// Parses a machine file that must be valid, and its overrides.
///
/// # Panics
/// When it is invalid.
pub fn beside(file: &str, set: &[String]) -> Machine {
    Machine::parse(BESIDE, file, set).expect("a valid machine")
}
