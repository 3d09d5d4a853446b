//! The match-action table in front of the inbound engine (§III-A): it sorts what comes from the network into messages and
//! execution contexts.

use std::collections::VecDeque;
use std::rc::Rc;

use packets::frame::{Frame, Link};
use packets::matcher::{Fate, Matcher};
use packets::rules::{Action, Rule};
use pspin_unit::her::ExecutionContext;
use sim::Time;

use crate::inbound::Arrival;

/// What the table did with packets that it did not give to the inbound engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    /// Packets for the host, by a rule or because no rule matches.
    pub to_host: u64,
    /// Packets that a rule discards.
    pub dropped: u64,
    /// Packets that were discarded because they came before the header packet of their message when no more packets could wait
    /// for theirs.
    pub overtook: u64,
    /// Packets whose headers cannot be read.
    pub malformed: u64,
    /// Packets for the host because handlers get IP packets, and they are none; they are among those of `to_host`.
    pub without_ip: u64,
}

/// The table.
pub struct Table {
    matcher: Matcher<(u64, Vec<u8>)>,
    /// The execution context of each rule; rules for the host, or that discard, have none.
    contexts: Vec<Option<Rc<ExecutionContext>>>,
    ready: VecDeque<Arrival>,
    sorted: Sorted,
    arrived: u64,
    /// Handlers get packets from their IP header on.
    is_from_ip: bool,
}

impl Table {
    /// A table of rules, in which at most `most_held` packets wait for the header packets of their messages. `context` gives the
    /// execution context that a rule names.
    ///
    /// # Errors
    /// That of `context`.
    pub fn new<E>(
        rules: Vec<Rule>,
        most_held: u32,
        mut context: impl FnMut(&str) -> Result<Rc<ExecutionContext>, E>,
    ) -> Result<Table, E> {
        let contexts = rules.iter().map(|rule| match &rule.action {
            Action::Context(processing) => context(&processing.context).map(Some),
            Action::Host | Action::Drop => Ok(None),
        });
        let contexts = contexts.collect::<Result<_, E>>()?;
        let matcher = Matcher::new(rules, most_held as usize);
        let (ready, sorted) = (VecDeque::new(), Sorted::default());
        Ok(Table { matcher, contexts, ready, sorted, arrived: 0, is_from_ip: false })
    }

    /// Gives handlers packets from their IP header on; those without one go to the host.
    pub fn from_ip(self) -> Table {
        Table { is_from_ip: true, ..self }
    }

    /// A packet comes from the network; packets come in the order of time.
    pub fn arrive(&mut self, at: Time, link: Link, bytes: Vec<u8>) {
        let number = self.arrived;
        self.arrived += 1;
        let Ok(mut frame) = Frame::parse(link, &bytes) else {
            self.sorted.malformed += 1;
            return;
        };
        if self.is_from_ip {
            let Some(from_ip) = frame.from_ip() else {
                self.sorted.without_ip += 1;
                self.sorted.to_host += 1;
                return;
            };
            frame = from_ip;
        }
        let handed = bytes[frame.handed.clone()].to_vec();
        match self.matcher.arrive(&frame, (number, handed)) {
            Fate::Ready | Fate::Held => {}
            Fate::Host(_) => self.sorted.to_host += 1,
            Fate::Dropped(_) => self.sorted.dropped += 1,
            Fate::Overtook(_) => self.sorted.overtook += 1,
        }
        while let Some(ready) = self.matcher.next_ready() {
            let Some(Some(context)) = self.contexts.get(ready.rule) else { continue };
            let (user, bytes) = ready.packet;
            self.ready.push_back(Arrival {
                at,
                bytes,
                // Numbers are used again after 2^32 messages, which no run has in progress at the same time.
                message: ready.message as u32,
                is_last: ready.is_last,
                transfer: ready.transfer as u32,
                context: context.clone(),
                user,
            });
        }
    }

    /// The next packet for the inbound engine.
    pub fn next_ready(&mut self) -> Option<Arrival> {
        self.ready.pop_front()
    }

    /// Packets that still wait for the header packet of their message.
    pub fn held(&self) -> u64 {
        self.matcher.held() as u64
    }

    /// What was not given to the inbound engine so far.
    pub fn sorted(&self) -> &Sorted {
        &self.sorted
    }
}
