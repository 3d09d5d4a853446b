// SPDX-License-Identifier: Apache-2.0
//! Tests fields, checksums, rules, and the message table.

use etherparse::{PacketBuilder, VlanId};
use packets::checksum::{checksums, renew};
use packets::field::{Field, Match};
use packets::frame::{Frame, Link};
use packets::matcher::{Fate, Matcher};
use packets::rules::{self, Action};
use proptest::prelude::*;

fn udp(source: [u8; 4], port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    builder.ipv4(source, [10, 9, 8, 7], 64).udp(4_000, port).write(&mut bytes, payload).unwrap();
    bytes
}

fn tcp6(flags: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ip =
        PacketBuilder::ethernet2([2; 6], [4; 6]).single_vlan(VlanId::try_new(77).unwrap()).ipv6([1; 16], [2; 16], 9);
    let tcp = ip.tcp(80, 443, 1, 1_024);
    let tcp = if flags == "fin" { tcp.fin() } else { tcp };
    tcp.write(&mut bytes, payload).unwrap();
    bytes
}

fn value(bytes: &[u8], name: &str) -> Option<u128> {
    Field::parse(name).unwrap().of(&Frame::parse(Link::Ethernet, bytes).unwrap())
}

#[test]
fn fields_have_the_values_of_the_packet() {
    let packet = udp([10, 0, 0, 1], 9_000, &[1, 2, 3, 4]);
    for (name, expected) in [
        ("eth.src", Some(0x0200_0000_0001)),
        ("eth.dst", Some(0x0200_0000_0002)),
        ("eth.type", Some(0x0800)),
        ("vlan.id", None),
        ("ip.src", Some(0x0a00_0001)),
        ("ip.dst", Some(0x0a09_0807)),
        ("ipv6.src", None),
        ("ip.proto", Some(17)),
        ("udp.srcport", Some(4_000)),
        ("udp.dstport", Some(9_000)),
        ("tcp.dstport", None),
        ("frame[12:2]", Some(0x0800)),
        ("payload[1:3]", Some(0x0002_0304)),
        ("payload[1:4]", None),
    ] {
        assert_eq!(value(&packet, name), expected, "{name}");
    }
    let packet = tcp6("fin", b"abc");
    for (name, expected) in [
        ("eth.type", Some(0x86dd)),
        ("vlan.id", Some(77)),
        ("ip.src", None),
        ("ipv6.src", Some(u128::from_be_bytes([1; 16]))),
        ("ipv6.dst", Some(u128::from_be_bytes([2; 16]))),
        ("ip.proto", Some(6)),
        ("tcp.srcport", Some(80)),
        ("tcp.dstport", Some(443)),
        ("tcp.flags", Some(1)),
        ("payload[0:2]", Some(0x6162)),
    ] {
        assert_eq!(value(&packet, name), expected, "{name}");
    }
}

#[test]
fn what_pads_a_short_packet_is_not_payload() {
    let mut packet = udp([10, 0, 0, 1], 9, b"hi");
    packet.resize(60, 0xee);
    let frame = Frame::parse(Link::Ethernet, &packet).unwrap();
    assert_eq!((frame.payload(), frame.header_bytes()), (&b"hi"[..], 42));
}

#[test]
fn headers_that_are_cut_off_are_an_error() {
    let packet = udp([10, 0, 0, 1], 9, b"hello");
    for length in 0..packet.len() {
        assert!(Frame::parse(Link::Ethernet, &packet[..length]).is_err(), "{length}");
    }
    assert!(Frame::parse(Link::Ip, &packet[14..]).is_ok());
    assert!(Frame::parse(Link::Ip, &packet).is_err(), "an Ethernet address is no IP header");
}

#[test]
fn masks_and_prefixes_select_bits() {
    let packet = udp([10, 1, 2, 3], 0x1234, b"");
    let frame = Frame::parse(Link::Ethernet, &packet).unwrap();
    for (name, text, holds) in [
        ("ip.src", "10.1.0.0/16", true),
        ("ip.src", "10.2.0.0/16", false),
        ("ip.src", "0.0.0.0/0", true),
        ("ip.src", "10.9.9.3/255.0.0.255", true),
        ("udp.dstport", "0x34/0xff", true),
        ("udp.dstport", "4660", true),
        ("eth.src", "02:00:00:00:00:01", true),
        ("ipv6.src", "fd00::/8", false),
    ] {
        assert_eq!(Match::parse(name, text).unwrap().holds(&frame), holds, "{name} {text}");
    }
    let error = |name, text| Match::parse(name, text).unwrap_err().to_string();
    assert_eq!(
        error("udp.dstport", "70000"),
        "'70000' is no value of 'udp.dstport', which has 16 bits; a value is a number like 80 or 0x50, with /MASK if only \
         some bits count"
    );
    assert!(error("ip.src", "10.0.0.1/33").starts_with("'10.0.0.1/33' is no value of 'ip.src'"));
    assert!(error("udp.port", "1").starts_with("there is no field 'udp.port'; fields are eth.src, "));
    assert!(error("frame[0:17]", "1").contains("1 to 16 bytes"));
}

#[test]
fn rules_are_read_and_mistakes_are_told_with_their_place() {
    let text = r#"
        [[rule]]
        match = { "udp.dstport" = 9000, "ip.src" = "10.0.0.0/8" }
        context = "kv"
        message = ["ip.src", "payload[0:4]"]
        header = { "payload[4:4]" = 0 }
        packets = 8
        transfer = "headers"

        [[rule]]
        action = "drop"
        priority = -1
    "#;
    let read = rules::read(text).unwrap();
    assert_eq!(read.len(), 2);
    let Action::Context(processing) = &read[0].action else { panic!("{:?}", read[0]) };
    assert_eq!((processing.context.as_str(), processing.end.packets, processing.message.len()), ("kv", Some(8), 2));
    assert_eq!((read[1].priority, &read[1].action), (-1, &Action::Drop));
    for (text, message) in [
        ("[[rule]]", "rule 1: it has neither context nor action"),
        ("[[rule]]\naction = 'send'", "rule 1: action is 'send'; it may be \"host\" or \"drop\""),
        ("[[rule]]\naction = 'host'\ncontext = 'a'", "rule 1: it has both context and action; a rule has one of them"),
        (
            "[[rule]]\naction = 'host'\npackets = 1",
            "rule 1: message, header, end, packets, bytes and transfer need a context",
        ),
        ("[[rule]]\ncontext = 'a'\npackets = 0", "rule 1: packets is 0; a message has at least one packet"),
        (
            "[[rule]]\ncontext = 'a'\ntransfer = -1",
            "rule 1: transfer is -1; it may be \"all\", \"headers\" or a number of bytes",
        ),
        (
            "[[rule]]\ncontext = 'a'\nmatch = { vlan.id = 1 }",
            "rule 1: match.\"vlan\" is { id = 1 }; it must be a number or a text",
        ),
    ] {
        assert_eq!(rules::read(text).unwrap_err().to_string(), message);
    }
    let unknown = rules::read("[[rule]]\ncontxt = 'a'").unwrap_err().to_string();
    assert!(unknown.contains("unknown field `contxt`") && unknown.contains("line 2"), "{unknown}");
}

/// Returns a packet of the application: message number, index within the message, number of packets.
fn part(message: u8, place: u8, of: u8) -> Vec<u8> {
    udp([10, 0, 0, message], 9_000, &[place, of])
}

fn matcher(more: &str, most_held: usize) -> Matcher<(u8, u8)> {
    let text = format!("[[rule]]\nmatch = {{ 'udp.dstport' = 9000 }}\ncontext = 'a'\nmessage = ['ip.src']\n{more}");
    Matcher::new(rules::read(&text).unwrap(), most_held)
}

/// Passes packets to the matcher, and returns the ready ones: message, index, first, last.
fn arrive(matcher: &mut Matcher<(u8, u8)>, packets: &[(u8, u8, u8)]) -> Vec<(u64, u8, bool, bool)> {
    let mut ready = Vec::new();
    for (message, place, of) in packets {
        let bytes = part(*message, *place, *of);
        matcher.arrive(&Frame::parse(Link::Ethernet, &bytes).unwrap(), (*message, *place));
        while let Some(next) = matcher.next_ready() {
            ready.push((next.message, next.packet.1, next.is_first, next.is_last));
        }
    }
    ready
}

#[test]
fn messages_get_numbers_of_their_own_and_their_last_packet_is_marked() {
    let mut matcher = matcher("packets = 2", 0);
    let ready = arrive(&mut matcher, &[(1, 0, 2), (2, 0, 2), (1, 1, 2), (2, 1, 2), (1, 0, 2)]);
    let expected =
        [(0, 0, true, false), (1, 0, true, false), (0, 1, false, true), (1, 1, false, true), (2, 0, true, false)];
    assert_eq!(ready, expected);
    assert_eq!(matcher.open(), 1);
    assert!(matcher.forget(2).is_empty());
    assert_eq!(arrive(&mut matcher, &[(1, 1, 2)]), [(3, 1, true, false)], "a late packet begins another message");
}

#[test]
fn packets_wait_for_their_header_packet() {
    let mut matcher = matcher("packets = 3\nheader = { 'payload[0:1]' = 0 }", 2);
    assert_eq!(arrive(&mut matcher, &[(1, 2, 3), (1, 1, 3)]), []);
    assert_eq!(matcher.held(), 2);
    let full = part(2, 1, 3);
    let fate = matcher.arrive(&Frame::parse(Link::Ethernet, &full).unwrap(), (2, 1));
    assert_eq!(fate, Fate::Overtook((2, 1)), "no third packet may wait");
    let ready = arrive(&mut matcher, &[(1, 0, 3)]);
    assert_eq!(ready, [(0, 0, true, false), (0, 2, false, false), (0, 1, false, true)]);
    assert_eq!((matcher.held(), matcher.open()), (0, 0));
}

#[test]
fn a_message_that_is_forgotten_gives_its_waiting_packets_back() {
    let mut matcher = matcher("header = { 'payload[0:1]' = 0 }", 9);
    assert_eq!(arrive(&mut matcher, &[(1, 2, 0), (2, 5, 0)]), []);
    assert_eq!(matcher.forget(1), [(2, 5)]);
    assert_eq!(matcher.held(), 1);
}

#[test]
fn a_message_ends_by_a_field_or_by_its_length() {
    let by_field = "end = { 'payload[0:1]' = 9 }";
    assert_eq!(arrive(&mut matcher(by_field, 0), &[(1, 0, 0), (1, 9, 0)]), [(0, 0, true, false), (0, 9, false, true)]);
    // Each packet has two payload bytes.
    let by_length = "bytes = 'payload[1:1]'";
    assert_eq!(arrive(&mut matcher(by_length, 0), &[(1, 0, 3), (1, 9, 3)]), [(0, 0, true, false), (0, 9, false, true)]);
    assert_eq!(arrive(&mut matcher(by_length, 0), &[(1, 0, 2)]), [(0, 0, true, true)]);
}

#[test]
fn the_rule_of_highest_priority_applies_and_what_no_rule_matches_goes_to_the_host() {
    let rules = "[[rule]]\nmatch = { 'ip.proto' = 17 }\ncontext = 'a'\n\
                 [[rule]]\nmatch = { 'ip.src' = '10.0.0.5' }\naction = 'drop'\npriority = 1";
    let mut matcher = Matcher::new(rules::read(rules).unwrap(), 0);
    let mut fate = |bytes: &[u8]| matcher.arrive(&Frame::parse(Link::Ethernet, bytes).unwrap(), ());
    assert_eq!(fate(&part(1, 0, 0)), Fate::Ready);
    assert_eq!(fate(&part(5, 0, 0)), Fate::Dropped(()));
    assert_eq!(fate(&tcp6("", b"")), Fate::Host(()));
}

#[test]
fn checksums_are_those_of_the_standards() {
    // RFC 1071 defines the checksum of every IPv4 header; this header is the example of Wikipedia's "IPv4 header
    // checksum": 0xb861.
    let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    let mut packet = header.to_vec();
    packet.extend([0, 53, 0, 53, 0, 0x5f, 0, 0]);
    packet.resize(0x73, 0);
    let found = checksums(&Frame::parse(Link::Ip, &packet).unwrap());
    assert_eq!((found[0].offset, found[0].found, found[0].expected), (10, 0xb861, 0xb861));
    assert!(found[1].is_good() && found[1].found == 0, "a UDP checksum over IPv4 may be left out: {:?}", found[1]);
    packet[11] ^= 1;
    renew(Link::Ip, &mut packet).unwrap();
    assert_eq!(packet[..20], header);
    assert_eq!(packet[26..28], [0, 0], "a checksum that was left out stays so");
}

proptest! {
    #[test]
    fn renewed_checksums_are_good_and_equal_those_of_a_packet_made_anew(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        source: [u8; 4],
        port: u16,
        is_tcp: bool,
        change in any::<prop::sample::Index>(),
    ) {
        let good = if is_tcp { tcp6("", &payload) } else { udp(source, port, &payload) };
        let sums = checksums(&Frame::parse(Link::Ethernet, &good).unwrap());
        prop_assert!(sums.iter().all(|sum| sum.found == sum.expected), "{sums:?}");
        let mut bytes = good.clone();
        let sum = sums[change.index(sums.len())];
        bytes[sum.offset] ^= 0x55;
        renew(Link::Ethernet, &mut bytes).unwrap();
        // A checksum that becomes 0 counts as omitted.
        prop_assert!(bytes == good || sum.found ^ 0x5500 == 0);
    }

    #[test]
    fn no_bytes_make_matching_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), is_ip: bool) {
        let link = if is_ip { Link::Ip } else { Link::Ethernet };
        if let Ok(frame) = Frame::parse(link, &bytes) {
            prop_assert!(frame.header_bytes() + frame.payload().len() <= bytes.len());
            checksums(&frame);
            for field in rules::FLOW {
                field.of(&frame);
            }
        }
    }

    #[test]
    fn every_packet_comes_out_once_and_each_header_before_its_message(order in Just(
        (0..4_u8).flat_map(|message| (0..5_u8).map(move |place| (message, place, 5))).collect::<Vec<_>>()
    ).prop_shuffle()) {
        let mut matcher = matcher("packets = 5\nheader = { 'payload[0:1]' = 0 }", 100);
        let ready = arrive(&mut matcher, &order);
        prop_assert_eq!(ready.len(), 20);
        for message in 0..4 {
            let places: Vec<_> = ready.iter().filter(|packet| packet.0 == message).collect();
            prop_assert_eq!(places.len(), 5);
            for (index, (_, place, is_first, is_last)) in places.into_iter().enumerate() {
                prop_assert_eq!((*place == 0, *is_first, *is_last), (index == 0, index == 0, index == 4));
            }
        }
        prop_assert_eq!((matcher.held(), matcher.open()), (0, 0));
    }
}

/// Contexts may have a weight, a priority and a watchdog; each must be the context of a rule.
#[test]
fn contexts_have_limits() {
    let rule = "[[rule]]\nmatch = { \"udp.dstport\" = 1 }\ncontext = \"a\"\n";
    let limits = |text: &str| packets::rules::limits(&format!("{rule}{text}"));
    let found = limits("[[context]]\nname = \"a\"\nweight = 3\nwatchdog_cycles = 500\n").unwrap();
    let expected = packets::rules::Limits { weight: 3, priority: 0, watchdog_cycles: Some(500) };
    assert_eq!(found.get("a"), Some(&expected));
    assert!(limits("").unwrap().is_empty());
    for (text, reason) in [
        ("[[context]]\nname = \"b\"\n", "context 1: no rule has the context \"b\""),
        ("[[context]]\nname = \"a\"\nweight = 0\n", "context 1: weight is 0; it must be at least 1"),
        ("[[context]]\nname = \"a\"\n[[context]]\nname = \"a\"\n", "context 2: \"a\" is there twice"),
    ] {
        assert_eq!(limits(text).unwrap_err().to_string(), reason);
    }
}
