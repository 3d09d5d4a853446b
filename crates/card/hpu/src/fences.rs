// SPDX-License-Identifier: Apache-2.0
//! Instructions that synchronise because of fences: compilers translate C11's atomic loads and stores into plain ones
//! next to fences (for example RISC-V Unpriv. A.6, "Mappings from C/C++ primitives to RISC-V primitives").

use crate::isa::Isa;
use crate::op::{Class, Fence};

/// A fence whose following access is not yet found.
struct Open {
    /// Half-word of the fence.
    at: usize,
    /// True if only a store synchronises, not a load.
    store: bool,
}

/// Finds the synchronisation points of `code`, which is at address `base`: the last load before an acquire fence, the
/// first store after a release fence, the accesses on both sides of a full fence, and a fence without such a neighbour
/// in its straight code. The result has one element for each half-word of the code.
pub(crate) fn points(isa: &dyn Isa, code: &[u8], base: u32) -> Vec<bool> {
    let mut points = vec![false; code.len() / 2];
    let (mut last_load, mut last_store, mut open) = (None, None, None::<Open>);
    let mut at = 0;
    while let Some(decoded) = code.get(2 * at..).and_then(|rest| isa.decode(rest, base + 2 * at as u32)) {
        match decoded.class {
            Class::Fence => {
                if let Some(open) = open.take() {
                    points[open.at] = true;
                }
                // A fence without a specified order is a full fence.
                let Fence { after_stores, before_loads } =
                    decoded.fence.unwrap_or(Fence { after_stores: true, before_loads: true });
                let (acquire, release) = (!after_stores, !before_loads);
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
    use crate::isa::instruction_set;

    const ACQUIRE: u32 = 0x0230_000f;
    const RELEASE: u32 = 0x0310_000f;
    const FULL: u32 = 0x0330_000f;
    const LOAD: u32 = 0x0005_2503;
    const STORE: u32 = 0x00b5_2023;
    const NOP: u32 = 0x0000_0013;
    const RET: u32 = 0x0000_8067;

    fn marked(words: &[u32]) -> Vec<usize> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let isa = instruction_set("rv32i").unwrap();
        points(&*isa, &code, 0).iter().enumerate().filter(|(_, point)| **point).map(|(at, _)| at / 2).collect()
    }

    #[test]
    fn the_neighbours_of_fences_synchronise() {
        assert!(marked(&[LOAD, STORE, NOP, RET]).is_empty());
        // A load-acquire, a store-release, and both as sequentially consistent accesses.
        assert_eq!(marked(&[STORE, LOAD, NOP, ACQUIRE, STORE, RET]), [1]);
        assert_eq!(marked(&[STORE, RELEASE, LOAD, NOP, STORE, RET]), [4]);
        assert_eq!(marked(&[STORE, NOP, FULL, LOAD, ACQUIRE, RET]), [0, 3]);
        assert_eq!(marked(&[LOAD, RELEASE, STORE, FULL, LOAD, STORE, RET]), [2, 4]);
        // A fence without a neighbour in its straight code synchronises itself.
        assert_eq!(marked(&[LOAD, RET, ACQUIRE, RET]), [2]);
        assert_eq!(marked(&[LOAD, RELEASE, LOAD, RET, STORE, RET]), [1]);
        assert_eq!(marked(&[RELEASE, FULL, STORE]), [0, 1, 2]);
        assert_eq!(marked(&[STORE, FULL]), [0]);
    }
}
