// SPDX-License-Identifier: Apache-2.0
//! Layout and parser of the image of device programs in a host program.
//!
//! A [`Preamble`] comes first, then the [`Device`] records, the [`Handler`] records, and the data they point to.
//! Offsets count from the start of the image.

#![deny(clippy::cast_possible_truncation)] // values come from input

use bytemuck::{AnyBitPattern, Pod, Zeroable};

/// "SPINIMG" and the version of this layout.
pub const MAGIC: u64 = 0x5350_494e_494d_4701;
/// Section of the host executable that holds the image.
pub const SECTION: &str = ".spin_image";
/// Section of host and device objects that holds the handlers. The name is a C identifier, so the host linker defines
/// `__start_spin_handlers`, the base of [`Handler::host_offset`].
pub const HANDLERS_SECTION: &str = "spin_handlers";
/// Prefix of the section of a host object (`spincc -c`) that carries its device object: `.spin_device.K` for HPU kind
/// K.
pub const DEVICE_SECTION_PREFIX: &str = ".spin_device.";

/// [`Handler::host_offset`] of a handler missing from the host program. No real offset is this large.
pub const ABSENT: u32 = u32::MAX;

/// Start of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Preamble {
    /// [`MAGIC`].
    pub magic: u64,
    /// Size of the whole image in bytes.
    pub length: u64,
    /// Number of [`Device`] records.
    pub devices: u32,
    /// Number of [`Handler`] records.
    pub handlers: u32,
    /// Offset of the state layouts: a JSON array with the layouts of the structures that device code uses.
    pub layouts_offset: u32,
    /// Size of that text in bytes.
    pub layouts_length: u32,
}

/// The program for one HPU kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Device {
    /// Offset of the kind's name ("rv32imac"), NUL-terminated.
    pub kind_offset: u32,
    /// Offset of the device ELF, 16-byte aligned.
    pub elf_offset: u32,
    /// Size of the device ELF in bytes.
    pub elf_length: u32,
    /// Padding.
    pub pad: u32,
}

/// One handler; its entry point is the ELF symbol of this name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Handler {
    /// Offset of the symbol's name, NUL-terminated.
    pub name_offset: u32,
    /// Offset of the host function from `__start_spin_handlers`, or [`ABSENT`].
    pub host_offset: u32,
}

/// Error of [`Image::parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Another version of spincc made the image.
    Version,
    /// The image is damaged; the text says where.
    Damaged(&'static str),
}

/// A parsed image. All fields borrow from the image's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// HPU kind and device ELF of each program.
    pub devices: Vec<(&'a str, &'a [u8])>,
    /// Symbol and [`Handler::host_offset`] of each handler.
    pub handlers: Vec<(&'a str, u32)>,
    /// JSON text of the state layouts.
    pub layouts: &'a [u8],
}

impl<'a> Image<'a> {
    /// Parses an image; ignores trailing bytes.
    ///
    /// # Errors
    /// If the image is of another version, or an offset points outside of it.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>, Damage> {
        let preamble = record::<Preamble>(bytes, 0).ok_or(Damage::Damaged("it is cut off"))?;
        if preamble.magic != MAGIC {
            return Err(Damage::Version);
        }
        let length = usize::try_from(preamble.length).unwrap_or(usize::MAX);
        let bytes = bytes.get(..length).ok_or(Damage::Damaged("it is cut off"))?;
        let mut at = size_of::<Preamble>();
        let devices = records::<Device>(bytes, &mut at, preamble.devices)?;
        let handlers = records::<Handler>(bytes, &mut at, preamble.handlers)?;
        let device = |record: Device| {
            Ok((text(bytes, record.kind_offset)?, block(bytes, record.elf_offset, record.elf_length)?))
        };
        let handler = |record: Handler| Ok((text(bytes, record.name_offset)?, record.host_offset));
        Ok(Image {
            devices: devices.into_iter().map(device).collect::<Result<_, Damage>>()?,
            handlers: handlers.into_iter().map(handler).collect::<Result<_, Damage>>()?,
            layouts: block(bytes, preamble.layouts_offset, preamble.layouts_length)?,
        })
    }
}

fn record<T: AnyBitPattern>(bytes: &[u8], at: usize) -> Option<T> {
    bytes.get(at..)?.get(..size_of::<T>()).map(bytemuck::pod_read_unaligned)
}

fn records<T: AnyBitPattern>(bytes: &[u8], at: &mut usize, count: u32) -> Result<Vec<T>, Damage> {
    (0..count)
        .map(|_| {
            let record = record(bytes, *at).ok_or(Damage::Damaged("its records are cut off"))?;
            *at += size_of::<T>();
            Ok(record)
        })
        .collect()
}

fn block(bytes: &[u8], offset: u32, length: u32) -> Result<&[u8], Damage> {
    let rest = bytes.get(offset as usize..).and_then(|rest| rest.get(..length as usize));
    rest.ok_or(Damage::Damaged("it points outside of itself"))
}

fn text(bytes: &[u8], offset: u32) -> Result<&str, Damage> {
    let rest = bytes.get(offset as usize..).ok_or(Damage::Damaged("it points outside of itself"))?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or(Damage::Damaged("a name has no end"))?;
    std::str::from_utf8(&rest[..end]).map_err(|_| Damage::Damaged("a name is not text"))
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damage::Version => f.write_str("the device image is of another version of spincc"),
            Damage::Damaged(how) => write!(f, "the device image is damaged: {how}"),
        }
    }
}

impl std::error::Error for Damage {}
