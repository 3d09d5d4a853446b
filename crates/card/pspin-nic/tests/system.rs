// SPDX-License-Identifier: Apache-2.0
//! The card with real cores: packets in, feedback, packets and host memory out, and behaviour when full.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use accel::testing::code::*;
use machine::{Accelerator, Machine};
use pspin_nic::driver::{Driver, DriverError, Request};
use pspin_nic::host::{Host, HostMemory};
use pspin_nic::inbound::{Arrival, Done};
use pspin_nic::report::Summary;
use pspin_nic::system::{RunError, System};
use pspin_unit::core::{Hpus, Runtime};
use pspin_unit::her::{DriverEvent, ExecutionContext, Failure, Range, TaskOutcome};
use pspin_unit::{Cycle, Pspin};
use sim::{Clock, Time};

const PROGRAM: u32 = 0x1D00_0000;

fn machine(set: &[&str]) -> Rc<machine::Pspin> {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    match Machine::load("pspin-400g", &[folder], &set).unwrap().accelerator {
        Accelerator::Pspin(unit) => Rc::from(unit),
        other => panic!("{}", other.kind()),
    }
}

/// Runtime of `sdk/pspin/rt/runtime/src/start.S`, without the call of `init_handlers`.
#[rustfmt::skip]
fn runtime() -> Vec<u32> {
    vec![
        lui(S0, 0x1B20_5000), addi(S1, 2, -16), addi(T0, S0, 8), sw(T0, S1, 0),
        immediate(0x13, 1, T1, A0, 3), add(T1, T1, A1), sw(T1, S1, 4), sw(A0, S1, 8), sw(A1, S1, 12), addi(2, 2, -16),
        lw(T0, S0, 0), NOP, addi(A0, S1, 0), immediate(0x67, 0, 1, T0, 0), NOP, sw(ZERO, S0, 0x50), 0xfe9f_f06f,
    ]
}

/// Creates a card with a context whose payload handler consists of `handler`.
fn card(config: &Rc<machine::Pspin>, handler: &[u32]) -> (System<Pspin<Hpus>>, Rc<ExecutionContext>) {
    let mut words = runtime();
    words.resize(words.len().next_multiple_of(8), NOP);
    let entry = Range { address: PROGRAM + 4 * words.len() as u32, size: 4 * handler.len() as u32 };
    words.extend(handler);
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let isa = hpu::isa::instruction_set("rv32imac").unwrap();
    let program = Arc::new(hpu::Program::load(&executable(&code), isa, &accel::load_map()).unwrap());
    let runtime = Runtime { boot: PROGRAM, again: PROGRAM };
    let request = Request {
        handlers: [Range::default(), entry, Range::default()],
        code: vec![Range { address: PROGRAM, size: code.len() as u32 }],
        handler_memory: 4_096,
        scratchpad: 4_096,
        host: 4_096,
        ..Request::default()
    };
    let context = Driver::new(config, 0).context(&request).unwrap();
    let cores = Hpus::new(config.clone(), program.clone(), runtime);
    let mut system = System::new(config.clone(), Clock::from_khz(1_000_000), cores, ());
    system.unit().memory().write(PROGRAM, code.len() as u32).unwrap().copy_from_slice(&code);
    system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
    (system, Rc::new(context))
}

fn packet(context: &Rc<ExecutionContext>, number: u64, at_ns: u64, message: u32, size: usize) -> Arrival {
    let bytes = vec![number as u8; size];
    let at = Time::from_ps(1_000 * at_ns);
    Arrival { at, bytes, message, is_last: false, transfer: size as u32, context: context.clone(), user: number }
}

fn run(system: &mut System<Pspin<Hpus>>) -> Vec<(u64, Done)> {
    let mut all = Vec::new();
    while system.advance(Cycle(100_000_000), |at, done| all.push((at.0, done))).unwrap() {}
    all
}

#[test]
fn a_packet_takes_as_long_as_in_the_paper_and_to_its_request_as_measured() {
    // From the NIC to the request: 4 + 1 cycles at 64 B; from there to the feedback: 26.
    let (mut system, context) = card(&machine(&[]), &[RET]);
    (0..2).for_each(|number| system.push(packet(&context, number, 10_000 * (number + 1), 0, 64)));
    let done = run(&mut system);
    let warm = done[1];
    assert_eq!((warm.1.user, warm.1.arrived.0, warm.1.submitted.0, warm.0), (1, 20_000, 20_005, 20_031));
    assert_eq!(system.request_latencies().summary(1.0).unwrap().min, 26.0);
}

#[test]
fn every_packet_is_accounted_for_when_there_are_ten_times_too_many() {
    // Handlers of 400 instructions on one cluster of two HPUs; 64 B packets at line rate, in a ring of 16 KiB.
    let small = ["accelerator.clusters=1", "accelerator.hpus_per_cluster=2", "accelerator.l2_packet.bytes=16384"];
    let handler = [vec![addi(A1, A1, 1); 400], vec![RET]].concat();
    for (policy, drops) in [("block", false), ("drop", true), ("ecn", false)] {
        let overload = format!("accelerator.overload={policy}");
        let config = machine(&[small.as_slice(), &[&overload]].concat());
        let (mut system, context) = card(&config, &handler);
        (0..3_000).for_each(|number| system.push(packet(&context, number, 0, (number % 8) as u32, 64)));
        let done = run(&mut system).len() as u64;
        let counts = *system.inbound().counts();
        assert_eq!(
            (counts.arrived, counts.fed_back, counts.fed_back + counts.dropped()),
            (3_000, done, 3_000),
            "{policy}"
        );
        assert_eq!((counts.dropped() > 0, system.inbound().inside()), (drops, 0), "{policy}");
        assert_eq!((counts.marked > 0, counts.waited > 0), (policy == "ecn", !drops), "{policy}");
    }
}

#[test]
fn packets_of_impossible_sizes_are_dropped_and_counted() {
    let (mut system, context) = card(&machine(&[]), &[RET]);
    for (number, size) in [0, 1, 9_216, 9_217].into_iter().enumerate() {
        system.push(packet(&context, number as u64, 0, 0, size));
    }
    assert_eq!(run(&mut system).len(), 2);
    assert_eq!((system.inbound().counts().dropped_size, system.inbound().counts().arrived), (2, 4));
}

#[test]
fn the_rate_of_the_network_limits_packets() {
    // 20 ps per byte: 64 bytes take 1.28 ns.
    let config = machine(&["accelerator.inbound.G_ps_per_byte=20"]);
    let (mut system, context) = card(&config, &[RET]);
    (0..101).for_each(|number| system.push(packet(&context, number, 1_000, 0, 64)));
    let done = run(&mut system);
    assert_eq!(done.iter().map(|(_, done)| done.arrived.0).max(), Some(1_000 + 128));
}

#[test]
fn contexts_share_no_memory_and_what_does_not_fit_is_told() {
    let config = machine(&[]);
    let mut driver = Driver::new(&config, 100);
    let request = Request { handler_memory: 1_000, scratchpad: 500, host: 100, ..Request::default() };
    let (a, b) =
        (driver.context(&request).unwrap(), driver.context(&Request { tenant: 1, ..request.clone() }).unwrap());
    // Static data of 100 bytes, then pieces at multiples of 64; scratchpads follow the runtime and the packet buffer.
    assert_eq!((a.handler_memory.address, b.handler_memory.address), (0x1C00_0080, 0x1C00_0480));
    assert_eq!((a.scratchpads[1].address, b.scratchpads[1].address), (0x1040_A000, 0x1040_A200));
    assert_eq!((a.host.address, b.descriptor), ((1 << 60) + 64, (1 << 60) + 192));
    let before = driver.clone();
    let error = driver.context(&Request { scratchpad: 1_010_000, ..request.clone() }).unwrap_err();
    assert_eq!(
        error,
        DriverError::NoRoom { tenant: 0, wanted: 1_010_000, memory: "L1 of each cluster", left: 984 * 1_024 - 1_024 }
    );
    assert_eq!(format!("{driver:?}"), format!("{before:?}"), "nothing was allocated");
    let error = driver.context(&Request { pin: Some(4), ..request }).unwrap_err();
    assert_eq!(error.to_string(), "tenant 0 wants to be pinned to cluster 4; the unit has 4, from 0");
}

#[test]
fn the_iommu_lets_the_card_reach_what_is_registered_to_the_byte() {
    let mut host = HostMemory::default();
    host.register(0, 0x1000, 0x20);
    host.register(0, 0x1020, 0x10);
    let at = Cycle::ZERO;
    assert_eq!(host.card_writes(at, None, 0x1000, &[7; 0x30]), Ok(()), "ranges that touch are one");
    assert!(
        host.card_writes(at, None, 0x0fff, &[1, 1]).is_err() && host.card_writes(at, None, 0x102f, &[1, 1]).is_err()
    );
    let mut bytes = [1; 3];
    host.peek(0x102f, &mut bytes);
    assert_eq!(bytes, [7, 0, 0], "nothing of a refused write is written");
    assert!(host.card_reads(at, None, u64::MAX, &mut bytes).is_err());
    host.register(0, u64::MAX - 1, 100);
    assert_eq!(host.card_writes(at, None, u64::MAX, &[9]), Ok(()));
    assert_eq!(host.card_writes(at, None, 0x5000, &[]), Ok(()));
}

/// Two tenants: handlers reach the ranges of their own tenant, including shared ones; the unit reaches all.
#[test]
fn the_iommu_keeps_tenants_apart() {
    let mut driver = Driver::new(&machine(&[]), 0);
    let mut context = |tenant| driver.context(&Request { tenant, host: 64, ..Request::default() }).unwrap();
    let contexts = [context(1), context(2)];
    let mut host = HostMemory::default();
    for context in &contexts {
        host.register(context.tenant, context.host.address, context.host.size);
        host.register(context.tenant, 0x7000, 8);
    }
    for (index, context) in contexts.iter().enumerate() {
        let (own, other) = (context.host.address, contexts[1 - index].host.address);
        assert_eq!(host.card_writes(Cycle(1), Some(context), own, &[1; 64]), Ok(()));
        assert!(host.card_writes(Cycle(1), Some(context), own, &[1; 65]).is_err());
        assert!(host.card_writes(Cycle(1), Some(context), other, &[1]).is_err());
        assert!(host.card_reads(Cycle(1), Some(context), other, &mut [0]).is_err());
        assert_eq!(host.card_reads(Cycle(1), Some(context), 0x7000, &mut [0; 8]), Ok(()));
        assert_eq!(host.card_writes(Cycle(1), None, other, &[1]), Ok(()));
    }
}

/// A handler fails when its command names memory registered by another tenant.
#[test]
fn a_handler_does_not_reach_the_host_memory_of_another_tenant() {
    // Host-direct access of 8 bytes to the address in the packet's first words.
    let direct = [
        lw(A1, A0, 0),
        lw(A1, A1, 8),
        lui(T0, 0x1B20_5000),
        addi(T1, ZERO, 4),
        sw(T1, T0, 0x8C),
        lw(T1, A1, 0),
        sw(T1, T0, 0x90),
        lw(T1, A1, 4),
        sw(T1, T0, 0x94),
        addi(T1, ZERO, 8 << 1 | 1),
        sw(T1, T0, 0x98),
        lw(T1, T0, 0x80),
        RET,
    ];
    let (mut system, context) = card(&machine(&[]), &direct);
    let other = context.host.address + 0x10_0000;
    system.host().register(context.tenant + 1, other, 64);
    for (number, address) in [(0, context.host.address), (1, other)] {
        let bytes = [address.to_le_bytes().to_vec(), vec![0; 56]].concat();
        system.push(Arrival { bytes, ..packet(&context, number, 1_000, number as u32, 64) });
    }
    assert_eq!(run(&mut system).len(), 2);
    let failures: Vec<TaskOutcome> = system
        .take_events()
        .into_iter()
        .filter_map(|(_, event)| if let DriverEvent::Failed { outcome, .. } = event { Some(outcome) } else { None })
        .collect();
    assert_eq!(failures, [TaskOutcome::Faulted(Failure::Host { address: other })]);
}

#[test]
fn percentiles_are_those_of_the_nearest_rank() {
    let mut latencies = pspin_nic::report::Latencies::default();
    assert_eq!(latencies.summary(1.0), None);
    (1..=200).rev().for_each(|cycles| latencies.add(cycles));
    assert_eq!(latencies.summary(0.5), Some(Summary { min: 0.5, mean: 50.25, p99: 99.0, max: 100.0 }));
}

#[test]
fn the_card_boots_before_packets_come_and_packets_come_apart() {
    let (mut system, context) = card(&machine(&[]), &[RET]);
    assert!(system.boot(Cycle(1_000)));
    assert_eq!(system.unit().now(), Cycle(1_000));
    // At most one packet in 7 cycles, although all were queued at the start.
    (0..3).for_each(|number| system.push_apart(packet(&context, number, 1_000, 0, 64), Time::from_ps(7_000)));
    let arrived: Vec<u64> = run(&mut system).iter().map(|(_, done)| done.arrived.0).collect();
    assert_eq!(arrived, [1_000, 1_007, 1_014]);
    // The runtime of the HPUs takes longer.
    let (mut late, _) = card(&machine(&[]), &[RET]);
    assert!(!late.boot(Cycle(5)));
}

/// The handler starts 4 cycles after the load of its function pointer; its third instruction stores. At 64 B the load
/// is 17 cycles after the request. The first run also has an instruction cache miss.
#[test]
fn a_program_may_end_the_run() {
    let (mut system, context) = card(&machine(&[]), &[lui(A1, 0x1B20_0000), NOP, sw(A1, A1, 0), RET]);
    assert!(system.boot(Cycle(1_000)));
    system.push(packet(&context, 0, 1_000, 0, 64));
    let mut result = Ok(true);
    while result == Ok(true) {
        result = system.advance(Cycle(1_000_000), |_, _| {});
    }
    let cycle = 1_000 + 5 + 17 + 4 + 12 + 2 + 1;
    assert_eq!(result, Err(RunError::Terminated { cluster: 0, hpu: 0, cycle }));
    assert_eq!(
        result.unwrap_err().to_string(),
        format!("the program ended the run with TERMINATE on HPU 0 of cluster 0 in cycle {cycle}")
    );
}

/// Two messages share a queue of a unit with four. The first has more packets behind those of the second; the second's
/// packets wait for its end and let them pass. A third message in another queue does not wait.
#[test]
fn a_message_that_waits_for_a_queue_holds_nobody_back() {
    let (mut system, context) = card(&machine(&["accelerator.mpq.queues=4"]), &[RET]);
    let end = |packet: Arrival| Arrival { is_last: true, ..packet };
    system.push(packet(&context, 0, 10_000, 1, 64));
    system.push(packet(&context, 1, 10_000, 5, 64));
    system.push(end(packet(&context, 2, 10_000, 5, 64)));
    system.push(end(packet(&context, 3, 10_000, 2, 64)));
    system.push(end(packet(&context, 4, 12_000, 1, 64)));
    let done: Vec<(u64, u64)> = run(&mut system).iter().map(|(at, done)| (done.user, *at)).collect();
    assert_eq!(done.iter().map(|(user, _)| *user).collect::<Vec<_>>(), [0, 3, 4, 1, 2]);
    assert!(done[1].1 < 11_000 && done[4].1 < 13_000, "{done:?}");
    assert_eq!((system.inbound().counts().waited, system.take_events().len()), (2, 0));
}
