// SPDX-License-Identifier: Apache-2.0
//! Packet fields, with the names of Wireshark's display filters.

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{LinkExtSlice, LinkSlice, NetSlice, TransportSlice};
use thiserror::Error;

use crate::frame::Frame;

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `eth.src`
    EthernetSource,
    /// `eth.dst`
    EthernetDestination,
    /// `eth.type`: type of the payload, after VLAN tags
    EthernetType,
    /// `vlan.id`: id of the outermost tag
    Vlan,
    /// `ip.src`
    Ipv4Source,
    /// `ip.dst`
    Ipv4Destination,
    /// `ipv6.src`
    Ipv6Source,
    /// `ipv6.dst`
    Ipv6Destination,
    /// `ip.proto`: protocol of the payload, after extension headers; also for IPv6
    Protocol,
    /// `udp.srcport`
    UdpSource,
    /// `udp.dstport`
    UdpDestination,
    /// `tcp.srcport`
    TcpSource,
    /// `tcp.dstport`
    TcpDestination,
    /// `tcp.flags`: twelve bits, FIN is 0x001
    TcpFlags,
    /// `frame[OFFSET:LENGTH]`: bytes of the packet, big-endian
    Frame {
        /// First byte.
        offset: u16,
        /// Number of bytes.
        length: u8,
    },
    /// `payload[OFFSET:LENGTH]`: bytes after the innermost known header, big-endian
    Payload {
        /// First byte.
        offset: u16,
        /// Number of bytes.
        length: u8,
    },
}

const NAMES: [(&str, Field); 14] = [
    ("eth.src", Field::EthernetSource),
    ("eth.dst", Field::EthernetDestination),
    ("eth.type", Field::EthernetType),
    ("vlan.id", Field::Vlan),
    ("ip.src", Field::Ipv4Source),
    ("ip.dst", Field::Ipv4Destination),
    ("ipv6.src", Field::Ipv6Source),
    ("ipv6.dst", Field::Ipv6Destination),
    ("ip.proto", Field::Protocol),
    ("udp.srcport", Field::UdpSource),
    ("udp.dstport", Field::UdpDestination),
    ("tcp.srcport", Field::TcpSource),
    ("tcp.dstport", Field::TcpDestination),
    ("tcp.flags", Field::TcpFlags),
];

/// Error of a field's name or value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldError {
    /// No field has this name.
    #[error(
        "there is no field '{0}'; fields are {names}, frame[OFFSET:LENGTH] and payload[OFFSET:LENGTH] with 1 to 16 bytes",
        names = NAMES.map(|(name, _)| name).join(", ")
    )]
    Name(String),
    /// A value is not of the field's kind, or is too large.
    #[error(
        "'{value}' is no value of '{field}', which has {bits} bits; a value is {form}, with /MASK if only some bits count"
    )]
    Value {
        /// Field.
        field: String,
        /// Number of bits.
        bits: u32,
        /// Value.
        value: String,
        /// Syntax of values.
        form: &'static str,
    },
}

/// A comparison of a field with a value under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Field.
    pub field: Field,
    /// Value.
    pub value: u128,
    /// Compared bits.
    pub mask: u128,
}

impl Match {
    /// Returns true if the packet has the field with this value.
    pub fn holds(&self, frame: &Frame<'_>) -> bool {
        self.field.of(frame).is_some_and(|value| value & self.mask == self.value & self.mask)
    }

    /// Parses a value of the field `name`.
    ///
    /// # Errors
    /// [`FieldError`] if no field has this name, or the value is invalid.
    pub fn parse(name: &str, text: &str) -> Result<Match, FieldError> {
        let field = Field::parse(name)?;
        let error = || {
            let (field, value) = (name.to_owned(), text.to_owned());
            FieldError::Value { field, bits: field_bits(name), value, form: Field::form(name) }
        };
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let all = field.all_bits();
        let value = field.read(value.trim()).filter(|value| *value <= all).ok_or_else(error)?;
        let mask = match mask.map(str::trim) {
            None => all,
            Some(mask) => field.read_mask(mask).filter(|mask| *mask <= all).ok_or_else(error)?,
        };
        Ok(Match { field, value, mask })
    }
}

fn field_bits(name: &str) -> u32 {
    Field::parse(name).map_or(0, Field::bits)
}

impl Field {
    /// Returns the field of this name.
    ///
    /// # Errors
    /// [`FieldError::Name`] if none has it.
    pub fn parse(name: &str) -> Result<Field, FieldError> {
        if let Some((_, field)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(*field);
        }
        let part = |prefix: &str| {
            let (offset, length) = name.strip_prefix(prefix)?.strip_suffix(']')?.split_once(':')?;
            let length: u8 = length.parse().ok().filter(|length| (1..=16).contains(length))?;
            Some((offset.parse().ok()?, length))
        };
        if let Some((offset, length)) = part("frame[") {
            return Ok(Field::Frame { offset, length });
        }
        match part("payload[") {
            Some((offset, length)) => Ok(Field::Payload { offset, length }),
            None => Err(FieldError::Name(name.to_owned())),
        }
    }

    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Field::EthernetSource | Field::EthernetDestination => 48,
            Field::Vlan | Field::TcpFlags => 12,
            Field::Ipv4Source | Field::Ipv4Destination => 32,
            Field::Ipv6Source | Field::Ipv6Destination => 128,
            Field::Protocol => 8,
            Field::Frame { length, .. } | Field::Payload { length, .. } => u32::from(length) * 8,
            Field::EthernetType
            | Field::UdpSource
            | Field::UdpDestination
            | Field::TcpSource
            | Field::TcpDestination => 16,
        }
    }

    fn all_bits(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    fn form(name: &str) -> &'static str {
        match Field::parse(name) {
            Ok(Field::EthernetSource | Field::EthernetDestination) => "an address like 02:00:00:00:00:01",
            Ok(Field::Ipv4Source | Field::Ipv4Destination) => "an address like 10.0.0.1",
            Ok(Field::Ipv6Source | Field::Ipv6Destination) => "an address like fd00::1",
            _ => "a number like 80 or 0x50",
        }
    }

    fn read(self, text: &str) -> Option<u128> {
        match self {
            Field::EthernetSource | Field::EthernetDestination if text.contains(':') => {
                let bytes =
                    text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect::<Option<Vec<u8>>>()?;
                (bytes.len() == 6).then(|| number(&bytes))
            }
            Field::Ipv4Source | Field::Ipv4Destination if text.contains('.') => {
                text.parse().ok().map(|address: Ipv4Addr| u128::from(address.to_bits()))
            }
            Field::Ipv6Source | Field::Ipv6Destination if text.contains(':') => {
                text.parse().ok().map(|address: Ipv6Addr| address.to_bits())
            }
            _ => match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                Some(digits) => u128::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
        }
    }

    /// Parses a mask: a prefix length for IP addresses, else written like a value.
    fn read_mask(self, text: &str) -> Option<u128> {
        let is_address =
            matches!(self, Field::Ipv4Source | Field::Ipv4Destination | Field::Ipv6Source | Field::Ipv6Destination);
        match text.parse::<u32>() {
            Ok(prefix) if is_address => {
                let rest = self.bits().checked_sub(prefix)?;
                Some(u128::MAX.checked_shl(rest).unwrap_or(0) & self.all_bits())
            }
            _ => self.read(text),
        }
    }

    /// Returns the value in a packet; `None` if the packet has no such field.
    pub fn of(self, frame: &Frame<'_>) -> Option<u128> {
        let headers = &frame.headers;
        let ethernet = match &headers.link {
            Some(LinkSlice::Ethernet2(ethernet)) => Some(ethernet),
            _ => None,
        };
        let (ipv4, ipv6) = match &headers.net {
            Some(NetSlice::Ipv4(ip)) => (Some(ip), None),
            Some(NetSlice::Ipv6(ip)) => (None, Some(ip)),
            _ => (None, None),
        };
        let (udp, tcp) = match &headers.transport {
            Some(TransportSlice::Udp(udp)) => (Some(udp), None),
            Some(TransportSlice::Tcp(tcp)) => (None, Some(tcp)),
            _ => (None, None),
        };
        match self {
            Field::EthernetSource => Some(number(&ethernet?.source())),
            Field::EthernetDestination => Some(number(&ethernet?.destination())),
            Field::EthernetType => {
                let inner = headers.link_exts.iter().rev().find_map(|ext| match ext {
                    LinkExtSlice::Vlan(vlan) => Some(vlan.ether_type()),
                    LinkExtSlice::Macsec(_) => None,
                });
                Some(inner.unwrap_or(ethernet?.ether_type()).0.into())
            }
            Field::Vlan => headers.link_exts.iter().find_map(|ext| match ext {
                LinkExtSlice::Vlan(vlan) => Some(vlan.vlan_identifier().value().into()),
                LinkExtSlice::Macsec(_) => None,
            }),
            Field::Ipv4Source => Some(number(&ipv4?.header().source())),
            Field::Ipv4Destination => Some(number(&ipv4?.header().destination())),
            Field::Ipv6Source => Some(number(&ipv6?.header().source())),
            Field::Ipv6Destination => Some(number(&ipv6?.header().destination())),
            Field::Protocol => match (ipv4, ipv6) {
                (Some(ip), _) => Some(ip.payload_ip_number().0.into()),
                (_, ip) => Some(ip?.payload().ip_number.0.into()),
            },
            Field::UdpSource => Some(udp?.source_port().into()),
            Field::UdpDestination => Some(udp?.destination_port().into()),
            Field::TcpSource => Some(tcp?.source_port().into()),
            Field::TcpDestination => Some(tcp?.destination_port().into()),
            Field::TcpFlags => {
                let header = tcp?.header_slice();
                Some(number(&header[12..14]) & 0xfff)
            }
            Field::Frame { offset, length } => part(frame.bytes, offset, length),
            Field::Payload { offset, length } => part(frame.payload(), offset, length),
        }
    }
}

fn part(bytes: &[u8], offset: u16, length: u8) -> Option<u128> {
    bytes.get(usize::from(offset)..usize::from(offset) + usize::from(length)).map(number)
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
