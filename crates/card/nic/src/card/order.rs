//! The order of requests where packets may be lost (`spinrun --drop`).
//!
//! Portals matches the messages of one process to another in the order in which they were sent, and MPI relies on that. So the
//! packets of requests to a card are numbered, and one that comes before a packet that was lost waits until that has been sent
//! again, or is given up. The card is taken to have room for all of them: its peer sends again what was lost, and nothing else.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::message::Packet;

/// The orders of the requests from each card; there are none where no packets are lost.
#[derive(Debug, Default)]
pub struct Orders(Option<Box<FxHashMap<u32, Order>>>);

/// The order of the requests from one card.
#[derive(Debug, Default)]
struct Order {
    /// All packets with places up to this one have come, or were given up.
    seen: u64,
    /// The packets that have come too early, by place; `None` for one that will not come.
    early: BTreeMap<u64, Option<Box<Packet>>>,
}

impl Orders {
    /// Takes note that a packet with a place has come. Returns whether it has to wait for another one.
    pub fn come(&mut self, packet: Box<Packet>) -> bool {
        let order = self.0.get_or_insert_default().entry(packet.header.source).or_default();
        let waits = packet.place > order.seen + 1;
        order.early.insert(packet.place, Some(packet));
        waits
    }

    /// Takes note that the packet with this place will not come. A packet without a place, which is 0, keeps none waiting.
    pub fn pass_over(&mut self, source: u32, place: u64) {
        let order = self.0.get_or_insert_default().entry(source).or_default();
        if place > order.seen {
            order.early.entry(place).or_insert(None);
        }
    }

    /// Takes note that a card has died, so what is missing will not come. Returns what has come from it, in order.
    pub fn end(&mut self, source: u32) -> impl Iterator<Item = Box<Packet>> + use<> {
        let order = self.0.as_mut().and_then(|orders| orders.get_mut(&source));
        let early = order.map(|order| {
            order.seen = order.early.last_key_value().map_or(order.seen, |(place, _)| *place);
            std::mem::take(&mut order.early)
        });
        early.into_iter().flat_map(BTreeMap::into_values).flatten()
    }

    /// Returns the next packet of a card whose turn has come.
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

    /// The places of the packets whose turn has come.
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
        // What has died sends nothing more, but what was under way still comes.
        assert!(come(&mut orders, 9) && come(&mut orders, 7));
        assert_eq!(orders.end(1).map(|packet| packet.place).collect::<Vec<_>>(), [7, 9]);
        assert!(!come(&mut orders, 8) && !come(&mut orders, 10));
        assert_eq!(turns(&mut orders), [8, 10]);
        assert_eq!(orders.end(2).count(), 0);
    }
}
