// SPDX-License-Identifier: Apache-2.0
//! Data among code: ARM compilers put constants after the functions that use them, and mark them with mapping symbols
//! (ELF for the ARM architecture, 5.5.5).

use object::{Object, ObjectSymbol};

/// Addresses at which code or data begins, in ascending order.
pub struct Marks(Vec<(u64, bool)>);

impl Marks {
    /// Reads the mapping symbols of a program; other instruction sets have none.
    pub fn read(file: &object::File<'_>) -> Marks {
        let kind = |name: &str| match name.split('.').next() {
            Some("$d") => Some(true),
            Some("$a" | "$t") => Some(false),
            _ => None,
        };
        let mut marks: Vec<(u64, bool)> =
            file.symbols().filter_map(|symbol| Some((symbol.address(), kind(symbol.name().ok()?)?))).collect();
        marks.sort_unstable();
        Marks(marks)
    }

    /// Returns the number of bytes of code at the start of the function of `size` bytes at `address`.
    pub fn code(&self, address: u64, size: u64) -> u64 {
        let first = self.0.iter().find(|(mark, is_data)| *is_data && (address..address + size).contains(mark));
        first.map_or(size, |(mark, _)| mark - address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_follows_code() {
        let marks = Marks(vec![(0x100, false), (0x120, true), (0x128, false), (0x140, true)]);
        assert_eq!(
            [(0x100, 0x28), (0x128, 0x18), (0x128, 0x20)].map(|(at, size)| marks.code(at, size)),
            [0x20, 0x18, 0x18]
        );
        assert_eq!(Marks(vec![]).code(0x100, 0x28), 0x28);
    }
}
