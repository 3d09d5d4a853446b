// SPDX-License-Identifier: Apache-2.0
//! Image of device programs in a host program: `abi::device::image`.

use abi::device::image::{self, HANDLERS_SECTION, MAGIC, Preamble, SECTION};
use bytemuck::bytes_of;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::layouts::Structure;

/// Contents of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Device programs, one for each HPU kind.
    pub devices: Vec<Device>,
    /// Handlers, sorted by name.
    pub handlers: Vec<Handler>,
    /// Layouts of the structures used by device code.
    pub layouts: Vec<Structure>,
}

/// Device program for one HPU kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name of the kind.
    pub kind: String,
    /// Bytes of the ELF file.
    pub elf: Vec<u8>,
}

/// Handler in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Name of its symbol.
    pub name: String,
    /// Offset of its host function from the start of the section of handlers; `None` if the host linker left it in its
    /// archive.
    pub host_offset: Option<u32>,
}

impl Image {
    /// Returns the bytes of the image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let records = size_of::<Preamble>()
            + self.devices.len() * size_of::<image::Device>()
            + self.handlers.len() * size_of::<image::Handler>();
        // Names and programs to which the records point.
        let mut content = vec![];
        let mut append = |bytes: &[u8], align: usize| {
            content.resize((records + content.len()).next_multiple_of(align) - records, 0);
            let offset = (records + content.len()) as u32;
            content.extend_from_slice(bytes);
            offset
        };
        let text = |name: &str| [name.as_bytes(), &[0]].concat();

        let layouts = serde_json::to_vec(&self.layouts).expect("layouts are plain data");
        let mut preamble = Preamble {
            magic: MAGIC,
            devices: self.devices.len() as u32,
            handlers: self.handlers.len() as u32,
            layouts_offset: append(&layouts, 1),
            layouts_length: layouts.len() as u32,
            ..Preamble::default()
        };
        let mut bytes = vec![];
        for handler in &self.handlers {
            let name_offset = append(&text(&handler.name), 1);
            let record = image::Handler { name_offset, host_offset: handler.host_offset.unwrap_or(image::ABSENT) };
            bytes.extend_from_slice(bytes_of(&record));
        }
        let mut devices = vec![];
        for device in &self.devices {
            let record = image::Device {
                kind_offset: append(&text(&device.kind), 1),
                elf_offset: append(&device.elf, 16),
                elf_length: device.elf.len() as u32,
                pad: 0,
            };
            devices.extend_from_slice(bytes_of(&record));
        }
        preamble.length = (records + content.len()) as u64;
        [bytes_of(&preamble), &devices, &bytes, &content].concat()
    }

    /// Reads an image.
    ///
    /// # Errors
    /// A message when the image is damaged.
    pub fn parse(bytes: &[u8]) -> Result<Image, String> {
        let read = image::Image::parse(bytes).map_err(|damage| damage.to_string())?;
        let device = |(kind, elf): &(&str, &[u8])| Device { kind: (*kind).into(), elf: elf.to_vec() };
        let handler = |(name, offset): &(&str, u32)| {
            let host_offset = Some(*offset).filter(|offset| *offset != image::ABSENT);
            Handler { name: (*name).into(), host_offset }
        };
        Ok(Image {
            devices: read.devices.iter().map(device).collect(),
            handlers: read.handlers.iter().map(handler).collect(),
            layouts: serde_json::from_slice(read.layouts).map_err(|e| format!("the device image's layouts: {e}"))?,
        })
    }

    /// Returns the image of a host program or shared library, or `None` if it has none.
    ///
    /// # Errors
    /// A message when the program or image is damaged.
    pub fn of_program(bytes: &[u8]) -> Result<Option<Image>, String> {
        let Ok(file) = object::File::parse(bytes) else { return Ok(None) };
        match file.section_by_name(SECTION) {
            Some(section) => Image::parse(section.data().map_err(|e| e.to_string())?).map(Some),
            None => Ok(None),
        }
    }

    /// Looks up every handler in the linked host program and writes the image with their offsets into it.
    ///
    /// # Errors
    /// A message when the program cannot be read or has no image.
    pub fn place(&mut self, program: &mut [u8]) -> Result<(), String> {
        let file = object::File::parse(&*program).map_err(|e| e.to_string())?;
        let section = file.section_by_name(SECTION).and_then(|s| s.file_range());
        let (start, length) = section.ok_or("the linker has dropped the device image")?;
        if file.symbols().next().is_none() {
            return Err("has no symbol table; use -s, not the linker's own, to strip the program".into());
        }
        if let Some(handlers) = file.section_by_name(HANDLERS_SECTION) {
            for symbol in file.symbols() {
                if symbol.section_index() != Some(handlers.index()) || symbol.kind() != SymbolKind::Text {
                    continue;
                }
                let name = symbol.name().map_err(|e| e.to_string())?;
                // GCC's link-time optimization renames static functions.
                let name = name.split(".lto_priv").next().unwrap_or(name);
                if let Ok(i) = self.handlers.binary_search_by(|h| h.name.as_str().cmp(name)) {
                    self.handlers[i].host_offset = Some((symbol.address() - handlers.address()) as u32);
                }
            }
        }
        let bytes = self.to_bytes();
        assert_eq!(bytes.len() as u64, length, "the image keeps its size");
        program[start as usize..][..bytes.len()].copy_from_slice(&bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Image {
        Image {
            devices: vec![
                Device { kind: "a".into(), elf: b"ELF of a".to_vec() },
                Device { kind: "bc".into(), elf: b"another".to_vec() },
            ],
            handlers: vec![
                Handler { name: "first".into(), host_offset: Some(64) },
                Handler { name: "second".into(), host_offset: None },
            ],
            layouts: vec![Structure { name: "s".into(), size: 4, fields: vec![], file: String::new() }],
        }
    }

    #[test]
    fn round_trip() {
        let image = example();
        let bytes = image.to_bytes();
        assert_eq!(Image::parse(&bytes), Ok(image));
        let device = bytemuck::pod_read_unaligned::<image::Device>(
            &bytes[size_of::<Preamble>()..][..size_of::<image::Device>()],
        );
        assert_eq!(device.elf_offset % 16, 0);
        assert_eq!(&bytes[device.elf_offset as usize..][..8], b"ELF of a");
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = example().to_bytes();
        for length in 0..bytes.len() {
            assert!(Image::parse(&bytes[..length]).is_err(), "{length} bytes");
        }
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert_eq!(Image::parse(&other), Err("the device image is of another version of spincc".into()));
        let mut outside = bytes;
        outside[size_of::<Preamble>() + 4] = 0xff;
        outside[size_of::<Preamble>() + 5] = 0xff;
        assert_eq!(Image::parse(&outside), Err("the device image is damaged: it points outside of itself".into()));
    }
}
