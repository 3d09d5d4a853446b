// SPDX-License-Identifier: Apache-2.0
//! Noise delays the CPU, and never the card (sPIN §4.4.1).

use serde_json::Value;

use crate::harness::{broadcast, ping_pong, reported, spinrun};

/// Detours of 1 ns every 2 ns: the CPU gets half of the time.
const HALF: &str = "--noise periodic:2:1";

/// Returns half of the round trip of 8 B or 8 KiB, in picoseconds.
fn half_rtt(mode: &str, nic: &str, bytes: u64, noise: &str) -> u64 {
    let run = spinrun(&format!("-n 2 --nic {nic} {noise}"), &ping_pong(), &format!("--mode {mode} --sizes {bytes}"));
    let line: Value = serde_json::from_str(&run.ok()).unwrap();
    assert_eq!(line["data_ok"], true);
    line["half_rtt_ps"].as_u64().unwrap()
}

#[test]
fn a_noisy_destination_delays_rdma_and_never_a_card() {
    let noise = format!("{HALF} --noise-ranks 1");
    for bytes in [8, 8192] {
        for (mode, nic) in [("triggered", "portals4"), ("store", "spin"), ("stream", "spin")] {
            assert_eq!(half_rtt(mode, nic, bytes, &noise), half_rtt(mode, nic, bytes, ""), "{mode} {bytes}");
        }
        // Rank 1's CPU polls (51 ns), matches (30 ns) and posts (65 ns), one after the other. These 146 ns meet 146
        // detours, the first of which may have started before.
        let longer = 2 * (half_rtt("rdma", "rdma", bytes, &noise) - half_rtt("rdma", "rdma", bytes, ""));
        assert!((145_000..=146_000).contains(&longer), "{bytes}: {longer} ps");
    }
}

#[test]
fn a_noisy_source_delays_every_card_by_its_own_work() {
    // Rank 0's CPU posts (65 ns), and polls after the pong (51 ns): two pieces of work.
    let noise = format!("{HALF} --noise-ranks 0");
    for (mode, nic) in [("triggered", "portals4"), ("store", "spin"), ("stream", "spin")] {
        let longer = 2 * (half_rtt(mode, nic, 8, &noise) - half_rtt(mode, nic, 8, ""));
        assert!((114_000..=116_000).contains(&longer), "{mode}: {longer} ps");
    }
}

#[test]
fn noise_is_in_the_report_and_the_same_for_the_same_seed() {
    let run = |seed: &str| {
        let noise = format!("--noise poisson:20:20 --noise-seed {seed} --noise-ranks 1-7");
        let (run, report) =
            reported(&format!("-n 8 --nic rdma {noise}"), &broadcast(), "--ranks 8 --mode rdma --bytes 8");
        (run.ok(), report)
    };
    let one = run("1");
    assert_eq!(one, run("1"));
    assert_ne!(one, run("2"));
    let noise = &one.1["noise"];
    assert_eq!(noise["detours"]["interval_ns"], 20);
    assert_eq!(noise["detours"]["ranks"], serde_json::json!([[1, 7]]));
    let delays = noise["delay_ps"].as_array().unwrap();
    assert_eq!(delays[0], 0);
    assert!(delays.len() == 8 && delays[1..].iter().all(|delay| delay.as_u64().unwrap() > 0), "{noise}");
    let quiet = reported("-n 8 --nic rdma", &broadcast(), "--ranks 8 --mode rdma --bytes 8").1;
    assert_eq!(quiet.get("noise"), None);
}

#[test]
fn impossible_noise_is_wrong_usage() {
    spinrun("--noise periodic:5:5", &ping_pong(), "").ended(2, "must be shorter than their period");
    spinrun("--noise-ranks 1", &ping_pong(), "").ended(2, "--noise <WHAT>");
    spinrun("--noise periodic:5:1 --noise-ranks 2-1", &ping_pong(), "").ended(2, "is like 1 or 0-3,7");
}
