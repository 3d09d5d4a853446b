//! Files of packets: pcap (the format of libpcap) and pcapng (IETF draft "PCAP Next Generation"), also compressed by gzip.

mod link;
mod order;
mod pcap;
mod pcapng;
mod write;

use std::cmp::Ordering;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use thiserror::Error;

use self::order::Order;
pub use self::write::{Format, Writer};
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

/// Why a file of packets cannot be used, and where.
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

/// The most bytes that a compressed file may have as contents.
const CONTENTS: u64 = 4 << 30;

/// A place in a file.
#[derive(Clone, Copy)]
struct At {
    packet: usize,
    offset: usize,
}

impl At {
    fn invalid(self, reason: impl Into<String>) -> CaptureError {
        CaptureError::Invalid { packet: self.packet, offset: self.offset, reason: reason.into() }
    }

    fn truncated(self) -> CaptureError {
        CaptureError::Truncated { packet: self.packet, offset: self.offset }
    }

    /// Returns a packet of `length` bytes on the wire, of which the capture has `bytes`, the last of them a frame check sequence.
    fn captured(
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

/// Reads the packets of a file in either format.
///
/// # Errors
/// [`CaptureError`] when the file is damaged or incomplete, or has a packet that is.
pub fn read(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    if !file.starts_with(&[0x1f, 0x8b]) {
        return read_plain(file);
    }
    let mut contents = Vec::new();
    MultiGzDecoder::new(file).take(CONTENTS + 1).read_to_end(&mut contents).map_err(CaptureError::Gzip)?;
    if contents.len() as u64 > CONTENTS {
        return Err(CaptureError::Large);
    }
    read_plain(&contents).map_err(|error| CaptureError::Within(Box::new(error)))
}

fn read_plain(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let start = &file[..file.len().min(formats::LENGTH)];
    let Some(magic) = file.first_chunk() else {
        return Err(CaptureError::Magic(format!("has {} bytes", file.len())));
    };
    if u32::from_le_bytes(*magic) == pcapng::SECTION_HEADER {
        return pcapng::read(file);
    }
    match pcap::of_magic(*magic) {
        Some((order, unit_ns)) => pcap::read(file, order, unit_ns),
        None => {
            let mut text = format!("begins with the bytes {magic:02x?}");
            if let Some(name) = formats::name(start) {
                text += &format!(" and looks like {name}");
            }
            Err(CaptureError::Magic(text))
        }
    }
}
