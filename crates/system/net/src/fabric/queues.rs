// SPDX-License-Identifier: Apache-2.0
//! Queues of packets that wait until their link is free, for pause frames and for trimming.

use sim::memory::prefetch;
use sim::{Time, random};

use super::link::Kind;
use super::packet::NOWHERE;
use super::parameters::{Flow, Parameters};
use crate::NetError;
use crate::slab::List;

/// Bytes of a frame that pauses or resumes a channel: the Ethernet minimum (IEEE 802.3 §31).
pub(super) const FRAME: u32 = 64;
/// Maximum number of consecutive headers of a port while data waits (NDP §3.1: "10:1 ratio of headers to packets").
pub(super) const HEADERS_IN_A_ROW: u8 = 10;

/// Queues of all links.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub ports: Vec<Port>,
    /// Virtual channels of all links, grouped by link.
    pub channels: Vec<Channel>,
    /// Stored bytes of a channel above which the switch pauses it, and at which it resumes it.
    pub pause: u64,
    pub resume: u64,
    /// Random state for the choice of the trimmed packet.
    pub random: u64,
}

/// Sending end of a link.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Port {
    /// Headers and control packets, which have priority with trimming.
    pub urgent: List,
    pub urgent_in_a_row: u8,
    /// Channel to serve first.
    pub turn: u8,
    /// True while its event is pending.
    pub is_busy: bool,
    /// Bytes of the other waiting packets, and of the one being sent.
    pub bytes: u64,
    /// Packet being sent.
    pub sending: Sending,
}

/// A packet being sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// Its bytes in [`Port::bytes`].
    pub counted: u32,
    /// Its bytes in its input channel, that channel, and the kind of its link.
    pub bytes: u32,
    pub came: u32,
    pub came_by: u32,
}

impl Sending {
    pub const NOTHING: Sending = Sending { counted: 0, bytes: 0, came: NOWHERE, came_by: 0 };
}

/// A virtual channel of a link: packets that wait at the sending end, and bytes stored at the receiving end.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Channel {
    pub waiting: List,
    /// Start of the current pause, if any.
    pub paused: Option<Time>,
    pub stored: u64,
    /// True if the receiving end has paused it.
    pub is_pausing: bool,
}

impl Queues {
    /// Creates empty queues.
    ///
    /// # Errors
    /// If a buffer has no room for the packets that arrive before a pause takes effect.
    pub fn new(parameters: &Parameters, links: usize, vcs: u32, kinds: &[Kind]) -> Result<Queues, NetError> {
        let port = Port {
            urgent: List::EMPTY,
            urgent_in_a_row: 0,
            turn: 0,
            is_busy: false,
            bytes: 0,
            sending: Sending::NOTHING,
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

    /// Prefetches a link's sending end and one of its channels.
    #[inline]
    pub fn prefetch(&self, link: u32, channel: u32) {
        prefetch(self.ports.as_ptr().wrapping_add(link as usize));
        self.prefetch_channel(channel);
    }

    #[inline]
    pub fn prefetch_channel(&self, channel: u32) {
        prefetch(self.channels.as_ptr().wrapping_add(channel as usize));
    }

    /// Handles a pause frame at the sending end.
    pub fn pause(&mut self, now: Time, channel: u32) {
        self.channels[channel as usize].paused = Some(now);
    }
}

/// Returns the thresholds in bytes for pausing and resuming a channel. No packet is lost if the buffer has room for the
/// packet that causes the pause, for one that the sender starts just before it receives the frame, and for the bytes
/// that a link carries from the start of the pause frame until then, including packets already on the wire and in the
/// switch.
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
