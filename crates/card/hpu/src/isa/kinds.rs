// SPDX-License-Identifier: Apache-2.0
//! Instruction sets by HPU kind.

use std::sync::Arc;

use thiserror::Error;

use super::interface::Isa;
use super::{arm, riscv};

/// Returns the instruction set of an HPU kind; `None` if the name is not one of its names.
type ByName = fn(&str) -> Option<Arc<dyn Isa>>;

/// Instruction sets, each with a description of its names.
const INSTRUCTION_SETS: &[(ByName, &str)] = &[(riscv::by_name, riscv::NAMES), (arm::by_name, arm::NAMES)];

/// The name of an HPU kind does not name an instruction set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("HPU kind '{kind}' names no instruction set; the simulator executes {}", known())]
pub struct UnknownKind {
    /// Name of the kind.
    pub kind: String,
}

fn known() -> String {
    INSTRUCTION_SETS.iter().map(|(_, names)| *names).collect::<Vec<_>>().join(", ")
}

/// Returns the instruction set of an HPU kind (`hpu.kind`, a folder of `sdk/device`). The name of a kind is the name of
/// its instruction set, optionally followed by a hyphen and suffixes ("rv32imac-small"). Suffixes may add extensions
/// ("rv32imac-corev").
///
/// # Errors
/// Returns an error if no instruction set has this name.
pub fn instruction_set(kind: &str) -> Result<Arc<dyn Isa>, UnknownKind> {
    INSTRUCTION_SETS.iter().find_map(|(by_name, _)| by_name(kind)).ok_or_else(|| UnknownKind { kind: kind.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_name_their_instruction_set() {
        for (kind, name) in [
            ("rv32imac", "rv32imac"),
            ("rv32imafdc", "rv32imafdc"),
            ("rv32im-small", "rv32im"),
            ("rv32imac-corev", "rv32imac-corev"),
            ("rv32imac-corev-small", "rv32imac-corev"),
            ("armv7a", "armv7a"),
            ("armv7a-small", "armv7a"),
        ] {
            assert_eq!(instruction_set(kind).unwrap().name(), name);
        }
        for kind in ["", "rv32", "rv64imac", "rv32imax", "rv32imadc", "rv32mi", "rv32iim", "-rv32i", "armv7"] {
            let error = instruction_set(kind).unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "HPU kind '{kind}' names no instruction set; the simulator executes RISC-V: rv32i, then those of m, \
                     a, f, d (with f) and c that the core has, in this order (\"rv32imac\"), and with CORE-V \"-corev\", \
                     ARM: armv7a (A32 of ARMv7-A with VFPv4 and Advanced SIMD, as in a Cortex-A15)"
                )
            );
        }
    }
}
