//! Which instructions of a program synchronise by their place: C11's atomic loads and stores are plain ones beside
//! fences (RISC-V Unpriv. A.6, "Mappings from C/C++ primitives to RISC-V primitives").

use abi::device::map;

use crate::isa::{self, Class};

/// Bits of a fence: the set of earlier accesses has writes, the set of later ones has reads.
const AFTER_WRITES: u32 = 1 << 24;
const BEFORE_READS: u32 = 1 << 21;

/// A fence that has not yet met the access behind it.
struct Open {
    /// Half-word of the fence.
    at: usize,
    /// Only a store will do.
    store: bool,
}

/// The instructions, by half-word of the program, that are synchronisation points: the last load before an acquire
/// fence, the first store after a release fence, the accesses on both sides of a full fence; and a fence that has no
/// such neighbour in its straight code.
pub(crate) fn points(code: &[u8]) -> Vec<bool> {
    let mut points = vec![false; code.len() / 2];
    let (mut last_load, mut last_store, mut open) = (None, None, None::<Open>);
    let mut at = 0;
    while let Some(decoded) = code.get(2 * at..).and_then(|rest| isa::decode(rest, map::PROGRAM + 2 * at as u32)) {
        match decoded.class {
            Class::Fence => {
                if let Some(open) = open.take() {
                    points[open.at] = true;
                }
                let word = code[2 * at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                let (acquire, release) = (word & AFTER_WRITES == 0, word & BEFORE_READS == 0);
                let before = if acquire { last_load } else { last_load.max(last_store) };
                match before {
                    Some(access) if acquire || !release => points[access] = true,
                    None if acquire || !release => points[at] = true,
                    _ => {}
                }
                open = (release || !acquire).then_some(Open { at, store: release });
            }
            Class::Load | Class::Store | Class::Atomic => {
                let (loads, stores) = (decoded.class != Class::Store, decoded.class != Class::Load);
                if open.as_ref().is_some_and(|open| stores || !open.store) {
                    points[at] = true;
                    open = None;
                }
                last_load = if loads { Some(at) } else { last_load };
                last_store = if stores { Some(at) } else { last_store };
            }
            class if class.ends_block() => {
                if let Some(open) = open.take() {
                    points[open.at] = true;
                }
                (last_load, last_store) = (None, None);
            }
            _ => {}
        }
        at += decoded.length as usize / 2;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACQUIRE: u32 = 0x0230_000f;
    const RELEASE: u32 = 0x0310_000f;
    const FULL: u32 = 0x0330_000f;
    const LOAD: u32 = 0x0005_2503;
    const STORE: u32 = 0x00b5_2023;
    const NOP: u32 = 0x0000_0013;
    const RET: u32 = 0x0000_8067;

    fn marked(words: &[u32]) -> Vec<usize> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        points(&code).iter().enumerate().filter(|(_, point)| **point).map(|(at, _)| at / 2).collect()
    }

    #[test]
    fn the_neighbours_of_fences_synchronise() {
        assert_eq!(marked(&[LOAD, STORE, NOP, RET]), []);
        // Load acquire, store release, and both as sequentially consistent.
        assert_eq!(marked(&[STORE, LOAD, NOP, ACQUIRE, STORE, RET]), [1]);
        assert_eq!(marked(&[STORE, RELEASE, LOAD, NOP, STORE, RET]), [4]);
        assert_eq!(marked(&[STORE, NOP, FULL, LOAD, ACQUIRE, RET]), [0, 3]);
        assert_eq!(marked(&[LOAD, RELEASE, STORE, FULL, LOAD, STORE, RET]), [2, 4]);
        // Without a neighbour in the straight code the fence itself.
        assert_eq!(marked(&[LOAD, RET, ACQUIRE, RET]), [2]);
        assert_eq!(marked(&[LOAD, RELEASE, LOAD, RET, STORE, RET]), [1]);
        assert_eq!(marked(&[RELEASE, FULL, STORE]), [0, 1, 2]);
        assert_eq!(marked(&[STORE, FULL]), [0]);
    }
}
