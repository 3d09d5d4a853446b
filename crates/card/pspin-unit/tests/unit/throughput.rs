// SPDX-License-Identifier: Apache-2.0
//! Throughput of the unit under load, compared with its tightest limit (PsPIN §IV-B2).

use std::rc::Rc;

use pspin_unit::Cycle;
use pspin_unit::her::{ExecutionContext, Role, TaskOutcome};

use crate::rig::{Nic, Packet, Rig, context, machine};

/// Returns `packets` packets of `size` bytes in messages of 128 packets, eight messages interleaved.
fn traffic(packets: u32, size: u32) -> impl Iterator<Item = Packet> {
    let context = Rc::new(context(&[Role::Payload]));
    (0..packets).map(move |index| {
        let (block, place) = (index / 1024, index % 1024);
        Packet { message: block * 8 + place % 8, size, eom: place / 8 == 127, context: context.clone() }
    })
}

/// Returns the steady-state throughput in bits per cycle, equal to Gbit/s at 1 GHz.
fn gbit_s(name: &str, instructions: u64, size: u32) -> f64 {
    let packets = if size > 256 { 2048 } else { 8192 };
    let mut rig = Rig::new(machine(name, &[]), (), |_, _| instructions);
    rig.flood(traffic(packets, size));
    rig.check_accounts();
    let at = |share: usize| rig.nic.feedback[packets as usize * share / 8].0;
    f64::from(packets) * 6.0 / 8.0 * f64::from(size) * 8.0 / (at(7) - at(1)) as f64
}

/// Returns the tightest limit: one task per cycle, the beats of the packet, or 32 HPUs that need 10 + x cycles each (11
/// if x is 0).
fn law(instructions: u64, size: u32) -> f64 {
    let hpus = 32.0 / if instructions == 0 { 11.0 } else { 10.0 + instructions as f64 };
    let packets = hpus.min(1.0).min(1.0 / f64::from(size.div_ceil(64)));
    packets * f64::from(size) * 8.0
}

#[test]
fn throughput_follows_littles_law() {
    for size in [64, 65, 512, 513, 1024, 1025] {
        for instructions in [0, 16, 64, 256, 1024] {
            for name in ["pspin-400g", "pspin-published"] {
                let (found, expected) = (gbit_s(name, instructions, size), law(instructions, size));
                let error = found / expected - 1.0;
                assert!(error.abs() < 0.02, "{name}: {size} B, {instructions}: {found:.1}, not {expected:.1} Gbit/s");
            }
        }
    }
}

/// All clusters and HPUs work, whatever their number.
#[test]
fn every_size_of_the_unit_works() {
    for (clusters, hpus) in [(1, 1), (2, 4), (8, 8), (3, 5), (40, 8)] {
        let set = [format!("accelerator.clusters={clusters}"), format!("accelerator.hpus_per_cluster={hpus}")];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let mut rig = Rig::new(machine("pspin-400g", &set), (), |_, _| 20);
        rig.flood(traffic(2048, 64));
        rig.check_accounts();
    }
}

/// Ten times as many packets as the HPUs can process: each is accounted for, and none waits forever.
#[test]
fn overload_is_back_pressure() {
    let mut rig = Rig::new(machine("pspin-400g", &[]), (), |_, message| 100 + u64::from(message % 7) * 200);
    rig.flood(traffic(100_000, 64));
    rig.check_accounts();
    assert!(rig.refused[1] > 0, "the cells of the queues were used up");
    assert_eq!(rig.unit.counters().done, 100_000);
}

/// A million packets at ten times the rate of the HPUs; the NIC drops packets that are not accepted at once. Every
/// packet is either fed back or dropped for a counted reason, and no HPU is lost.
#[test]
fn a_million_packets_of_overload_are_accounted_for() {
    let packets = 1_000_000_u64;
    // 32 HPUs at 10 + 310 cycles per packet process one packet in ten cycles, and one arrives per cycle.
    let mut rig = Rig::new(machine("pspin-400g", &[]), (), |_, _| 310);
    let mut refused = 0;
    for (index, packet) in (0..).zip(traffic(packets as u32, 64)) {
        // Each packet is a message, so no end of a message is lost.
        let packet = Packet { message: index, eom: true, ..packet };
        let next = rig.unit.now() + 1_u64;
        refused += u64::from(!rig.offer(&packet));
        rig.run_until(next);
    }
    rig.finish();
    rig.check_accounts();
    let done = rig.unit.counters().done;
    assert_eq!(done + refused, packets);
    assert_eq!(refused, rig.refused.iter().sum::<u64>() + rig.no_room);
    assert!((95_000..105_000).contains(&done), "{done}");
}

/// The NIC may delay feedback: everything stalls, but no packet is lost.
#[test]
fn feedback_that_is_not_taken_is_offered_again() {
    let mut rig = Rig::new(machine("pspin-400g", &[]), (), |_, _| 1);
    rig.nic = Nic { refuses: Some(|cycle| cycle % 7 != 0), ..Nic::default() };
    let (start, end) = rig.flood(traffic(2048, 64));
    rig.check_accounts();
    // One in seven cycles.
    assert!((end - start) >= 2047 * 7, "{}", end - start);
}

/// A handler that never ends is killed after the watchdog limit of its context; its HPU takes the next task.
#[test]
fn the_watchdog_frees_the_hpu() {
    let set = ["accelerator.clusters=1", "accelerator.hpus_per_cluster=2"];
    let mut rig = Rig::fixed("pspin-400g", &set, |_, message| if message == 0 { 1 << 40 } else { 10 });
    let bad = Rc::new(ExecutionContext { watchdog_cycles: 500, ..context(&[Role::Payload]) });
    rig.submit(&Packet { message: 0, size: 64, eom: true, context: bad }).unwrap();
    rig.run_until(Cycle(1));
    rig.flood(traffic(1024, 64).map(|packet| Packet { message: packet.message + 8, ..packet }));
    rig.check_accounts();
    let (at, feedback) = rig.nic.feedback.iter().find(|(_, feedback)| feedback.message == 0).unwrap();
    // 3 + 12 + 1 to the assignment, the limit, 20 to recover, 1 to the NIC.
    assert_eq!((*at, feedback.outcome), (3 + 12 + 1 + 500 + 20 + 1, TaskOutcome::TimedOut));
    assert_eq!((rig.unit.counters().timed_out, rig.unit.counters().done), (1, 1024));
}

/// A limit of 0 turns the watchdog off.
#[test]
fn a_handler_without_a_watchdog_runs_on() {
    for (watchdog_cycles, outcome) in [(0, TaskOutcome::Done), (4_999, TaskOutcome::TimedOut)] {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 5_000);
        let context = Rc::new(ExecutionContext { watchdog_cycles, ..context(&[Role::Payload]) });
        rig.flood([Packet { message: 0, size: 64, eom: true, context }]);
        rig.check_accounts();
        assert_eq!(rig.nic.feedback.iter().map(|(_, feedback)| feedback.outcome).collect::<Vec<_>>(), [outcome]);
    }
}

#[test]
fn two_runs_are_the_same() {
    let run = || {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, message| u64::from(message * 37 % 50));
        rig.flood(traffic(4096, 200));
        (std::mem::take(&mut rig.unit.observer().0), rig.nic.feedback)
    };
    assert!(run() == run());
}

/// The NIC writes a packet per cycle while the clusters read earlier ones. Bank conflicts in L2 are rare, so one packet
/// per cycle passes.
#[test]
fn l2_is_written_and_read_at_full_rate() {
    let packets = 4096_u32;
    let mut rig = Rig::new(machine("pspin-400g", &[]), (), |_, _| 0);
    let mut requests = std::collections::VecDeque::new();
    for (index, packet) in (0..).zip(traffic(packets, 64)) {
        let address = 0x1c40_0000 + index * 64;
        let ready = rig.unit.write_packet(rig.unit.now(), address, &[0; 64]).unwrap();
        requests.push_back((ready, packet));
        while requests.front().is_some_and(|(ready, _)| *ready <= rig.unit.now()) {
            let (_, packet) = requests.pop_front().unwrap();
            rig.submit(&packet).unwrap();
        }
        let next = rig.unit.now() + 1_u64;
        rig.run_until(next);
    }
    rig.finish();
    let at = |share: usize| rig.nic.feedback[share * 512].0;
    let gbit_s = 3072.0 * 512.0 / (at(7) - at(1)) as f64;
    assert!(gbit_s > 500.0, "{gbit_s:.1}");
}

/// With one port for both sides, the NIC's writes precede reads.
#[test]
fn a_single_port_is_shared() {
    let rate = |ports: u32| {
        let set = format!("accelerator.l2_packet.ports={ports}");
        let mut rig = Rig::new(machine("pspin-400g", &[&set]), (), |_, _| 0);
        let context = Rc::new(context(&[Role::Payload]));
        for index in 0..64 {
            let packet = Packet { message: 0, size: 1024, eom: index == 63, context: context.clone() };
            rig.unit.write_packet(rig.unit.now(), 0x1c60_0000, &[0; 1024]).unwrap();
            rig.submit(&packet).unwrap();
            let next = rig.unit.now() + 16_u64;
            rig.run_until(next);
        }
        rig.finish();
        rig.nic.feedback[63].0
    };
    let (two, one) = (rate(2), rate(1));
    assert!((1024..1024 + 100).contains(&two) && (2048..2048 + 100).contains(&one), "{two}, {one}");
}
