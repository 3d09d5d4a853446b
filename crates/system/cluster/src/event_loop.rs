// SPDX-License-Identifier: Apache-2.0
//! Event loop of the cluster.

use nic::NicEvent;
use sim::Time;

use crate::event::Event;
use crate::nodes::Cluster;
use crate::outlet::Outlet;
use crate::ranks::Ranks;

impl<E> Cluster<E> {
    /// Runs the event loop until `ranks` end.
    ///
    /// # Errors
    /// If the ranks report a failure.
    pub fn run<R: Ranks<Event = E>>(&mut self, ranks: &mut R) -> Result<R::End, R::Error> {
        ranks.start(self)?;
        loop {
            if let Some(error) = self.failure.take() {
                return Err(ranks.card_has_failed(error));
            }
            if let Some(end) = ranks.end() {
                return Ok(end);
            }
            if ranks.act_between_events(self)? {
                continue;
            }
            let Some((at, event)) = self.queue.pop() else {
                match ranks.no_event_is_left(self)? {
                    Some(end) => return Ok(end),
                    None => continue,
                }
            };
            if matches!(&event, Event::Rank(event) if ranks.is_void(event)) {
                self.queue.set_back(self.now);
                continue;
            }
            if at > Time::LIMIT {
                let rank = match &event {
                    Event::Card(node, _) => *node as usize,
                    Event::Network(event) => self.places.first_rank(self.interconnect.sender(*event) as usize),
                    Event::Rank(event) => ranks.rank_of(event),
                };
                ranks.is_out_of_time(rank, self)?;
                continue;
            }
            self.now = at;
            self.progress.update(at, self.queue.inserted());
            match event {
                Event::Card(node, event) => {
                    if let Some(event) = self.unless_dead(node, event) {
                        self.handle_card_event(node as usize, event, ranks);
                        if (node as usize) < self.ranks() {
                            ranks.card_has_acted(node as usize, self)?;
                        }
                    }
                }
                Event::Network(event) => {
                    self.interconnect.handle(at, event, &mut Outlet(&mut self.queue, &mut self.places));
                }
                Event::Rank(event) => ranks.handle(event, self)?,
            }
            ranks.event_is_over(self)?;
        }
    }

    /// Returns the event unless its card is dead. Packets to a dead card are lost; packets that it would send after its
    /// death are dropped.
    fn unless_dead(&mut self, node: u32, event: NicEvent) -> Option<NicEvent> {
        if self.dead.is_empty() {
            return Some(event);
        }
        match event {
            NicEvent::Arrive(packet)
                if self.dead.get(&packet.header.source).is_some_and(|since| packet.left > *since) =>
            {
                None
            }
            NicEvent::Arrive(packet) if self.dead.contains_key(&node) => {
                self.queue.push(self.now, Event::Card(packet.header.source, NicEvent::Lost(packet)));
                None
            }
            event => (!self.dead.contains_key(&node)).then_some(event),
        }
    }

    fn handle_card_event<R: Ranks<Event = E>>(&mut self, node: usize, event: NicEvent, ranks: &mut R) {
        let ends_message = matches!(event, NicEvent::Complete(_));
        self.act(node, ranks.memory(), |card, ports| card.handle(event, ports));
        if ends_message && self.trims_cards {
            self.cards[node].trim();
        }
    }
}
