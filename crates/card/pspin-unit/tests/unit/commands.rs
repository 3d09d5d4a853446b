// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers: latency, data, order of events, and throughput (PsPIN §III-B1, §IV-B2).

use std::rc::Rc;

use pspin_unit::command::{Command, Send};
use pspin_unit::her::{DriverEvent, Range, Role, Task};
use pspin_unit::{Cycle, Pspin};

use crate::fixed::{Act, Fixed};
use crate::rig::{Packet, Rig, byte, context, machine};

const HOST: u64 = 0x10_0040;
const SEND: Send = Send { node: 3, flow: 0, user: 9 };

fn packet(size: u32) -> Packet {
    Packet { message: 0, size, eom: true, context: Rc::new(context(&[Role::Payload])) }
}

type Ran<F> = Rig<Fixed<F>, ()>;

/// Runs one packet whose handler performs `acts`. Returns the cycle of its feedback, and the rig.
fn run(name: &str, size: u32, acts: fn(&Task, Range) -> Vec<Act>) -> (u64, Ran<impl Fn(Role, u32) -> u64>) {
    let mut rig = Rig::acting(machine(name, &[]), (), |_, _| 0, acts);
    rig.fills = true;
    rig.submit(&packet(size)).unwrap();
    rig.finish();
    rig.check_accounts();
    (rig.nic.feedback[0].0, rig)
}

fn expected(size: u32) -> Vec<u8> {
    (0..size).map(|at| byte(0, at)).collect()
}

/// The command is issued in the cycle in which an empty handler would ring the doorbell: 3 + DMA + 10. Its response
/// follows 10 cycles and one per 64 B beat later (4 to the engine, 4 to read, 2 back), and then the feedback reaches
/// the NIC.
#[test]
fn a_packet_is_sent() {
    for (size, issued) in [(64, 25), (512, 31), (1024, 39)] {
        let beats = u64::from(size / 64);
        let (at, rig) = run("pspin-400g", size, |_, l1| vec![Act::Issue(Command::Send { data: l1, send: SEND })]);
        assert_eq!(at, issued + 10 + beats + 1, "{size} B");
        // The NIC has the packet when the last beat is read.
        assert_eq!(rig.nic.sent, [(issued + 4 + beats + 4, SEND, expected(size))]);
        let (at, rig) =
            run("pspin-400g", size, |task, _| vec![Act::Issue(Command::Send { data: task.her.packet, send: SEND })]);
        assert_eq!((at, rig.nic.sent[0].2.len()), (issued + 10 + beats + 1, size as usize), "from L2");
    }
}

/// The copy takes 2 cycles more than a packet to the NIC, for every size.
#[test]
fn data_is_copied_to_the_host_and_the_driver_is_told() {
    for (size, issued) in [(64, 25), (512, 31), (1024, 39)] {
        let beats = u64::from(size / 64);
        let (at, rig) = run("pspin-400g", size, |_, l1| {
            vec![Act::Issue(Command::ToHost { host: HOST, data: l1, event: Some(77) })]
        });
        assert_eq!(at, issued + 10 + beats + 2 + 1);
        let written = issued + 4 + beats + 4 + 2;
        assert_eq!(rig.nic.written, [(written, HOST, expected(size))]);
        assert_eq!(rig.nic.events, [(written, DriverEvent::Command { user: 77 })]);
    }
}

/// The host takes 29 cycles, and the link one per beat; each beat is written in the next cycle.
#[test]
fn data_is_copied_from_the_host() {
    for (size, issued) in [(64, 25), (512, 31), (1024, 39)] {
        let beats = u64::from(size / 64);
        let (at, mut rig) = run("pspin-400g", size, |task, _| {
            let data = Range { address: task.her.context.handler_memory.address + 64, size: task.her.packet.size };
            vec![Act::Issue(Command::FromHost { host: HOST, data, event: None })]
        });
        assert_eq!(at, issued + 10 + 29 + beats + 1 + 1);
        let found = rig.unit.memory().read(0x1c00_0040, size).unwrap();
        assert_eq!(found, (0..size).map(|at| (0x40 + at) as u8).collect::<Vec<_>>());
        assert!(rig.nic.events.is_empty());
    }
}

#[test]
fn host_direct_writes_and_reads() {
    let direct = |_: &Task, _: Range| vec![Act::Issue(Command::HostDirect { host: HOST, data: [5; 64], size: 8 })];
    for size in [64, 1024] {
        let issued = if size == 64 { 25 } else { 39 };
        let (at, rig) = run("pspin-400g", size, direct);
        // 4 cycles to the unit, 1 beat, 2 for the host, 2 back.
        assert_eq!(at, issued + 4 + 1 + 2 + 2 + 1);
        assert_eq!(rig.nic.written, [(issued + 4 + 1 + 2, HOST, vec![5; 8])]);
    }
    let read = |_: &Task, _: Range| vec![Act::Issue(Command::HostDirectRead { host: HOST, size: 64 }), Act::Wait];
    let (at, rig) = run("pspin-400g", 64, read);
    // The load of the wait returns with the response; the doorbell follows.
    assert_eq!((at, rig.nic.reads.len()), (25 + 4 + 1 + 29 + 2 + 1 + 1, 1));
    assert_eq!(rig.unit.cores().read.to_vec(), (0x40..0x80).collect::<Vec<u8>>());
}

/// Four commands are in flight; the fifth waits for the first response.
#[test]
fn a_fifth_command_waits() {
    let acts = |_: &Task, l1: Range| vec![Act::Issue(Command::Send { data: l1, send: SEND }); 6];
    let (_, rig) = run("pspin-400g", 64, acts);
    let at: Vec<u64> = rig.nic.sent.iter().map(|(at, ..)| *at).collect();
    // The HPU issues one every two cycles, and the fifth with the first response, at 25 + 11.
    assert_eq!(at, [34, 36, 38, 40, 36 + 9, 38 + 9]);
}

/// Returns the throughput in Gbit/s of a flood of eight concurrent messages whose handlers perform `acts`.
fn flood(name: &str, set: &[&str], size: u32, acts: fn(&Task, Range) -> Vec<Act>) -> f64 {
    let packets = 4096_u32;
    let context = Rc::new(context(&[Role::Payload]));
    let traffic = (0..packets).map(|index| Packet {
        message: index % 8,
        size,
        eom: index + 8 >= packets,
        context: context.clone(),
    });
    let mut rig = Rig::acting(machine(name, set), (), |_, _| 20, acts);
    rig.flood(traffic);
    rig.check_accounts();
    let at = |share: usize| rig.nic.feedback[packets as usize * share / 8].0;
    f64::from(packets) * 6.0 / 8.0 * f64::from(size) * 8.0 / (at(7) - at(1)) as f64
}

/// The outbound engine takes a cycle per beat, and one more for each packet from the L1 of another cluster. Published:
/// 260, 453 and 483 Gbit/s with eight messages, and 512 with one, whose packets are all in one cluster.
#[test]
fn outbound_throughput_from_l1() {
    for (size, expected) in [(64, 256.0), (512, 455.1), (1024, 481.9)] {
        for name in ["pspin-400g", "pspin-published"] {
            let acts = |_: &Task, l1: Range| vec![Act::Issue(Command::Send { data: l1, send: SEND })];
            let found = flood(name, &[], size, acts);
            if size > 64 {
                let one = flood(name, &["accelerator.clusters=1"], size, acts);
                assert!(one > 500.0, "{name}: {size} B of one cluster: {one:.1}");
            }
            // Reads of L1 stall on banks taken by packets from L2.
            assert!(found <= expected * 1.01 && found > expected * 0.8, "{name}: {size} B: {found:.1}, not {expected}");
        }
    }
}

/// From L2 the engine never pauses; the HPUs limit small packets.
#[test]
fn outbound_throughput_from_l2() {
    for size in [64, 512, 1024] {
        let found = flood("pspin-400g", &[], size, |task, _| {
            vec![Act::Issue(Command::Send { data: task.her.packet, send: SEND })]
        });
        assert!((380.0..=512.0).contains(&found), "{size} B: {found:.1}");
    }
}

/// The off-cluster DMA engine takes a cycle per beat and one per copy to the host; seven copies of 64 B are in flight
/// for 18 cycles each. Published: 199, 453 and 481 Gbit/s.
#[test]
fn throughput_to_the_host() {
    for (size, expected) in [(64, 199.1), (512, 455.1), (1024, 481.9)] {
        let found = flood("pspin-published", &[], size, |_, l1| {
            vec![Act::Issue(Command::ToHost { host: HOST, data: l1, event: None })]
        });
        assert!(found <= expected * 1.01 && found > expected * 0.95, "{size} B: {found:.1}, not {expected}");
    }
}

/// Reads from the host overtake the NIC's packets. They have a port of L1 alone, where they take as long as without
/// packets, and every second beat of the packet buffer's port.
#[test]
fn reads_from_the_host_pass_packets_that_come() {
    let to_l1 = |_: &Task, l1: Range| vec![Act::Issue(Command::FromHost { host: HOST, data: l1, event: None })];
    let to_l2 =
        |task: &Task, _: Range| vec![Act::Issue(Command::FromHost { host: HOST, data: task.her.packet, event: None })];
    for (acts, cycles) in [(to_l1 as fn(&Task, Range) -> Vec<Act>, 115..=115), (to_l2, 116..=135)] {
        let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 20, acts);
        let context = Rc::new(context(&[Role::Payload]));
        // The NIC writes a beat per cycle for a thousand cycles; handlers run only for the first of 16 packets.
        for index in 0..64 {
            let address = 0x1c40_0000 + index * 1024;
            rig.unit.write_packet(Cycle(u64::from(index) * 16), address, &[0; 1024]).unwrap();
        }
        rig.run_until(Cycle(40));
        rig.submit(&Packet { message: 0, size: 1024, eom: true, context }).unwrap();
        rig.finish();
        let at = rig.nic.feedback[0].0 - 40;
        assert!(cycles.contains(&at), "{at} cycles");
    }
}

/// The rates of the machine file apply in all three directions.
#[test]
fn rates_hold() {
    let rate = |key: &str, acts: fn(&Task, Range) -> Vec<Act>| {
        let set = format!("accelerator.{key}.G_ps_per_byte=80");
        let context = Rc::new(context(&[Role::Payload]));
        let traffic =
            (0..512).map(|index| Packet { message: 0, size: 1024, eom: index == 511, context: context.clone() });
        let mut rig = Rig::acting(machine("pspin-400g", &[&set]), (), |_, _| 0, acts);
        rig.flood(traffic);
        let at = |index: usize| rig.nic.feedback[index].0;
        384.0 * 8192.0 / (at(448) - at(64)) as f64
    };
    // 80 ps/B are 100 Gbit/s.
    for found in [
        rate("outbound", |task, _| vec![Act::Issue(Command::Send { data: task.her.packet, send: SEND })]),
        rate("host", |task, _| vec![Act::Issue(Command::ToHost { host: HOST, data: task.her.packet, event: None })]),
        rate("host", |_, l1| vec![Act::Issue(Command::FromHost { host: HOST, data: l1, event: None })]),
    ] {
        assert!((99.0..=101.0).contains(&found), "{found:.2}");
    }
}

/// Copies of a handler share the cluster's DMA engine with packets and deliver the right bytes.
#[test]
fn the_cluster_dma_copies() {
    let acts = |task: &Task, l1: Range| {
        let memory = task.her.context.handler_memory.address;
        vec![Act::Copy(l1, memory + 64), Act::Copy(Range { address: memory + 65, size: 300 }, l1.address)]
    };
    let (at, mut rig) = run("pspin-400g", 512, acts);
    assert_eq!(rig.unit.memory().read(0x1c00_0040, 512).unwrap(), expected(512));
    // 32 cycles as for an empty handler, and 8 beats. 300 B whose offset in a word decreases by one need a beat more
    // than their 5 words.
    let copy = |beats: u64| 10 + beats + 1;
    assert_eq!(at, 32 + copy(8) + copy(6));
}

#[test]
fn an_idle_unit_has_no_next_cycle() {
    let (_, rig) = run("pspin-400g", 64, |_, _| Vec::new());
    let unit: &Pspin<_, ()> = &rig.unit;
    assert_eq!(unit.next(), Cycle::NEVER);
}
