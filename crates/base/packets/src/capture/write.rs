// SPDX-License-Identifier: Apache-2.0
//! Writes capture files: nanosecond times, little-endian on every host.

use std::io::{self, Write};
use std::path::Path;

use super::{link, pcap, pcapng};
use crate::frame::Link;

/// Format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap, with nanoseconds.
    Pcap,
    /// pcapng, with nanoseconds.
    Pcapng,
}

impl Format {
    /// Returns the format for a file name: pcap for `.pcap`, pcapng for everything else.
    pub fn of(path: &Path) -> Format {
        let is_pcap = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pcap"));
        if is_pcap { Format::Pcap } else { Format::Pcapng }
    }
}

/// Writes packets to a capture file.
pub struct Writer<W: Write> {
    out: W,
    format: Format,
}

/// Maximum packet size that Wireshark accepts.
const SNAP_LENGTH: u32 = 262_144;

impl<W: Write> Writer<W> {
    /// Writes the file header for packets that begin with `link`.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(mut out: W, format: Format, link: Link) -> io::Result<Writer<W>> {
        let link_type = link::number(link);
        match format {
            Format::Pcap => {
                // Version 2.4, no time zone, no accuracy.
                let words = [pcap::NANOSECONDS, 2 | 4 << 16, 0, 0, SNAP_LENGTH, link_type.into()];
                write_words(&mut out, &words)?;
            }
            Format::Pcapng => {
                // Version 1.0, and a section of unknown length.
                let header = [pcapng::BYTE_ORDER_MAGIC, 1, u32::MAX, u32::MAX];
                write_block(&mut out, pcapng::SECTION_HEADER, &words(&header))?;
                // Option if_tsresol (9) of one byte, 10^-9 s, and the end of the options.
                let interface = [link_type.into(), SNAP_LENGTH, 9 | 1 << 16, 9, 0];
                write_block(&mut out, 1, &words(&interface))?;
            }
        }
        Ok(Writer { out, format })
    }

    /// Writes a packet. Only pcapng files store the comment.
    ///
    /// # Errors
    /// If `out` fails, or the time or the length does not fit into the format.
    pub fn write(&mut self, time_ns: u64, bytes: &[u8], comment: Option<&str>) -> io::Result<()> {
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
        let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= SNAP_LENGTH);
        let length =
            length.ok_or_else(|| invalid(format!("a packet has {} B, more than {SNAP_LENGTH}", bytes.len())))?;
        match self.format {
            Format::Pcap => {
                let seconds = u32::try_from(time_ns / 1_000_000_000)
                    .map_err(|_| invalid(format!("a pcap file has no time of {time_ns} ns since 1970")))?;
                let fraction = (time_ns % 1_000_000_000) as u32;
                write_words(&mut self.out, &[seconds, fraction, length, length])?;
                self.out.write_all(bytes)
            }
            Format::Pcapng => {
                let mut block = words(&[0]);
                // The upper half of the time comes first.
                for half in [time_ns >> 32, time_ns & u64::from(u32::MAX)] {
                    block.extend(&half.to_le_bytes()[..4]);
                }
                block.extend(words(&[length, length]));
                push_padded(&mut block, bytes);
                if let Some(comment) = comment {
                    let size = u16::try_from(comment.len())
                        .map_err(|_| invalid(format!("a comment has {} B, more than 65535", comment.len())))?;
                    block.extend(words(&[1 | u32::from(size) << 16]));
                    push_padded(&mut block, comment.as_bytes());
                    block.extend([0; 4]);
                }
                write_block(&mut self.out, 6, &block)
            }
        }
    }

    /// Returns the finished file.
    pub fn finish(self) -> W {
        self.out
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn write_words(out: &mut impl Write, numbers: &[u32]) -> io::Result<()> {
    out.write_all(&words(numbers))
}

/// Writes a block; the size of `content` must be a multiple of four bytes.
fn write_block(out: &mut impl Write, kind: u32, content: &[u8]) -> io::Result<()> {
    let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "a pcapng block has 4 GiB or more");
    let length = u32::try_from(content.len() + 12).map_err(|_| too_large())?;
    write_words(out, &[kind, length])?;
    out.write_all(content)?;
    write_words(out, &[length])
}

fn push_padded(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend(bytes);
    block.resize(block.len().next_multiple_of(4), 0);
}
