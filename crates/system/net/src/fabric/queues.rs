//! Queues in which packets wait until their link is free, for pause frames and for trimming.

use sim::{Time, random};

use super::link::Kind;
use super::packet::NOWHERE;
use super::parameters::{Flow, Parameters};
use crate::NetError;
use crate::slab::List;

/// Bytes of a frame that pauses a channel or ends the pause: the least of Ethernet (IEEE 802.3 §31).
pub(super) const FRAME: u32 = 64;
/// Headers that a port sends one after the other while data waits (NDP §3.1: "10:1 ratio of headers to packets").
pub(super) const HEADERS_IN_A_ROW: u8 = 10;

/// The queues of all links.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub ports: Vec<Port>,
    /// The virtual channels of each link, one link after the other.
    pub channels: Vec<Channel>,
    /// Bytes of a channel in the switch at its end beyond which it is paused, and at which it goes on.
    pub pause: u64,
    pub resume: u64,
    /// Decides which packet is trimmed.
    pub random: u64,
}

/// The sending end of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// Headers and answers, which are sent first, if there is trimming.
    pub urgent: List,
    pub urgent_in_a_row: u8,
    /// The channel that is served first.
    pub turn: u8,
    /// Whether its event is to come.
    pub is_busy: bool,
    /// Bytes of the other packets that wait, and of the one that is being sent.
    pub bytes: u64,
    /// What it is sending: the bytes that count for `bytes`, those for the channel through which they came, and that channel.
    pub sending: (u32, u32, u32),
}

/// A virtual channel of a link: its packets that wait at the sending end, and the bytes that the receiving end stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub waiting: List,
    /// Since when it has been paused, if it is.
    pub paused: Option<Time>,
    pub stored: u64,
    /// Whether the receiving end has paused it.
    pub is_pausing: bool,
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
