// SPDX-License-Identifier: Apache-2.0
//! Commands through the registers of the HPU driver.

use accel::testing::code::*;
use pspin_unit::command::Send;
use pspin_unit::her::{Failure, TaskOutcome};

use crate::rig::{HANDLER, L1, PACKET, Rig, SCRATCHPAD, machine};

const A2: u32 = 12;
const A3: u32 = 13;
const A4: u32 = 14;

/// Offsets of driver registers from `a2`: wait, test, kind, words.
const WAIT: i32 = 0x84;
const TEST: i32 = 0x88;
const KIND: i32 = 0x8C;

/// `rd = value`
fn li(rd: u32, value: u32) -> [u32; 2] {
    let low = (value << 20) as i32 >> 20;
    [lui(rd, value.wrapping_sub(low as u32)), addi(rd, rd, low)]
}

/// Returns code that sets kind and words of a command; `a2` then points to the driver's registers.
fn says(kind: u32, words: &[u32]) -> Vec<u32> {
    let mut code = vec![lui(A2, 0x1B20_5000)];
    for (index, value) in [kind].iter().chain(words).enumerate() {
        code.extend(li(A3, *value));
        code.push(sw(A3, A2, KIND + 4 * index as i32));
    }
    code
}

/// Returns the instruction that issues the command and loads its number into `a4`.
const fn issue() -> u32 {
    0x080 << 20 | A2 << 15 | 2 << 12 | A4 << 7 | 0x03
}

#[test]
fn a_packet_is_sent_back() {
    let l1 = L1 + machine("pspin-400g", &[]).cluster.runtime;
    let handler = [says(2, &[7, 1, l1, 0, 60]), vec![issue(), sw(A4, A2, WAIT), RET]].concat();
    let mut rig = Rig::new(&handler);
    let packet: Vec<u8> = (0..64).collect();
    let (alone, outcome) = rig.run(&packet);
    assert_eq!(outcome, TaskOutcome::Done);
    let (at, send, bytes) = rig.nic.sent.remove(0);
    assert_eq!((send, bytes), (Send { node: 7, flow: 1, user: 0 }, packet[..60].to_vec()));
    // The handler waits until the packet has left, and then rings the doorbell.
    assert!(at < rig.nic.feedback[0].0 && alone > 60, "{at} {alone}");
}

#[test]
fn data_goes_to_the_host_and_comes_from_there() {
    let (host, there) = (0x1122_3344_5566_7790_u64, L1 + SCRATCHPAD);
    let words = |address: u32, direction| [host as u32, (host >> 32) as u32, address, 32, direction];
    let handler = [
        says(0, &words(PACKET, 1)),
        vec![issue(), sw(A4, A2, WAIT)],
        says(0, &words(there, 0)),
        vec![issue(), sw(A4, A2, WAIT)],
        // Host direct, eight bytes.
        says(4, &[host as u32, (host >> 32) as u32, 8 << 1 | 1, 0x0403_0201, 0x0807_0605]),
        vec![issue(), RET],
    ]
    .concat();
    let mut rig = Rig::new(&handler);
    assert_eq!(rig.run(&[9; 64]).1, TaskOutcome::Done);
    let written: Vec<_> = rig.nic.written.iter().map(|(_, address, data)| (*address, data.clone())).collect();
    assert_eq!(written, [(host, vec![9; 32]), (host, (1..=8).collect())]);
    assert_eq!(rig.word(there), u32::from_le_bytes([0x90, 0x91, 0x92, 0x93]));
}

#[test]
fn a_command_has_as_many_bytes_in_itself_as_the_machine_allows() {
    // pspin-400g allows 32 bytes (§III-B1), the published design 64.
    for (name, size, expected) in [("pspin-400g", 32, true), ("pspin-400g", 33, false), ("pspin-published", 64, true)] {
        let handler = [says(4, &[0x1000, 0, size << 1]), vec![issue(), sw(A4, A2, WAIT), RET]].concat();
        let mut rig = Rig::on(machine(name, &[]), &handler);
        assert_eq!(rig.run(&[9; 64]).1 == TaskOutcome::Done, expected, "{name} {size}");
    }
}

#[test]
fn a_test_says_whether_a_command_is_done() {
    // Copies from the host to L1, with an address in the HPU's window to its own cluster.
    let words = [0x100, 0, 0x1b00_0000 + SCRATCHPAD, 4, 0];
    let store = [lui(T0, HANDLER + 0x1000)];
    // Tests at once, and again after a wait.
    let handler = [
        says(0, &words),
        store.to_vec(),
        vec![
            issue(),
            sw(A4, A2, TEST),
            lw(A3, A2, TEST),
            sw(A3, T0, 0),
            sw(A4, A2, WAIT),
            sw(A4, A2, TEST),
            lw(A3, A2, TEST),
            sw(A3, T0, 4),
            RET,
        ],
    ]
    .concat();
    let mut rig = Rig::new(&handler);
    assert_eq!(rig.run(&[9; 64]).1, TaskOutcome::Done);
    assert_eq!([rig.word(HANDLER + 0x1000), rig.word(HANDLER + 0x1004)], [0, 1]);
}

#[test]
fn a_fifth_command_waits_for_the_first() {
    let l1 = L1 + machine("pspin-400g", &[]).cluster.runtime;
    let time = |commands: usize| {
        let handler = [says(2, &[7, 0, l1, 0, 64]), vec![issue(); commands], vec![RET]].concat();
        let mut rig = Rig::new(&handler);
        rig.run(&[1; 64]);
        let (started, ended) = (rig.unit.observer().started.len(), rig.unit.observer().ended.len());
        assert_eq!(rig.run(&[1; 64]).1, TaskOutcome::Done);
        assert_eq!(rig.nic.sent.len(), 2 * commands);
        let log = rig.unit.observer();
        log.ended[ended].0 - log.started[started]
    };
    let times: Vec<u64> = (1..=6).map(time).collect();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The HPU only issues up to four commands; then it waits until one has left.
    assert!(steps[..3].iter().all(|step| *step <= 3) && steps[3] > 3, "{times:?}");
}

#[test]
fn a_command_that_does_not_exist_fails() {
    let mut rig = Rig::new(&[says(6, &[0]), vec![issue(), RET]].concat());
    assert!(matches!(
        rig.run(&[1; 64]).1,
        TaskOutcome::Faulted(Failure::Fault(hpu::Fault::Load { addr: 0x1B20_5080, .. }))
    ));
    let (_, outcome) = Rig::new(&[says(2, &[7, 0, HANDLER, 0, 64]), vec![issue(), RET]].concat()).run(&[1; 64]);
    assert_eq!(outcome, TaskOutcome::Faulted(Failure::Command { address: HANDLER, size: 64 }));
}

/// Commands may access the same memory as loads and stores, including the stack; the program's constants are read only.
#[test]
fn commands_may_use_what_loads_and_stores_may() {
    let outcome = |address: u32, direction: u32| {
        let handler = [says(0, &[0x100, 0, address, 64, direction]), vec![issue(), sw(A4, A2, WAIT), RET]].concat();
        let mut rig = Rig::new(&handler);
        rig.run(&[1; 64]).1
    };
    let refused = |address| TaskOutcome::Faulted(Failure::Command { address, size: 64 });
    for (address, to_host, from_host) in [
        (L1, TaskOutcome::Done, TaskOutcome::Done),
        (0x1B00_0000 + 960, TaskOutcome::Done, TaskOutcome::Done),
        (L1 + 961, refused(L1 + 961), refused(L1 + 961)),
        (0x1D00_0000, TaskOutcome::Done, refused(0x1D00_0000)),
        (L1 + SCRATCHPAD + 0xfc0, TaskOutcome::Done, TaskOutcome::Done),
        (L1 + SCRATCHPAD + 0xfc1, refused(L1 + SCRATCHPAD + 0xfc1), refused(L1 + SCRATCHPAD + 0xfc1)),
    ] {
        assert_eq!((outcome(address, 1), outcome(address, 0)), (to_host, from_host), "{address:#x}");
    }
}
