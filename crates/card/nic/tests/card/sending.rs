// SPDX-License-Identifier: Apache-2.0
//! Long messages: departures of their packets, and the amount of data on the card.

use abi::portals::{AckReq, CT_NONE, EQ_NONE, Md, md, me};
use sim::Time;

use crate::rig::{NI, Rig, append, bind, network, target};

const FROM: u64 = 0x10_0000;
const TO: u64 = 0x80_0000;

/// Returns the departures of a put of `bytes` behind one of 100 bytes, by hand: the data of both passes the DMA engine
/// back to back at 6.7 ps per byte, with two latencies of 50 ns; the port takes 20 ps per byte, and at least 6.7 ns for
/// a first packet.
fn departures(bytes: u64) -> Vec<(Time, usize, u64)> {
    let up = |fs: u64| Time::from_ps(fs.div_ceil(1000));
    let (mut free, mut fetched, mut out) = (0, 0, Vec::new());
    for length in [100, bytes] {
        for offset in (0..length).step_by(4096) {
            let packet = (length - offset).min(4096);
            fetched += packet * 6_700;
            let ready = up(fetched).as_ps() * 1000 + 100_000_000;
            let start = std::cmp::max(free, ready);
            let gap = if offset == 0 { 6_700_000 } else { 0 };
            free = start + std::cmp::max(packet * 20_000, gap);
            out.push((up(start), packet as usize, offset));
        }
    }
    out
}

/// Returns departure time, bytes and offset of each packet.
fn left(rig: &Rig) -> Vec<(Time, usize, u64)> {
    rig.around.departures.iter().map(|left| (left.at, left.packet.data.len(), left.packet.offset)).collect()
}

#[test]
fn packets_leave_when_data_and_port_are_there() {
    for bytes in [1, 4096, 4097, 300_000, 1_500_003] {
        let mut rig = network(2, &[]);
        append(&mut rig, 1, NI, TO, 1 << 21, me::EVENT_COMM_DISABLE, CT_NONE);
        rig.around.fill(0, FROM, bytes);
        let (small, md) = (bind(&mut rig, 0, FROM, 100, CT_NONE), bind(&mut rig, 0, FROM, bytes, CT_NONE));
        rig.put(0, small, 100, AckReq::None, target(1, 0));
        rig.put(0, md, bytes, AckReq::None, target(1, 200));
        rig.run();
        assert_eq!(left(&rig), departures(bytes), "{bytes}");
        let expected: Vec<u8> = (FROM..FROM + bytes).map(|at| at as u8 | 1).collect();
        assert!(rig.around.load(1, TO + 200, bytes) == expected, "{bytes}");
    }
}

/// A packet's data is read before it leaves, but not long before. A byte in the middle of a message that changes after
/// its last possible read arrives with its old value; one that changes well before arrives with its new value.
#[test]
fn a_long_message_is_read_as_it_leaves() {
    let bytes = 1 << 22;
    let end = departures(bytes).last().unwrap().0;
    let ahead = Time::from_ps(64 * 4096 * 20);
    for (early, seen) in [(ahead * 3, 2), (Time::from_ps(1), 1)] {
        let mut rig = network(2, &[]);
        append(&mut rig, 1, NI, TO, bytes, 0, CT_NONE);
        let (last, md) = (FROM + bytes - 1, bind(&mut rig, 0, FROM, bytes, CT_NONE));
        rig.around.store(0, last, &[1]);
        rig.put(0, md, bytes, AckReq::None, target(1, 0));
        rig.run_until(end - early);
        rig.around.store(0, last, &[2]);
        rig.run();
        assert_eq!(rig.around.load(1, TO + bytes - 1, 1), [seen], "{early}");
        // At most 64 of the 1024 packets are being fetched, and 192 are read; each may be an event of both cards.
        assert!(rig.most_events < 600, "{}", rig.most_events);
    }
}

/// Missing memory is detected when it is read, and reported in every packet from then on.
#[test]
fn memory_that_is_missing_in_the_middle_fails_the_operation() {
    let mut rig = network(2, &[]);
    let near = rig.counter(0, NI);
    append(&mut rig, 1, NI, TO, 1 << 21, 0, CT_NONE);
    rig.around.missing = Some(FROM + 1_000_000);
    let md = bind(&mut rig, 0, FROM, 2_000_000, near);
    rig.put(0, md, 1_500_000, AckReq::Ct, target(1, 0));
    rig.run();
    assert_eq!(rig.count(0, near), (0, 1));
    assert!(rig.around.warnings[0].ends_with("is not accessible"), "{:?}", rig.around.warnings);
}

/// An entry or descriptor that extends beyond the end of memory ends there, without wrapping to the start.
#[test]
fn memory_does_not_begin_again_at_its_end() {
    let mut rig = network(2, &[]);
    let near = rig.counter(0, NI);
    append(&mut rig, 1, NI, TO, u64::MAX, 0, CT_NONE);
    rig.around.fill(0, FROM, 100);
    let md = bind(&mut rig, 0, FROM, u64::MAX, near);
    for offset in [u64::MAX - 7, u64::MAX, TO.wrapping_neg() - 8, 0] {
        rig.put(0, md, 16, AckReq::Ct, target(1, offset));
    }
    rig.run();
    assert_eq!(rig.count(0, near), (4, 0), "what does not fit is cut off");
    let at: Vec<(u64, u64)> = rig.around.writes.iter().map(|write| (write.start, write.bytes)).collect();
    assert_eq!(at, [(u64::MAX - 7, 8), (TO, 16)]);
    let beyond = rig.cards[0].portals_mut().put(md, u64::MAX - FROM, 16, AckReq::None as u64, target(1, 0));
    assert!(beyond.is_err());
    let all = bind(&mut rig, 0, 0, u64::MAX, CT_NONE);
    assert!(rig.cards[0].portals_mut().put(all, FROM, 16, AckReq::None as u64, target(1, 0)).is_ok());
}

/// Blocked packets wait in the card, and their data in host memory: each leaves with the data at its admission, and
/// SEND follows the last of them.
#[test]
fn blocked_packets_wait_with_their_data_in_host_memory() {
    let mut rig = network(2, &[]);
    let near = rig.counter(0, NI);
    append(&mut rig, 1, NI, TO, 1 << 21, 0, CT_NONE);
    let md = Md { options: md::EVENT_CT_SEND, ct_handle: near, ..plain(FROM, 10_000) };
    let md = rig.bind(0, NI, md);
    rig.is_full = true;
    rig.put(0, md, 10_000, AckReq::None, target(1, 0));
    rig.run();
    assert_eq!((left(&rig), rig.count(0, near)), (vec![], (0, 0)));
    let times = [100, 200, 300].map(|us| Time::from_ns(us * 1000));
    for (mark, at) in (1..).zip(times) {
        rig.run_until(at);
        rig.around.store(0, FROM, &[mark; 10_000]);
        assert!(rig.admit(0), "packet {mark} waits");
    }
    assert!(!rig.admit(0), "three packets");
    assert_eq!(left(&rig), [(times[0], 4096, 0), (times[1], 4096, 4096), (times[2], 1808, 8192)]);
    // 20 ps per byte until the last has left, and 50 ns until the host is notified.
    let sent = times[2] + Time::from_ps(1808 * 20) + Time::from_ns(50);
    rig.run_until(sent - Time::from_ps(1));
    assert_eq!(rig.count(0, near), (0, 0));
    rig.run_until(sent);
    assert_eq!(rig.count(0, near), (1, 0));
    rig.run();
    let arrived = [0, 4095, 4096, 8191, 8192, 9999].map(|offset| rig.around.load(1, TO + offset, 1)[0]);
    assert_eq!(arrived, [1, 1, 2, 2, 3, 3]);
}

/// Packets of the card or of the host behind a blocked one are blocked too, and leave in order.
#[test]
fn packets_behind_a_blocked_one_keep_their_order() {
    let mut rig = network(2, &[]);
    append(&mut rig, 1, NI, TO, 1 << 21, 0, CT_NONE);
    append(&mut rig, 0, NI, TO, 1 << 21, 0, CT_NONE);
    let ct = rig.counter(1, NI);
    let (mine, theirs) = (bind(&mut rig, 0, FROM, 100, CT_NONE), bind(&mut rig, 1, FROM, 10, ct));
    rig.is_full = true;
    rig.put(0, mine, 100, AckReq::None, target(1, 0));
    rig.run();
    rig.is_full = false;
    // The acknowledgement of an arriving message, and a later put.
    rig.put(1, theirs, 10, AckReq::Ct, target(0, 0));
    rig.run();
    rig.put(0, mine, 50, AckReq::None, target(1, 0));
    rig.run();
    assert_eq!(left(&rig).iter().map(|packet| packet.1).collect::<Vec<_>>(), [10]);
    let at = rig.now;
    while rig.admit(0) {}
    // 100 bytes, or none, take less than g, 6.7 ns.
    let gap = Time::from_ps(6_700);
    assert_eq!(left(&rig)[1..], [(at, 100, 0), (at + gap, 0, 0), (at + gap * 2, 50, 0)]);
}

/// Returns a descriptor of host memory without event queue and counter.
fn plain(start: u64, length: u64) -> Md {
    Md { start, length, options: 0, eq_handle: EQ_NONE, ct_handle: CT_NONE, pad: 0 }
}
