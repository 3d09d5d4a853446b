//! Files of packets: pcap (the format of libpcap) and pcapng (IETF draft "PCAP Next Generation").

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapParser, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::pcapng::{Block, PcapNgParser, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use thiserror::Error;

use crate::frame::Link;

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it was captured: nanoseconds since 1970, or since whatever the file counts from. Packets without a time have that
    /// of the packet before.
    pub time_ns: u64,
    /// What its bytes begin with.
    pub link: Link,
    /// Its bytes, all of them.
    pub bytes: Vec<u8>,
}

/// Why a file of packets cannot be used, and where.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// It begins with neither format's magic number.
    #[error("it is neither a pcap nor a pcapng file: it begins with {0}")]
    Magic(String),
    /// It ends within a header, a packet or a block.
    #[error("it ends within packet {packet}: byte {offset} begins what is incomplete")]
    Truncated {
        /// The number of the packet that would have been next, from 1.
        packet: usize,
        /// Where the incomplete part begins.
        offset: usize,
    },
    /// What the format forbids.
    #[error("packet {packet}, at byte {offset}: {reason}")]
    Invalid {
        /// The number of the packet, from 1.
        packet: usize,
        /// Where its header or block begins.
        offset: usize,
        /// What is wrong.
        reason: String,
    },
}

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

    fn error(self, error: PcapError) -> CaptureError {
        match error {
            PcapError::IncompleteBuffer => CaptureError::Truncated { packet: self.packet, offset: self.offset },
            other => self.invalid(other.to_string()),
        }
    }

    /// What a packet begins with, by its link type (www.tcpdump.org/linktypes.html).
    fn link(self, link: DataLink) -> Result<Link, CaptureError> {
        match u32::from(link) {
            1 => Ok(Link::Ethernet),
            // LINKTYPE_RAW, as it is written, and as some systems wrote their DLT_RAW; LINKTYPE_IPV4 and _IPV6.
            101 | 12 | 14 | 228 | 229 => Ok(Link::Ip),
            other => {
                Err(self.invalid(format!("its link type is {other}; 1 (Ethernet) and 101, 228, 229 (IP) are known")))
            }
        }
    }

    /// Checks that the capture has all bytes of the packet.
    fn whole(self, captured: usize, length: u32) -> Result<(), CaptureError> {
        match captured.cmp(&(length as usize)) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(self.invalid(format!(
                "the capture has only {captured} of its {length} bytes; capture whole packets (tcpdump -s 0)"
            ))),
            std::cmp::Ordering::Greater => {
                Err(self.invalid(format!("the capture has {captured} bytes of it, but its length is {length}")))
            }
        }
    }
}

/// Reads the packets of a file in either format.
///
/// # Errors
/// [`CaptureError`] when the file is damaged or incomplete, or has a packet that is.
pub fn read(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    match file.first_chunk() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => read_pcapng(file),
        Some(
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] | [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1],
        ) => read_pcap(file),
        Some(magic) => Err(CaptureError::Magic(format!("the bytes {magic:02x?}"))),
        None => Err(CaptureError::Magic(format!("{} bytes and ends", file.len()))),
    }
}

fn read_pcap(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let start = At { packet: 1, offset: 0 };
    let (mut rest, parser) = PcapParser::new(file).map_err(|error| start.error(error))?;
    let header = parser.header();
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let at = At { packet: packets.len() + 1, offset: file.len() - rest.len() };
        let (after, packet) = parser.next_raw_packet(rest).map_err(|error| at.error(error))?;
        at.whole(packet.data.len(), packet.orig_len)?;
        let unit = if header.ts_resolution == TsResolution::NanoSecond { 1 } else { 1_000 };
        let fraction = u64::from(packet.ts_frac) * unit;
        if fraction >= 1_000_000_000 {
            return Err(at.invalid("the fraction of its time is a second or more"));
        }
        let time_ns = u64::from(packet.ts_sec) * 1_000_000_000 + fraction;
        packets.push(Captured { time_ns, link: at.link(header.datalink)?, bytes: packet.data.into_owned() });
        rest = after;
    }
    Ok(packets)
}

/// How an interface of a pcapng file counts time.
struct TimeUnit {
    /// The units of a second: a power of 10 or of 2.
    per_second: u128,
    offset_s: i128,
}

impl TimeUnit {
    fn of(interface: &InterfaceDescriptionBlock<'_>) -> Option<TimeUnit> {
        let mut unit = TimeUnit { per_second: 1_000_000, offset_s: 0 };
        for option in &interface.options {
            match option {
                InterfaceDescriptionOption::IfTsResol(code) if code & 0x80 != 0 => {
                    unit.per_second = 1_u128.checked_shl(u32::from(code & 0x7f))?;
                }
                InterfaceDescriptionOption::IfTsResol(code) => {
                    unit.per_second = 10_u128.checked_pow(u32::from(*code))?;
                }
                // The format has a signed number here, the library an unsigned one.
                InterfaceDescriptionOption::IfTsOffset(seconds) => unit.offset_s = i128::from(*seconds as i64),
                _ => {}
            }
        }
        Some(unit)
    }

    fn nanoseconds(&self, units: u128) -> Option<u64> {
        let second = 1_000_000_000;
        let (seconds, rest) = (units / self.per_second, units % self.per_second);
        // Of units below a nanosecond, the rest is cut off; the product overflows only below 10^-29 s.
        let fraction = rest.checked_mul(second)? / self.per_second;
        let seconds = i128::try_from(seconds).ok()? + self.offset_s;
        u64::try_from(seconds * second as i128 + fraction as i128).ok()
    }
}

fn read_pcapng(file: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let start = At { packet: 1, offset: 0 };
    let (mut rest, mut parser) = PcapNgParser::new(file).map_err(|error| start.error(error))?;
    let mut packets: Vec<Captured> = Vec::new();
    while !rest.is_empty() {
        let at = At { packet: packets.len() + 1, offset: file.len() - rest.len() };
        let (_, raw) = parser.next_raw_block(rest).map_err(|error| at.error(error))?;
        let length = raw.initial_len as usize;
        // What other blocks say does not matter here, so they are not read.
        let block = match raw.type_ {
            ENHANCED_PACKET_BLOCK | PACKET_BLOCK | SIMPLE_PACKET_BLOCK => Some(parser.next_block(rest)),
            _ => None,
        };
        rest = &rest[length..];
        let Some(block) = block else { continue };
        let (_, block) = block.map_err(|error| at.error(error))?;
        let (id, units, length, data) = match &block {
            // The library takes time stamps for nanoseconds, whatever the interface says: this is the number in the file.
            Block::EnhancedPacket(packet) => {
                (packet.interface_id, Some(packet.timestamp.as_nanos()), packet.original_len, &packet.data)
            }
            Block::Packet(packet) => {
                (packet.interface_id.into(), Some(packet.timestamp.into()), packet.original_len, &packet.data)
            }
            Block::SimplePacket(packet) => (0, None, packet.original_len, &packet.data),
            _ => continue,
        };
        let interface = parser.interfaces().get(id as usize);
        let interface = interface.ok_or_else(|| at.invalid(format!("its section has no interface {id}")))?;
        let mut data = &data[..];
        if units.is_none() {
            // A simple packet block does not say how many of its bytes are padding, and how many were captured.
            let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
            data = &data[..data.len().min(length.min(limit) as usize)];
        }
        at.whole(data.len(), length)?;
        let time_ns = match units {
            None => packets.last().map_or(0, |packet| packet.time_ns),
            Some(units) => TimeUnit::of(interface)
                .and_then(|unit| unit.nanoseconds(units))
                .ok_or_else(|| at.invalid("its time lies outside the years 1970 to 2554"))?,
        };
        packets.push(Captured { time_ns, link: at.link(interface.linktype)?, bytes: data.to_vec() });
    }
    Ok(packets)
}

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap, with nanoseconds.
    Pcap,
    /// pcapng, with nanoseconds.
    Pcapng,
}

impl Format {
    /// The format of a file, by its name: pcap for `.pcap`, pcapng for everything else.
    pub fn of(path: &Path) -> Format {
        let is_pcap = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pcap"));
        if is_pcap { Format::Pcap } else { Format::Pcapng }
    }
}

/// Writes packets to a file.
pub struct Writer<W: Write>(Kind<W>);

enum Kind<W: Write> {
    Pcap(PcapWriter<W>),
    Pcapng(Box<PcapNgWriter<W>>),
}

/// The longest packet that Wireshark accepts.
const SNAP_LENGTH: u32 = 262_144;

impl<W: Write> Writer<W> {
    /// Writes the beginning of a file whose packets begin with `link`. All bytes are in little-endian order on every machine.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W, format: Format, link: Link) -> io::Result<Writer<W>> {
        let datalink = if link == Link::Ethernet { DataLink::ETHERNET } else { DataLink::RAW };
        let kind = match format {
            Format::Pcap => {
                let ts_resolution = TsResolution::NanoSecond;
                let endianness = Endianness::Little;
                let header =
                    PcapHeader { snaplen: SNAP_LENGTH, datalink, ts_resolution, endianness, ..Default::default() };
                Kind::Pcap(PcapWriter::with_header(out, header).map_err(io_error)?)
            }
            Format::Pcapng => {
                let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(io_error)?;
                // Nanoseconds: 10^-9.
                let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
                let interface = InterfaceDescriptionBlock { linktype: datalink, snaplen: SNAP_LENGTH, options };
                writer.write_pcapng_block(interface).map_err(io_error)?;
                Kind::Pcapng(Box::new(writer))
            }
        };
        Ok(Writer(kind))
    }

    /// Writes a packet. The comment is only in pcapng files.
    ///
    /// # Errors
    /// When `out` fails, or the time or the length does not fit into the format.
    pub fn write(&mut self, time_ns: u64, bytes: &[u8], comment: Option<&str>) -> io::Result<()> {
        let timestamp = Duration::from_nanos(time_ns);
        let original_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        match &mut self.0 {
            Kind::Pcap(writer) => writer.write_packet(&PcapPacket::new(timestamp, original_len, bytes)),
            Kind::Pcapng(writer) => {
                let options =
                    comment.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text))).into_iter().collect();
                let data = Cow::Borrowed(bytes);
                writer.write_pcapng_block(EnhancedPacketBlock {
                    interface_id: 0,
                    timestamp,
                    original_len,
                    data,
                    options,
                })
            }
        }
        .map(drop)
        .map_err(io_error)
    }

    /// Ends the file.
    pub fn finish(self) -> W {
        match self.0 {
            Kind::Pcap(writer) => writer.into_writer(),
            Kind::Pcapng(writer) => writer.into_inner(),
        }
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other.to_string()),
    }
}
