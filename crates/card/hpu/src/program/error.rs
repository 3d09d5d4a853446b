// SPDX-License-Identifier: Apache-2.0
//! Errors of device ELF files.

use object::elf::ET_EXEC;
use thiserror::Error;

/// Errors in files of device programs.
#[derive(Debug, Error)]
pub enum ElfError {
    /// The file is malformed or not ELF32.
    #[error("device program: not a valid 32-bit ELF file: {0}")]
    Elf(#[from] object::Error),
    /// The code is for another machine.
    #[error("device program: machine is {found}, but {isa} cores execute {expected} ({machine})")]
    Machine {
        /// Machine number in the ELF header.
        found: u16,
        /// Name of the cores' instruction set.
        isa: String,
        /// Machine number of the cores.
        machine: u16,
        /// Name of the cores' machine.
        expected: &'static str,
    },
    /// The ELF file is not an executable.
    #[error("device program: type is {found}, expected {} (executable)", ET_EXEC.0)]
    Type {
        /// Type number in the ELF header.
        found: u16,
    },
    /// The code needs extensions that the cores lack.
    #[error("device program: {0}")]
    Unsupported(String),
    /// A loadable segment is outside the card's memory for programs and data.
    #[error(
        "device program: segment {index} at {address:#010x}, {bytes} B, is {place} of {map}; programs may only use \
         {allowed}"
    )]
    Placement {
        /// Index of the program header.
        index: usize,
        /// First address of the segment.
        address: u32,
        /// Size in memory, in bytes.
        bytes: u32,
        /// Description of its place: "in the packet buffers".
        place: String,
        /// Name of the map.
        map: &'static str,
        /// Memories for programs, with their addresses.
        allowed: String,
    },
    /// A loadable segment has more bytes in the file than in memory, or its bytes are missing from the file.
    #[error("device program: segment {index} at {address:#010x}: its bytes are not in the file")]
    Truncated {
        /// Index of the program header.
        index: usize,
        /// First address of the segment.
        address: u32,
    },
    /// No loadable segment is in program memory.
    #[error("device program: no code")]
    NoCode,
    /// The line information is malformed.
    #[error("device program: bad line information (DWARF): {0}")]
    Dwarf(#[from] gimli::Error),
}
