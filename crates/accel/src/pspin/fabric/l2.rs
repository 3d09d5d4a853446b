//! The ports of the L2 memories (§III-C): port A is of the NIC and the host, port B of the clusters. A bank has one access in a cycle:
//! the writes of port A come first, then its reads, then the beats of the clusters' DMA engines, then the words of HPUs.

use std::collections::VecDeque;

use machine::Pspin;

use crate::pspin::cycle::Cycle;
use crate::pspin::memory::{Arena, Place};

/// What uses the banks of L2 packet buffer and L2 handler memory, beat by beat.
pub struct L2Ports {
    /// Packets that the NIC writes: the first cycle, the address, and the number of beats.
    packets: VecDeque<(Cycle, u32, u32)>,
    /// The first cycle in which the NIC may write another packet.
    packet_free: Cycle,
    /// The cycle of the latest write of the host, and its address; and of the latest read of port A.
    write: (Cycle, u32),
    read: (Cycle, u32),
    /// The latest beats that DMA engines have read: of the packet buffer, and of handler memory.
    beats: [(Cycle, u32); 2],
    /// The beats that DMA engines write, in order.
    written: VecDeque<(Cycle, u32)>,
    beat: u32,
    /// Bytes of a row of banks, and whether both ports share the memory: packet buffer, and handler memory.
    rows: [u32; 2],
    is_shared: [bool; 2],
}

/// Which memory an address is in: 0 packet buffer, 1 handler memory.
#[inline]
fn memory(address: u32) -> usize {
    usize::from(address < Arena::start(Place::Packet))
}

impl L2Ports {
    /// Ports that nobody uses.
    pub fn new(unit: &Pspin) -> L2Ports {
        let (packet, handler) = (&unit.l2_packet, &unit.l2_handler);
        let never = (Cycle::NEVER, 0);
        L2Ports {
            packets: VecDeque::new(),
            packet_free: Cycle::ZERO,
            write: never,
            read: never,
            beats: [never; 2],
            written: VecDeque::new(),
            beat: unit.nhi.width_bits / 8,
            rows: [packet.banks * (packet.bank_bits / 8), handler.banks * (handler.bank_bits / 8)],
            is_shared: [packet.ports == 1, handler.ports == 1],
        }
    }

    /// The NIC writes a packet from cycle `at` on, behind those before it. Returns the first cycle behind its beats.
    pub fn write_packet(&mut self, at: Cycle, address: u32, bytes: u32) -> Cycle {
        let beats = (address + bytes.max(1) - 1) / self.beat - address / self.beat + 1;
        let start = at.max(self.packet_free);
        self.packet_free = start + beats;
        self.packets.push_back((start, address - address % self.beat, beats));
        self.packet_free
    }

    /// The address of the beat that the NIC writes in cycle `now`.
    #[inline]
    fn packet_beat(&mut self, now: Cycle) -> Option<u32> {
        while self.packets.front().is_some_and(|(start, _, beats)| *start + *beats <= now) {
            self.packets.pop_front();
        }
        let (start, first, _) = self.packets.front().filter(|(start, ..)| *start <= now)?;
        Some(first.wrapping_add((now - *start) as u32 * self.beat))
    }

    /// Whether the NIC writes in cycle `now`; then the host has to wait.
    #[inline]
    pub fn is_written(&mut self, now: Cycle) -> bool {
        self.packet_beat(now).is_some()
    }

    /// Whether two beats of one cycle are in the same banks.
    #[inline]
    fn same_banks(&self, one: u32, other: u32) -> bool {
        let row = self.rows[memory(one)].max(self.beat);
        memory(one) == memory(other) && one % row / self.beat == other % row / self.beat
    }

    /// Whether accesses of both ports in one cycle exclude each other.
    #[inline]
    fn excludes(&self, one: u32, other: u32) -> bool {
        self.is_shared[memory(one)] && memory(one) == memory(other) || self.same_banks(one, other)
    }

    /// Whether a DMA engine writes the banks of an address in cycle `now`.
    #[inline]
    fn is_written_by_dma(&mut self, now: Cycle, address: u32) -> bool {
        while self.written.front().is_some_and(|(at, _)| *at < now) {
            self.written.pop_front();
        }
        let of_now = self.written.iter().take_while(|(at, _)| *at == now);
        let mut written = of_now.map(|(_, written)| *written);
        written.any(|written| self.excludes(written, address))
    }

    /// Writes a beat of the host's data in cycle `now`, in which the NIC does not write. Returns whether its banks are free.
    #[inline]
    pub fn write(&mut self, now: Cycle, address: u32) -> bool {
        let is_free = !self.is_written_by_dma(now, address);
        if is_free {
            self.write = (now, address);
        }
        is_free
    }

    /// Reads a beat by port A in cycle `now`. Returns whether its banks are free.
    #[inline]
    pub fn read(&mut self, now: Cycle, address: u32) -> bool {
        let packet = self.packet_beat(now);
        let host = Some(self.write).filter(|(at, _)| *at == now).map(|(_, address)| address);
        let is_free = ![packet, host].into_iter().flatten().any(|written| self.same_banks(written, address))
            && !self.is_written_by_dma(now, address);
        if is_free {
            self.read = (now, address);
        }
        is_free
    }

    /// Whether port A uses the banks of an address in cycle `now`, or a DMA engine writes there.
    #[inline]
    pub fn is_taken(&mut self, now: Cycle, address: u32) -> bool {
        let packet = self.packet_beat(now);
        let of_now = |(at, address): (Cycle, u32)| (at == now).then_some(address);
        let mut used = [packet, of_now(self.write), of_now(self.read)].into_iter().flatten();
        used.any(|used| self.excludes(used, address)) || self.is_written_by_dma(now, address)
    }

    /// A DMA engine reads a beat in cycle `now`.
    #[inline]
    pub fn note_read(&mut self, now: Cycle, address: u32) {
        self.beats[memory(address)] = (now, address);
    }

    /// A DMA engine writes a beat in cycle `at`, which is not before that of the latest one.
    pub fn note_write(&mut self, at: Cycle, address: u32) {
        self.written.push_back((at, address));
    }

    /// Whether a beat of either port uses the bank of a word in cycle `now`, so that an HPU has to wait.
    pub fn is_taken_for_word(&mut self, now: Cycle, address: u32) -> bool {
        let (at, beat) = self.beats[memory(address)];
        self.is_taken(now, address) || at == now && self.same_banks(beat, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pspin::testing::unit;

    const PACKET: u32 = 0x1c40_0000;
    const HANDLER: u32 = 0x1c00_0000;

    /// Writes of the NIC, then of the host, then reads; a beat of 64 B has a bank of the packet buffer, and eight of handler memory.
    #[test]
    fn a_bank_has_one_access_in_a_cycle() {
        let mut ports = L2Ports::new(&unit());
        // Beats at PACKET + 64 and PACKET + 128, in cycles 10 and 11; the next packet follows.
        assert_eq!(ports.write_packet(Cycle(10), PACKET + 64, 100), Cycle(12));
        assert_eq!(ports.write_packet(Cycle(10), PACKET, 64), Cycle(13));
        assert!(!ports.is_written(Cycle(9)) && ports.is_written(Cycle(10)));
        assert!(!ports.read(Cycle(11), PACKET + 128), "the NIC writes there");
        assert!(ports.read(Cycle(11), PACKET + 64));
        for (address, is_taken) in [(128, true), (64, true), (192, false), (32 * 64 + 64, true)] {
            assert_eq!(ports.is_taken(Cycle(11), PACKET + address), is_taken, "{address}");
        }
        assert!(!ports.is_taken(Cycle(11), HANDLER + 64), "another memory");
        assert!(ports.is_written(Cycle(12)) && !ports.is_written(Cycle(13)) && ports.write(Cycle(13), HANDLER));
        assert!(!ports.read(Cycle(13), HANDLER + 256) && ports.read(Cycle(13), HANDLER + 64));
        ports.note_write(Cycle(14), PACKET + 64);
        assert!(
            !ports.write(Cycle(14), PACKET + 64) && !ports.read(Cycle(14), PACKET + 64),
            "a DMA engine writes there"
        );
        assert!(ports.is_taken(Cycle(14), PACKET + 64), "so no other one can read");
    }

    /// An HPU waits for each beat that has its bank.
    #[test]
    fn words_come_last() {
        let mut ports = L2Ports::new(&unit());
        ports.note_read(Cycle(5), HANDLER);
        ports.note_write(Cycle(6), HANDLER + 64);
        let mut taken = |at: u64, address: u32| ports.is_taken_for_word(Cycle(at), HANDLER + address);
        assert!(taken(5, 60) && !taken(5, 64));
        assert!(taken(6, 64 + 256) && !taken(6, 0));
        assert!(!taken(7, 64));
    }
}
