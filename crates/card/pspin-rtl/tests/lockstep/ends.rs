// SPDX-License-Identifier: Apache-2.0
//! Ways in which handlers wait and end, with both HPUs at work: commands, transfers, failures of every kind, the
//! watchdog.

use pspin_rtl::lockstep::traffic::{Packet, Random, Traffic};

use super::small_machine::{Run, Tiny, packet};

/// Watchdog threshold in cycles.
const WATCHDOG: u64 = 800;

/// Encodes a step of `steps_ph` in `ends.c`: action `what`, `often` times, or the number of a failing instruction.
const fn step(what: u8, often: u8) -> u8 {
    what | often << 4
}
const WORK: u8 = 0;
const ATOMIC: u8 = 1;
const SEND: u8 = 2;
const WAIT: u8 = 3;
const FAIL: u8 = 4;
const ENDLESS: u8 = 5;
const COPY: u8 = 6;
const NOTHING: u8 = 7;

/// Returns a packet with these steps.
fn steps(at: u64, message: u32, steps: &[u8]) -> Packet {
    let mut packet = packet(at, message, 64, true);
    packet.bytes.fill(NOTHING);
    packet.bytes[..steps.len()].copy_from_slice(steps);
    packet
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_end_alone_and_beside_others() {
    let tiny = Tiny::new();
    let mut programs: Vec<Vec<u8>> = vec![
        vec![WORK],
        vec![step(WORK, 15), step(ATOMIC, 3)],
        vec![step(SEND, 1), WAIT],
        vec![step(SEND, 3), step(SEND, 9), WAIT, WAIT],
        vec![SEND, SEND, SEND, SEND, SEND, SEND, WAIT],
        vec![step(COPY, 15), step(WORK, 2)],
        vec![ENDLESS],
        vec![step(COPY, 15), ENDLESS],
        vec![SEND, SEND, SEND, step(FAIL, 1)],
        vec![step(COPY, 15), step(COPY, 15), step(COPY, 15), step(FAIL, 1)],
    ];
    programs.extend((0..16).map(|kind| vec![step(FAIL, kind)]));
    for program in programs {
        for count in [1, 2, 6] {
            let packets = (0..count).map(|number| steps(u64::from(number) * 3, number, &program)).collect();
            let compared = tiny.run(Run { names: &["steps"], packets, watchdog: WATCHDOG, ..Run::default() });
            let compared = compared.unwrap_or_else(|error| panic!("{program:?}, {count} packets: {error}"));
            assert_eq!(compared.packets, count.into(), "{program:?}");
        }
    }
}

/// Returns random packets with random steps: with commands, or with atomic operations and copies by the cluster's DMA
/// engine.
fn programs(seed: u64, count: usize) -> Vec<Packet> {
    let mut random = Random::new(seed ^ 0x5EED);
    let mut packets = Traffic { packets: count, contexts: 1, unfinished: 0, broken: 0 }.draw(seed);
    for byte in packets.iter_mut().flat_map(|packet| packet.bytes.iter_mut().take(8)) {
        let [word, transfer, wait] = if seed.is_multiple_of(2) { [WORK, SEND, WAIT] } else { [ATOMIC, COPY, NOTHING] };
        let kinds = [WORK, word, transfer, wait, NOTHING, NOTHING];
        let what = match random.below(40) {
            0 => FAIL,
            1 if random.below(4) == 0 => ENDLESS,
            _ => kinds[random.below(kinds.len() as u64) as usize],
        };
        *byte = step(what, random.below(16) as u8);
    }
    packets
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn random_programs() {
    let tiny = Tiny::new();
    for seed in 1..=20 {
        for held in [0, 6] {
            let packets = programs(seed.into(), 100);
            let run = Run { names: &["steps"], packets, seed, held, watchdog: WATCHDOG, ..Run::default() };
            let compared = tiny.run(run);
            let compared = compared.unwrap_or_else(|error| panic!("seed {seed}, held {held}: {error}"));
            assert!(compared.packets >= 100 && compared.events > 6 * compared.packets, "{compared:?}");
        }
    }
}
