// SPDX-License-Identifier: Apache-2.0
//! Packet headers.

use std::ops::Range;

use etherparse::err::packet::SliceError;
use etherparse::{EtherType, NetSlice, SlicedPacket, TransportSlice};
use thiserror::Error;

/// First header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Link {
    /// An Ethernet II header, without preamble and without frame check sequence.
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header.
    Ip,
    /// Payload of an Ethernet frame without its header: the frame's type, or 0 if unknown.
    Payload(u16),
}

/// Error of a packet with truncated or contradictory headers.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct FrameError(SliceError);

/// A packet whose parsed headers lie within its bytes.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// Whole packet.
    pub bytes: &'a [u8],
    /// Headers.
    pub headers: SlicedPacket<'a>,
    /// Byte range passed to handlers: everything, except after [`Frame::from_ip`].
    pub handed: Range<usize>,
}

impl<'a> Frame<'a> {
    /// Parses the headers of a packet. Headers of unknown protocols are part of the payload.
    ///
    /// # Errors
    /// [`FrameError`] if a header of a known protocol is incomplete or has an impossible length.
    pub fn parse(link: Link, bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let headers = match link {
            Link::Ethernet => SlicedPacket::from_ethernet(bytes),
            Link::Ip => SlicedPacket::from_ip(bytes),
            Link::Payload(kind) => SlicedPacket::from_ether_type(EtherType(kind), bytes),
        };
        headers.map(|headers| Frame { bytes, headers, handed: 0..bytes.len() }).map_err(FrameError)
    }

    /// Restricts the handlers' range to the IP packet, without headers before it and padding after it; `None` if the
    /// packet has none.
    pub fn from_ip(mut self) -> Option<Frame<'a>> {
        let (header, payload) = match &self.headers.net {
            Some(NetSlice::Ipv4(ip)) => (ip.header().slice(), ip.payload().payload),
            Some(NetSlice::Ipv6(ip)) => (ip.header().slice(), ip.payload().payload),
            _ => return None,
        };
        self.handed = self.offset(header)..self.offset(payload) + payload.len();
        Some(self)
    }

    /// Returns the bytes after the innermost known header, without padding.
    pub fn payload(&self) -> &'a [u8] {
        match &self.headers.transport {
            Some(TransportSlice::Udp(udp)) => return udp.payload(),
            Some(TransportSlice::Tcp(tcp)) => return tcp.payload(),
            _ => {}
        }
        match &self.headers.net {
            Some(NetSlice::Ipv4(ip)) => ip.payload().payload,
            Some(NetSlice::Ipv6(ip)) => ip.payload().payload,
            _ => self.headers.ether_payload().map_or(self.bytes, |payload| payload.payload),
        }
    }

    /// Returns the number of bytes before [`payload`](Self::payload).
    pub fn header_bytes(&self) -> usize {
        self.offset(self.payload())
    }

    /// Returns the offset of a part of the packet.
    pub(crate) fn offset(&self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.bytes.as_ptr() as usize).min(self.bytes.len())
    }
}
