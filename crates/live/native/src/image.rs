// SPDX-License-Identifier: Apache-2.0
//! Executable of the handlers. The linker makes one of 32 bits; the kernel executes such files only if it was built for
//! x32, so the same segments are wrapped in a file of 64 bits. The code is that of 64-bit mode in both.

use std::ops::Range;

use hpu::{ElfError, Symbols};
use object::LittleEndian;
use object::elf::{EM_X86_64, FileHeader32, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use thiserror::Error;

use crate::layout::HANDLER_MEMORY;

/// Addresses of code.
pub const CODE: Range<u32> = 0x1d00_0000..0x1e00_0000;
/// Addresses of static data.
pub const DATA: u32 = 0x1c00_0000;

/// Error of a program.
#[derive(Debug, Error)]
pub enum ImageError {
    /// The file is malformed.
    #[error("{0}")]
    Elf(#[from] ElfError),
    /// The file is malformed.
    #[error("it is no executable of 32 bits: {0}")]
    Object(#[from] object::Error),
    /// The file is for another machine.
    #[error("it is for another machine (ELF machine {0}); --engine native compiles the C source for this computer")]
    Machine(u16),
    /// A segment is outside the memories.
    #[error("its segment at {0:#x} is outside the memories of handlers")]
    Segment(u32),
}

/// Executable of the handlers.
pub struct Image {
    /// The file of 64 bits.
    pub file: Vec<u8>,
    /// Initial static data, and initial handler memory of the first context.
    pub data: Vec<u8>,
    /// Initial handler memory.
    pub handler_data: Vec<u8>,
    /// Its functions and lines.
    pub symbols: Symbols,
}

/// Loadable segment.
struct Segment<'a> {
    flags: u32,
    address: u32,
    bytes: u32,
    content: &'a [u8],
}

impl Image {
    /// Reads the linker's file.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn new(elf: &[u8]) -> Result<Image, ImageError> {
        let header = FileHeader32::<LittleEndian>::parse(elf)?;
        let machine = header.e_machine(LittleEndian);
        if machine != EM_X86_64 {
            return Err(ImageError::Machine(machine.0));
        }
        let mut segments = Vec::new();
        for segment in header.program_headers(LittleEndian, elf)? {
            if segment.p_type(LittleEndian) != PT_LOAD || segment.p_memsz(LittleEndian) == 0 {
                continue;
            }
            let content =
                segment.data(LittleEndian, elf).map_err(|()| ImageError::Segment(segment.p_vaddr(LittleEndian)))?;
            segments.push(Segment {
                flags: segment.p_flags(LittleEndian).0,
                address: segment.p_vaddr(LittleEndian),
                bytes: segment.p_memsz(LittleEndian),
                content,
            });
        }
        let (mut data, mut handler_data) = (Vec::new(), Vec::new());
        for segment in &segments {
            let (memory, at) = match segment.address {
                address if (DATA..HANDLER_MEMORY).contains(&address) => (&mut data, address - DATA),
                address if (HANDLER_MEMORY..CODE.start).contains(&address) => {
                    (&mut handler_data, address - HANDLER_MEMORY)
                }
                address if CODE.contains(&address) || address >= CODE.end => continue,
                address => return Err(ImageError::Segment(address)),
            };
            let at = at as usize;
            memory.resize(memory.len().max(at + segment.bytes as usize), 0);
            memory[at..at + segment.content.len()].copy_from_slice(segment.content);
        }
        let entry = header.e_entry(LittleEndian);
        Ok(Image { file: wrap(&segments, entry), data, handler_data, symbols: Symbols::read(elf, CODE)? })
    }
}

/// Sizes of the ELF64 file header and of a program header.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PAGE: usize = 4096;

/// Writes an executable of 64 bits with these segments (System V ABI, "ELF header" and "Program header").
fn wrap(segments: &[Segment<'_>], entry: u32) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    // ET_EXEC, x86-64, version
    file.extend(2_u16.to_le_bytes());
    file.extend(62_u16.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    file.extend(u64::from(entry).to_le_bytes());
    file.extend((HEADER as u64).to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.extend(0_u32.to_le_bytes());
    for half in [HEADER as u16, PROGRAM_HEADER as u16, segments.len() as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let mut place = (HEADER + segments.len() * PROGRAM_HEADER).next_multiple_of(PAGE);
    let mut places = Vec::new();
    for segment in segments {
        // The kernel maps pages: address and place agree in their offset.
        place += segment.address as usize % PAGE;
        places.push(place);
        file.extend(1_u32.to_le_bytes());
        file.extend(segment.flags.to_le_bytes());
        for value in [place as u64, segment.address.into(), segment.address.into(), segment.content.len() as u64] {
            file.extend(value.to_le_bytes());
        }
        file.extend(u64::from(segment.bytes).to_le_bytes());
        file.extend((PAGE as u64).to_le_bytes());
        place = (place + segment.content.len()).next_multiple_of(PAGE);
    }
    for (segment, place) in segments.iter().zip(places) {
        file.resize(place, 0);
        file.extend(segment.content);
    }
    file
}
