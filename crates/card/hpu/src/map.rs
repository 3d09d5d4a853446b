use std::fmt;

/// A range of card addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its purpose, in words: "program memory".
    pub name: &'static str,
    /// First address.
    pub base: u32,
    /// Size in bytes.
    pub bytes: u32,
}

impl Region {
    /// Offset of `bytes` bytes at `address` in this region, if all of them are in it.
    pub(crate) fn offset(&self, address: u32, bytes: u32) -> Option<usize> {
        let at = address.checked_sub(self.base)?;
        (u64::from(at) + u64::from(bytes) <= u64::from(self.bytes)).then_some(at as usize)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#010x}, {} B)", self.name, self.base, self.bytes)
    }
}

/// The address space of a card as a device program sees it: the addresses for the segments of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadMap {
    /// Name of the map, for messages.
    pub name: &'static str,
    /// Code and constants.
    pub program: Region,
    /// Static data.
    pub data: Region,
    /// Memories that the card fills itself, such as stacks and packet buffers. No segment may be there.
    pub others: Vec<Region>,
    /// The return address of a handler, which must be outside `program`: reaching it ends the handler.
    pub return_address: u32,
}
