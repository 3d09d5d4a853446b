use nic::NicEvent;
use sim::Time;

use crate::event::Event;
use crate::outlet::Outlet;
use crate::ranks::Ranks;
use crate::state::Cluster;

impl<E> Cluster<E> {
    /// The event loop: runs `ranks` on this cluster to their end.
    ///
    /// # Errors
    /// When the ranks say that the run has failed.
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
            if at > Time::LIMIT {
                let rank = match &event {
                    Event::Card(node, _) => *node as usize,
                    Event::Network(event) => self.interconnect.sender(*event) as usize,
                    Event::Rank(event) => ranks.rank_of(event),
                };
                ranks.is_out_of_time(rank, self)?;
                continue;
            }
            self.now = at;
            self.progress.update(at, self.queue.inserted());
            match event {
                Event::Card(node, event) if self.dead[node as usize] => self.handle_event_of_dead_card(event),
                Event::Card(node, event) => {
                    self.handle_card_event(node as usize, event, ranks);
                    ranks.card_has_acted(node as usize, self)?;
                }
                Event::Network(event) => self.interconnect.handle(at, event, &mut Outlet(&mut self.queue)),
                Event::Rank(event) => ranks.handle(event, self)?,
            }
            ranks.event_is_over(self)?;
        }
    }

    /// A dead card does nothing, so what reaches it is lost.
    fn handle_event_of_dead_card(&mut self, event: NicEvent) {
        if let NicEvent::Arrive(packet) = event {
            self.queue.push(self.now, Event::Card(packet.header.source, NicEvent::Lost(packet)));
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
