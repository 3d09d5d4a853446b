// SPDX-License-Identifier: Apache-2.0
//! Recognises the format of a file by its first bytes, so that errors about a wrong input file can name it.

#![deny(clippy::cast_possible_truncation)] // values come from input

/// Maximum number of bytes that [`name`] reads.
pub const LENGTH: usize = 512;

/// Magic numbers and their formats.
const MAGICS: [(&[u8], &str); 30] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"\x1f\x8b", "a file compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
    (b"\xfd7zXZ\0", "a file compressed by xz"),
    (b"BZh", "a file compressed by bzip2"),
    (b"\x04\x22\x4d\x18", "a file compressed by lz4"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x0a\x0d\x0d\x0a", "a pcapng capture"),
    (b"\xa1\xb2\xc3\xd4", "a pcap capture"),
    (b"\xd4\xc3\xb2\xa1", "a pcap capture"),
    (b"\xa1\xb2\x3c\x4d", "a pcap capture"),
    (b"\x4d\x3c\xb2\xa1", "a pcap capture"),
    (b"\xa1\xb2\xcd\x34", "a pcap capture in the form of Linux' old libpcap patches"),
    (b"\x34\xcd\xb2\xa1", "a pcap capture in the form of Linux' old libpcap patches"),
    (b"snoop\0\0\0", "a capture of snoop"),
    (b"\x89PNG\r\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"\0asm", "a WebAssembly module"),
    (b"!<arch>\n", "a library of object files"),
    (b"OTF2", "an OTF2 trace"),
    (b"version https://git-lfs", "a Git LFS pointer, in the place of the file (git lfs pull)"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
    (b"#!", "a script"),
    (b"<?xml", "an XML file"),
    (b"<!DOCTYPE", "an HTML page"),
];

/// First word of a binary schedule from `txt2bin` of LogGOPSim and ATLAHS, in the writer's byte order.
const LOGGOPSIM: u64 = 4223;
const LOGGOPSIM_NAME: &str = "a binary schedule of LogGOPSim or ATLAHS (spinkit goal reads it)";

/// First words of text lines, and their formats.
const WORDS: [(&str, &str); 7] = [
    ("num_ranks", "a GOAL schedule in text"),
    ("#include", "a C source"),
    ("[[rule]]", "match-action rules in TOML"),
    ("#pragma", "a C source"),
    ("MPI_", "a trace of MPI calls in text"),
    ("{", "a JSON file"),
    ("[", "a TOML or JSON file"),
];

/// Returns the name of the format, with its article; `None` if the format is unknown.
pub fn name(start: &[u8]) -> Option<&'static str> {
    if let Some((_, name)) = MAGICS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(name);
    }
    if is_loggopsim(start) {
        return Some(LOGGOPSIM_NAME);
    }
    if start.get(257..262) == Some(b"ustar") {
        return Some("a tar archive");
    }
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if error.valid_up_to() + 3 >= start.len() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Some("binary data of an unknown format"),
    };
    if text.contains('\0') {
        return Some("binary data of an unknown format");
    }
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let first = lines.find(|line| !line.starts_with("/*") && !line.starts_with('*'))?;
    WORDS.iter().find(|(word, _)| first.starts_with(word)).map(|(_, name)| *name)
}

/// Returns true for a binary LogGOPSim schedule: a magic number, the number of ranks, the highest CPU and NIC, and a
/// table. The table's first entry, counted from the end of the magic number, points directly behind the table.
fn is_loggopsim(start: &[u8]) -> bool {
    let word = |at: usize| start.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let ranks = start.get(8..12).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    match (word(0), ranks) {
        (Some(LOGGOPSIM), Some(ranks)) => ranks > 0 && word(14).is_none_or(|at| at == 6 + 16 * u64::from(ranks)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the start of a binary LogGOPSim schedule with `ranks` ranks.
    fn loggopsim(ranks: u32) -> Vec<u8> {
        let mut bytes = LOGGOPSIM.to_le_bytes().to_vec();
        bytes.extend(ranks.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend((6 + 16 * u64::from(ranks)).to_le_bytes());
        bytes
    }

    #[test]
    fn formats_are_known_by_magic_numbers_and_structure() {
        for (magic, name_of) in MAGICS {
            let mut bytes = magic.to_vec();
            bytes.resize(LENGTH, 0);
            assert_eq!(name(&bytes), Some(name_of));
        }
        for ranks in [1, 2, 1_024] {
            assert_eq!(name(&loggopsim(ranks)), Some(LOGGOPSIM_NAME));
        }
        let mut other = loggopsim(4);
        other[14] += 1;
        assert_eq!(name(&other), Some("binary data of an unknown format"));
        let mut tar = b"file".to_vec();
        tar.resize(257, 0);
        tar.extend(b"ustar\0");
        assert_eq!(name(&tar), Some("a tar archive"));
        assert_eq!(name(b""), None);
        assert_eq!(name(&[1, 2, 0, 200]), Some("binary data of an unknown format"));
    }

    #[test]
    fn formats_of_text_are_known_by_their_first_words() {
        let cases = [
            ("num_ranks 2\nrank 0 {", Some("a GOAL schedule in text")),
            ("// comment\n\n/* another */\n#include <x.h>", Some("a C source")),
            ("{\"a\": 1}", Some("a JSON file")),
            ("[[rule]]\n", Some("match-action rules in TOML")),
            ("some words\n", None),
            ("only an ellipsis …", None),
        ];
        for (text, expected) in cases {
            assert_eq!(name(text.as_bytes()), expected, "{text}");
        }
        let cut = &"words ü".as_bytes()[.."words ü".len() - 1];
        assert_eq!(name(cut), None);
    }
}
