// SPDX-License-Identifier: Apache-2.0
//! Contents of all memories of the unit in one allocation, and their addresses.

use abi::pspin::map;
use machine::Pspin;

/// A memory of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// L1 of this cluster.
    L1(u16),
    /// L2 handler memory.
    Handler,
    /// L2 packet buffer.
    Packet,
    /// Program memory.
    Program,
}

/// First address of the window to the L1 of an HPU's cluster.
const OWN_L1: u32 = map::OWN_L1;
const HANDLER: u32 = map::HANDLER;
const PACKET: u32 = map::PACKET;
const PROGRAM: u32 = map::PROGRAM;

/// Contents of L1 memories, L2 handler memory, L2 packet buffer and program memory. The host backs only pages that are
/// written.
pub struct Arena {
    bytes: Vec<u8>,
    l1: u32,
    clusters: u32,
    handler: u32,
    packet: u32,
    program: u32,
}

impl Arena {
    /// Creates the memories of a unit, filled with zeros.
    pub fn new(unit: &Pspin) -> Arena {
        let (l1, clusters) = (unit.l1.bytes, unit.units.clusters);
        let (handler, packet, program) = (unit.l2_handler.bytes, unit.l2_packet.bytes, unit.program.bytes);
        let total = l1 as usize * clusters as usize + handler as usize + packet as usize + program as usize;
        Arena { bytes: vec![0; total], l1, clusters, handler, packet, program }
    }

    /// Returns the first address of a memory.
    #[inline]
    pub fn start(place: Place) -> u32 {
        match place {
            Place::L1(cluster) => Pspin::L1_START + u32::from(cluster) * Pspin::L1_SPAN,
            Place::Handler => HANDLER,
            Place::Packet => PACKET,
            Place::Program => PROGRAM,
        }
    }

    /// Returns the common address for an HPU's `address`. They differ only in the window to the L1 of the HPU's
    /// `cluster`.
    #[inline]
    pub fn common(&self, cluster: u16, address: u32) -> u32 {
        match address.wrapping_sub(OWN_L1) {
            offset if offset < self.l1 => Arena::start(Place::L1(cluster)) + offset,
            _ => address,
        }
    }

    /// Returns the memory to which the address map assigns an address, without a check of its size.
    #[inline]
    pub fn place(address: u32) -> Option<Place> {
        match address {
            PROGRAM.. => Some(Place::Program),
            PACKET.. => Some(Place::Packet),
            HANDLER.. => Some(Place::Handler),
            Pspin::L1_START.. => Some(Place::L1(((address - Pspin::L1_START) / Pspin::L1_SPAN) as u16)),
            _ => None,
        }
    }

    /// Returns the memory that contains `size` bytes at an address, and the offset of the first.
    #[inline]
    pub fn locate(&self, address: u32, size: u32) -> Option<(Place, u32)> {
        let place = Arena::place(address)?;
        let bytes = match place {
            Place::Program => self.program,
            Place::Packet => self.packet,
            Place::Handler => self.handler,
            Place::L1(cluster) if u32::from(cluster) < self.clusters => self.l1,
            Place::L1(_) => return None,
        };
        let offset = address - Arena::start(place);
        (u64::from(offset) + u64::from(size) <= u64::from(bytes)).then_some((place, offset))
    }

    /// Returns the cluster whose L1 contains an address, and the offset in that L1.
    #[inline]
    pub fn locate_l1(&self, address: u32) -> Option<(u16, u32)> {
        let offset = address.wrapping_sub(Pspin::L1_START);
        let (cluster, offset) = (offset / Pspin::L1_SPAN, offset % Pspin::L1_SPAN);
        (cluster < self.clusters && offset < self.l1).then_some((cluster as u16, offset))
    }

    /// Returns the position in [`Arena::bytes`] of the byte at this offset of a memory.
    #[inline]
    pub fn position(&self, place: Place, offset: u32) -> usize {
        let l1 = self.l1 as usize * self.clusters as usize;
        let start = match place {
            Place::L1(cluster) => self.l1 as usize * usize::from(cluster),
            Place::Handler => l1,
            Place::Packet => l1 + self.handler as usize,
            Place::Program => l1 + self.handler as usize + self.packet as usize,
        };
        start + offset as usize
    }

    /// Returns all bytes: the L1 memories by cluster, L2 handler memory, L2 packet buffer, program memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the bytes at an address, if one memory contains them all.
    pub fn read(&self, address: u32, size: u32) -> Option<&[u8]> {
        let (place, offset) = self.locate(address, size)?;
        let start = self.position(place, offset);
        self.bytes.get(start..start + size as usize)
    }

    /// Returns the bytes at an address, for writing, if one memory contains them all.
    pub fn write(&mut self, address: u32, size: u32) -> Option<&mut [u8]> {
        let (place, offset) = self.locate(address, size)?;
        let start = self.position(place, offset);
        self.bytes.get_mut(start..start + size as usize)
    }

    /// Copies bytes between memories. Returns false if either range does not exist.
    #[inline]
    pub fn copy(&mut self, from: u32, to: u32, size: u32) -> bool {
        let (Some(from), Some(to)) = (self.locate(from, size), self.locate(to, size)) else { return false };
        let (from, to) = (self.position(from.0, from.1), self.position(to.0, to.1));
        self.bytes.copy_within(from..from + size as usize, to);
        true
    }
}
