// SPDX-License-Identifier: Apache-2.0
//! Captured packets, and capture errors.

use std::cmp::Ordering;
use std::io;

use thiserror::Error;

use super::link;
use super::order::Order;
use crate::frame::Link;

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Capture time in nanoseconds since 1970, or since the file's own origin. A packet without a time gets the time of
    /// the packet before.
    pub time_ns: u64,
    /// Kind of the first header.
    pub link: Link,
    /// Complete packet, from the first header on the wire to the last byte before the frame check sequence.
    pub bytes: Vec<u8>,
}

/// Maximum uncompressed size of a file, in bytes.
pub(super) const CONTENTS: u64 = 4 << 30;

/// Error of a capture file, with its location.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file begins with neither format's magic number.
    #[error("it is neither a pcap nor a pcapng file: it {0}")]
    Magic(String),
    /// The file ends within a header, a packet or a block.
    #[error("it ends within packet {packet}: byte {offset} begins what is incomplete")]
    Truncated {
        /// Number of the next packet, from 1.
        packet: usize,
        /// Byte offset of the incomplete part.
        offset: usize,
    },
    /// The format forbids the contents.
    #[error("packet {packet}, at byte {offset}: {reason}")]
    Invalid {
        /// Number of the packet, from 1.
        packet: usize,
        /// Byte offset of its header or block.
        offset: usize,
        /// Reason.
        reason: String,
    },
    /// The file cannot be uncompressed.
    #[error("it is compressed by gzip and cannot be uncompressed: {0}")]
    Gzip(io::Error),
    /// The uncompressed contents are too large.
    #[error("it is compressed by gzip and has more than {} GiB of contents", CONTENTS >> 30)]
    Large,
    /// The uncompressed contents are not a valid capture.
    #[error("uncompressed, {0}")]
    Within(Box<CaptureError>),
}

/// A location in a file.
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

    /// Returns a packet of `length` bytes on the wire; the captured part `bytes` may end with a frame check sequence.
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
