//! The image of device programs in a host program: `abi::device::image`.

use abi::device::image::{self, HANDLERS_SECTION, MAGIC, Preamble, SECTION};
use abi::portals::Plain;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::layouts::Structure;

/// `Handler::host_offset` of a handler that is not in the host program: no address is so far from the first handler.
const ABSENT: u32 = u32::MAX;

/// The contents of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The device programs, one for each HPU kind.
    pub devices: Vec<Device>,
    /// The handlers, sorted by name.
    pub handlers: Vec<Handler>,
    /// The layouts of the structures that device code uses.
    pub layouts: Vec<Structure>,
}

/// A device program for one HPU kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The kind's name.
    pub kind: String,
    /// The bytes of the ELF file.
    pub elf: Vec<u8>,
}

/// A handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The name of its symbol.
    pub name: String,
    /// The offset of its host function from the start of the section of handlers; `None` if the host linker left it in
    /// its archive.
    pub host_offset: Option<u32>,
}

impl Image {
    /// Returns the bytes of the image.
    pub fn to_bytes(&self) -> Vec<u8> {
        let records = size_of::<Preamble>()
            + self.devices.len() * size_of::<image::Device>()
            + self.handlers.len() * size_of::<image::Handler>();
        // The names and programs to which the records point.
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
            let record = image::Handler { name_offset, host_offset: handler.host_offset.unwrap_or(ABSENT) };
            bytes.extend_from_slice(record.as_bytes());
        }
        let mut devices = vec![];
        for device in &self.devices {
            let record = image::Device {
                kind_offset: append(&text(&device.kind), 1),
                elf_offset: append(&device.elf, 16),
                elf_length: device.elf.len() as u32,
                pad: 0,
            };
            devices.extend_from_slice(record.as_bytes());
        }
        preamble.length = (records + content.len()) as u64;
        [preamble.as_bytes(), &devices, &bytes, &content].concat()
    }

    /// Reads an image.
    ///
    /// # Errors
    /// A message when the image is damaged.
    pub fn parse(bytes: &[u8]) -> Result<Image, String> {
        let preamble = Preamble::from_bytes(bytes).ok_or("device image is cut off")?;
        if preamble.magic != MAGIC {
            return Err("device image of another version of spincc".into());
        }
        let bytes = bytes.get(..preamble.length as usize).ok_or("device image is cut off")?;
        let at = |offset: usize| bytes.get(offset..).ok_or("device image points outside itself");
        let text = |offset: u32| -> Result<String, String> {
            let rest = at(offset as usize)?;
            let end = rest.iter().position(|b| *b == 0).ok_or("device image has an endless name")?;
            Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
        };
        let block = |offset: u32, length: u32| {
            at(offset as usize)?.get(..length as usize).ok_or("device image points outside itself")
        };
        let mut offset = size_of::<Preamble>();
        let mut parsed = Image::default();
        for _ in 0..preamble.devices {
            let record = image::Device::from_bytes(at(offset)?).ok_or("device image is cut off")?;
            let elf = block(record.elf_offset, record.elf_length)?.to_vec();
            parsed.devices.push(Device { kind: text(record.kind_offset)?, elf });
            offset += size_of::<image::Device>();
        }
        for _ in 0..preamble.handlers {
            let record = image::Handler::from_bytes(at(offset)?).ok_or("device image is cut off")?;
            let host_offset = Some(record.host_offset).filter(|o| *o != ABSENT);
            parsed.handlers.push(Handler { name: text(record.name_offset)?, host_offset });
            offset += size_of::<image::Handler>();
        }
        let layouts = block(preamble.layouts_offset, preamble.layouts_length)?;
        parsed.layouts = serde_json::from_slice(layouts).map_err(|e| format!("device image: layouts: {e}"))?;
        Ok(parsed)
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
        let device = image::Device::from_bytes(&bytes[size_of::<Preamble>()..]).unwrap();
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
        assert_eq!(Image::parse(&other), Err("device image of another version of spincc".into()));
        let mut outside = bytes;
        outside[size_of::<Preamble>() + 4] = 0xff;
        outside[size_of::<Preamble>() + 5] = 0xff;
        assert_eq!(Image::parse(&outside), Err("device image points outside itself".into()));
    }
}
