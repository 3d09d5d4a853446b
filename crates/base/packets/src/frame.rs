//! The headers of a packet.

use std::ops::Range;

use etherparse::err::packet::SliceError;
use etherparse::{EtherType, NetSlice, SlicedPacket, TransportSlice};
use thiserror::Error;

/// The first header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Link {
    /// An Ethernet II header, without preamble and without frame check sequence.
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header.
    Ip,
    /// The payload of an Ethernet frame whose header was not captured: the frame's type, 0 if that is not known.
    Payload(u16),
}

/// The error of a packet whose headers are cut off or contradict each other.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct FrameError(SliceError);

/// A packet whose headers are known to lie within its bytes.
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    /// The whole packet.
    pub bytes: &'a [u8],
    /// Its headers.
    pub headers: SlicedPacket<'a>,
    /// The part of its bytes that handlers get: all, unless [`Frame::from_ip`] says otherwise.
    pub handed: Range<usize>,
}

impl<'a> Frame<'a> {
    /// Finds the headers of a packet. Headers of protocols that are not known are part of its payload.
    ///
    /// # Errors
    /// [`FrameError`] when a header of a known protocol is incomplete or has an impossible length.
    pub fn parse(link: Link, bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let headers = match link {
            Link::Ethernet => SlicedPacket::from_ethernet(bytes),
            Link::Ip => SlicedPacket::from_ip(bytes),
            Link::Payload(kind) => SlicedPacket::from_ether_type(EtherType(kind), bytes),
        };
        headers.map(|headers| Frame { bytes, headers, handed: 0..bytes.len() }).map_err(FrameError)
    }

    /// Hands only the IP packet to handlers, without headers in front and padding behind it; `None` when it has none.
    pub fn from_ip(mut self) -> Option<Frame<'a>> {
        let (header, payload) = match &self.headers.net {
            Some(NetSlice::Ipv4(ip)) => (ip.header().slice(), ip.payload().payload),
            Some(NetSlice::Ipv6(ip)) => (ip.header().slice(), ip.payload().payload),
            _ => return None,
        };
        self.handed = self.offset(header)..self.offset(payload) + payload.len();
        Some(self)
    }

    /// What follows the innermost header that is known, without what pads the packet.
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

    /// The number of bytes in front of [`payload`](Self::payload).
    pub fn header_bytes(&self) -> usize {
        self.offset(self.payload())
    }

    /// Where a part of the packet begins.
    pub(crate) fn offset(&self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.bytes.as_ptr() as usize).min(self.bytes.len())
    }
}
