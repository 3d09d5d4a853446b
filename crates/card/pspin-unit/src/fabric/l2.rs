// SPDX-License-Identifier: Apache-2.0
//! Ports of the L2 memories (§III-C): port A serves the NIC and the host, port B the clusters. A bank serves one access
//! per cycle. The writes of the clusters' DMA engines, whose cycle is fixed when the beat is read, and the second cycle
//! of atomic operations have the highest priority; then the writes of port A, its reads, the reads of DMA engines, and
//! the words of HPUs.
//!
//! Port A of each memory carries one write beat and one read beat per cycle. NIC and host alternate at the packet
//! buffer, where the NIC writes; writes of the host to other memories do not wait for the NIC.

use std::collections::VecDeque;

use machine::Pspin;

use crate::cycle::Cycle;
use crate::memory::{Arena, Place};
use crate::stored::Stored;

/// A packet that the NIC writes: cycle and address of the next beat offered, and number of beats left.
struct Packet {
    from: Cycle,
    next: u32,
    left: u32,
}

/// Writer with priority at the packet buffer if both NIC and host offer a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Nic,
    Host,
}

/// Accesses to the banks of L2 packet buffer and L2 handler memory, beat by beat.
pub struct L2Ports {
    packets: VecDeque<Packet>,
    turn: Turn,
    stored: Stored,
    /// First cycle in which the NIC may write another packet.
    packet_free: Cycle,
    /// Cycle and address of the host's latest write.
    write: (Cycle, u32),
    /// Cycle and address of port A's latest read from each memory.
    read: [(Cycle, u32); 2],
    /// Cycle and address of the latest DMA read from packet buffer and handler memory.
    beats: [(Cycle, u32); 2],
    /// Accesses guaranteed their bank, in order: DMA writes, and the second cycles of atomic operations.
    written: VecDeque<(Cycle, u32)>,
    held: VecDeque<(Cycle, u32)>,
    beat: u32,
    /// Bytes in a row of banks, and flags for memories whose ports share the banks: packet buffer, handler memory.
    rows: [u32; 2],
    is_shared: [bool; 2],
}

/// Index of the packet buffer among the memories.
const PACKET: usize = 0;

/// Returns the index of the memory at an address: 0 packet buffer, 1 handler memory.
#[inline]
fn memory(address: u32) -> usize {
    usize::from(address < Arena::start(Place::Packet))
}

impl L2Ports {
    /// Creates idle ports.
    pub fn new(unit: &Pspin) -> L2Ports {
        let (packet, handler) = (&unit.l2_packet, &unit.l2_handler);
        let never = (Cycle::NEVER, 0);
        L2Ports {
            packets: VecDeque::new(),
            turn: Turn::Nic,
            stored: Stored::new(unit),
            packet_free: Cycle::ZERO,
            write: never,
            read: [never; 2],
            beats: [never; 2],
            written: VecDeque::new(),
            held: VecDeque::new(),
            beat: unit.nhi.width_bits / 8,
            rows: [packet.banks * (packet.bank_bits / 8), handler.banks * (handler.bank_bits / 8)],
            is_shared: [packet.ports == 1, handler.ports == 1],
        }
    }

    /// Queues a packet that the NIC writes from cycle `at` on. Returns the first cycle after its beats if none of them
    /// stalls.
    pub fn write_packet(&mut self, at: Cycle, address: u32, bytes: u32) -> Cycle {
        let beats = (address + bytes.max(1) - 1) / self.beat - address / self.beat + 1;
        let from = at.max(self.packet_free);
        self.packet_free = from + beats;
        self.packets.push_back(Packet { from, next: address - address % self.beat, left: beats });
        self.stored.begin(address);
        self.packet_free
    }

    /// Advances to cycle `now`: the NIC writes the beats that found their banks free.
    #[inline]
    fn pass(&mut self, now: Cycle) {
        while let Some(&Packet { from, next, left }) = self.packets.front()
            && from < now
        {
            let is_calm = self.written.is_empty() && self.held.is_empty();
            let beats = match () {
                () if is_calm => u32::try_from(now - from).unwrap_or(u32::MAX).min(left),
                () => u32::from(!self.is_sure(from, next)),
            };
            let behind = from + u64::from(beats.max(1));
            if beats > 0 {
                self.turn = Turn::Host;
            }
            if beats == left {
                self.packets.pop_front();
                self.stored.end(behind);
                if let Some(packet) = self.packets.front_mut() {
                    packet.from = packet.from.max(behind);
                }
            } else {
                self.packets[0] =
                    Packet { from: behind, next: next.wrapping_add(beats * self.beat), left: left - beats };
            }
        }
        for sure in [&mut self.written, &mut self.held] {
            while sure.front().is_some_and(|(at, _)| *at < now) {
                sure.pop_front();
            }
        }
    }

    /// Returns true if a request for the packet at an address may be submitted in cycle `now`.
    pub fn is_stored(&mut self, now: Cycle, address: u32) -> bool {
        self.pass(now);
        self.stored.is_there(now, address)
    }

    /// Returns the address of the beat that the NIC writes in cycle `now`.
    #[inline]
    fn packet_beat(&self, now: Cycle) -> Option<u32> {
        let packet = self.packets.front().filter(|packet| packet.from <= now)?;
        (!self.is_sure(now, packet.next)).then_some(packet.next)
    }

    /// Returns true if two beats use the same banks.
    #[inline]
    fn same_banks(&self, one: u32, other: u32) -> bool {
        let row = self.rows[memory(one)].max(self.beat);
        memory(one) == memory(other) && one % row / self.beat == other % row / self.beat
    }

    /// Returns true if accesses of both ports in one cycle conflict.
    #[inline]
    fn excludes(&self, one: u32, other: u32) -> bool {
        self.is_shared[memory(one)] && memory(one) == memory(other) || self.same_banks(one, other)
    }

    /// Returns true if a guaranteed access uses the banks of `address` in `cycle`, which has not passed.
    #[inline]
    fn is_sure(&self, cycle: Cycle, address: u32) -> bool {
        let of_cycle = |sure: &VecDeque<(Cycle, u32)>| {
            let later = sure.iter().skip_while(|(at, _)| *at < cycle);
            later.take_while(|(at, _)| *at == cycle).any(|(_, sure)| self.excludes(*sure, address))
        };
        of_cycle(&self.written) || of_cycle(&self.held)
    }

    /// Writes a beat of the host in cycle `now`. Returns true if the host has its turn and the banks are free. A beat
    /// with its turn that stalls on a bank conflict stalls the NIC too.
    #[inline]
    pub fn write(&mut self, now: Cycle, address: u32) -> bool {
        self.pass(now);
        let nic = self.packets.front_mut().filter(|packet| packet.from <= now && memory(address) == PACKET);
        if let Some(packet) = nic {
            if self.turn == Turn::Nic {
                return false;
            }
            packet.from = now + 1_u64;
        }
        let is_free = !self.is_sure(now, address);
        if is_free {
            self.write = (now, address);
            if memory(address) == PACKET {
                self.turn = Turn::Nic;
            }
        }
        is_free
    }

    /// Reads a beat by port A in cycle `now`. Returns true if its banks are free.
    #[inline]
    pub fn read(&mut self, now: Cycle, address: u32) -> bool {
        self.pass(now);
        let packet = self.packet_beat(now);
        let host = Some(self.write).filter(|(at, _)| *at == now).map(|(_, address)| address);
        let is_free = ![packet, host].into_iter().flatten().any(|written| self.excludes(written, address))
            && !self.is_sure(now, address);
        if is_free {
            self.read[memory(address)] = (now, address);
        }
        is_free
    }

    /// Returns true if port A or a guaranteed access uses the banks of an address in cycle `now`.
    #[inline]
    pub fn is_taken(&mut self, now: Cycle, address: u32) -> bool {
        self.pass(now);
        let packet = self.packet_beat(now);
        let of_now = |(at, address): (Cycle, u32)| (at == now).then_some(address);
        let mut used = [packet, of_now(self.write), of_now(self.read[memory(address)])].into_iter().flatten();
        used.any(|used| self.excludes(used, address)) || self.is_sure(now, address)
    }

    /// Records that a DMA engine reads a beat in cycle `now`.
    #[inline]
    pub fn note_read(&mut self, now: Cycle, address: u32) {
        self.beats[memory(address)] = (now, address);
    }

    /// Records that a DMA engine writes a beat in cycle `at`, which is not before that of the latest one.
    pub fn note_write(&mut self, at: Cycle, address: u32) {
        self.written.push_back((at, address));
    }

    /// Takes the bank of an HPU's word for cycle `now`, and for an atomic operation also for the write in the next.
    /// Returns false on a conflict with a beat of either port in these cycles.
    pub fn take_word(&mut self, now: Cycle, address: u32, is_atomic: bool) -> bool {
        let (at, beat) = self.beats[memory(address)];
        let is_taken = self.is_taken(now, address)
            || at == now && self.excludes(beat, address)
            || is_atomic && self.is_sure(now + 1_u64, address);
        let is_free = !is_taken;
        if is_free && is_atomic {
            self.held.push_back((now + 1_u64, address));
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unit;

    const PACKETS: u32 = 0x1c40_0000;
    const HANDLER: u32 = 0x1c00_0000;

    /// Priority is NIC writes, host writes, reads. A 64 B beat occupies one bank of the packet buffer, and eight of
    /// handler memory.
    #[test]
    fn a_bank_has_one_access_in_a_cycle() {
        let mut ports = L2Ports::new(&unit());
        // Beats at PACKETS + 64 and PACKETS + 128, in cycles 10 and 11; the next packet follows.
        assert_eq!(ports.write_packet(Cycle(10), PACKETS + 64, 100), Cycle(12));
        assert_eq!(ports.write_packet(Cycle(10), PACKETS, 64), Cycle(13));
        assert!(!ports.read(Cycle(11), PACKETS + 128), "the NIC writes there");
        assert!(ports.read(Cycle(11), PACKETS + 64));
        for (address, is_taken) in [(128, true), (64, true), (192, false), (32 * 64 + 64, true)] {
            assert_eq!(ports.is_taken(Cycle(11), PACKETS + address), is_taken, "{address}");
        }
        assert!(!ports.is_taken(Cycle(11), HANDLER + 64), "another memory");
        assert!(ports.write(Cycle(13), HANDLER));
        assert!(!ports.read(Cycle(13), HANDLER + 256) && ports.read(Cycle(13), HANDLER + 64));
        ports.note_write(Cycle(14), PACKETS + 64);
        assert!(
            !ports.write(Cycle(14), PACKETS + 64) && !ports.read(Cycle(14), PACKETS + 64),
            "a DMA engine writes there"
        );
        assert!(ports.is_taken(Cycle(14), PACKETS + 64), "so no other one can read");
    }

    /// An HPU's word waits for every beat in its bank.
    #[test]
    fn words_come_last() {
        let mut ports = L2Ports::new(&unit());
        ports.note_read(Cycle(5), HANDLER);
        ports.note_write(Cycle(6), HANDLER + 64);
        let mut takes = |at: u64, address: u32| ports.take_word(Cycle(at), HANDLER + address, false);
        assert!(!takes(5, 60) && takes(5, 64));
        assert!(!takes(6, 64 + 256) && takes(6, 0));
        assert!(takes(7, 64));
    }

    /// An atomic operation holds its bank for two cycles; no other access gets the second.
    #[test]
    fn an_atomic_operation_begins_when_it_can_end() {
        let mut ports = L2Ports::new(&unit());
        ports.note_write(Cycle(6), HANDLER + 64);
        assert!(!ports.take_word(Cycle(5), HANDLER + 64, true) && ports.take_word(Cycle(5), HANDLER + 64, false));
        assert!(!ports.take_word(Cycle(6), HANDLER + 64, true) && ports.take_word(Cycle(7), HANDLER + 64, true));
        assert!(!ports.write(Cycle(8), HANDLER + 64) && !ports.read(Cycle(8), HANDLER + 64));
        assert!(ports.is_taken(Cycle(8), HANDLER + 64) && !ports.is_taken(Cycle(9), HANDLER + 64));
    }

    /// A NIC beat stalls behind a DMA write to the same banks, and so do the beats behind it; the host waits for both.
    #[test]
    fn the_nic_waits_for_a_dma_engine() {
        let mut ports = L2Ports::new(&unit());
        assert_eq!(ports.write_packet(Cycle(10), PACKETS, 128), Cycle(12));
        assert_eq!(ports.write_packet(Cycle(10), PACKETS + 512, 64), Cycle(13));
        for (at, address) in [(10, 0), (11, 64), (12, 64)] {
            ports.note_write(Cycle(at), PACKETS + address);
        }
        assert!(!ports.is_taken(Cycle(10), PACKETS + 64));
        assert!(ports.is_taken(Cycle(11), PACKETS), "the first beat");
        assert!(ports.is_taken(Cycle(12), PACKETS + 64), "the DMA engine");
        assert!(ports.is_taken(Cycle(13), PACKETS + 64), "the second beat");
        assert!(ports.is_taken(Cycle(14), PACKETS + 512) && !ports.is_taken(Cycle(15), PACKETS + 512));
    }

    /// NIC and host alternate at the packet buffer; the host's beats for handler memory overtake the NIC's.
    #[test]
    fn nic_and_host_take_turns_at_the_packet_buffer() {
        let mut ports = L2Ports::new(&unit());
        assert_eq!(ports.write_packet(Cycle(10), PACKETS, 256), Cycle(14));
        assert!(ports.write(Cycle(10), HANDLER), "another port");
        // The NIC's beats are in cycles 10, 12, 14 and 15.
        let writes = [(11, true), (12, false), (13, true), (14, false)];
        for (at, goes) in writes {
            assert_eq!(ports.write(Cycle(at), PACKETS + 1024), goes, "{at}");
        }
        assert!(ports.is_taken(Cycle(15), PACKETS + 192) && !ports.is_stored(Cycle(16), PACKETS));
        let ready = 16 + u64::from(unit().inbound.write_cycles);
        assert!(!ports.is_stored(Cycle(ready - 1), PACKETS) && ports.is_stored(Cycle(ready), PACKETS));
        // A host beat with its turn stalls the NIC while a DMA engine uses its bank.
        ports.write_packet(Cycle(30), PACKETS, 128);
        ports.note_write(Cycle(31), PACKETS + 1024);
        assert!(!ports.write(Cycle(31), PACKETS + 1024) && ports.write(Cycle(32), PACKETS + 1024));
        assert!(!ports.is_taken(Cycle(32), PACKETS + 64) && ports.is_taken(Cycle(33), PACKETS + 64));
    }
}
