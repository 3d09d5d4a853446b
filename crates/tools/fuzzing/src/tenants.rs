// SPDX-License-Identifier: Apache-2.0
//! A hostile job beside a victim. The first two cards are the hostile job's, and make arbitrary calls with arbitrary
//! handlers. The last card is the victim's: its entry is open to all users and operations, and forged packets arrive at
//! it. Memory, events, counters and statistics of the victim must stay as they are.

use std::rc::Rc;

use abi::portals::{self as ptl, CtEvent, Le, Me, Process, me, ni};
use arbitrary::{Result, Unstructured};
use nic::{Member, Partition};

use super::cards::world::{BYTES, START, World};
use super::cards::{Append, CALLS, CT, ENTRY, EQ, EVENTS, NI, NODES, Program, foreign_message, machine, program};

/// Node of the victim.
const VICTIM: usize = NODES as usize - 1;

/// Executes an input.
pub fn play(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let machine = machine(u.arbitrary().unwrap_or_default());
    let mut world = World::new(&machine, NODES);
    let mut jobs = Program { bystanders: 1, ..Program::default() };
    if machine.nic.runs_handlers() {
        let length = u.int_in_range(0..=64).unwrap_or_default();
        let code = u.bytes(length).unwrap_or_default();
        if let Some(device) = program::program(&machine, code) {
            for card in &mut world.bench.cards {
                card.share_program(device.clone()).expect("the program was prepared for these cards");
            }
        }
    }
    for nodes in [(0..VICTIM as u32).collect::<Vec<u32>>(), vec![VICTIM as u32]] {
        let processes = nodes.iter().map(|node| vec![*node]).collect();
        let partition = Rc::new(Partition::new(processes, VICTIM as u32 + 1));
        for (nid, node) in (0..).zip(nodes) {
            // One user runs both jobs, so the entries' user ids protect nothing.
            world.bench.cards[node as usize].portals_mut().join(Member::alone(&partition, nid), 7);
        }
    }
    for node in 0..VICTIM {
        jobs.open(&mut world, node, ni::MATCHING | ni::LOGICAL);
    }
    expose(&mut jobs, &mut world);
    let before = world.host(VICTIM).memory.clone();
    for _ in 0..CALLS {
        if u.is_empty() || act(&mut jobs, &mut world, &mut u).is_err() {
            break;
        }
    }
    let has_ended = world.run(EVENTS);
    check(&jobs, &mut world, &before);
    if has_ended {
        jobs.end(&mut world);
    }
}

/// Opens the victim's interfaces, each with an entry that takes every message.
fn expose(jobs: &mut Program, world: &mut World) {
    for options in [ni::MATCHING | ni::LOGICAL, ni::MATCHING | ni::PHYSICAL] {
        jobs.open(world, VICTIM, options);
        let (ni, ct) = (jobs.handles[VICTIM][NI].last().copied(), jobs.handles[VICTIM][CT].last().copied());
        let (Some(ni), Some(ct)) = (ni, ct) else { unreachable!("a new card has room for an interface") };
        let options = me::OP_PUT | me::OP_GET | me::EVENT_CT_COMM | me::EVENT_LINK_DISABLE;
        let le = Le { start: START, length: BYTES as u64 / 2, ct_handle: ct, uid: ptl::ID_ANY, options, pad: 0 };
        let anybody = Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY };
        let me = Me { le, match_id: anybody, ignore_bits: u64::MAX, hpu_memory: ptl::INVALID_HANDLE, ..Me::default() };
        for pt_index in 0..2 {
            jobs.append(world, VICTIM, ni, Me { pad: pt_index, ..me }, 0, Append::Now);
        }
    }
    assert_eq!(jobs.handles[VICTIM][ENTRY].len(), 4, "the victim's entries");
}

/// Makes a call of the hostile job, or forges a packet to the victim.
fn act(jobs: &mut Program, world: &mut World, u: &mut Unstructured<'_>) -> Result<()> {
    if u.ratio(1, 4)? {
        let source = u.int_in_range(0..=VICTIM as u32 - 1)?;
        let pt_index = u32::from(u.arbitrary::<u8>()? % 4);
        return foreign_message(world, (source, VICTIM), pt_index, u);
    }
    jobs.call(world, u)
}

/// Checks that the victim has noticed nothing.
fn check(jobs: &Program, world: &mut World, before: &[u8]) {
    assert!(world.host(VICTIM).memory == before, "memory of the victim has changed");
    let card = &mut world.bench.cards[VICTIM];
    for &queue in &jobs.handles[VICTIM][EQ] {
        assert!(matches!(card.portals_mut().eq_take(queue), Ok(None)), "an event reached the victim");
    }
    for &ct in &jobs.handles[VICTIM][CT] {
        assert_eq!(card.portals_mut().ct_value(ct), Ok(CtEvent { success: 0, failure: 0 }), "a counter of the victim");
    }
    let stats = card.stats();
    assert_eq!((stats.dma_bytes, stats.handlers.len()), (0, 0), "DMA and handlers of the victim");
    for &entry in &jobs.handles[VICTIM][ENTRY] {
        assert!(card.portals_mut().unlink(entry).is_ok(), "an entry of the victim is in use or gone");
    }
}
