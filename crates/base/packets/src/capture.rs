// SPDX-License-Identifier: Apache-2.0
//! Capture files: pcap (the format of libpcap) and pcapng (IETF draft "PCAP Next Generation"), optionally gzipped.

mod captured;
mod link;
mod order;
mod pcap;
mod pcapng;
mod write;

use std::io::Read;

use flate2::read::MultiGzDecoder;

use self::captured::CONTENTS;
pub use self::captured::{CaptureError, Captured};
pub use self::write::{Format, Writer};

/// Reads the packets of a file in either format.
///
/// # Errors
/// [`CaptureError`] if the file or a packet in it is damaged or incomplete.
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
