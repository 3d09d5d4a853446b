// SPDX-License-Identifier: Apache-2.0
//! Checksums of IPv4 (RFC 791), UDP (RFC 768) and TCP (RFC 9293).

use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, TransportSlice};

use crate::frame::{Frame, FrameError, Link};

/// A checksum of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Byte offset in the packet.
    pub offset: usize,
    /// Checksum in the packet.
    pub found: u16,
    /// Correct checksum.
    pub expected: u16,
    /// True if the checksum may be omitted, as 0 (UDP over IPv4).
    pub is_optional: bool,
}

impl Checksum {
    /// Returns true if the checksum is correct, or legally omitted.
    pub fn is_good(&self) -> bool {
        self.found == self.expected || self.is_optional && self.found == 0
    }
}

/// Returns the checksums of a packet, from the outermost header. UDP and TCP checksums of fragments are left out, as a
/// single fragment cannot verify them.
pub fn checksums(frame: &Frame<'_>) -> Vec<Checksum> {
    let mut found = Vec::new();
    let (pseudo, is_ipv4) = match &frame.headers.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().slice();
            let sum = Sum16BitWords::new().add_slice(&header[..10]).add_slice(&header[12..]);
            found.push(Checksum {
                offset: frame.offset(header) + 10,
                found: u16::from_be_bytes([header[10], header[11]]),
                expected: sum.ones_complement().to_be(),
                is_optional: false,
            });
            let mut sum = Sum16BitWords::new();
            (sum.add_4bytes(ip.header().source()).add_4bytes(ip.header().destination()), true)
        }
        Some(NetSlice::Ipv6(ip)) => {
            let mut sum = Sum16BitWords::new();
            (sum.add_16bytes(ip.header().source()).add_16bytes(ip.header().destination()), false)
        }
        _ => return found,
    };
    let (bytes, protocol, at) = match &frame.headers.transport {
        Some(TransportSlice::Udp(udp)) => (udp.slice(), 17, 6),
        Some(TransportSlice::Tcp(tcp)) => (tcp.slice(), 6, 16),
        _ => return found,
    };
    let Ok(length) = u32::try_from(bytes.len()) else { return found };
    let length = length.to_be_bytes();
    let mut sum = pseudo.add_2bytes([0, protocol]);
    sum = sum.add_4bytes(length).add_slice(&bytes[..at]).add_slice(&bytes[at + 2..]);
    let is_udp = protocol == 17;
    let expected = if is_udp { sum.to_ones_complement_with_no_zero() } else { sum.ones_complement() };
    found.push(Checksum {
        offset: frame.offset(bytes) + at,
        found: u16::from_be_bytes([bytes[at], bytes[at + 1]]),
        expected: expected.to_be(),
        is_optional: is_udp && is_ipv4,
    });
    found
}

/// Recomputes the checksums of a packet that handlers modified. An omitted checksum stays omitted.
///
/// # Errors
/// [`FrameError`] if the headers of the packet cannot be parsed.
pub fn renew(link: Link, bytes: &mut [u8]) -> Result<(), FrameError> {
    let found = checksums(&Frame::parse(link, bytes)?);
    for checksum in found {
        if !checksum.is_good() {
            bytes[checksum.offset..checksum.offset + 2].copy_from_slice(&checksum.expected.to_be_bytes());
        }
    }
    Ok(())
}
