// SPDX-License-Identifier: Apache-2.0
//! Tests that every machine parameter is used: code outside the loader reads it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use machine::Machine;

/// Each key and an expression that reads it.
const READERS: [(&str, &str); 76] = [
    ("network.model", "NetworkModel::Fabric =>"),
    ("network.topology", "network.topology"),
    ("network.radix", "network.radix"),
    ("network.switch_ns", "network.switch"),
    ("network.wire_ns", "network.wire"),
    ("network.G_ps_per_byte", "network.gap_per_byte"),
    ("network.g_ns", "network.gap"),
    ("network.injection", "Injection::Sum"),
    ("network.reception", "Reception::StoreAndForward"),
    ("network.mtu_bytes", "network.mtu"),
    ("network.retransmit_ns", "network.retransmit"),
    ("network.retries", "network.retries"),
    ("network.fabric.buffer_bytes", "fabric.buffer"),
    ("network.fabric.flow", "fabric.flow"),
    ("network.fabric.routing", "fabric.routing"),
    ("network.fabric.seed", "fabric.seed"),
    ("network.fabric.taper", "shape.taper"),
    ("network.fabric.pfc.pause_bytes", "pfc.pause"),
    ("network.fabric.pfc.resume_bytes", "pfc.resume"),
    ("network.fabric.ack_bytes", "transport.ack"),
    ("network.fabric.rate_control", "transport.rate_control"),
    ("network.fabric.trim.header_bytes", "trim.header"),
    ("network.fabric.trim.window_packets", "trim.window"),
    ("network.fabric.dcqcn.mark_from_bytes", "dcqcn.mark_from"),
    ("network.fabric.dcqcn.mark_all_bytes", "dcqcn.mark_all"),
    ("network.fabric.dcqcn.mark_percent", "dcqcn.mark_percent"),
    ("network.fabric.dcqcn.notify_bytes", "dcqcn.notify"),
    ("network.fabric.dcqcn.notify_ns", "dcqcn.notify_gap"),
    ("network.fabric.dcqcn.gain_inverse", "dcqcn.gain_inverse"),
    ("network.fabric.dcqcn.alpha_ns", "dcqcn.alpha_timer"),
    ("network.fabric.dcqcn.timer_ns", "dcqcn.timer"),
    ("network.fabric.dcqcn.counter_bytes", "dcqcn.counter"),
    ("network.fabric.dcqcn.recovery_steps", "dcqcn.recovery"),
    ("network.fabric.dcqcn.additive_mbit_per_s", "dcqcn.additive_mbit"),
    ("network.fabric.dcqcn.hyper_mbit_per_s", "dcqcn.hyper_mbit"),
    ("network.fabric.dcqcn.least_mbit_per_s", "dcqcn.least_mbit"),
    ("network.switch.handlers", "switch_cards.handlers"),
    ("network.switch.hpus", "cards.hpus"),
    ("network.switch.speedup", "cards.speedup"),
    ("host.cores", "host.cores"),
    ("host.o_ns", "host.overhead"),
    ("host.poll_ns", "host.poll"),
    ("host.match_ns", "host.matching"),
    ("host.dram_latency_ns", "self.dram_latency"),
    ("host.dram_G_ps_per_byte", "self.dram_gap_per_byte"),
    ("host.core_lines", "self.core_lines"),
    ("host.copy_lines", "self.copy_lines"),
    ("host.shared_memory", "host.shared_memory"),
    ("nic.kind", "nic.matches_on_card()"),
    ("nic.match_header_ns", "nic.match_header"),
    ("nic.match_cam_ns", "nic.match_cam"),
    ("nic.match_reply_ns", "nic.match_reply"),
    ("nic.match_overlaps", "MatchOverlaps::Gap"),
    ("dma.L_ns", "dma.latency"),
    ("dma.G_ps_per_byte", "dma.gap_per_byte"),
    ("dma.engines", "DmaEngines::PerDirection"),
    ("dma.messages", "DmaMessages::Latency"),
    ("dma.handlers", "DmaHandlers::Requests"),
    ("dma.news", "DmaNews::BehindWrites"),
    ("hpu.kind", "hpu.kind"),
    ("hpu.timing", "hpu.timing"),
    ("hpu.clock_ghz", "hpu.clock"),
    ("accelerator.kind", "Accelerator::Sc17("),
    ("accelerator.hpus", ".hpus"),
    ("accelerator.contexts", ".contexts"),
    ("accelerator.scratchpad_cycles", ".scratchpad_cycles"),
    ("accelerator.memory_bytes", ".memory"),
    ("accelerator.program_bytes", ".program"),
    ("accelerator.data_bytes", ".data"),
    ("accelerator.stack_bytes", ".stack"),
    ("accelerator.packet_buffer_bytes", ".packet_buffer"),
    ("accelerator.max_initial_state_bytes", ".max_initial_state"),
    ("accelerator.max_user_hdr_bytes", ".max_user_hdr"),
    ("accelerator.watchdog_cycles", ".watchdog_cycles"),
    ("accelerator.watchdog_flow_control", ".watchdog_flow_control()"),
    ("accelerator.put_blocks", ".put_blocks"),
];

/// Collects the code below a folder, without comments and without the loader.
fn code(folder: &Path, all: &mut String) {
    const LOADING: [&str; 4] = ["check.rs", "keys.rs", "load.rs", "value.rs"];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            code(&path, all);
        } else if name.ends_with(".rs") && !(folder.ends_with("machine/src") && LOADING.contains(&&*name)) {
            let text = fs::read_to_string(&path).unwrap();
            all.extend(text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]));
        }
    }
}

/// Returns the code of all crates.
fn all_code(root: &Path) -> String {
    let mut all = String::new();
    for group in fs::read_dir(root.join("crates")).unwrap() {
        for member in fs::read_dir(group.unwrap().path()).unwrap() {
            code(&member.unwrap().path().join("src"), &mut all);
        }
    }
    all
}

#[test]
fn every_parameter_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let all = all_code(&root);
    let switch = ["network.switch.handlers=\"*\"", "network.switch.hpus=8", "network.switch.speedup=2"];
    let pfc = ["network.fabric.flow=pfc", "network.fabric.pfc.pause_bytes=9", "network.fabric.pfc.resume_bytes=8"];
    let transport = ["network.fabric.ack_bytes=64", "network.fabric.rate_control=dcqcn"];
    let usual = [&["network.model=fabric", "network.fabric.taper=1"], &switch[..], &transport].concat();
    // Keys of trimming and pauses are shown only with their flow control.
    let mut shown = BTreeSet::new();
    for more in [&pfc[..], &["network.fabric.flow=trim"]] {
        let set: Vec<String> = usual.iter().chain(more).map(|&setting| setting.to_owned()).collect();
        let machine = Machine::load("sc17-int", &[root.join("machines")], &set).unwrap();
        for (key, ..) in machine.describe() {
            let reader = READERS.iter().find(|(known, _)| *known == key).map(|(_, reader)| *reader);
            let reader = reader.unwrap_or_else(|| panic!("{key}: name an expression that reads it"));
            assert!(all.contains(reader), "{key}: nothing reads it: `{reader}` is nowhere");
            shown.insert(key);
        }
    }
    assert_eq!(shown.len(), READERS.len(), "READERS has keys that machines do not have");
}

/// Keys of the PsPIN unit, and an expression that reads each.
const PSPIN: [(&str, &str); 81] = [
    ("accelerator.clusters", "units.clusters"),
    ("accelerator.hpus_per_cluster", "units.hpus"),
    ("accelerator.stack_bytes", "units.stack"),
    ("accelerator.overload", "units.overload"),
    ("accelerator.default_watchdog_cycles", "units.watchdog_cycles"),
    ("accelerator.max_initial_state_bytes", ".max_initial_state()"),
    ("accelerator.max_user_hdr_bytes", ".max_user_hdr()"),
    ("accelerator.mpq.queues", "config.queues"),
    ("accelerator.mpq.shared_cells", "config.shared_cells"),
    ("accelerator.mpq.cells_per_queue", "config.cells_per_queue"),
    ("accelerator.mpq.select_cycles", "config.select_cycles"),
    ("accelerator.mpq.idle_cycles", "mpq.idle_cycles"),
    ("accelerator.mpq.lru", "config.lru"),
    ("accelerator.dispatch.cycles", "config.cycles"),
    ("accelerator.dispatch.policy", "config.policy"),
    ("accelerator.cluster.tasks", "cluster.tasks"),
    ("accelerator.cluster.packet_buffer_bytes", "cluster.packet_buffer"),
    ("accelerator.cluster.runtime_bytes", "cluster.runtime"),
    ("accelerator.cluster.slot_bytes", "cluster.slot"),
    ("accelerator.cluster.assign_cycles", "cluster.assign_cycles"),
    ("accelerator.cluster.driver_cycles", "cluster.driver_cycles"),
    ("accelerator.cluster.feedback_cycles", "cluster.feedback_cycles"),
    ("accelerator.cluster.trap_cycles", "cluster.trap_cycles"),
    ("accelerator.cluster.commands_in_flight", "cluster.commands_in_flight"),
    ("accelerator.cluster.buffered_completions", "cluster.buffered_completions"),
    ("accelerator.l1.bytes", "l1.bytes"),
    ("accelerator.l1.banks", "l1.banks"),
    ("accelerator.l1.bank_bits", "l1.bank_bits"),
    ("accelerator.l1.load_cycles", "l1.load_cycles"),
    ("accelerator.l1.dma_wins", "l1.dma_wins"),
    ("accelerator.l1.atomic_bank_cycles", "l1.atomic_bank_cycles"),
    ("accelerator.l2_packet.bytes", "l2_packet.bytes"),
    ("accelerator.l2_packet.banks", "packet.banks"),
    ("accelerator.l2_packet.bank_bits", "packet.bank_bits"),
    ("accelerator.l2_packet.ports", "packet.ports"),
    ("accelerator.l2_handler.bytes", "l2_handler.bytes"),
    ("accelerator.l2_handler.banks", "handler.banks"),
    ("accelerator.l2_handler.bank_bits", "handler.bank_bits"),
    ("accelerator.l2_handler.ports", "handler.ports"),
    ("accelerator.program.bytes", "program.bytes"),
    ("accelerator.program.port_bits", "program.port_bits"),
    ("accelerator.icache.bytes", "icache.bytes"),
    ("accelerator.icache.ways", "icache.ways"),
    ("accelerator.icache.ports", "icache.ports"),
    ("accelerator.icache.line_bytes", "icache.line"),
    ("accelerator.icache.miss_cycles", "icache.miss_cycles"),
    ("accelerator.dma.width_bits", "dma.width_bits"),
    ("accelerator.dma.latency_cycles", "dma.latency_cycles"),
    ("accelerator.dma.least_beats", "dma.least_beats"),
    ("accelerator.dma.queue", "dma.queue"),
    ("accelerator.pe.width_bits", "pe.width_bits"),
    ("accelerator.pe.remote_l1_cycles", "pe.remote_l1_cycles"),
    ("accelerator.pe.l2_cycles", "pe.l2_cycles"),
    ("accelerator.pe.in_flight", "pe.in_flight"),
    ("accelerator.nhi.width_bits", "nhi.width_bits"),
    ("accelerator.commands.path_cycles", "commands.path_cycles"),
    ("accelerator.commands.read_cycles", "commands.read_cycles"),
    ("accelerator.commands.response_cycles", "commands.response_cycles"),
    ("accelerator.commands.in_flight_per_target", "commands.in_flight_per_target"),
    ("accelerator.commands.issue_cycles", "commands.issue_cycles"),
    ("accelerator.commands.host_direct_bytes", "commands.host_direct_bytes"),
    ("accelerator.inbound.write_cycles", "inbound.write_cycles"),
    ("accelerator.inbound.G_ps_per_byte", "inbound.gap_per_byte"),
    ("accelerator.inbound.reorder_packets", "inbound.reorder_packets"),
    ("accelerator.inbound.message_ids", "inbound.message_ids"),
    ("accelerator.outbound.G_ps_per_byte", "outbound.gap_per_byte"),
    ("accelerator.outbound.queue", "outbound.queue"),
    ("accelerator.outbound.l1_gap_cycles", "outbound.l1_gap_cycles"),
    ("accelerator.outbound.l2_gap_cycles", "outbound.l2_gap_cycles"),
    ("accelerator.off_cluster.start_cycles", "off_cluster.start_cycles"),
    ("accelerator.off_cluster.l1_gap_cycles", "off_cluster.l1_gap_cycles"),
    ("accelerator.off_cluster.l2_gap_cycles", "off_cluster.l2_gap_cycles"),
    ("accelerator.off_cluster.write_credit_cycles", "off_cluster.write_credit_cycles"),
    ("accelerator.off_cluster.read_credit_cycles", "off_cluster.read_credit_cycles"),
    ("accelerator.host.write_cycles", "host.write_cycles"),
    ("accelerator.host.read_cycles", "host.read_cycles"),
    ("accelerator.host.G_ps_per_byte", "host.gap_per_byte"),
    ("accelerator.host.read_G_ps_per_byte", "host.read_gap_per_byte"),
    ("accelerator.host.iommu_cycles", "host.iommu_cycles"),
    ("accelerator.limits.max_packet_bytes", "limits.max_packet"),
    ("accelerator.limits.contexts", "limits.contexts"),
];

/// The only key of the PsPIN unit that no code reads: the simulated instruction cache has one port for each HPU (a
/// notice reports fewer).
const UNREAD: &str = "accelerator.icache.ports";

#[test]
fn every_parameter_of_pspin_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let machine = Machine::load("pspin-400g", &[root.join("machines")], &[]).unwrap();
    let keys = machine.describe().into_iter().map(|(key, ..)| key);
    let keys: Vec<&str> = keys.filter(|key| key.starts_with("accelerator.") && *key != "accelerator.kind").collect();
    assert_eq!(keys, PSPIN.map(|(key, _)| key));
    let all = all_code(&root);
    for (key, reader) in PSPIN {
        assert!(key == UNREAD || all.contains(reader), "{key}: nothing reads it: `{reader}` is nowhere");
    }
}
