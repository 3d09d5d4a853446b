//! Captured packets, and the reasons why one cannot be used.

use std::cmp::Ordering;
use std::io;

use thiserror::Error;

use super::link;
use super::order::Order;
use crate::frame::Link;

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was captured: nanoseconds since 1970, or since whatever the file counts from. Packets without a time have that
    /// of the packet before.
    pub time_ns: u64,
    /// The kind of its first header.
    pub link: Link,
    /// Its bytes, all of them, from its first header that was on the wire to its last byte in front of the frame check sequence.
    pub bytes: Vec<u8>,
}

/// The most bytes that a compressed file may have as contents.
pub(super) const CONTENTS: u64 = 4 << 30;

/// The reason why a file of packets cannot be used, and the place.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It begins with neither format's magic number.
    #[error("it is neither a pcap nor a pcapng file: it {0}")]
    Magic(String),
    /// It ends within a header, a packet or a block.
    #[error("it ends within packet {packet}: byte {offset} begins what is incomplete")]
    Truncated {
        /// The number of the packet that would have been next, from 1.
        packet: usize,
        /// Where the incomplete part begins.
        offset: usize,
    },
    /// The format forbids it.
    #[error("packet {packet}, at byte {offset}: {reason}")]
    Invalid {
        /// The number of the packet, from 1.
        packet: usize,
        /// Where its header or block begins.
        offset: usize,
        /// The reason.
        reason: String,
    },
    /// It cannot be uncompressed.
    #[error("it is compressed by gzip and cannot be uncompressed: {0}")]
    Gzip(io::Error),
    /// Its contents are too large.
    #[error("it is compressed by gzip and has more than {} GiB of contents", CONTENTS >> 30)]
    Large,
    /// Its contents cannot be used.
    #[error("uncompressed, {0}")]
    Within(Box<CaptureError>),
}

/// A place in a file.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) packet: usize,
    pub(super) offset: usize,
}

impl At {
    pub(super) fn invalid(self, reason: impl Into<String>) -> CaptureError {
        CaptureError::Invalid { packet: self.packet, offset: self.offset, reason: reason.into() }
    }

    pub(super) fn truncated(self) -> CaptureError {
        CaptureError::Truncated { packet: self.packet, offset: self.offset }
    }

    /// Returns a packet of `length` bytes on the wire, of which the capture has `bytes`, the last of them a frame check sequence.
    pub(super) fn captured(
        self,
        time_ns: u64,
        link_type: u32,
        order: Order,
        check_bytes: usize,
        bytes: &[u8],
        length: u32,
    ) -> Result<Captured, CaptureError> {
        let captured = bytes.len();
        match captured.cmp(&(length as usize)) {
            Ordering::Equal => {}
            Ordering::Less => {
                return Err(self.invalid(format!(
                    "the capture has only {captured} of its {length} bytes; capture whole packets (tcpdump -s 0)"
                )));
            }
            Ordering::Greater => {
                return Err(self.invalid(format!("the capture has {captured} bytes of it, but its length is {length}")));
            }
        }
        let Some(end) = captured.checked_sub(check_bytes) else {
            return Err(self.invalid(format!("its {captured} bytes end with a frame check sequence of {check_bytes}")));
        };
        let (link, bytes) = link::unwrap(link_type, order, &bytes[..end]).map_err(|reason| self.invalid(reason))?;
        Ok(Captured { time_ns, link, bytes: bytes.to_vec() })
    }
}
