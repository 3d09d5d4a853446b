// SPDX-License-Identifier: Apache-2.0
//! Files in the pcapng format (IETF draft "PCAP Next Generation Capture File Format").

use super::captured::{At, CaptureError, Captured};
use super::order::{Numbers, Order};

/// Block types. The section header's type reads the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Options of an interface.
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
/// Option with a packet's flags, `epb_flags` and `pack_flags`.
const PACKET_FLAGS: u16 = 2;

/// Bytes of a block besides its contents: type, length, and a second copy of the length.
const AROUND: usize = 12;

/// An interface of a section.
struct Interface {
    link_type: u32,
    snap_length: u32,
    time: TimeUnit,
    /// Bytes of the frame check sequence after each packet.
    check_bytes: usize,
}

/// Time unit and time origin of an interface.
struct TimeUnit {
    /// Units per second: a power of 10 or of 2.
    per_second: u128,
    offset_s: i128,
}

impl TimeUnit {
    fn nanoseconds(&self, units: u64) -> Option<u64> {
        let second = 1_000_000_000;
        let units = u128::from(units);
        let (seconds, rest) = (units / self.per_second, units % self.per_second);
        // Fractions of a nanosecond are truncated.
        let fraction = rest * second / self.per_second;
        u64::try_from((seconds as i128 + self.offset_s) * second as i128 + fraction as i128).ok()
    }
}

/// A section: the blocks after a section header.
struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

/// Common part of all kinds of packet blocks.
struct Packet<'a> {
    interface: u32,
    units: Option<u64>,
    bytes: &'a [u8],
    length: u32,
    /// Bytes of the frame check sequence, if the flags contain them.
    check_bytes: Option<usize>,
}

pub fn read(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let mut section = Section { order: Order::Little, interfaces: Vec::new() };
    let mut packets: Vec<Captured> = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let at = At { packet: packets.len() + 1, offset: file.len() - rest.len() };
        let (kind, content, after) = section.block(at, rest)?;
        rest = after;
        match kind {
            SECTION_HEADER => section.header(at, content)?,
            INTERFACE_DESCRIPTION => {
                let interface = section.interface(content).map_err(|reason| at.invalid(reason))?;
                section.interfaces.push(interface);
            }
            PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                let packet = section.packet(kind, content).map_err(|reason| at.invalid(reason))?;
                packets.push(section.captured(at, &packet, packets.last())?);
            }
            // Names, statistics, secrets, and custom blocks are ignored.
            _ => {}
        }
    }
    Ok(packets)
}

impl Section {
    /// Splits the first block from `rest`. Returns its type, its contents, and the bytes after it.
    fn block<'a>(&mut self, at: At, rest: &'a [u8]) -> Result<(u32, &'a [u8], &'a [u8]), CaptureError> {
        // The byte-order magic of a section follows the type and the length of its header.
        if let (Some(kind), Some(magic)) = (rest.first_chunk(), rest.get(8..12))
            && u32::from_le_bytes(*kind) == SECTION_HEADER
        {
            let magic = [magic[0], magic[1], magic[2], magic[3]];
            let order = [Order::Little, Order::Big].into_iter().find(|order| order.u32(magic) == BYTE_ORDER_MAGIC);
            self.order = order.ok_or_else(|| at.invalid(format!("its byte-order magic is {magic:02x?}")))?;
        }
        let mut numbers = Numbers::new(self.order, rest);
        let (Some(kind), Some(length)) = (numbers.u32(), numbers.u32()) else { return Err(at.truncated()) };
        let length = length as usize;
        if length < AROUND || !length.is_multiple_of(4) {
            let reason = format!("the block has {length} bytes; blocks have at least {AROUND}, and a multiple of 4");
            return Err(at.invalid(reason));
        }
        let (block, after) = rest.split_at_checked(length).ok_or_else(|| at.truncated())?;
        let (content, trailer) = block[8..].split_at(length - AROUND);
        match Numbers::new(self.order, trailer).u32() {
            Some(again) if again as usize == length => Ok((kind, content, after)),
            again => {
                let again = again.unwrap_or_default();
                Err(at.invalid(format!("the block has {length} bytes by its beginning, and {again} by its end")))
            }
        }
    }

    /// Starts a section.
    fn header(&mut self, at: At, content: &[u8]) -> Result<(), CaptureError> {
        let mut numbers = Numbers::new(self.order, content);
        let (_magic, major, minor) = (numbers.u32(), numbers.u16(), numbers.u16());
        match (major, minor) {
            (Some(1), Some(_)) => {}
            (Some(major), Some(minor)) => {
                return Err(at.invalid(format!("its pcapng version is {major}.{minor}; versions 1.x are known")));
            }
            _ => return Err(at.invalid("its section header is too short")),
        }
        self.interfaces.clear();
        Ok(())
    }

    fn interface(&self, content: &[u8]) -> Result<Interface, String> {
        let mut numbers = Numbers::new(self.order, content);
        let mut fixed = || Some((numbers.u16()?, numbers.u16()?, numbers.u32()?));
        let (link_type, _reserved, snap_length) = fixed().ok_or("its interface description is too short")?;
        let mut time = TimeUnit { per_second: 1_000_000, offset_s: 0 };
        let mut check_bytes = 0;
        for option in self.options(numbers.rest()) {
            let (code, value) = option?;
            let wrong = |name: &str, bytes: usize| format!("its option {name} has {} bytes, not {bytes}", value.len());
            match code {
                IF_TSRESOL => {
                    let [code] = *value else { return Err(wrong("if_tsresol", 1)) };
                    let base: u128 = if code & 0x80 == 0 { 10 } else { 2 };
                    // A unit too fine for 128 bits is below a nanosecond in any case.
                    time.per_second = base.checked_pow(u32::from(code & 0x7f)).unwrap_or(u128::MAX);
                }
                IF_TSOFFSET => {
                    let bytes = value.try_into().map_err(|_| wrong("if_tsoffset", 8))?;
                    time.offset_s = self.order.i64(bytes).into();
                }
                IF_FCSLEN => {
                    let [length] = *value else { return Err(wrong("if_fcslen", 1)) };
                    // The draft counts bits; its example and Wireshark count bytes. No sequence has 16 bytes, or 4
                    // bits.
                    check_bytes = usize::from(if length < 16 { length } else { length / 8 });
                }
                _ => {}
            }
        }
        Ok(Interface { link_type: link_type.into(), snap_length, time, check_bytes })
    }

    fn packet<'a>(&self, kind: u32, content: &'a [u8]) -> Result<Packet<'a>, String> {
        let mut numbers = Numbers::new(self.order, content);
        if kind == SIMPLE_PACKET {
            let length = numbers.u32().ok_or("its block is too short")?;
            let snap_length = self.interfaces.first().map_or(0, |interface| interface.snap_length);
            let limit = if snap_length == 0 { u32::MAX } else { snap_length };
            let captured = length.min(limit) as usize;
            let bytes = numbers.bytes(captured).ok_or_else(|| missing(captured, numbers.rest()))?;
            return Ok(Packet { interface: 0, units: None, bytes, length, check_bytes: None });
        }
        let mut fixed = || {
            let interface = if kind == PACKET {
                let (interface, _drops) = (numbers.u16()?, numbers.u16()?);
                interface.into()
            } else {
                numbers.u32()?
            };
            let units = u64::from(numbers.u32()?) << 32 | u64::from(numbers.u32()?);
            Some((interface, units, numbers.u32()? as usize, numbers.u32()?))
        };
        let (interface, units, captured, length) = fixed().ok_or("its block is too short")?;
        let bytes = numbers.bytes(captured).ok_or_else(|| missing(captured, numbers.rest()))?;
        let padding = captured.next_multiple_of(4) - captured;
        let options = numbers.bytes(padding).map_or(&[][..], |_| numbers.rest());
        let mut check_bytes = None;
        for option in self.options(options) {
            let (code, value) = option?;
            if code == PACKET_FLAGS {
                let flags = value.try_into().map_err(|_| format!("its flags have {} bytes, not 4", value.len()))?;
                // Bits 5 to 8; 0 means an unknown length.
                check_bytes = Some((self.order.u32(flags) >> 5 & 0xf) as usize).filter(|bytes| *bytes > 0);
            }
        }
        Ok(Packet { interface, units: Some(units), bytes, length, check_bytes })
    }

    /// Returns code and value of each option, up to the end marker, or to the end of the block if the marker is
    /// missing.
    fn options<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = Result<(u16, &'a [u8]), String>> {
        let mut numbers = Numbers::new(self.order, bytes);
        std::iter::from_fn(move || {
            let (code, length) = (numbers.u16()?, numbers.u16()?);
            if code == 0 {
                return None;
            }
            let Some(value) = numbers.bytes(length.into()) else {
                let rest = numbers.rest().len();
                numbers = Numbers::new(Order::Little, &[]);
                return Some(Err(format!("its option {code} has {length} bytes, of which {rest} are in its block")));
            };
            let padding = usize::from(length).next_multiple_of(4) - usize::from(length);
            if numbers.bytes(padding).is_none() {
                numbers = Numbers::new(Order::Little, &[]);
            }
            Some(Ok((code, value)))
        })
    }

    fn captured(&self, at: At, packet: &Packet<'_>, before: Option<&Captured>) -> Result<Captured, CaptureError> {
        let interface = self.interfaces.get(packet.interface as usize);
        let interface =
            interface.ok_or_else(|| at.invalid(format!("its section has no interface {}", packet.interface)))?;
        let time_ns = match packet.units {
            None => before.map_or(0, |packet| packet.time_ns),
            Some(units) => interface
                .time
                .nanoseconds(units)
                .ok_or_else(|| at.invalid("its time lies outside the years 1970 to 2554"))?,
        };
        let check_bytes = packet.check_bytes.unwrap_or(interface.check_bytes);
        at.captured(time_ns, interface.link_type, self.order, check_bytes, packet.bytes, packet.length)
    }
}

fn missing(captured: usize, rest: &[u8]) -> String {
    format!("it has {captured} bytes, of which {} are in its block", rest.len())
}
