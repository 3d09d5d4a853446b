// SPDX-License-Identifier: Apache-2.0
//! Messages with outstanding packets.

use rustc_hash::{FxHashMap, FxHashSet};
use sim::Time;

use super::rx::{RxMessage, Sink};
use crate::message::{MessageId, OpToken, Packet, sender};
use crate::portals::InternalError;

/// Messages with outstanding packets.
#[derive(Default)]
#[repr(C)] // see `Nic`
pub struct Messages {
    /// Messages abandoned by their senders, if any. Their late packets are ignored.
    pub(crate) abandoned: Option<Box<FxHashSet<MessageId>>>,
    /// Number of packets that wait for their header packet.
    early: u32,
    pub(crate) channels: FxHashMap<MessageId, Channel>,
}

#[derive(Debug)]
pub(crate) enum Channel {
    /// The header packet has not arrived.
    Early(Box<EarlyPackets>),
    /// The header packet is being matched until this time.
    Matching(Time, Option<Box<EarlyPackets>>),
    /// The header packet is matched.
    Open(Box<RxMessage>),
}

/// Packets of a message that arrived before its header packet.
#[derive(Debug, Default)]
pub struct EarlyPackets {
    /// Waiting packets in the order of their arrival.
    pub waiting: Vec<Packet>,
    /// Offset and length in bytes of the packets that found no room.
    pub lost: Vec<(u64, u64)>,
}

/// State of a packet's message.
pub enum Lookup<'a> {
    /// The header packet has not arrived.
    NoHeader,
    /// The header packet is being matched until this time.
    Matching(Time),
    /// The header packet is matched.
    Open(&'a mut RxMessage),
}

impl Messages {
    /// Records that the header packet of a message is being matched until `until`.
    ///
    /// # Errors
    /// Returns an error if the message already has a header packet.
    pub fn start_matching(&mut self, id: MessageId, until: Time) -> Result<(), InternalError> {
        let early = match self.channels.remove(&id) {
            None => None,
            Some(Channel::Early(early)) => Some(early),
            Some(Channel::Matching(..) | Channel::Open(_)) => return Err(InternalError::TwoHeaders(id)),
        };
        self.channels.insert(id, Channel::Matching(until, early));
        Ok(())
    }

    /// Records that the header packet of a message is matched. Returns the packets that arrived before it.
    ///
    /// # Errors
    /// Returns an error if the header packet was not being matched.
    pub fn open(&mut self, rx: RxMessage) -> Result<EarlyPackets, InternalError> {
        let id = rx.header.id;
        match self.channels.insert(id, Channel::Open(Box::new(rx))) {
            Some(Channel::Matching(_, early)) => {
                let early = early.map_or_else(EarlyPackets::default, |early| *early);
                self.early -= early.waiting.len() as u32;
                Ok(early)
            }
            _ => Err(InternalError::TwoHeaders(id)),
        }
    }

    /// Returns the state of a packet's message.
    pub fn lookup(&mut self, id: MessageId) -> Lookup<'_> {
        match self.channels.get_mut(&id) {
            None | Some(Channel::Early(_)) => Lookup::NoHeader,
            Some(Channel::Matching(until, _)) => Lookup::Matching(*until),
            Some(Channel::Open(rx)) => Lookup::Open(rx),
        }
    }

    /// Returns a message whose header packet is matched.
    ///
    /// # Errors
    /// Returns an error if the message is unknown to the card, for example because it has ended.
    pub fn live(&mut self, id: MessageId) -> Result<&mut RxMessage, InternalError> {
        match self.lookup(id) {
            Lookup::Open(rx) => Ok(rx),
            Lookup::NoHeader | Lookup::Matching(_) => Err(InternalError::NoMessage(id)),
        }
    }

    /// Keeps a packet that arrived before its header packet. Returns false if `limit` packets of all messages already
    /// wait.
    ///
    /// # Errors
    /// Returns an error if the header packet has arrived.
    pub fn keep_early(&mut self, packet: Packet, limit: u32) -> Result<bool, InternalError> {
        let (id, has_room) = (packet.header.id, self.early < limit);
        let channel = self.channels.entry(id).or_insert_with(|| Channel::Early(Box::default()));
        let Channel::Early(early) = channel else { return Err(InternalError::WrongKind(id)) };
        if has_room {
            early.waiting.push(packet);
            self.early += 1;
        } else {
            early.lost.push((packet.offset, packet.data.len() as u64));
        }
        Ok(has_room)
    }

    /// Removes a message that has ended; `None` if it is already removed.
    pub fn close(&mut self, id: MessageId) -> Option<Box<RxMessage>> {
        match self.channels.remove(&id)? {
            Channel::Open(rx) => Some(rx),
            Channel::Early(_) | Channel::Matching(..) => None,
        }
    }

    /// Records that no more packets of a message will arrive. Returns the message if its header packet is matched;
    /// otherwise discards its packets.
    pub fn abandon(&mut self, id: MessageId) -> Option<&mut RxMessage> {
        self.abandoned.get_or_insert_default().insert(id);
        if let Some(Channel::Early(_) | Channel::Matching(..)) = self.channels.get(&id)
            && let Some(Channel::Early(early) | Channel::Matching(_, Some(early))) = self.channels.remove(&id)
        {
            self.early -= early.waiting.len() as u32;
        }
        self.live(id).ok()
    }

    /// Returns true if the sender abandoned the message.
    pub fn is_abandoned(&self, id: MessageId) -> bool {
        self.abandoned.as_ref().is_some_and(|abandoned| abandoned.contains(&id))
    }

    /// Returns the messages of a node with outstanding packets, in the order of their numbers.
    pub fn incomplete_from(&self, node: u32) -> Vec<MessageId> {
        let is_incomplete = |channel: &Channel| match channel {
            Channel::Open(rx) => rx.remaining > 0,
            Channel::Early(_) | Channel::Matching(..) => true,
        };
        let from_node = self.channels.iter().filter(|(id, _)| sender(**id) == node);
        let mut ids: Vec<MessageId> =
            from_node.filter(|(_, channel)| is_incomplete(channel)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the operations of this node whose answers are arriving.
    pub fn being_answered(&self) -> FxHashSet<OpToken> {
        let answered = |channel: &Channel| match channel {
            Channel::Open(rx) => match rx.sink {
                Sink::Operation(token, _) => Some(token),
                Sink::Nowhere | Sink::Entry(_) => None,
            },
            Channel::Early(_) | Channel::Matching(..) => None,
        };
        self.channels.values().filter_map(answered).collect()
    }

    /// Returns the messages that entries of an interface are receiving, in the order of their numbers.
    pub fn received_by(&self, interface: u8) -> Vec<MessageId> {
        let receives = |rx: &RxMessage| rx.header.interface == interface && matches!(rx.sink, Sink::Entry(_));
        let channels = self.channels.iter();
        let mut ids: Vec<MessageId> = channels
            .filter(|(_, channel)| matches!(channel, Channel::Open(rx) if receives(rx)))
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids
    }
}
