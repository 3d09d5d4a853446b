// SPDX-License-Identifier: Apache-2.0
//! Captures of packets, their headers, and match-action rules.

use packets::capture::{self, Format, Writer};
use packets::frame::{Frame, Link};
use packets::matcher::{Fate, Matcher};
use packets::rules;

/// Largest input of [`matching`] taken as one packet, in bytes.
const PACKET: usize = 96;
/// Separator between rules and packets.
const PACKETS: &[u8] = b"\n--packets\n";

/// Reads a capture, writes it, and reads the result again.
pub fn captures(bytes: &[u8]) {
    let Ok(read) = capture::read(bytes) else { return };
    let Some(link) = read.first().map(|packet| packet.link) else { return };
    for format in [Format::Pcap, Format::Pcapng] {
        let mut writer = Writer::new(Vec::new(), format, link).expect("a vector takes everything");
        // A pcap file has 32-bit seconds.
        let written = read.iter().filter(|packet| packet.time_ns < u64::from(u32::MAX) * 1_000_000_000);
        let written: Vec<_> =
            written.filter(|packet| writer.write(packet.time_ns, &packet.bytes, None).is_ok()).collect();
        let again = capture::read(&writer.finish()).expect("what was written can be read");
        assert_eq!(again.len(), written.len(), "{format:?}");
        for (one, other) in again.iter().zip(written) {
            assert_eq!((one.time_ns, &one.bytes), (other.time_ns, &other.bytes), "{format:?}");
        }
    }
}

/// Reads rules, and sorts the following packets into messages.
pub fn matching(bytes: &[u8]) {
    let place = bytes.windows(PACKETS.len()).position(|part| part == PACKETS).unwrap_or(bytes.len());
    let packets = bytes.get(place + PACKETS.len()..).unwrap_or_default();
    let Ok(text) = std::str::from_utf8(&bytes[..place]) else { return };
    let Ok(rules) = rules::read(text) else { return };
    let mut matcher = Matcher::new(rules, 3);
    let (mut arrived, mut out) = (0, 0);
    for (number, packet) in packets.chunks(PACKET).enumerate() {
        let link = if number % 2 == 0 { Link::Ip } else { Link::Ethernet };
        let Ok(frame) = Frame::parse(link, packet) else { continue };
        assert!(frame.header_bytes() + frame.payload().len() <= packet.len());
        arrived += 1;
        match matcher.arrive(&frame, number) {
            Fate::Ready | Fate::Held => {}
            Fate::Host(_) | Fate::Dropped(_) | Fate::Overtook(_) => out += 1,
        }
        while let Some(ready) = matcher.next_ready() {
            assert!(ready.transfer <= PACKET && ready.packet <= number);
            out += 1;
        }
    }
    assert_eq!(arrived, out + matcher.held(), "each packet has one fate");
    assert!(matcher.held() <= 3);
}
