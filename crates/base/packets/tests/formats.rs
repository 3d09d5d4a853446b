// SPDX-License-Identifier: Apache-2.0
//! Tests every variant that the capture formats allow: block kinds, byte orders, time units, options, link types, frame
//! check sequences, sections, and truncated or unknown parts. The files are built here, word by word.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use packets::capture::{CaptureError, Captured, read};
use packets::field::Field;
use packets::frame::{Frame, Link};

/// Builds a file in one byte order.
#[derive(Clone, Copy)]
struct Order {
    is_big: bool,
}

const ORDERS: [Order; 2] = [Order { is_big: false }, Order { is_big: true }];

/// Kinds of packet blocks with a time.
const ENHANCED: u32 = 6;
const OBSOLETE: u32 = 2;
const SIMPLE: u32 = 3;

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn i64(self, value: i64) -> [u8; 8] {
        if self.is_big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.u32(*word)).collect()
    }

    fn block(self, kind: u32, content: &[u8]) -> Vec<u8> {
        let length = content.len() as u32 + 12;
        [&self.words(&[kind, length])[..], content, &self.u32(length)].concat()
    }

    fn section(self) -> Vec<u8> {
        let content = [&self.u32(0x1a2b_3c4d)[..], &self.u16(1), &self.u16(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &content)
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.u16(code)[..], &self.u16(value.len() as u16), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn interface(self, link_type: u16, snap_length: u32, options: &[u8]) -> Vec<u8> {
        self.block(1, &[&self.u16(link_type)[..], &self.u16(0), &self.u32(snap_length), options].concat())
    }

    /// Returns a packet block of kind `kind` with whole packets; simple ones have neither time nor options.
    fn packet(self, kind: u32, interface: u16, units: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
        let length = bytes.len() as u32;
        let mut content = match kind {
            SIMPLE => self.words(&[length]),
            OBSOLETE => {
                let (interface, drops) = (self.u16(interface), self.u16(7));
                [&interface[..], &drops, &self.words(&[(units >> 32) as u32, units as u32, length, length])].concat()
            }
            _ => self.words(&[interface.into(), (units >> 32) as u32, units as u32, length, length]),
        };
        content.extend(bytes);
        content.resize(content.len().next_multiple_of(4), 0);
        if kind != SIMPLE {
            content.extend(options);
        }
        self.block(kind, &content)
    }

    fn pcap(self, link_word: u32, packets: &[&[u8]]) -> Vec<u8> {
        let version = [self.u16(2), self.u16(4)].concat();
        let mut file = [&self.u32(0xa1b2_c3d4)[..], &version, &self.words(&[0, 0, 65_535, link_word])].concat();
        for bytes in packets {
            let length = bytes.len() as u32;
            file.extend(self.words(&[1, 2, length, length]));
            file.extend(*bytes);
        }
        file
    }
}

/// Returns an IPv4 UDP packet to port 9.
fn udp() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 7, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
    packet
}

/// Returns resolution codes of `if_tsresol`: the units per second as `(base, exponent)`.
fn resolutions() -> Vec<(Option<u8>, u128, u32)> {
    let mut all = vec![(None, 10, 6)];
    all.extend((0..=38).map(|exponent| (Some(exponent), 10, exponent.into())));
    all.extend((0..=127).map(|exponent| (Some(0x80 | exponent), 2, exponent.into())));
    all
}

/// Returns a time in nanoseconds, by the definition of the format; `None` outside the range of 64 bits of nanoseconds
/// since 1970.
fn nanoseconds(units: u64, base: u128, exponent: u32, offset_s: i64) -> Option<u64> {
    let per_second = base.pow(exponent);
    let units = u128::from(units);
    let whole = (units / per_second) as i128 + i128::from(offset_s);
    let rest = units % per_second * 1_000_000_000 / per_second;
    u64::try_from(whole.checked_mul(1_000_000_000)? + rest as i128).ok()
}

#[test]
fn times_follow_block_kind_byte_order_resolution_offset_and_options() {
    let bytes = [1, 2, 3, 4, 5];
    let (mut read_times, mut refused) = (0, 0);
    for order in ORDERS {
        for (code, base, exponent) in resolutions() {
            for offset in [None, Some(0), Some(-1), Some(1_700_000_000)] {
                let mut options = order.option(2, b"eth0");
                options.extend(code.map_or(Vec::new(), |code| order.option(9, &[code])));
                options.extend(offset.map_or(Vec::new(), |seconds: i64| order.option(14, &order.i64(seconds))));
                options.extend(order.option(0x8bad, &[1, 2, 3]));
                for end in [&[][..], &[0; 4]] {
                    let interface = order.interface(1, 0, &[&options[..], end].concat());
                    for kind in [ENHANCED, OBSOLETE] {
                        // The halves of the time differ, so that swapping them is detected.
                        let units = 0x0000_0003_8d7e_1234;
                        let packet_options =
                            [[order.option(1, b"why"), order.option(2, &order.u32(1))].concat(), end.to_vec()].concat();
                        let packet = order.packet(kind, 0, units, &bytes, &packet_options);
                        let file = [order.section(), interface.clone(), packet].concat();
                        let case = format!("big {}, code {code:?}, offset {offset:?}, kind {kind}", order.is_big);
                        match nanoseconds(units, base, exponent, offset.unwrap_or(0)) {
                            Some(time_ns) => {
                                let expected = Captured { time_ns, link: Link::Ethernet, bytes: bytes.to_vec() };
                                assert_eq!(read(&file).expect(&case), [expected], "{case}");
                                read_times += 1;
                            }
                            None => {
                                let error = read(&file).unwrap_err().to_string();
                                assert!(error.ends_with("its time lies outside the years 1970 to 2554"), "{error}");
                                refused += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(read_times > 4_000 && refused > 100, "{read_times} {refused}");
}

#[test]
fn units_below_any_clock_are_read_as_the_nanosecond_in_which_they_lie() {
    for order in ORDERS {
        for code in [39, 100, 127] {
            let options = order.option(9, &[code]);
            let packet = order.packet(ENHANCED, 0, u64::MAX, &[1], &[]);
            let file = [order.section(), order.interface(1, 0, &options), packet].concat();
            assert_eq!(read(&file).unwrap()[0].time_ns, 0);
        }
    }
}

#[test]
fn the_captures_of_known_tools_are_read() {
    // A packet in October 2025 in microseconds: the halves of the time are 0x00063e9c and 0x2a8f1d40.
    let units = 0x0006_3e9c_2a8f_1d40;
    for order in ORDERS {
        let packet = order.packet(OBSOLETE, 0, units, &udp(), &[]);
        let file = [order.section(), order.interface(101, 65_535, &[]), packet].concat();
        assert_eq!(read(&file).unwrap()[0].time_ns, units * 1_000);
    }
}

#[test]
fn simple_packets_are_cut_where_the_interface_cuts_them_and_have_the_time_before() {
    for order in ORDERS {
        let before = order.packet(ENHANCED, 0, 5, &[9; 6], &[]);
        let simple = order.packet(SIMPLE, 0, 0, &[7, 8, 9], &[]);
        let file = [order.section(), order.interface(1, 0, &[]), simple.clone(), before, simple].concat();
        let seen: Vec<_> = read(&file).unwrap().into_iter().map(|packet| (packet.time_ns, packet.bytes)).collect();
        assert_eq!(seen, [(0, vec![7, 8, 9]), (5_000, vec![9; 6]), (5_000, vec![7, 8, 9])]);
        // Five bytes on the wire, two of them captured.
        let cut = order.block(SIMPLE, &[&order.words(&[5])[..], &[1, 2, 0, 0]].concat());
        let file = [order.section(), order.interface(1, 2, &[]), cut].concat();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains("has only 2 of its 5 bytes; capture whole packets"), "{error}");
    }
}

#[test]
fn sections_and_interfaces_have_their_own_order_unit_and_link_type() {
    let [little, big] = ORDERS;
    let mut file = Vec::new();
    for order in [little, big, little] {
        file.extend(order.section());
        file.extend(order.interface(1, 0, &[]));
        file.extend(order.interface(101, 0, &order.option(9, &[9])));
        file.extend(order.packet(ENHANCED, 1, 5, &udp(), &[]));
        file.extend(order.packet(OBSOLETE, 0, 5, &[1; 14], &[]));
        file.extend(order.packet(SIMPLE, 0, 0, &[2; 14], &[]));
    }
    let seen: Vec<_> = read(&file).unwrap().into_iter().map(|packet| (packet.time_ns, packet.link)).collect();
    let section = [(5, Link::Ip), (5_000, Link::Ethernet), (5_000, Link::Ethernet)];
    assert_eq!(seen, section.repeat(3));
    // The interfaces of a section end with the section.
    file.extend(little.section());
    file.extend(little.packet(ENHANCED, 0, 5, &[1; 14], &[]));
    let error = read(&file).unwrap_err().to_string();
    assert!(error.ends_with("its section has no interface 0") && error.starts_with("packet 10, at byte "), "{error}");
}

#[test]
fn blocks_of_other_kinds_are_skipped() {
    for order in ORDERS {
        let mut file = order.section();
        // Names, statistics, secrets, custom blocks, and an unknown block; the last is empty.
        for kind in [4, 5, 10, 0xbad, 0x4000_0bad, 0x7777_7777] {
            file.extend(order.block(kind, &[0xaa; 24]));
        }
        file.extend(order.block(0x7777_7778, &[]));
        file.extend(order.interface(101, 0, &[]));
        file.extend(order.packet(ENHANCED, 0, 1, &udp(), &[]));
        file.extend(order.block(5, &[0; 16]));
        assert_eq!(read(&file).unwrap(), [Captured { time_ns: 1_000, link: Link::Ip, bytes: udp() }]);
    }
}

#[test]
fn a_file_cut_anywhere_has_its_whole_packets_or_says_where_it_ends() {
    for order in ORDERS {
        let blocks = [
            order.section(),
            order.interface(101, 0, &order.option(9, &[9])),
            order.packet(ENHANCED, 0, 1, &udp(), &order.option(1, b"one")),
            order.packet(OBSOLETE, 0, 2, &udp(), &[]),
            order.packet(SIMPLE, 0, 0, &udp(), &[]),
        ];
        let file = blocks.concat();
        let mut starts = vec![0];
        blocks.iter().for_each(|block| starts.push(starts.last().unwrap() + block.len()));
        for end in 4..file.len() {
            match read(&file[..end]) {
                Ok(packets) => {
                    let whole = starts.iter().position(|start| *start == end).expect("a cut between blocks");
                    assert_eq!(packets.len(), whole.saturating_sub(2));
                }
                Err(CaptureError::Truncated { packet, offset }) => {
                    let block = starts.iter().rposition(|start| *start <= end).unwrap();
                    assert_eq!((offset, packet), (starts[block], block.saturating_sub(2) + 1), "{end}");
                }
                // Without the byte-order magic, the byte order of the first block is unknown.
                Err(other) => panic!("{end}: {other}"),
            }
        }
    }
}

#[test]
fn blocks_that_contradict_themselves_are_refused_with_the_place() {
    let refused = |file: &[u8], reason: &str| {
        let error = read(file).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    for order in ORDERS {
        let start = [order.section(), order.interface(1, 0, &[])].concat();
        let with = |block: Vec<u8>| [start.clone(), block].concat();
        let good = order.packet(ENHANCED, 0, 1, &[1; 14], &[]);
        let mut uneven = good.clone();
        uneven[4..8].copy_from_slice(&order.u32(46));
        refused(
            &with(uneven),
            "packet 1, at byte 48: the block has 46 bytes; blocks have at least 12, and a multiple of 4",
        );
        let mut ends = good.clone();
        let last = ends.len() - 4;
        ends[last..].copy_from_slice(&order.u32(40));
        refused(&with(ends), "the block has 48 bytes by its beginning, and 40 by its end");
        let mut long = good;
        long[20..24].copy_from_slice(&order.u32(500));
        refused(&with(long), "it has 500 bytes, of which 16 are in its block");
        refused(
            &with(order.packet(ENHANCED, 0, 1, &[1; 14], &order.option(1, b"four")[..4])),
            "its option 1 has 4 bytes, of which 0",
        );
        refused(&with(order.block(ENHANCED, &[0; 8])), "its block is too short");
        let options = order.option(9, &[9, 9]);
        refused(
            &[order.section(), order.interface(1, 0, &options)].concat(),
            "its option if_tsresol has 2 bytes, not 1",
        );
        let mut version = order.section();
        version[12..14].copy_from_slice(&order.u16(2));
        refused(&version, "its pcapng version is 2.0; versions 1.x are known");
        let mut magic = order.section();
        magic[8] ^= 0xff;
        refused(&magic, "its byte-order magic is [");
    }
}

/// Returns a packet with the header of each link type, and the expected result of reading it.
fn linked() -> Vec<(u16, Vec<u8>, Link, Vec<u8>)> {
    let arp = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 12, 17, 64];
    ipv6.extend([0xfd; 32]);
    ipv6.extend([0, 7, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
    let with = |header: &[u8], packet: &[u8]| [header, packet].concat();
    let cooked = |protocol: [u8; 2]| [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0][..], &protocol].concat();
    let cooked2 = |protocol: [u8; 2]| [&protocol[..], &[0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 1, 0, 0]].concat();
    let ethernet = with(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], &udp());
    let mut all = vec![(1, ethernet.clone(), Link::Ethernet, ethernet)];
    for kind in [12, 14, 101, 228] {
        all.push((kind, udp(), Link::Ip, udp()));
    }
    all.push((229, ipv6.clone(), Link::Ip, ipv6.clone()));
    for (kind, header) in [(113, cooked as fn([u8; 2]) -> Vec<u8>), (276, cooked2)] {
        all.push((kind, with(&header([8, 0]), &udp()), Link::Ip, udp()));
        all.push((kind, with(&header([0x86, 0xdd]), &ipv6), Link::Ip, ipv6.clone()));
        all.push((kind, with(&header([8, 6]), &arp), Link::Payload(0x0806), arp.clone()));
    }
    for family in [2_u32, 10, 24, 28, 30] {
        let packet = if family == 2 { udp() } else { ipv6.clone() };
        all.push((108, with(&family.to_be_bytes(), &packet), Link::Ip, packet.clone()));
        // The capturing host's byte order, which may differ from the file's.
        all.push((0, with(&family.to_le_bytes(), &packet), Link::Ip, packet.clone()));
        all.push((0, with(&family.to_be_bytes(), &packet), Link::Ip, packet));
    }
    all.push((0, with(&7_u32.to_le_bytes(), &[1, 2, 3]), Link::Payload(0), vec![1, 2, 3]));
    all
}

#[test]
fn link_types_are_read_in_both_formats_plain_and_compressed() {
    for order in ORDERS {
        for (kind, packet, link, bytes) in linked() {
            let captured = |time_ns| [Captured { time_ns, link, bytes: bytes.clone() }];
            let interface = order.interface(kind, 0, &[]);
            let next = [order.section(), interface, order.packet(ENHANCED, 0, 3, &packet, &[])].concat();
            for (file, time_ns) in [(order.pcap(kind.into(), &[&packet]), 1_000_002_000), (next, 3_000)] {
                assert_eq!(read(&file).unwrap(), captured(time_ns), "{kind}");
                let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
                compressed.write_all(&file).unwrap();
                assert_eq!(read(&compressed.finish().unwrap()).unwrap(), captured(time_ns), "{kind}");
            }
            let frame = Frame::parse(link, &bytes).unwrap();
            if link != Link::Payload(0x0806) && link != Link::Payload(0) {
                assert_eq!(Field::UdpDestination.of(&frame), Some(9), "{kind}");
            }
        }
    }
}

#[test]
fn headers_of_link_types_that_are_cut_off_are_told() {
    for (kind, needs) in [(0, 4), (108, 4), (113, 16), (276, 20)] {
        let error = read(&ORDERS[0].pcap(kind, &[&vec![0; needs - 1]])).unwrap_err().to_string();
        let expected = format!("it has {} bytes; the header of link type {kind} has {needs}", needs - 1);
        assert!(error.ends_with(&expected), "{error}");
    }
    let error = read(&ORDERS[0].pcap(105, &[&[0; 9]])).unwrap_err().to_string();
    let known = "known are 1 (Ethernet), 101, 228 and 229 (IP), 113 and 276 (Linux cooked), 0 and 108 (loopback)";
    assert_eq!(error, format!("packet 1, at byte 24: its link type is 105; {known}"));
}

#[test]
fn frame_check_sequences_are_no_part_of_packets() {
    let packet = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 8, 0, 0xaa, 0xbb, 0xf1, 0xf2, 0xf3, 0xf4];
    for order in ORDERS {
        // Two 16-bit words, and the flag for them; other bits of the upper half are reserved.
        for (word, rest) in
            [(2 << 28 | 1 << 26 | 1, 4), (2 << 28 | 1, 0), (1 << 28 | 1 << 26 | 1, 2), (0x03ff << 16 | 1, 0)]
        {
            let packets = read(&order.pcap(word, &[&packet])).unwrap();
            assert_eq!(packets[0].bytes, packet[..packet.len() - rest], "{word:#x}");
        }
        let file = |interface: &[u8], options: &[u8]| {
            let packet = order.packet(ENHANCED, 0, 1, &packet, options);
            [order.section(), order.interface(1, 0, interface), packet].concat()
        };
        let flags = |bytes: u32| order.option(2, &order.u32(1 | bytes << 5));
        let (bits, bytes) = (order.option(13, &[32]), order.option(13, &[4]));
        // A packet's flags override the interface, unless they declare the length unknown.
        let cases = [
            (&bits[..], vec![], 4),
            (&bytes[..], vec![], 4),
            (&[][..], flags(4), 4),
            (&bits[..], flags(2), 2),
            (&bits[..], flags(0), 4),
        ];
        for (interface, options, rest) in cases {
            let packets = read(&file(interface, &options)).unwrap();
            assert_eq!(packets[0].bytes, packet[..packet.len() - rest]);
        }
        let error = read(&order.pcap(2 << 28 | 1 << 26 | 1, &[&[1, 2, 3]])).unwrap_err().to_string();
        assert!(error.ends_with("its 3 bytes end with a frame check sequence of 4"), "{error}");
    }
}

#[test]
fn compressed_files_that_are_damaged_are_told() {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(&ORDERS[0].pcap(101, &[&udp()])).unwrap();
    let compressed = compressed.finish().unwrap();
    let error = read(&compressed[..compressed.len() - 9]).unwrap_err();
    assert!(matches!(error, CaptureError::Gzip(_)), "{error}");
    let mut inner = GzEncoder::new(Vec::new(), Compression::default());
    inner.write_all(b"no packets").unwrap();
    let error = read(&inner.finish().unwrap()).unwrap_err().to_string();
    assert_eq!(
        error,
        "uncompressed, it is neither a pcap nor a pcapng file: it begins with the bytes [6e, 6f, 20, 70]"
    );
}
