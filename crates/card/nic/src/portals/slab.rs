// SPDX-License-Identifier: Apache-2.0
//! Handles, and tables of objects by handle.

use abi::portals::{Handle, ReturnCode};
use sim::memory::push_frugally;

/// Kind of a handle's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// An interface.
    Interface = 1,
    /// A memory descriptor.
    Md = 3,
    /// A list entry or match list entry.
    Entry = 4,
    /// An event queue.
    Eq = 5,
    /// A counting event.
    Ct = 6,
    /// HPU memory.
    Hpu = 7,
}

/// Returns the handle of object `index` (generation `generation`) of an interface.
pub fn handle(kind: Kind, interface: u8, generation: u16, index: u16) -> Handle {
    (kind as u32) << 28 | u32::from(interface & 3) << 26 | u32::from(generation & 0x3ff) << 16 | u32::from(index)
}

/// Returns the generation of a slot's next object.
pub fn next_generation(generation: u16) -> u16 {
    (generation + 1) & 0x3ff
}

/// Returns the interface of a handle of this kind.
pub fn interface_of(kind: Kind, handle: Handle) -> Option<u8> {
    (handle >> 28 == kind as u32).then_some((handle >> 26 & 3) as u8)
}

/// Returns the interface of a handle of any object kind.
pub fn owner_of_any(handle: Handle) -> Option<u8> {
    matches!(handle >> 28, 1 | 3..=7).then_some((handle >> 26 & 3) as u8)
}

/// Objects of one kind and interface, by handle. A freed handle stays invalid until its generation wraps around.
#[derive(Debug)]
pub struct Slab<T> {
    kind: Kind,
    interface: u8,
    slots: Vec<(u16, Option<T>)>,
    free: Vec<u16>,
}

impl<T> Slab<T> {
    /// Creates an empty slab.
    pub fn new(kind: Kind, interface: u8) -> Slab<T> {
        Slab { kind, interface, slots: Vec::new(), free: Vec::new() }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds an object, or returns `PTL_NO_SPACE` if `limit` objects exist.
    pub fn insert(&mut self, limit: i32, value: T) -> Result<Handle, ReturnCode> {
        if self.len() >= usize::try_from(limit).unwrap_or(0) {
            return Err(ReturnCode::NoSpace);
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u16::try_from(self.slots.len()).map_err(|_| ReturnCode::NoSpace)?;
                push_frugally(&mut self.slots, (0, None));
                index
            }
        };
        let slot = &mut self.slots[usize::from(index)];
        slot.1 = Some(value);
        Ok(handle(self.kind, self.interface, slot.0, index))
    }

    /// Returns true if a handle with this index was ever allocated.
    pub fn has_made(&self, handle: Handle) -> bool {
        ((handle & 0xffff) as usize) < self.slots.len()
    }

    fn index(&self, handle: Handle) -> Option<usize> {
        let index = (handle & 0xffff) as usize;
        let (generation, _) = self.slots.get(index)?;
        (handle == self::handle(self.kind, self.interface, *generation, index as u16)).then_some(index)
    }

    /// Returns the object, or `PTL_ARG_INVALID`.
    pub fn get(&self, handle: Handle) -> Result<&T, ReturnCode> {
        self.index(handle).and_then(|index| self.slots[index].1.as_ref()).ok_or(ReturnCode::ArgInvalid)
    }

    /// Returns the object, or `PTL_ARG_INVALID`.
    pub fn get_mut(&mut self, handle: Handle) -> Result<&mut T, ReturnCode> {
        let index = self.index(handle).ok_or(ReturnCode::ArgInvalid)?;
        self.slots[index].1.as_mut().ok_or(ReturnCode::ArgInvalid)
    }

    /// Removes an object.
    pub fn remove(&mut self, handle: Handle) -> Result<T, ReturnCode> {
        let index = self.index(handle).ok_or(ReturnCode::ArgInvalid)?;
        let value = self.slots[index].1.take().ok_or(ReturnCode::ArgInvalid)?;
        self.slots[index].0 = next_generation(self.slots[index].0);
        self.free.push(index as u16);
        Ok(value)
    }

    /// Removes all objects. Their handles become invalid, as after individual removals.
    pub fn clear(&mut self) {
        for (generation, value) in &mut self.slots {
            if value.take().is_some() {
                *generation = next_generation(*generation);
            }
        }
        self.free = (0..self.slots.len()).rev().map(|index| index as u16).collect();
    }

    /// Returns all objects with their handles, by index.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, (generation, value))| {
            value.as_ref().map(|value| (handle(self.kind, self.interface, *generation, index as u16), value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_stays_invalid() {
        let mut slab = Slab::new(Kind::Ct, 2);
        let first = slab.insert(1, 'a').unwrap();
        assert_eq!(slab.insert(1, 'b'), Err(ReturnCode::NoSpace));
        assert_eq!(slab.remove(first), Ok('a'));
        let second = slab.insert(1, 'c').unwrap();
        assert_ne!(first, second);
        assert_eq!(slab.get(first), Err(ReturnCode::ArgInvalid));
        assert_eq!(slab.get(second), Ok(&'c'));
        assert_eq!(interface_of(Kind::Ct, second), Some(2));
        assert_eq!(interface_of(Kind::Md, second), None);
    }

    #[test]
    fn handles_from_before_a_clearing_stay_invalid() {
        let mut slab = Slab::new(Kind::Ct, 2);
        let old = ['a', 'b', 'c'].map(|value| slab.insert(3, value).unwrap());
        slab.remove(old[1]).unwrap();
        slab.clear();
        assert_eq!((slab.len(), slab.iter().count()), (0, 0));
        let new = ['d', 'e', 'f'].map(|value| slab.insert(3, value).unwrap());
        assert_eq!(new.map(|handle| handle & 0xffff), [0, 1, 2], "as in an empty slab");
        assert_eq!(new.map(|handle| *slab.get(handle).unwrap()), ['d', 'e', 'f']);
        for handle in old {
            assert_eq!(slab.get(handle), Err(ReturnCode::ArgInvalid), "{handle:#x}");
        }
    }
}
