// SPDX-License-Identifier: Apache-2.0
//! Banks of L1: arbitration cycle by cycle (PsPIN §III-C, §IV-B2).

use pspin_unit::Cycle;
use pspin_unit::memory::Banks;

use crate::rig::machine;

/// 64 banks of one word: addresses 256 B apart share a bank.
#[test]
fn one_access_a_bank_and_cycle() {
    let mut banks = Banks::new(&machine("pspin-400g", &[]));
    assert!(banks.take(Cycle(5), 0, false));
    assert!(!banks.take(Cycle(5), 256, false), "the same bank");
    assert!(banks.take(Cycle(5), 260, false), "another bank");
    assert!(banks.take(Cycle(6), 256, false), "the next cycle");
    // Words have 4 B: a byte access takes the bank of its word.
    assert!(!banks.take(Cycle(6), 3, false));
}

/// An atomic operation takes its bank for two cycles.
#[test]
fn an_atomic_reads_and_writes() {
    let mut banks = Banks::new(&machine("pspin-400g", &[]));
    assert!(banks.take(Cycle(0), 8, true));
    assert!(!banks.take(Cycle(1), 8, false) && banks.take(Cycle(1), 12, false));
    assert!(banks.take(Cycle(2), 8, false));
}

/// A 64 B beat takes 16 banks, and wins.
#[test]
fn a_beat_takes_sixteen_banks() {
    let mut banks = Banks::new(&machine("pspin-400g", &[]));
    banks.announce(Cycle(9), 0x40, 64);
    let granted: Vec<bool> = (0..64).map(|bank| banks.take(Cycle(9), bank * 4, false)).collect();
    assert!(granted.iter().enumerate().all(|(bank, granted)| *granted != (16..32).contains(&bank)));
    // A beat wraps from the last bank to the first.
    banks.announce(Cycle(10), 0xe0, 64);
    assert!(
        !banks.are_free(Cycle(10), 0, 4) && !banks.are_free(Cycle(10), 0x1c, 4) && banks.are_free(Cycle(10), 0x20, 4)
    );
    assert!(banks.are_free(Cycle(11), 0, 256));
}

/// If beats do not win, an HPU that loses gets priority in the next cycle, and the beat's word is written a cycle
/// later.
#[test]
fn beats_and_hpus_may_take_turns() {
    let mut banks = Banks::new(&machine("pspin-400g", &["accelerator.l1.dma_wins=false"]));
    (20..24).for_each(|cycle| banks.announce(Cycle(cycle), 0, 64));
    assert!(!banks.take(Cycle(20), 4, false), "the beat first");
    assert!(banks.take(Cycle(21), 4, false), "then the HPU");
    assert!(!banks.take(Cycle(22), 4, false), "then the beat that has waited");
    assert!(banks.take(Cycle(23), 4, false));
    assert!(!banks.take(Cycle(24), 4, false), "the last beat is late");
    assert!(banks.take(Cycle(25), 4, false));
}

/// More banks than fit into a 64-bit word, and fewer.
#[test]
fn any_number_of_banks() {
    let mut many = Banks::new(&machine("pspin-400g", &["accelerator.l1.banks=256"]));
    many.announce(Cycle(1), 64 * 4 - 32, 64);
    assert!(!many.take(Cycle(1), 63 * 4, false) && !many.take(Cycle(1), 64 * 4, false));
    assert!(many.take(Cycle(1), 72 * 4, false) && many.take(Cycle(1), 255 * 4, false));
    let mut few = Banks::new(&machine("pspin-400g", &["accelerator.l1.banks=16"]));
    few.announce(Cycle(1), 8, 64);
    assert!((0..16).all(|bank| !few.take(Cycle(1), bank * 4, false)), "a beat takes all");
}
