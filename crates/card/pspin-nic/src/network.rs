// SPDX-License-Identifier: Apache-2.0
//! Match-action table in front of the inbound engine (§III-A): sorts arriving packets into messages and execution
//! contexts.

use std::collections::VecDeque;
use std::rc::Rc;

use packets::frame::{Frame, Link};
use packets::matcher::{Fate, Matcher};
use packets::rules::{Action, Rule};
use pspin_unit::her::ExecutionContext;
use sim::Time;

use crate::inbound::Arrival;

/// Counts of packets that the table did not pass to the inbound engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    /// Packets sent to the host, by a rule or because no rule matches.
    pub to_host: u64,
    /// Packets that a rule discards.
    pub dropped: u64,
    /// Packets discarded because they arrived before the header packet of their message while the hold buffer was full.
    pub overtook: u64,
    /// Packets with unreadable headers.
    pub malformed: u64,
    /// Packets sent to the host because handlers take IP packets and they are not IP; included in `to_host`.
    pub without_ip: u64,
}

/// Match-action table.
pub struct Table {
    matcher: Matcher<(u64, Vec<u8>)>,
    /// Execution context of each rule; `None` for rules that discard or send to the host.
    contexts: Vec<Option<Rc<ExecutionContext>>>,
    ready: VecDeque<Arrival>,
    sorted: Sorted,
    arrived: u64,
    /// Set if packets for handlers start at their IP header.
    is_from_ip: bool,
}

impl Table {
    /// Creates a table of rules that holds at most `most_held` packets until the header packets of their messages
    /// arrive. `context` resolves the execution context that a rule names.
    ///
    /// # Errors
    /// The error of `context`.
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

    /// Starts packets for handlers at their IP header; packets without one go to the host.
    pub fn from_ip(self) -> Table {
        Table { is_from_ip: true, ..self }
    }

    /// Accepts a packet from the network, in order of time.
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
                // Numbers wrap after 2^32 messages; no run has that many in progress.
                message: ready.message as u32,
                is_last: ready.is_last,
                transfer: ready.transfer as u32,
                context: context.clone(),
                user,
            });
        }
    }

    /// Returns the next packet for the inbound engine.
    pub fn next_ready(&mut self) -> Option<Arrival> {
        self.ready.pop_front()
    }

    /// Number of packets held until the header packet of their message arrives.
    pub fn held(&self) -> u64 {
        self.matcher.held() as u64
    }

    /// Returns the counts of packets that were not passed to the inbound engine.
    pub fn sorted(&self) -> &Sorted {
        &self.sorted
    }
}
