// SPDX-License-Identifier: Apache-2.0
//! Link types (www.tcpdump.org/linktypes.html): formats of the first bytes of a captured packet.

use super::order::Order;
use crate::frame::Link;

/// A supported link type.
#[derive(Clone, Copy)]
enum LinkType {
    Ethernet,
    Raw,
    /// Address family of the capturing host, in its byte order (LINKTYPE_NULL).
    Null,
    /// Address family of OpenBSD, big-endian (LINKTYPE_LOOP).
    Loop,
    /// 16-byte header of Linux' interface "any" (LINKTYPE_LINUX_SLL).
    Cooked,
    /// 20-byte header with the interface number (LINKTYPE_LINUX_SLL2).
    Cooked2,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Finds the first header of a packet that was on the wire. Returns its kind and the bytes from there on.
///
/// # Errors
/// The reason if the link type is unknown, or the packet is shorter than the header of its link type.
pub fn unwrap(link_type: u32, order: Order, bytes: &[u8]) -> Result<(Link, &[u8]), String> {
    let kind = match link_type {
        0 => LinkType::Null,
        1 => LinkType::Ethernet,
        // LINKTYPE_RAW, and the values that some systems wrote for DLT_RAW; LINKTYPE_IPV4 and _IPV6.
        101 | 12 | 14 | 228 | 229 => LinkType::Raw,
        108 => LinkType::Loop,
        113 => LinkType::Cooked,
        276 => LinkType::Cooked2,
        other => {
            return Err(format!(
                "its link type is {other}; known are 1 (Ethernet), 101, 228 and 229 (IP), 113 and 276 (Linux cooked), 0 and \
                 108 (loopback)"
            ));
        }
    };
    let short = |needs: usize| format!("it has {} bytes; the header of link type {link_type} has {needs}", bytes.len());
    match kind {
        LinkType::Ethernet => Ok((Link::Ethernet, bytes)),
        LinkType::Raw => Ok((Link::Ip, bytes)),
        LinkType::Null => {
            let (family, rest) = bytes.split_first_chunk().ok_or_else(|| short(4))?;
            Ok((family_link(order.u32(*family)), rest))
        }
        LinkType::Loop => {
            let (family, rest) = bytes.split_first_chunk().ok_or_else(|| short(4))?;
            Ok((family_link(u32::from_be_bytes(*family)), rest))
        }
        LinkType::Cooked => {
            let (header, rest) = bytes.split_first_chunk::<16>().ok_or_else(|| short(16))?;
            Ok((payload(u16::from_be_bytes([header[14], header[15]])), rest))
        }
        LinkType::Cooked2 => {
            let (header, rest) = bytes.split_first_chunk::<20>().ok_or_else(|| short(20))?;
            Ok((payload(u16::from_be_bytes([header[0], header[1]])), rest))
        }
    }
}

/// Returns the payload of an Ethernet frame of this type.
fn payload(ether_type: u16) -> Link {
    match ether_type {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Link::Ip,
        other => Link::Payload(other),
    }
}

/// Returns the packet kind of an address family. Families are below 65,536, so a larger value is from a host of the
/// other byte order.
fn family_link(family: u32) -> Link {
    let family = if family > 0xffff { family.swap_bytes() } else { family };
    match family {
        // AF_INET, and AF_INET6 of Linux, of NetBSD and OpenBSD, of FreeBSD, and of Darwin.
        2 | 10 | 24 | 28 | 30 => Link::Ip,
        _ => Link::Payload(0),
    }
}

/// Returns the link type number to write to a file.
pub fn number(link: Link) -> u16 {
    match link {
        Link::Ethernet => 1,
        Link::Ip | Link::Payload(_) => 101,
    }
}
