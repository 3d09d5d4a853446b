// SPDX-License-Identifier: Apache-2.0
//! Tests the PsPIN machines: values against the paper and the published design, and invalid values.

use std::path::{Path, PathBuf};

use machine::pspin::{DispatchPolicy, Lru, Overload};
use machine::{Accelerator, Machine, Pspin, Scheduler};
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines")
}

fn load(name: &str, set: &[&str]) -> Result<Machine, machine::MachineError> {
    let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
    Machine::load(name, &[folder()], &set)
}

fn unit(name: &str) -> Pspin {
    match load(name, &[]).unwrap().accelerator {
        Accelerator::Pspin(unit) => *unit,
        other => panic!("{}", other.kind()),
    }
}

fn rows(name: &str) -> Vec<(&'static str, String)> {
    load(name, &[]).unwrap().describe().into_iter().map(|(key, value, _)| (key, value)).collect()
}

/// Returns the keys in which a machine differs from pspin-400g, and its values.
fn differences(name: &str) -> Vec<(&'static str, String)> {
    let base = rows("pspin-400g");
    rows(name).into_iter().filter(|row| !base.contains(row)).collect()
}

#[test]
fn pspin_400g_is_the_paper() {
    let machine = load("pspin-400g", &[]).unwrap();
    assert_eq!((machine.hpu.kind.as_str(), machine.hpu.clock.as_khz()), ("rv32imac", 1_000_000));
    let unit = unit("pspin-400g");
    assert_eq!((unit.units.clusters, unit.units.hpus, unit.hpus()), (4, 8, 32));
    assert_eq!((unit.mpq.queues, unit.cells()), (256, 128 + 256));
    assert_eq!(
        (unit.mpq.lru, unit.dispatch.policy, unit.units.overload),
        (Lru::Tree, DispatchPolicy::Home, Overload::Block)
    );
    // §III-B2: packet buffer 32 KiB, runtime 8 KiB, scratchpads 984 KiB.
    assert_eq!(unit.scratchpad(), 984 << 10);
    assert_eq!((unit.l2_packet.bytes, unit.l2_handler.bytes, unit.program.bytes), (4 << 20, 4 << 20, 32 << 10));
    // §III-C: 512 bit and 32 bit at 1 GHz.
    assert_eq!((unit.dma.width_bits, unit.nhi.width_bits, unit.pe.width_bits), (512, 512, 32));
    // §IV-B1: 3 ns to the cluster; 12 ns for 64 B and 26 ns for 1,024 B.
    assert_eq!(unit.mpq.select_cycles + unit.dispatch.cycles, 3);
    let transfer = |bytes: u32| unit.dma.latency_cycles + unit.dma.least_beats.max(bytes.div_ceil(64));
    assert_eq!((transfer(64), transfer(1024)), (12, 26));
    // §IV: 16 lanes of 32 GT/s, 128 of 130 bits.
    let bytes_per_second: f64 = 32e9 * 16.0 * 128.0 / 130.0 / 8.0;
    assert_eq!((1e15 / bytes_per_second / 10.0).round() as u64 * 10, unit.host.gap_per_byte.as_fs_per_byte());
    assert!(unit.inbound.gap_per_byte.as_fs_per_byte() == 0 && unit.outbound.gap_per_byte.as_fs_per_byte() == 0);
    // Limits that Portals programs see.
    let accelerator = &machine.accelerator;
    assert_eq!((accelerator.hpus(), accelerator.program(), accelerator.data()), (32, 32 << 10, 4 << 20));
    assert_eq!((accelerator.packet_buffer(), accelerator.watchdog_cycles()), (4 << 20, 1_000_000));
    assert_eq!((accelerator.max_initial_state(), accelerator.max_user_hdr()), (4096, 64));
    assert!(!accelerator.watchdog_flow_control());
}

#[test]
fn the_other_machines_differ_where_they_say_so() {
    let expected =
        |rows: &[(&'static str, &str)]| rows.iter().map(|(key, value)| (*key, (*value).to_owned())).collect::<Vec<_>>();
    assert_eq!(
        differences("pspin-published"),
        expected(&[
            ("accelerator.cluster.packet_buffer_bytes", "65536"),
            ("accelerator.cluster.runtime_bytes", "17408"),
            ("accelerator.cluster.feedback_cycles", "2"),
            ("accelerator.icache.line_bytes", "16"),
            ("accelerator.icache.miss_cycles", "8"),
            ("accelerator.dma.latency_cycles", "11"),
            ("accelerator.dma.least_beats", "1"),
            ("accelerator.commands.path_cycles", "3"),
            ("accelerator.commands.response_cycles", "1"),
            ("accelerator.commands.in_flight_per_target", "7"),
            ("accelerator.commands.host_direct_bytes", "64"),
            ("accelerator.outbound.l2_gap_cycles", "1"),
            ("accelerator.off_cluster.start_cycles", "6"),
            ("accelerator.off_cluster.l2_gap_cycles", "1"),
            ("accelerator.off_cluster.write_credit_cycles", "1"),
            ("accelerator.off_cluster.read_credit_cycles", "4"),
            ("accelerator.host.write_cycles", "4"),
            ("accelerator.host.read_cycles", "9"),
            ("accelerator.host.G_ps_per_byte", "14.782"),
            ("accelerator.host.read_G_ps_per_byte", "18.8"),
        ])
    );
    assert_eq!(
        differences("pspin-200g"),
        expected(&[("network.G_ps_per_byte", "40"), ("network.g_ns", "2.56"), ("accelerator.clusters", "2")])
    );
    assert_eq!(
        differences("pspin-800g"),
        expected(&[
            ("network.G_ps_per_byte", "10"),
            ("network.g_ns", "0.64"),
            ("dma.G_ps_per_byte", "7.94"),
            ("accelerator.clusters", "8"),
            ("accelerator.l2_packet.bank_bits", "1024"),
            ("accelerator.dma.width_bits", "1024"),
            ("accelerator.nhi.width_bits", "1024"),
            ("accelerator.host.G_ps_per_byte", "7.94"),
        ])
    );
}

#[test]
fn keys_have_units() {
    let rows = load("pspin-400g", &[]).unwrap().describe();
    for row in [
        ("accelerator.l1.bytes", "1048576", "B"),
        ("accelerator.l1.bank_bits", "32", "bit"),
        ("accelerator.dispatch.cycles", "1", "cycles"),
        ("accelerator.inbound.G_ps_per_byte", "0", "ps/B"),
        ("accelerator.clusters", "4", ""),
    ] {
        assert!(rows.contains(&(row.0, row.1.to_owned(), row.2)), "{row:?}");
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    let error = |set: &[&str]| {
        let text = load("pspin-400g", set).unwrap_err().to_string();
        text.rsplit_once("pspin-400g.toml: ").map_or(text.clone(), |(_, rest)| rest.to_owned())
    };
    for (set, expected) in [
        ("accelerator.clusters=0", "--set accelerator.clusters=0: must be at least 1, is 0"),
        ("accelerator.clusters=41", "--set accelerator.clusters=41: must be at most 40, is 41"),
        ("accelerator.l1.banks=48", "--set accelerator.l1.banks=48: must be a power of two, is 48"),
        ("accelerator.dma.width_bits=2048", ""),
        (
            "accelerator.l1.banks=8",
            "accelerator.dma.width_bits: must be at most accelerator.l1.banks x bank_bits (256), is 512",
        ),
        (
            "accelerator.hpus_per_cluster=9",
            "accelerator.cluster.runtime_bytes: must hold the stacks of accelerator.hpus_per_cluster HPUs (9216), is 8192",
        ),
        (
            "accelerator.cluster.packet_buffer_bytes=1040384",
            "--set accelerator.cluster.packet_buffer_bytes=1040384: must leave room for scratchpads: less than 1040384, is 1040384",
        ),
        (
            "accelerator.limits.max_packet_bytes=40000",
            "accelerator.cluster.packet_buffer_bytes: must hold a packet of accelerator.limits.max_packet_bytes (40000), is 32768",
        ),
        (
            "accelerator.limits.max_packet_bytes=1024",
            "--set accelerator.limits.max_packet_bytes=1024: must be at least 2048, is 1024",
        ),
        (
            "accelerator.mpq.queues=2048",
            "accelerator.inbound.message_ids: must be at least accelerator.mpq.queues (2048), is 1024",
        ),
        (
            "hpu.timing=ooo-a15",
            "--set hpu.timing=ooo-a15: an HPU of PsPIN is an in-order core, \"inorder\"; is \"ooo-a15\"",
        ),
        (
            "hpu.kind=armv7a",
            "--set hpu.kind=armv7a: an HPU of PsPIN is a RISC-V core, such as \"rv32imac\" (PsPIN §III); is \"armv7a\"",
        ),
        (
            "accelerator.overload=lose",
            "--set accelerator.overload=lose: must be one of \"block\", \"drop\", \"ecn\", is \"lose\"",
        ),
        (
            "accelerator.hpus=8",
            "--set accelerator.hpus=8: unknown key: only accelerator.kind = \"sc17\" has it; the number of HPUs is \
accelerator.clusters x accelerator.hpus_per_cluster",
        ),
        ("accelerator.l1.bytes=8388608", "--set accelerator.l1.bytes=8388608: must be at most 4194304, is 8388608"),
    ] {
        match expected {
            "" => assert!(load("pspin-400g", &[set]).is_ok(), "{set}"),
            _ => assert_eq!(error(&[set]), expected),
        }
    }
    // Any number of clusters and HPUs, not only powers of two.
    for (clusters, hpus) in [(1, 1), (2, 4), (8, 8), (3, 5), (40, 8)] {
        let set = [format!("accelerator.clusters={clusters}"), format!("accelerator.hpus_per_cluster={hpus}")];
        let machine = Machine::load("pspin-400g", &[folder()], &set).unwrap();
        assert_eq!(machine.accelerator.hpus(), clusters * hpus);
    }
    // Keys of another kind of accelerator are unknown.
    let error = load("sc17-int", &["accelerator.clusters=2"]).unwrap_err().to_string();
    assert_eq!(error, "--set accelerator.clusters=2: unknown key: only accelerator.kind = \"pspin\" has it");
}

/// The keys of tenants are optional, equal for both kinds, and no constants of the hardware.
#[test]
fn a_card_may_be_shared() {
    for name in ["sc17-int", "pspin-400g"] {
        let plain = load(name, &[]).unwrap();
        assert!(plain.accelerator.sharing().is_off() && plain.accelerator.sharing().separated().is_none());
        assert!(plain.describe().iter().all(|row| !row.0.contains("sharing")), "{name}");
        let set = ["accelerator.sharing.scheduler=weighted", "accelerator.sharing.fragment_bytes=512"];
        let shared = load(name, &set).unwrap();
        let sharing = shared.accelerator.sharing();
        assert_eq!((sharing.separated(), sharing.fragment), (Some(Scheduler::Weighted), Some(512)));
        assert_eq!(sharing.hold_cycles(), 10_000);
        assert!(shared.describe().contains(&("accelerator.sharing.fragment_bytes", "512".to_owned(), "B")));
        if let (Some(shared), Some(plain)) = (shared.systemverilog(), plain.systemverilog()) {
            assert_eq!(shared, plain);
        }
        for (set, reason) in [
            ("scheduler=fair", "must be one of \"fifo\", \"round-robin\", \"weighted\", \"strict\", is \"fair\""),
            ("fragment_bytes=100", "must be a multiple of 64, is 100"),
            ("fragment_bytes=0", "must be at least 64, is 0"),
            ("hold_cycles=0", "must be at least 1, is 0"),
        ] {
            let set = format!("accelerator.sharing.{set}");
            let error = load(name, &[&set]).unwrap_err().to_string();
            assert_eq!(error, format!("--set {set}: {reason}"));
        }
    }
}

#[test]
fn the_hardware_has_every_key() {
    let [(_, tiny), (_, registers)] = load("pspin-tiny", &[]).unwrap().systemverilog().unwrap();
    for line in [
        "  localparam int unsigned Clusters = 1;  // clusters",
        "  localparam int unsigned ClusterTasks = 4;  // cluster.tasks",
        "  localparam int unsigned L1BankBits = 32;  // l1.bank_bits, bit",
        "  localparam bit L1DmaWins = 1'b1;  // l1.dma_wins",
        "  typedef enum logic [0:0] {MpqLruTree, MpqLruExact} mpq_lru_e;",
        "  localparam dispatch_policy_e DispatchPolicy = DispatchPolicyHome;  // dispatch.policy",
    ] {
        assert!(tiny.lines().any(|found| found == line), "{line}");
    }
    // Only the rates of links have no constant.
    let machine = load("pspin-tiny", &[]).unwrap();
    let rows =
        machine.describe().into_iter().filter(|row| row.0.starts_with("accelerator.") && row.0 != "accelerator.kind");
    let keys = rows.filter(|(.., unit)| *unit != "ps/B").map(|row| row.0.trim_start_matches("accelerator."));
    let missing: Vec<_> = keys.filter(|key| !tiny.contains(&format!("  // {key}"))).collect();
    assert_eq!(missing, [""; 0]);
    let long = load("pspin-tiny", &["accelerator.mpq.idle_cycles=5000000000"]).unwrap().systemverilog().unwrap();
    assert!(long[0].1.contains("  localparam longint unsigned MpqIdleCycles = 5000000000;"));
    assert!(registers.contains("  localparam logic [31:0] MapDriver = 32'h1B20_5000;"));
    assert!(load("sc17-int", &[]).unwrap().systemverilog().is_none());
}

/// Boundary values of counts, sums and products.
fn extreme() -> impl Strategy<Value = String> {
    let powers = (0_u32..40, -1_i64..2).prop_map(|(power, off)| ((1_i64 << power) + off).to_string());
    prop_oneof![4 => powers, 1 => prop::sample::select(vec!["0", "-1", "1e18", "x"]).prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any values, either the error names a key, or all derived values are within their bounds.
    #[test]
    fn extreme_parameters_are_refused_or_computed_with(
        changes in prop::collection::vec((0_usize..200, extreme()), 1..4),
    ) {
        let keys: Vec<&str> = rows("pspin-400g").iter().map(|row| row.0).filter(|key| key.starts_with("accelerator.")).collect();
        let sets: Vec<String> = changes.iter().map(|(key, value)| format!("{}={value}", keys[key % keys.len()])).collect();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        match load("pspin-400g", &sets) {
            Err(error) => {
                let text = error.to_string();
                prop_assert!(keys.iter().any(|key| text.contains(key)), "{text}");
            }
            Ok(machine) => {
                let Accelerator::Pspin(unit) = &machine.accelerator else { panic!("{}", machine.accelerator.kind()) };
                prop_assert!(unit.hpus() >= 1 && unit.scratchpad() >= 1 && unit.cells() >= 1);
                prop_assert!(Pspin::L1_START + unit.units.clusters * Pspin::L1_SPAN <= 0x1A10_0000);
            }
        }
    }
}
