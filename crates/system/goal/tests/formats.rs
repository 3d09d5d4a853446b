// SPDX-License-Identifier: Apache-2.0
//! Tests that errors name the format of files that are no schedules, and the location of mistakes in schedules.

use std::path::Path;

use goal::ReadError;

#[test]
fn files_of_other_kinds_are_named() {
    let cases: [(&[u8], &str); 5] = [
        (b"\x7fELF\x02\x01\x01", "an ELF program or library"),
        (b"\x1f\x8b\x08\0\0", "a file compressed by gzip"),
        (b"\xd4\xc3\xb2\xa1\x02\0", "a pcap capture"),
        (b"{\"schema\": 1}", "a JSON file"),
        (b"SQLite format 3\0", "an SQLite database"),
    ];
    for (bytes, format) in cases {
        let error = goal::read(&mut &*bytes, Path::new("x.bin")).unwrap_err();
        assert_eq!(error.to_string(), format!("x.bin: it is no schedule; it looks like {format}"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        assert!(matches!(goal::open(file.path()), Err(ReadError::Format { format: found, .. }) if found == format));
    }
}

#[test]
fn schedules_with_a_mistake_are_told_where_it_is() {
    for (text, expected) in [
        ("num_ranks 1\nrank 0 {\nl1: send\n}\n", "x.goal:4:1: expected size"),
        ("", "x.goal:1:1: expected num_ranks, found the end of the text"),
        ("some words", "x.goal:1:1: expected num_ranks"),
    ] {
        let error = goal::read(&mut text.as_bytes(), Path::new("x.goal")).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
