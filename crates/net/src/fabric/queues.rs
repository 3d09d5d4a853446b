//! Queues in which packets wait until their link is free, for pause frames and for trimming.

use sim::{Time, random};

use super::engine::{Edge, Event, Fabric};
use super::link::Kind;
use super::packet::{Mark, NOWHERE, Packet, Role};
use super::parameters::{Flow, Parameters};
use crate::NetError;
use crate::slab::List;

/// Bytes of a frame that pauses a channel or ends the pause: the least of Ethernet (IEEE 802.3 §31).
const FRAME: u32 = 64;
/// Headers that a port sends one after the other while data waits (NDP §3.1: "10:1 ratio of headers to packets").
const HEADERS_IN_A_ROW: u8 = 10;

/// The queues of all links.
#[derive(Debug, Default)]
pub(super) struct Queues {
    ports: Vec<Port>,
    /// Of each virtual channel of a link.
    channels: Vec<Channel>,
    /// Bytes of a channel in the switch at its end beyond which it is paused, and at which it goes on.
    pause: u64,
    resume: u64,
    /// Decides which packet is trimmed.
    random: u64,
}

/// The sending end of a link.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// Headers and answers, which are sent first, if there is trimming.
    urgent: List,
    urgent_in_a_row: u8,
    /// The channel that is served first.
    turn: u8,
    /// Whether its event is to come.
    is_busy: bool,
    /// Bytes of the other packets that wait, and of the one that is being sent.
    bytes: u64,
    /// What it is sending: the bytes that count for `bytes`, those for the channel through which they came, and that channel.
    sending: (u32, u32, u32),
}

/// A virtual channel of a link: its packets that wait at the sending end, and the bytes that the receiving end stores.
#[derive(Clone, Copy, Debug)]
struct Channel {
    waiting: List,
    /// Since when it has been paused, if it is.
    paused: Option<Time>,
    stored: u64,
    /// Whether the receiving end has paused it.
    is_pausing: bool,
}

impl Queues {
    /// # Errors
    /// When a buffer has no room for the packets that come before a pause begins.
    pub fn new(parameters: &Parameters, links: usize, vcs: u32, kinds: &[Kind]) -> Result<Queues, NetError> {
        let port = Port {
            urgent: List::EMPTY,
            urgent_in_a_row: 0,
            turn: 0,
            is_busy: false,
            bytes: 0,
            sending: (0, 0, NOWHERE),
        };
        let channel = Channel { waiting: List::EMPTY, paused: None, stored: 0, is_pausing: false };
        let (pause, resume) = if parameters.flow == Flow::Pfc { thresholds(parameters, kinds)? } else { (u64::MAX, 0) };
        Ok(Queues {
            ports: vec![port; links],
            channels: vec![channel; links * vcs as usize],
            pause,
            resume,
            random: random::mix(!parameters.seed),
        })
    }

    #[inline]
    pub fn are_used(&self) -> bool {
        !self.ports.is_empty()
    }

    /// A pause frame has reached the sending end.
    pub fn pause(&mut self, now: Time, channel: u32) {
        self.channels[channel as usize].paused = Some(now);
    }
}

/// The bytes at which a channel is paused and goes on. Nothing is lost if the buffer has room for the packet that causes the
/// pause, for one that has just begun to leave the sender when it learns of it, and for what a link carries from the
/// beginning of the pause frame until then, with the packets that are already on the wire and in the switch.
fn thresholds(parameters: &Parameters, kinds: &[Kind]) -> Result<(u64, u64), NetError> {
    let wrong = |parameter, what| Err(NetError::Parameter { parameter, what });
    let on_the_way = |kind: &Kind| kind.bytes_in(kind.latency * 2 + parameters.switch + kind.transmission(FRAME));
    let headroom = kinds.iter().map(on_the_way).max().unwrap_or(0) + 2 * u64::from(parameters.mtu);
    let Some(most) = parameters.buffer.checked_sub(headroom).filter(|most| *most > 0) else {
        let what =
            format!("must be more than {headroom} bytes, which come before a pause begins, is {}", parameters.buffer);
        return wrong("buffer", what);
    };
    let pause = parameters.transport.pfc.pause.unwrap_or(most);
    if pause > most {
        let buffer = parameters.buffer;
        let what =
            format!("must be at most {most}: {headroom} of {buffer} bytes come before a pause begins; is {pause}");
        return wrong("network.fabric.pfc.pause_bytes", what);
    }
    let resume = parameters.transport.pfc.resume.unwrap_or(pause.saturating_sub(2 * u64::from(parameters.mtu)));
    if resume >= pause {
        return wrong(
            "network.fabric.pfc.resume_bytes",
            format!("must be less than the {pause} of a pause, is {resume}"),
        );
    }
    Ok((pause, resume))
}

impl Fabric {
    /// Puts a packet into the queue of a link.
    pub(super) fn enqueue(&mut self, now: Time, link: u32, vc: u8, id: u32, edge: &mut impl Edge) {
        let channel = link * self.vcs + u32::from(vc);
        let Packet { channel: came, marks, .. } = self.packets[id];
        if came != NOWHERE && self.parameters.flow == Flow::Pfc {
            self.store(now, came, self.packets[id].bytes, edge);
        }
        let mut is_urgent =
            self.parameters.flow == Flow::Trim && (marks.role() != Role::Data || marks.has(Mark::Trimmed));
        if !is_urgent && came != NOWHERE && self.parameters.flow == Flow::Trim {
            is_urgent = self.trims(link, channel, id);
        }
        self.wait(link, channel, id, is_urgent);
        self.send_next(now, link, edge);
    }

    fn wait(&mut self, link: u32, channel: u32, id: u32, is_urgent: bool) {
        let bytes = self.size(&self.packets[id]);
        let transmission = self.kind(link).transmission(bytes);
        self.links[link as usize].blocked += transmission;
        let port = &mut self.queues.ports[link as usize];
        if is_urgent {
            port.urgent.push(id, &mut self.packets);
        } else {
            port.bytes += u64::from(bytes);
            self.queues.channels[channel as usize].waiting.push(id, &mut self.packets);
        }
    }

    /// Trims a packet if a new one of data finds the queue full: that one or, every other time, the last that waits (NDP
    /// §3.1). Returns whether it was the new one.
    fn trims(&mut self, link: u32, channel: u32, id: u32) -> bool {
        let bytes = self.packets[id].bytes;
        let port = &mut self.queues.ports[link as usize];
        if port.bytes + u64::from(bytes) <= self.parameters.buffer {
            return false;
        }
        let list = &mut self.queues.channels[channel as usize].waiting;
        let is_last = random::next(&mut self.queues.random) & 1 == 0;
        let last = if is_last { list.last(&self.packets) } else { None };
        // A shorter one would make too little room.
        let Some((before, last)) = last.filter(|(_, last)| self.packets[*last].bytes >= bytes) else {
            self.packets[id].marks.set(Mark::Trimmed, true);
            return true;
        };
        list.remove(before, last, &mut self.packets);
        let freed = self.packets[last].bytes;
        port.bytes -= u64::from(freed);
        let transmission = self.kind(link).transmission(freed);
        self.unblock(link, transmission);
        self.packets[last].marks.set(Mark::Trimmed, true);
        self.wait(link, channel, last, true);
        false
    }

    fn unblock(&mut self, link: u32, transmission: Time) {
        let blocked = &mut self.links[link as usize].blocked;
        *blocked = blocked.saturating_sub(transmission);
    }

    /// Sends the next packet of a link if the link is free.
    fn send_next(&mut self, now: Time, link: u32, edge: &mut impl Edge) {
        if self.queues.ports[link as usize].is_busy {
            return;
        }
        // A host may occupy its link without the network.
        let mut free = self.links[link as usize].free;
        if free <= now {
            let Some((channel, id)) = self.choose(link) else { return };
            let packet = &self.packets[id];
            let (came, bytes) = (packet.channel, self.size(packet));
            self.unblock(link, self.kind(link).transmission(bytes));
            let counted = if channel == NOWHERE { 0 } else { bytes };
            self.queues.ports[link as usize].sending = (counted, bytes, came);
            let channel = if channel == NOWHERE { link * self.vcs } else { channel };
            self.transmit(now, link, channel, id, edge);
            free = self.links[link as usize].free;
        }
        self.queues.ports[link as usize].is_busy = true;
        edge.schedule(free, Event::Free(link));
    }

    /// Takes the next packet of a link, with its channel, or with none if it is urgent.
    fn choose(&mut self, link: u32) -> Option<(u32, u32)> {
        let Queues { ports, channels, .. } = &mut self.queues;
        let port = &mut ports[link as usize];
        let first = (link * self.vcs) as usize;
        let own = &mut channels[first..first + self.vcs as usize];
        let is_ready = |vc: &usize| own[*vc].paused.is_none() && own[*vc].waiting.first().is_some();
        let turn = usize::from(port.turn);
        let vc = (turn..own.len()).chain(0..turn).find(is_ready);
        if (vc.is_none() || port.urgent_in_a_row < HEADERS_IN_A_ROW)
            && let Some(id) = port.urgent.pop(&mut self.packets)
        {
            port.urgent_in_a_row = if vc.is_some() { port.urgent_in_a_row + 1 } else { 0 };
            return Some((NOWHERE, id));
        }
        port.urgent_in_a_row = 0;
        let vc = vc?;
        port.turn = ((vc + 1) % own.len()) as u8;
        let id = own[vc].waiting.pop(&mut self.packets)?;
        Some(((first + vc) as u32, id))
    }

    /// A link is free.
    pub(super) fn is_free(&mut self, now: Time, link: u32, edge: &mut impl Edge) {
        let port = &mut self.queues.ports[link as usize];
        port.is_busy = false;
        let (counted, bytes, came) = std::mem::replace(&mut port.sending, (0, 0, NOWHERE));
        port.bytes -= u64::from(counted);
        if came != NOWHERE && self.parameters.flow == Flow::Pfc {
            self.release(now, came, bytes, edge);
        }
        self.send_next(now, link, edge);
    }

    /// When a frame that a switch sends now about a channel reaches the channel's sender. It does not wait for packets of
    /// the opposite direction.
    fn frame_at(&self, now: Time, channel: u32) -> Time {
        let kind = self.kind(channel / self.vcs);
        now + kind.transmission(FRAME) + kind.latency
    }

    /// A switch stores a packet of a channel.
    fn store(&mut self, now: Time, channel: u32, bytes: u32, edge: &mut impl Edge) {
        let state = &mut self.queues.channels[channel as usize];
        state.stored += u64::from(bytes);
        debug_assert!(state.stored <= self.parameters.buffer, "nothing is lost");
        if state.stored > self.queues.pause && !std::mem::replace(&mut state.is_pausing, true) {
            self.answers.counts.pauses += 1;
            edge.schedule(self.frame_at(now, channel), Event::Pause(channel));
        }
    }

    /// The last byte of a packet has left the switch.
    fn release(&mut self, now: Time, channel: u32, bytes: u32, edge: &mut impl Edge) {
        let state = &mut self.queues.channels[channel as usize];
        state.stored -= u64::from(bytes);
        if state.is_pausing && state.stored <= self.queues.resume {
            state.is_pausing = false;
            edge.schedule(self.frame_at(now, channel), Event::Resume(channel));
        }
    }

    /// A frame that ends a pause has reached the sending end.
    pub(super) fn resume(&mut self, now: Time, channel: u32, edge: &mut impl Edge) {
        if let Some(since) = self.queues.channels[channel as usize].paused.take() {
            self.answers.counts.paused += now - since;
        }
        self.send_next(now, channel / self.vcs, edge);
    }
}
