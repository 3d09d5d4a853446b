//! Long messages: when their packets leave, and how much of them is on the card at a time.

mod common;

use abi::portals::{AckReq, CT_NONE, me};
use common::Rig;
use sim::Time;

const FROM: u64 = 0x10_0000;
const TO: u64 = 0x80_0000;

/// Departures of a put of `bytes`, behind one of 100 bytes, by hand: the data of both comes through the DMA engine back to
/// back, 6.7 ps a byte and two latencies of 50 ns; the port takes 20 ps a byte, and 6.7 ns at least for a first packet.
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

#[test]
fn packets_leave_when_data_and_port_are_there() {
    for bytes in [1, 4096, 4097, 300_000, 1_500_003] {
        let mut rig = Rig::new(2, &[]);
        rig.append(1, rig.ni, TO, 1 << 21, me::EVENT_COMM_DISABLE, CT_NONE);
        rig.around.fill(0, FROM, bytes);
        let (small, md) = (rig.bind(0, FROM, 100, CT_NONE), rig.bind(0, FROM, bytes, CT_NONE));
        rig.put(0, small, 100, 1, 0, AckReq::None);
        rig.put(0, md, bytes, 1, 200, AckReq::None);
        rig.run();
        assert_eq!(rig.around.departures, departures(bytes), "{bytes}");
        for at in 0..bytes {
            let byte = rig.around.memory.get(&(1, TO + 200 + at));
            assert_eq!(byte, Some(&((FROM + at) as u8 | 1)), "{bytes}: byte {at}");
        }
    }
}

/// The data of a packet is read before it leaves, though not long before: a byte in the middle of a message that changes
/// after the last packets could have been read arrives as it was, and one that changes well before as it is then.
#[test]
fn a_long_message_is_read_as_it_leaves() {
    let bytes = 1 << 22;
    let end = departures(bytes).last().unwrap().0;
    let ahead = Time::from_ps(64 * 4096 * 20);
    for (early, seen) in [(ahead * 3, 2), (Time::from_ps(1), 1)] {
        let mut rig = Rig::new(2, &[]);
        rig.append(1, rig.ni, TO, bytes, 0, CT_NONE);
        let (last, md) = (FROM + bytes - 1, rig.bind(0, FROM, bytes, CT_NONE));
        rig.around.memory.insert((0, last), 1);
        rig.put(0, md, bytes, 1, 0, AckReq::None);
        rig.run_until(end - early);
        rig.around.memory.insert((0, last), 2);
        rig.run();
        assert_eq!(rig.around.memory.get(&(1, TO + bytes - 1)), Some(&seen), "{early}");
        // Of 1024 packets at most 64 are being fetched, and 192 have been read; each may be an event of both cards.
        assert!(rig.around.most_events < 600, "{}", rig.around.most_events);
    }
}

/// Memory that is not there is found out when it is read, and said in every packet from then on.
#[test]
fn memory_that_is_missing_in_the_middle_fails_the_operation() {
    let mut rig = Rig::new(2, &[]);
    let near = rig.counter(0, rig.ni);
    rig.append(1, rig.ni, TO, 1 << 21, 0, CT_NONE);
    rig.around.missing = Some(FROM + 1_000_000);
    let md = rig.bind(0, FROM, 2_000_000, near);
    rig.put(0, md, 1_500_000, 1, 0, AckReq::Ct);
    rig.run();
    assert_eq!(rig.count(0, near), (0, 1));
    assert!(rig.around.warnings[0].ends_with("is not accessible"), "{:?}", rig.around.warnings);
}

/// An entry or a descriptor that reaches to the end of memory and beyond ends there: nothing comes before its start.
#[test]
fn memory_does_not_begin_again_at_its_end() {
    let mut rig = Rig::new(2, &[]);
    let near = rig.counter(0, rig.ni);
    rig.append(1, rig.ni, TO, u64::MAX, 0, CT_NONE);
    rig.around.fill(0, FROM, 100);
    let md = rig.bind(0, FROM, u64::MAX, near);
    for offset in [u64::MAX - 7, u64::MAX, TO.wrapping_neg() - 8, 0] {
        rig.put(0, md, 16, 1, offset, AckReq::Ct);
    }
    rig.run();
    assert_eq!(rig.count(0, near), (4, 0), "what does not fit is cut off");
    let at: Vec<u64> = rig.around.memory.keys().filter(|(node, _)| *node == 1).map(|(_, at)| *at).collect();
    assert_eq!(at, (TO..TO + 16).chain(u64::MAX - 7..=u64::MAX).collect::<Vec<_>>());
    let beyond = rig.cards[0].put(md, u64::MAX - FROM, 16, AckReq::None as u64, common::target(1, 0));
    assert!(beyond.is_err());
    let all = rig.bind(0, 0, u64::MAX, CT_NONE);
    assert!(rig.cards[0].put(all, FROM, 16, AckReq::None as u64, common::target(1, 0)).is_ok());
}
