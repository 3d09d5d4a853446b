// SPDX-License-Identifier: Apache-2.0
//! Memory: contents, banks, remote memories, atomic operations, and protection with byte granularity.

use accel::testing::code::*;
use hpu::Fault;
use pspin_unit::her::{Failure, Range, TaskOutcome};

use crate::rig::{HANDLER, L1, PACKET, PROGRAM, Rig, SCRATCHPAD, SPAN, machine, task_word};

const A2: u32 = 12;
const A3: u32 = 13;
const A4: u32 = 14;

/// `rd = value`
fn li(rd: u32, value: u32) -> [u32; 2] {
    let low = (value << 20) as i32 >> 20;
    [lui(rd, value.wrapping_sub(low as u32)), addi(rd, rd, low)]
}

/// `amoadd.w rd, rs2, (rs1)`
fn amoadd(rd: u32, rs2: u32, rs1: u32) -> u32 {
    rs2 << 20 | rs1 << 15 | 2 << 12 | rd << 7 | 0x2f
}

#[test]
fn a_handler_works_on_its_packet() {
    // Doubles the third word of the packet in L1; the packet in L2 is unchanged.
    let handler = [&task_word(A1, 2)[..], &[lw(A2, A1, 8), add(A2, A2, A2), sw(A2, A1, 8), RET]].concat();
    let mut rig = Rig::new(&handler);
    let packet: Vec<u8> = (0..16_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(rig.run(&packet).1, TaskOutcome::Done);
    assert_eq!(rig.word(PACKET + 8), 2);
    let in_l1: Vec<u32> = (0..4).map(|cluster| rig.word(L1 + cluster * SPAN + 0x2000 + 8)).collect();
    assert_eq!(in_l1.iter().sum::<u32>(), 4, "{in_l1:?}");
}

/// Loads and stores to other memories take longer, by the latencies of the machine file. The second run is measured.
/// The return follows the access at a distance that hides none of its cycles.
#[test]
fn other_memories_take_longer() {
    let time = |address: u32, instruction: u32| {
        let handler = [&li(A1, address)[..], &[instruction, addi(ZERO, ZERO, 0), addi(ZERO, ZERO, 0), RET]].concat();
        let mut rig = Rig::new(&handler);
        rig.run(&[0; 64]);
        rig.run(&[0; 64]).0 - 26 - 4
    };
    let own = L1 + SCRATCHPAD;
    // Messages 4 and 8 have cluster 0 as their home.
    for (address, load) in [
        (own, 1),
        (0x1B00_0000 + SCRATCHPAD, 1),
        (own + SPAN, 16),
        (own + 3 * SPAN, 16),
        (HANDLER + 0x1000, 18),
        (PACKET + 64, 18),
    ] {
        assert_eq!(time(address, lw(A2, A1, 0)), load, "{address:#x}");
        assert_eq!(time(address, sw(A2, A1, 0)), load, "{address:#x}");
    }
    assert_eq!(time(own, amoadd(A2, A3, A1)), 2);
    assert_eq!(time(own + SPAN, amoadd(A2, A3, A1)), 16);
    // An access that crosses two words of the memory is two accesses, one after the other.
    assert_eq!((time(own + SPAN + 2, lw(A2, A1, 0)), time(HANDLER + 0x1002, sw(A2, A1, 0))), (2 * 16, 2 * 18));
    // Two words of L1.
    assert_eq!(time(own + 2, lw(A2, A1, 0)), 2);
    // Constants in program memory.
    assert_eq!(time(PROGRAM, lw(A2, A1, 0)), 18);
}

#[test]
fn both_ways_are_parameters() {
    let handler = [&li(A1, HANDLER + 0x1000)[..], &[lw(A2, A1, 0), addi(A2, A2, 0), RET]].concat();
    for cycles in [2, 3, 30] {
        let set = format!("accelerator.pe.l2_cycles={cycles}");
        let mut rig = Rig::on(machine("pspin-400g", &[&set]), &handler);
        rig.run(&[0; 64]);
        assert_eq!(rig.run(&[0; 64]).0, 26 + 2 + cycles + 2);
    }
}

/// Returns cycles and bank conflicts of eight HPUs of a cluster that load 64 words each at the same time.
fn cycles_of_eight(stride: u32) -> (u64, u64) {
    // a1 = scratchpad + hpu * stride; 64 loads from a1
    let [args, hpu] = [A2, A3];
    let mut handler = li(A1, L1 + SCRATCHPAD).to_vec();
    handler.extend([addi(args, A0, 0), lw(hpu, args, 12)]);
    handler.extend(std::iter::repeat_n(add(A1, A1, hpu), stride as usize));
    handler.extend(std::iter::repeat_n(lw(A4, A1, 0), 64));
    handler.push(RET);
    let mut rig = Rig::on(machine("pspin-400g", &["accelerator.clusters=1"]), &handler);
    rig.run(&[0; 64]);
    let (known, conflicts) = (rig.nic.feedback.len(), rig.unit.observer().conflicts);
    let first = rig.submit_as(100, &[0; 64]);
    for message in 101..108 {
        rig.submit_as(message, &[0; 64]);
    }
    rig.wait(5_000);
    let last = rig.nic.feedback[known..].iter().map(|(at, _)| *at).max().unwrap();
    assert_eq!(rig.nic.feedback.len() - known, 8);
    (last - first, rig.unit.observer().conflicts - conflicts)
}

#[test]
fn hpus_that_use_the_same_bank_take_turns() {
    // Each HPU has a private bank; the DMA transfers of later packets may conflict.
    let (alone, few) = cycles_of_eight(4);
    assert!(few <= 16, "{few}");
    // All use one bank: 8 × 64 accesses take 512 cycles.
    let (together, conflicts) = cycles_of_eight(0);
    assert!((512..600).contains(&together), "{together}");
    assert!(together - alone > 380, "{alone} {together}");
    // Seven of eight requesting HPUs wait.
    assert!((7 * 448..7 * 520).contains(&conflicts), "{conflicts}");
}

#[test]
fn atomic_operations_of_all_hpus_count_exactly() {
    // Handler memory, and the scratchpad of cluster 0, which is remote for most HPUs.
    let handler = [
        &li(A1, HANDLER + 0x1000)[..],
        &li(A3, L1 + SCRATCHPAD),
        &[addi(A2, ZERO, 1)],
        &[amoadd(0, A2, A1); 10],
        &[amoadd(0, A2, A3); 10],
        &[RET],
    ]
    .concat();
    let mut rig = Rig::new(&handler);
    (0..500).for_each(|_| rig.submit(&[0; 64]));
    rig.wait(100_000);
    assert_eq!(rig.nic.feedback.len(), 500);
    assert_eq!((rig.word(HANDLER + 0x1000), rig.word(L1 + SCRATCHPAD)), (5_000, 5_000));
    assert!(rig.unit.observer().ended.iter().map(|(_, hpu)| hpu).collect::<std::collections::BTreeSet<_>>().len() > 16);
}

/// In each memory, the handler may use the first and the last byte, but not their neighbours.
#[test]
fn protection_is_to_the_byte() {
    let outcome = |address: u32, store: bool| {
        // lb or sb
        let access = if store { immediate(0x23, 0, 0, A1, 0) } else { immediate(0x03, 0, A2, A1, 0) };
        let mut rig = Rig::new(&[&li(A1, address)[..], &[access, RET]].concat());
        rig.context.handler_memory = Range { address: HANDLER + 0x1001, size: 3 };
        rig.context.scratchpads[0] = Range { address: L1 + SCRATCHPAD + 1, size: 5 };
        rig.context.scratchpads[2] = Range { address: L1 + 2 * SPAN + SCRATCHPAD, size: 1 };
        rig.run(&[0; 61]).1
    };
    let packet_buffer = machine("pspin-400g", &[]).cluster.runtime;
    for (first, size, write) in [
        (HANDLER + 0x1001, 3, true),
        (L1 + SCRATCHPAD + 1, 5, true),
        (L1 + 2 * SPAN + SCRATCHPAD, 1, true),
        (L1 + packet_buffer, 61, true),
        (0x1B00_0000 + packet_buffer, 61, true),
        (PACKET, 61, true),
        (L1, 1024, true),
        (PROGRAM, 24 * 4 + 16, false),
    ] {
        for (address, inside) in [(first, true), (first + size - 1, true), (first - 1, false), (first + size, false)] {
            let at = |fault: Fault| TaskOutcome::Faulted(Failure::Fault(fault));
            let pc = PROGRAM + 24 * 4 + 8;
            let denied_load = at(Fault::Load { pc, addr: address, len: 1 });
            let denied_store = at(Fault::Store { pc, addr: address, len: 1 });
            let expected = |allowed: bool, denied| if allowed { TaskOutcome::Done } else { denied };
            assert_eq!(outcome(address, false), expected(inside, denied_load), "{address:#x}");
            assert_eq!(outcome(address, true), expected(inside && write, denied_store), "{address:#x}");
        }
    }
}

/// All handlers of a program share its static data. Only the first context has the initial handler memory, and the rest
/// of L2 handler memory belongs to no context.
#[test]
fn contexts_share_static_data_and_not_handler_memory() {
    const FIRST: u32 = 0x1C30_0000;
    // Adds 1 to the byte at the address in the first word of the packet.
    let handler = [
        &task_word(A1, 2)[..],
        &[lw(A1, A1, 0), immediate(0x03, 4, A2, A1, 0), addi(A2, A2, 1), immediate(0x23, 0, 0, A1, 0) | A2 << 20, RET],
    ]
    .concat();
    let mut rig = Rig::with_data(&handler, &[(HANDLER, vec![7; 20]), (FIRST, vec![9; 40])]);
    let pc = PROGRAM + 24 * 4 + 12;
    let first = Range { address: FIRST, size: 40 };
    let second = Range { address: FIRST + 64, size: 64 };
    for (memory, address, value) in [
        (first, HANDLER, Some(8)),
        (second, HANDLER, Some(9)),
        (second, HANDLER + 19, Some(8)),
        (first, HANDLER + 20, None),
        (first, FIRST, Some(10)),
        (first, FIRST + 39, Some(10)),
        (second, FIRST, None),
        (second, FIRST + 39, None),
        (second, FIRST + 64, Some(1)),
        (first, FIRST + 64, None),
        (second, FIRST - 1, None),
    ] {
        rig.context.handler_memory = memory;
        let outcome = rig.run(&[&address.to_le_bytes()[..], &[0; 60]].concat()).1;
        let fault = Fault::Load { pc, addr: address, len: 1 };
        let expected = value.map_or(TaskOutcome::Faulted(Failure::Fault(fault)), |_| TaskOutcome::Done);
        assert_eq!(outcome, expected, "{address:#x}");
        if let Some(value) = value {
            assert_eq!(rig.unit.memory().read(address, 1).unwrap(), [value], "{address:#x}");
        }
    }
}

/// An HPU of cluster 1 loads a word a hundred times, in each cycle. One of cluster 0 loads the same word, starting a
/// cycle earlier; from the 8th cycle on, its loads arrive every 16 cycles. Each takes the bank from the other HPU.
#[test]
fn words_of_other_clusters_take_banks() {
    let handler = [&li(A1, L1 + SPAN + SCRATCHPAD)[..], &[lw(A2, A1, 0); 100], &[RET]].concat();
    let mut rig = Rig::new(&handler);
    let mut conflicts = |messages: [u32; 2]| {
        let before = rig.unit.observer().conflicts;
        for message in messages {
            rig.submit_as(message, &[]);
            rig.wait(1);
        }
        rig.wait(4_000);
        rig.unit.observer().conflicts - before
    };
    conflicts([0, 1]);
    assert_eq!(conflicts([4, 5]), 7);
}
