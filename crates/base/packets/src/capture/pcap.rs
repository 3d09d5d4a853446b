// SPDX-License-Identifier: Apache-2.0
//! Files in the format of libpcap (IETF draft "PCAP Capture File Format").

use super::captured::{At, CaptureError, Captured};
use super::order::{Numbers, Order};

/// Magic number of files with microsecond times, and of those with nanosecond times.
pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Returns the byte order of a file that begins with `magic`, and the nanoseconds of its time unit.
pub fn of_magic(magic: [u8; 4]) -> Option<(Order, u64)> {
    [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(magic) {
        MICROSECONDS => Some((order, 1_000)),
        NANOSECONDS => Some((order, 1)),
        _ => None,
    })
}

/// Header word with link type and frame check sequence.
struct LinkWord {
    link_type: u32,
    /// Bytes of the frame check sequence after each packet.
    check_bytes: usize,
}

impl LinkWord {
    fn new(word: u32) -> LinkWord {
        const HAS_LENGTH: u32 = 1 << 26;
        // The highest four bits count 16-bit words.
        let check_bytes = if word & HAS_LENGTH == 0 { 0 } else { (word >> 28) as usize * 2 };
        LinkWord { link_type: word & 0xffff, check_bytes }
    }
}

pub fn read(file: &[u8], order: Order, unit_ns: u64) -> Result<Vec<Captured>, CaptureError> {
    let start = At { packet: 1, offset: 0 };
    let mut rest = Numbers::new(order, file);
    let mut header = || {
        let (_magic, major, minor) = (rest.u32()?, rest.u16()?, rest.u16()?);
        let (_zone, _accuracy, _snap_length) = (rest.u32()?, rest.u32()?, rest.u32()?);
        Some((major, minor, LinkWord::new(rest.u32()?)))
    };
    let (major, minor, link) = header().ok_or_else(|| start.truncated())?;
    if major != 2 {
        return Err(start.invalid(format!("its pcap version is {major}.{minor}; versions 2.x are known")));
    }
    let mut packets = Vec::new();
    while !rest.rest().is_empty() {
        let at = At { packet: packets.len() + 1, offset: file.len() - rest.rest().len() };
        let mut packet = || {
            let (seconds, fraction, captured, length) = (rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?);
            Some((seconds, fraction, length, rest.bytes(captured as usize)?))
        };
        let (seconds, fraction, length, bytes) = packet().ok_or_else(|| at.truncated())?;
        let fraction_ns = u64::from(fraction) * unit_ns;
        if fraction_ns >= 1_000_000_000 {
            return Err(at.invalid("the fraction of its time is a second or more"));
        }
        let time_ns = u64::from(seconds) * 1_000_000_000 + fraction_ns;
        packets.push(at.captured(time_ns, link.link_type, order, link.check_bytes, bytes, length)?);
    }
    Ok(packets)
}
