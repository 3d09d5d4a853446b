//! Tests that every parameter of a machine is used: code other than that which loads it reads it.

use std::fs;
use std::path::{Path, PathBuf};

use machine::Machine;

/// Each key, and an expression that reads it.
const READERS: [(&str, &str); 52] = [
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
    ("network.fabric.buffer_bytes", "fabric.buffer"),
    ("network.fabric.flow", "fabric.flow"),
    ("network.fabric.routing", "fabric.routing"),
    ("network.fabric.seed", "fabric.seed"),
    ("network.fabric.taper", "shape.taper"),
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

/// The code below a folder, without comments and without what loads machines.
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

#[test]
fn every_parameter_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources: Vec<PathBuf> =
        fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    let mut all = String::new();
    sources.iter().for_each(|folder| code(folder, &mut all));
    let set = ["network.model=fabric", "network.fabric.taper=1"].map(str::to_owned);
    let machine = Machine::load("sc17-int", &[root.join("machines")], &set).unwrap();
    for (key, ..) in machine.describe() {
        let reader = READERS.iter().find(|(known, _)| *known == key).map(|(_, reader)| *reader);
        let reader = reader.unwrap_or_else(|| panic!("{key}: name an expression that reads it"));
        assert!(all.contains(reader), "{key}: nothing reads it: `{reader}` is nowhere");
    }
    assert_eq!(machine.describe().len(), READERS.len(), "READERS has keys that machines do not have");
}
