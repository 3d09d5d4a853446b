// SPDX-License-Identifier: Apache-2.0
//! Tests the generator: times, sizes, order, contents.

use packets::checksum::checksums;
use packets::field::Field;
use packets::frame::{Frame, Link};
use packets::generate::{Generator, LABEL_BYTES, Load, LoadError, Pace};
use proptest::prelude::*;

fn load() -> Load {
    Load { link: Link::Ethernet, messages: 3, packets: 2, sizes: vec![64], flows: 2, pace: Pace::default(), seed: 1 }
}

fn field(bytes: &[u8], name: &str) -> u128 {
    Field::parse(name).unwrap().of(&Frame::parse(Link::Ethernet, bytes).unwrap()).unwrap()
}

#[test]
fn flows_take_turns_and_send_their_messages_one_after_the_other() {
    let packets: Vec<_> = Generator::new(load()).unwrap().collect();
    let labels: Vec<_> = packets
        .iter()
        .map(|packet| {
            (field(&packet.bytes, "payload[0:4]"), field(&packet.bytes, "payload[4:4]"), field(&packet.bytes, "ip.src"))
        })
        .collect();
    let (first, second) = (0x0a00_0000, 0x0a00_0001);
    let expected = [(0, 0, first), (1, 0, second), (0, 1, first), (1, 1, second), (2, 0, first), (2, 1, first)];
    assert_eq!(labels, expected);
    assert!(packets.iter().all(|packet| field(&packet.bytes, "payload[8:4]") == 2));
}

#[test]
fn times_follow_rate_and_gaps_without_rounding_errors() {
    // 400 Gbit/s is 20 ps per byte. A third of that keeps its fractions as integer femtoseconds.
    let pace = Pace { fs_per_byte: 20_000, gap_ps: 0, message_gap_ps: 0 };
    let times = |pace| Generator::new(Load { flows: 1, pace, ..load() }).unwrap().map(|packet| packet.at_ps);
    assert_eq!(times(pace).collect::<Vec<_>>(), [0, 1_280, 2_560, 3_840, 5_120, 6_400]);
    let third = Pace { fs_per_byte: 6_667, ..pace };
    assert_eq!(times(third).last(), Some(5 * 64 * 6_667 / 1_000));
    let gaps = Pace { fs_per_byte: 0, gap_ps: 7, message_gap_ps: 100 };
    assert_eq!(times(gaps).collect::<Vec<_>>(), [0, 7, 114, 121, 228, 235]);
}

#[test]
fn sizes_outside_the_limits_are_refused() {
    let with = |sizes: Vec<u32>, flows| Generator::new(Load { sizes, flows, ..load() }).err();
    assert_eq!(with(vec![64, 53], 1), Some(LoadError::Size { size: 53, least: 54, most: 65_549 }));
    assert_eq!(with(vec![65_549], 1), None);
    assert_eq!(with(vec![65_550], 1), Some(LoadError::Size { size: 65_550, least: 54, most: 65_549 }));
    assert_eq!(with(vec![], 1), Some(LoadError::NoSize));
    assert_eq!(with(vec![64], 0), Some(LoadError::Flows(0)));
}

proptest! {
    #[test]
    fn packets_have_their_sizes_good_checksums_and_the_same_bytes_again(
        sizes in prop::collection::vec(28 + LABEL_BYTES..3_000, 1..4),
        seed: u64,
        packets in 1..6_u32,
    ) {
        let load = Load { link: Link::Ip, sizes: sizes.clone(), seed, packets, ..load() };
        let made: Vec<_> = Generator::new(load.clone()).unwrap().collect();
        prop_assert_eq!(made.len(), 3 * packets as usize);
        for packet in &made {
            let frame = Frame::parse(Link::Ip, &packet.bytes).unwrap();
            prop_assert!(checksums(&frame).iter().all(|sum| sum.found == sum.expected));
            let place = Field::parse("payload[4:4]").unwrap().of(&frame).unwrap() as usize;
            prop_assert_eq!(packet.bytes.len(), sizes[place % sizes.len()] as usize);
        }
        prop_assert_eq!(made, Generator::new(load).unwrap().collect::<Vec<_>>());
    }
}
