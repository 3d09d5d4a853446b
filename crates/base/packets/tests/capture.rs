// SPDX-License-Identifier: Apache-2.0
//! Tests capture files: written files match the formats byte by byte, and reading returns the captured packets.

use packets::capture::{CaptureError, Captured, Format, Writer, read};
use packets::frame::Link;
use proptest::prelude::*;

fn write(format: Format, link: Link, packets: &[(u64, &[u8], Option<&str>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), format, link).unwrap();
    for (time, bytes, comment) in packets {
        writer.write(*time, bytes, *comment).unwrap();
    }
    writer.finish()
}

fn words(words: &[u32], to_bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    words.iter().flat_map(|word| to_bytes(*word)).collect()
}

/// Returns a pcapng file of one interface: its options, and one enhanced packet block of the five bytes 1 to 5.
fn pcapng(to_bytes: fn(u32) -> [u8; 4], link: u32, options: &[u8], time: u64) -> Vec<u8> {
    let halves = |low: u32, high: u32| if to_bytes(1)[0] == 1 { low | high << 16 } else { low << 16 | high };
    let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, halves(1, 0), u32::MAX, u32::MAX, 28], to_bytes);
    let length = 20 + options.len() as u32;
    file.extend(words(&[1, length, halves(link, 0), 0], to_bytes));
    file.extend(options);
    file.extend(words(&[length], to_bytes));
    file.extend(words(&[6, 40, 0, (time >> 32) as u32, time as u32, 5, 5], to_bytes));
    file.extend([1, 2, 3, 4, 5, 0, 0, 0]);
    file.extend(words(&[40], to_bytes));
    file
}

/// Returns an interface option with a value of one or eight bytes, and the end of the options.
fn option(to_bytes: fn(u32) -> [u8; 4], code: u32, value: &[u8]) -> Vec<u8> {
    let length = value.len() as u32;
    let head = if to_bytes(1)[0] == 1 { code | length << 16 } else { code << 16 | length };
    let mut bytes = to_bytes(head).to_vec();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn a_pcap_file_is_written_byte_by_byte_as_the_format_says() {
    let file = write(Format::Pcap, Link::Ethernet, &[(1_000_000_007, &[9, 8, 7], Some("only in pcapng"))]);
    // Nanoseconds, version 2.4, no time zone, no accuracy, maximum packet size, Ethernet.
    let mut expected = words(&[0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 262_144, 1], u32::to_le_bytes);
    expected.extend(words(&[1, 7, 3, 3], u32::to_le_bytes));
    expected.extend([9, 8, 7]);
    assert_eq!(file, expected);
}

#[test]
fn a_pcapng_file_is_written_byte_by_byte_as_the_format_says() {
    let file = write(Format::Pcapng, Link::Ip, &[(0x1_0000_0002, &[9, 8, 7], Some("late"))]);
    let mut expected = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28], u32::to_le_bytes);
    // Link type 101 is raw IP; the option if_tsresol (9) has one byte, 10^-9.
    expected.extend(words(&[1, 32, 101, 262_144, 9 | 1 << 16, 9, 0, 32], u32::to_le_bytes));
    // An enhanced packet block of interface 0 with a comment (1) of four bytes.
    expected.extend(words(&[6, 48, 0, 1, 2, 3, 3], u32::to_le_bytes));
    expected.extend([9, 8, 7, 0]);
    expected.extend(words(&[1 | 4 << 16], u32::to_le_bytes));
    expected.extend(b"late");
    expected.extend(words(&[0, 48], u32::to_le_bytes));
    assert_eq!(file, expected);
}

#[test]
fn the_format_follows_the_name() {
    assert_eq!(Format::of("a/out.PCAP".as_ref()), Format::Pcap);
    assert_eq!(Format::of("out.pcapng".as_ref()), Format::Pcapng);
    assert_eq!(Format::of("out".as_ref()), Format::Pcapng);
}

#[test]
fn pcap_files_of_both_byte_orders_and_both_resolutions_are_read() {
    for to_bytes in [u32::to_le_bytes, u32::to_be_bytes] {
        for (magic, fraction, nanoseconds) in [(0xa1b2_c3d4, 5, 5_000), (0xa1b2_3c4d, 5, 5)] {
            let version = if to_bytes(1)[0] == 1 { 2 | 4 << 16 } else { 2 << 16 | 4 };
            let mut file = words(&[magic, version, 0, 0, 65_535, 101, 3, fraction, 2, 2], to_bytes);
            file.extend([0x45, 0]);
            let packet = Captured { time_ns: 3_000_000_000 + nanoseconds, link: Link::Ip, bytes: vec![0x45, 0] };
            assert_eq!(read(&file).unwrap(), [packet]);
        }
    }
}

#[test]
fn a_packet_longer_than_the_snap_length_of_the_file_is_told() {
    let mut file = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 2, 1, 0, 0, 2, 1_500], u32::to_le_bytes);
    file.extend([1, 2]);
    let error = read(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        "packet 1, at byte 24: the capture has only 2 of its 1500 bytes; capture whole packets (tcpdump -s 0)"
    );
}

#[test]
fn pcapng_times_follow_resolution_and_offset_of_the_interface() {
    let nine = 9_u64;
    for to_bytes in [u32::to_le_bytes, u32::to_be_bytes] {
        let offset = if to_bytes(1)[0] == 1 { (-1_i64).to_le_bytes() } else { (-1_i64).to_be_bytes() };
        // The default unit is a microsecond; 0x8a is 2^-10 s, 12 is a picosecond.
        let cases: [(Vec<u8>, u64, u64); 5] = [
            (vec![], nine, 9_000),
            (option(to_bytes, 9, &[9]), nine, nine),
            (option(to_bytes, 9, &[12]), 1_999, 1),
            (option(to_bytes, 9, &[0x8a]), 1_024 + 512, 1_500_000_000),
            (option(to_bytes, 14, &offset), 1_000_002, 2_000),
        ];
        for (options, time, nanoseconds) in cases {
            let packets = read(&pcapng(to_bytes, 1, &options, time)).unwrap();
            let expected = Captured { time_ns: nanoseconds, link: Link::Ethernet, bytes: vec![1, 2, 3, 4, 5] };
            assert_eq!(packets, [expected], "{options:?}");
        }
    }
}

#[test]
fn sections_of_different_byte_orders_have_interfaces_of_their_own() {
    let mut file = pcapng(u32::to_le_bytes, 1, &[], 1);
    file.extend(pcapng(u32::to_be_bytes, 228, &option(u32::to_be_bytes, 9, &[9]), 1));
    // A simple packet block: packet length, bytes, padding; it gets the time of the packet before.
    file.extend(words(&[3, 20, 3], u32::to_be_bytes));
    file.extend([7, 7, 7, 0]);
    file.extend(20_u32.to_be_bytes());
    let packets = read(&file).unwrap();
    let seen: Vec<_> = packets.iter().map(|packet| (packet.time_ns, packet.link, packet.bytes.len())).collect();
    assert_eq!(seen, [(1_000, Link::Ethernet, 5), (1, Link::Ip, 5), (1, Link::Ip, 3)]);
}

#[test]
fn files_that_cannot_be_used_are_told_with_the_place() {
    let good = write(Format::Pcap, Link::Ethernet, &[(0, &[1; 60], None), (1, &[2; 60], None)]);
    assert_eq!(
        read(b"GIF89a").unwrap_err().to_string(),
        "it is neither a pcap nor a pcapng file: it begins with the bytes [47, 49, 46, 38] and looks like a GIF picture"
    );
    assert_eq!(read(b"").unwrap_err().to_string(), "it is neither a pcap nor a pcapng file: it has 0 bytes");
    let cut = read(&good[..good.len() - 1]).unwrap_err();
    assert!(matches!(cut, CaptureError::Truncated { packet: 2, offset: 100 }), "{cut}");
    let mut wifi = good.clone();
    wifi[20] = 105;
    assert_eq!(
        read(&wifi).unwrap_err().to_string(),
        "packet 1, at byte 24: its link type is 105; known are 1 (Ethernet), 101, 228 and 229 (IP), 113 and 276 (Linux cooked), \
         0 and 108 (loopback)"
    );
    let next_generation = pcapng(u32::to_le_bytes, 1, &[], 0);
    let cut = read(&next_generation[..next_generation.len() - 4]).unwrap_err();
    assert!(matches!(cut, CaptureError::Truncated { packet: 1, offset: 48 }), "{cut}");
    let without_interface: Vec<u8> = [&next_generation[..28], &next_generation[48..]].concat();
    assert_eq!(
        read(&without_interface).unwrap_err().to_string(),
        "packet 1, at byte 28: its section has no interface 0"
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        packets in prop::collection::vec((0..4_000_000_000_000_000_000_u64, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
        is_pcap: bool,
        is_ip: bool,
    ) {
        let link = if is_ip { Link::Ip } else { Link::Ethernet };
        let format = if is_pcap { Format::Pcap } else { Format::Pcapng };
        let given: Vec<_> = packets.iter().map(|(time, bytes)| (*time, &bytes[..], Some("text"))).collect();
        let back = read(&write(format, link, &given)).unwrap();
        let expected: Vec<_> = packets.into_iter().map(|(time_ns, bytes)| Captured { time_ns, link, bytes }).collect();
        prop_assert_eq!(back, expected);
    }

    #[test]
    fn no_file_makes_reading_panic(
        is_big: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let to_bytes = if is_big { u32::to_be_bytes } else { u32::to_le_bytes };
        let mut file = pcapng(to_bytes, 1, &option(to_bytes, 9, &[9]), 77);
        file.extend(write(Format::Pcap, Link::Ethernet, &[(1, &[1; 40], None)]));
        for (place, value) in changes {
            let place = place.index(file.len());
            file[place] = value;
        }
        let _ = read(&file[..cut.index(file.len() + 1)]);
    }
}
