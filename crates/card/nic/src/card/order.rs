// SPDX-License-Identifier: Apache-2.0
//! Order of requests in a lossy network (`spinrun --drop`).
//!
//! Portals matches the messages between two processes in send order, and MPI relies on that. So request packets carry
//! sequence numbers for each target card, and a packet behind a lost one waits until that is retransmitted or
//! abandoned. The model assumes buffers for all of them: the peer resends only lost packets.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::message::Packet;

/// Request order of each peer card; empty in a lossless network.
#[derive(Debug, Default)]
pub struct Orders(Option<Box<FxHashMap<u32, Order>>>);

/// Request order of one card.
#[derive(Debug, Default)]
struct Order {
    /// Highest sequence number up to which all packets arrived or were abandoned.
    seen: u64,
    /// Early packets by sequence number; `None` for a packet that will not arrive.
    early: BTreeMap<u64, Option<Box<Packet>>>,
}

impl Orders {
    /// Records the arrival of a sequenced packet. Returns true if it must wait for an earlier one.
    pub fn come(&mut self, packet: Box<Packet>) -> bool {
        let order = self.0.get_or_insert_default().entry(packet.header.source).or_default();
        let waits = packet.place > order.seen + 1;
        order.early.insert(packet.place, Some(packet));
        waits
    }

    /// Records that the packet `place` will not arrive. A packet without a sequence number (0) delays no others.
    pub fn pass_over(&mut self, source: u32, place: u64) {
        let order = self.0.get_or_insert_default().entry(source).or_default();
        if place > order.seen {
            order.early.entry(place).or_insert(None);
        }
    }

    /// Records that a card died, so missing packets will not arrive. Returns its early packets in order.
    pub fn end(&mut self, source: u32) -> impl Iterator<Item = Box<Packet>> + use<> {
        let order = self.0.as_mut().and_then(|orders| orders.get_mut(&source));
        let early = order.map(|order| {
            order.seen = order.early.last_key_value().map_or(order.seen, |(place, _)| *place);
            std::mem::take(&mut order.early)
        });
        early.into_iter().flat_map(BTreeMap::into_values).flatten()
    }

    /// Returns the next packet of a card in sequence.
    pub fn next(&mut self, source: u32) -> Option<Box<Packet>> {
        let order = self.0.as_mut()?.get_mut(&source)?;
        while let Some(entry) = order.early.first_entry().filter(|entry| *entry.key() <= order.seen + 1) {
            order.seen = order.seen.max(*entry.key());
            if let Some(packet) = entry.remove() {
                return Some(packet);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packets::{header, put};

    /// Returns the sequence numbers of the packets that are in sequence.
    fn turns(orders: &mut Orders) -> Vec<u64> {
        std::iter::from_fn(|| orders.next(1)).map(|packet| packet.place).collect()
    }

    #[test]
    fn packets_wait_for_those_before_them() {
        let mut orders = Orders::default();
        let packet = |place| Packet { place, ..Packet::new(header(1, put(0)), 0, Vec::new()) };
        let come = |orders: &mut Orders, place| orders.come(Box::new(packet(place)));
        assert!(come(&mut orders, 2) && come(&mut orders, 4) && turns(&mut orders).is_empty());
        assert!(!come(&mut orders, 1));
        assert_eq!(turns(&mut orders), [1, 2]);
        orders.pass_over(1, 3);
        assert_eq!(turns(&mut orders), [4]);
        // A dead card sends nothing more, but its packets in flight still arrive.
        assert!(come(&mut orders, 9) && come(&mut orders, 7));
        assert_eq!(orders.end(1).map(|packet| packet.place).collect::<Vec<_>>(), [7, 9]);
        assert!(!come(&mut orders, 8) && !come(&mut orders, 10));
        assert_eq!(turns(&mut orders), [8, 10]);
        assert_eq!(orders.end(2).count(), 0);
    }
}
