// SPDX-License-Identifier: Apache-2.0
//! Tests the machines of the repository, value by value, and the messages about invalid ones.

use std::fs;
use std::path::{Path, PathBuf};

use machine::{
    Accelerator, Dma, DmaEngines, DmaHandlers, DmaMessages, DmaNews, Host, Hpu, Injection, Machine, MachineError,
    MatchOverlaps, Network, NetworkModel, Nic, NicKind, Plausible, Reception, Sc17, TimingKind, Topology,
};
use proptest::prelude::*;
use sim::{Clock, Time, TimePerByte};

const NAMES: [&str; 12] = [
    "loggopsim2-dis",
    "loggopsim2-int",
    "pspin-200g",
    "pspin-400g",
    "pspin-800g",
    "pspin-published",
    "pspin-small",
    "pspin-tiny",
    "sc17-arm-dis",
    "sc17-arm-int",
    "sc17-dis",
    "sc17-int",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines")
}

fn sc17(machine: &Machine) -> &Sc17 {
    let Accelerator::Sc17(unit) = &machine.accelerator else { panic!("{}", machine.name) };
    unit
}

fn load(name: &str, overrides: &[&str]) -> Result<Machine, MachineError> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Machine::load(name, &[folder()], &overrides)
}

/// Returns the error for sc17-int after one textual change.
fn error_of(from: &str, to: &str) -> String {
    let text = fs::read_to_string(folder().join("sc17-int.toml")).unwrap();
    assert!(text.contains(from), "{from}");
    Machine::parse("machines/x.toml", &text.replacen(from, to, 1), &[]).unwrap_err().to_string()
}

fn error_of_set(overrides: &[&str]) -> String {
    load("sc17-int", overrides).unwrap_err().to_string()
}

#[test]
fn sc17_int_is_the_paper() {
    let expected = Machine {
        name: "sc17-int".to_owned(),
        description: "SC'17 sPIN card on the CPU's memory controller".to_owned(),
        network: Network {
            model: NetworkModel::Latency,
            topology: Topology::FatTree,
            radix: 36,
            switch: Time::from_ns(50),
            wire: Time::from_ps(33_400),
            gap_per_byte: TimePerByte::from_fs_per_byte(20_000),
            gap: Time::from_ps(6_700),
            injection: Injection::Max,
            reception: Reception::CutThrough,
            mtu: 4096,
            retransmit: Time::from_ns(16_384),
            retries: 7,
            fabric: Some(machine::Fabric::USUAL),
            switch_cards: machine::SwitchCards::default(),
        },
        host: Host {
            cores: 8,
            overhead: Time::from_ns(65),
            poll: Time::from_ns(51),
            matching: Time::from_ns(30),
            dram_latency: Time::from_ns(51),
            dram_gap_per_byte: TimePerByte::from_fs_per_byte(6_700),
            core_lines: 10,
            copy_lines: 10,
            shared_memory: false,
        },
        nic: Nic {
            kind: NicKind::Spin,
            match_header: Time::from_ns(30),
            match_cam: Time::from_ns(2),
            match_reply: Time::from_ns(2),
            match_overlaps: MatchOverlaps::Reception,
        },
        dma: Dma {
            latency: Time::from_ns(50),
            gap_per_byte: TimePerByte::from_fs_per_byte(6_700),
            engines: DmaEngines::Shared,
            messages: DmaMessages::Transfers,
            handlers: DmaHandlers::Transfers,
            news: DmaNews::AfterWrites,
        },
        hpu: Hpu { kind: "rv32imafdc".to_owned(), timing: TimingKind::OooA15, clock: Clock::from_khz(2_500_000) },
        accelerator: Accelerator::Sc17(Sc17 {
            hpus: 4,
            contexts: 4,
            scratchpad_cycles: 1,
            memory: 1 << 20,
            program: 32 << 10,
            data: 64 << 10,
            stack: 8 << 10,
            packet_buffer: 1 << 20,
            max_initial_state: 4096,
            max_user_hdr: 64,
            watchdog_cycles: 1_000_000,
            watchdog_flow_control: false,
            put_blocks: true,
            sharing: machine::Sharing::default(),
        }),
        notices: Vec::new(),
        unused: None,
    };
    assert_eq!(load("sc17-int", &[]).unwrap(), expected);
}

#[test]
fn sc17_dis_differs_in_dma_only() {
    let mut expected = load("sc17-int", &[]).unwrap();
    expected.name = "sc17-dis".to_owned();
    expected.description = "SC'17 sPIN card behind 32 lanes of PCI Express 4".to_owned();
    (expected.dma.latency, expected.dma.gap_per_byte) = (Time::from_ns(250), TimePerByte::from_fs_per_byte(15_600));
    assert_eq!(load("sc17-dis", &[]).unwrap(), expected);
    let path = folder().join("sc17-dis.toml");
    assert_eq!(Machine::load(path.to_str().unwrap(), &[], &[]).unwrap(), expected);
}

/// The machine has the rules of the authors' simulator; all other values are sc17's.
#[test]
fn loggopsim2_differs_in_rules_only() {
    for card in ["int", "dis"] {
        let mut expected = load(&format!("sc17-{card}"), &[]).unwrap();
        expected.name = format!("loggopsim2-{card}");
        expected.description = format!("sc17-{card} by the rules of LogGOPSim2");
        (expected.network.injection, expected.network.reception) = (Injection::Sum, Reception::StoreAndForward);
        (expected.host.poll, expected.host.matching) = (Time::ZERO, Time::ZERO);
        (expected.nic.match_reply, expected.nic.match_overlaps) = (Time::from_ns(30), MatchOverlaps::Gap);
        (expected.dma.messages, expected.dma.handlers) = (DmaMessages::Latency, DmaHandlers::Requests);
        expected.dma.news = DmaNews::BehindWrites;
        let Accelerator::Sc17(unit) = &mut expected.accelerator else { panic!("{}", expected.name) };
        unit.put_blocks = false;
        assert_eq!(load(&format!("loggopsim2-{card}"), &[]).unwrap(), expected);
    }
}

#[test]
fn overrides_come_on_top() {
    let machine =
        load("sc17-dis", &["dma.L_ns=100.5", "nic.kind=rdma", "hpu.kind=\"rv32imac\"", "accelerator.contexts = 8"]);
    let machine = machine.unwrap();
    assert_eq!(machine.dma.latency, Time::from_ps(100_500));
    assert_eq!(machine.nic.kind, NicKind::Rdma);
    assert_eq!((machine.hpu.kind.as_str(), sc17(&machine).contexts), ("rv32imac", 8));
    assert_eq!(load("sc17-int", &["accelerator.hpus=2", "accelerator.hpus=3"]).unwrap().accelerator.hpus(), 3);
}

/// Returns `sc17-int` in an earlier format: without tables for accelerators and network models, without keys for rules,
/// and with assumptions in comments.
fn of_an_earlier_version() -> String {
    let text = fs::read_to_string(folder().join("sc17-int.toml")).unwrap();
    let later = [
        "injection",
        "reception",
        "copy_lines",
        "shared_memory",
        "match_reply_ns",
        "match_overlaps",
        "messages",
        "handlers",
        "watchdog_flow_control",
    ];
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.contains("[assumed."));
    let lines = paragraphs.flat_map(|paragraph| paragraph.lines().chain([""]));
    let kept = lines.filter(|line| !later.contains(&line.split(' ').next().unwrap_or_default()));
    let text: String = kept.flat_map(|line| [line, "\n"]).collect();
    let new = ["[accelerator]\nkind = \"sc17\"            # §4.1\n", "\nhpus = 4 ", "model = \"latency\" "];
    new.iter().zip(["", "\ncount = 4 ", "# "]).fold(text, |text, (new, old)| {
        assert!(text.contains(new), "{new}");
        text.replace(new, old)
    })
}

#[test]
fn keys_of_a_fabric_that_is_not_used_are_named_with_their_place() {
    let unused = |overrides: &[&str]| load("sc17-int", overrides).unwrap().unused;
    assert_eq!(unused(&[]), None);
    assert_eq!(unused(&["network.model=latency"]), None);
    assert_eq!(unused(&["network.fabric.seed=3", "network.model=fabric"]), None);
    let note = |keys| Some(format!("no effect with network.model=latency: {keys}; add --set network.model=fabric"));
    let both = "--set network.fabric.flow=drop, --set network.fabric.seed=3";
    assert_eq!(unused(&["network.fabric.seed=3", "network.fabric.flow=drop"]), note(both));

    // In a file, only keys set after the model of its base are named.
    let based = |text: &str| {
        let origin = folder().join("mine.toml").display().to_string();
        let machine = Machine::parse(&origin, &format!("base = \"sc17-int\"\n[network]\n{text}"), &[]).unwrap();
        machine.unused.map(|unused| unused.replace(&origin, "mine.toml"))
    };
    let key = "fabric.buffer_bytes = 8192";
    assert_eq!(based(key), note("network.fabric.buffer_bytes (mine.toml)"));
    assert_eq!(based(&format!("{key}\nmodel = \"latency\"")), None);
    assert_eq!(based(&format!("{key}\nmodel = \"fabric\"")), None);
}

#[test]
fn keys_of_earlier_versions_are_understood_with_one_notice_each_file() {
    let machine = Machine::parse("old.toml", &of_an_earlier_version(), &[]).unwrap();
    let now = load("sc17-int", &[]).unwrap();
    assert_eq!(machine.describe(), now.describe());
    let [notice] = &machine.notices[..] else { panic!("{:?}", machine.notices) };
    assert!(
        notice.starts_with("old.toml: hpu.count is now accelerator.hpus, hpu.contexts is now accelerator.contexts, ")
    );
    assert!(notice.ends_with(", hpu.put_blocks is now accelerator.put_blocks"), "{notice}");
    assert_eq!(now.notices, [""; 0]);

    let machine = load("sc17-int", &["hpu.count=8", "accelerator.contexts=16", "hpu.put_blocks=false"]).unwrap();
    let unit = sc17(&machine);
    assert_eq!((unit.hpus, unit.contexts, unit.put_blocks), (8, 16, false));
    let notice = "--set: hpu.count is now accelerator.hpus, hpu.put_blocks is now accelerator.put_blocks";
    assert_eq!(machine.notices, [notice]);
    // A later old name overrides the new one, and a new name overrides an old file.
    assert_eq!(load("sc17-int", &["accelerator.hpus=3", "hpu.count=2"]).unwrap().accelerator.hpus(), 2);
    let set = ["accelerator.hpus=3".to_owned()];
    assert_eq!(Machine::parse("old.toml", &of_an_earlier_version(), &set).unwrap().accelerator.hpus(), 3);

    assert_eq!(error_of_set(&["hpu.count=0"]), "--set hpu.count=0: must be at least 1, is 0");
    let both = of_an_earlier_version() + "\n[accelerator]\nhpus = 4\n";
    let error = Machine::parse("old.toml", &both, &[]).unwrap_err().to_string();
    assert_eq!(error, "old.toml: hpu.count: is also there by its new name, accelerator.hpus");
}

#[test]
fn values_have_sources() {
    let set = ["hpu.count=2".to_owned(), "network.radix=16".to_owned()];
    let sourced = Machine::load_with_sources("sc17-dis", &[folder()], &set).unwrap();
    assert_eq!(sourced.machine, Machine::load("sc17-dis", &[folder()], &set).unwrap());
    assert_eq!(sourced.files, ["sc17-int.toml", "sc17-dis.toml"].map(|file| folder().join(file)));
    for (key, source) in [
        ("network.wire_ns", "§4.2 \"a wire length of 10m (delay of 33.4ns)\""),
        ("dma.L_ns", "§4.3 \"a latency of L = 250ns\""),
        ("accelerator.hpus", "--set hpu.count=2"),
        ("network.radix", "--set network.radix=16"),
    ] {
        assert_eq!(sourced.sources[key], source);
    }
    let lines = &sourced.assumed["host.core_lines"];
    assert_eq!(lines.plausible, Plausible::Range("9".to_owned(), "13".to_owned()));
    assert!(lines.reason.starts_with("Haswell's L1 has ten line fill buffers for each core: 10 x 64 B in 51 ns"));
    assert_eq!(Machine::names(&[folder()]), NAMES);
}

/// Each value has either a comment that names a section of a paper, a file of the authors' simulator, or the hardware
/// that they published, or an assumption; never both. Two machines have smaller units than any published one.
#[test]
fn values_without_a_source_are_assumptions() {
    for name in Machine::names(&[folder()]) {
        for model in ["network.model=latency", "network.model=fabric"] {
            let set = [model, "network.reception=cut-through"].map(str::to_owned);
            let sourced = Machine::load_with_sources(&name, &[folder()], &set).unwrap();
            let names_source = |text: &String| {
                ["§", "App. ", "LogGOPSim2", "published design", "--set"].iter().any(|it| text.contains(it))
            };
            let is_small = ["pspin-small", "pspin-tiny"].contains(&name.as_str());
            let published = load("pspin-400g", &[model]).unwrap().describe();
            for row @ (key, _, _) in &sourced.machine.describe() {
                if *key == "network.reception" {
                    continue; // set by an option here
                }
                if is_small && !published.contains(row) {
                    continue;
                }
                let (comment, assumed) = (sourced.sources.get(*key), sourced.assumed.contains_key(*key));
                assert_eq!(comment.is_some_and(names_source), !assumed, "{name}: {key}: {comment:?}");
                assert!(!assumed || comment.is_none(), "{name}: {key}: its reason is the assumption's: {comment:?}");
            }
        }
    }
}

/// A machine accepts every plausible value of an assumption.
#[test]
fn plausible_values_can_be_set() {
    for name in NAMES {
        for (key, assumption) in Machine::load_with_sources(name, &[folder()], &[]).unwrap().assumed {
            let values = match assumption.plausible {
                Plausible::Range(least, most) => vec![least, most],
                Plausible::Values(values) => values,
            };
            for value in values {
                let set = [format!("{key}={value}")];
                let sourced = Machine::load_with_sources(name, &[folder()], &set).unwrap();
                assert!(sourced.assumed.contains_key(&key), "{name}: {key}={value}");
            }
        }
    }
}

#[test]
fn assumptions_are_about_the_values_of_their_file() {
    let parse = |text: &str, set: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        fs::write(&path, format!("base = \"sc17-int\"\n{text}")).unwrap();
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        Machine::load_with_sources(path.to_str().unwrap(), &[self::folder()], &set)
    };
    let poll =
        |text: &str, set: &[&str]| parse(text, set).unwrap().assumed.remove("host.poll_ns").map(|it| it.plausible);
    let range = |least: &str, most: &str| Some(Plausible::Range(least.to_owned(), most.to_owned()));
    assert_eq!(poll("", &[]), range("12", "102"));
    assert_eq!(poll("", &["host.poll_ns=500"]), range("12", "102"), "an option may try anything");
    assert_eq!(poll("[host]\npoll_ns = 0", &[]), None, "a value of another file");
    let own = "[assumed.\"host.poll_ns\"]\nrange = [0, 5.5]\nreason = \"r\"";
    assert_eq!(poll(&format!("[host]\npoll_ns = 0\n{own}"), &[]), range("0", "5.5"));

    let error = |text: &str| {
        let text = parse(text, &[]).unwrap_err().to_string();
        text.split_once("mine.toml: ").unwrap().1.to_owned()
    };
    let assumed = |key: &str, rest: &str| error(&format!("[assumed.\"{key}\"]\n{rest}"));
    let wrong = |rest: &str| assumed("host.poll_ns", rest);
    assert_eq!(error(own), "assumed.\"host.poll_ns\": host.poll_ns is 51, not one of 0 to 5.5");
    assert_eq!(
        wrong("values = [1, 2]\nreason = \"r\""),
        "assumed.\"host.poll_ns\": host.poll_ns is 51, not one of 1, 2"
    );
    let range = "range = [0, 60]";
    assert_eq!(wrong(range), "assumed.\"host.poll_ns\".reason: missing");
    assert_eq!(wrong(&format!("{range}\nreason = \"\"")), "assumed.\"host.poll_ns\".reason: must be a sentence");
    assert_eq!(
        wrong(&format!("{range}\nvalues = [51]\nreason = \"r\"")),
        "assumed.\"host.poll_ns\": must have either range = [least, most] or values = [one, another]"
    );
    assert_eq!(
        wrong("range = [60, 0]\nreason = \"r\""),
        "assumed.\"host.poll_ns\".range: must be two numbers, the smaller one first"
    );
    assert_eq!(wrong("range = 5\nreason = \"r\""), "assumed.\"host.poll_ns\".range: must be a list of values");
    assert_eq!(
        wrong(&format!("{range}\nreason = \"r\"\nsource = \"s\"")),
        "assumed.\"host.poll_ns\".source: unknown key: an assumption has range or values, reason and anchor"
    );
    let complete = format!("{range}\nreason = \"r\"");
    assert_eq!(assumed("host.pol_ns", &complete), "assumed.host.pol_ns: unknown key, did you mean `host.poll_ns`?");
    assert_eq!(
        assumed("network.fabric.taper", &complete),
        "assumed.\"network.fabric.taper\": network.fabric.taper has no value"
    );
    assert_eq!(error("assumed = 3"), "assumed: must be a table, is an integer");
}

#[test]
fn a_fabric_does_not_store_packets() {
    let error = error_of_set(&["network.reception=store-and-forward", "network.model=fabric"]);
    assert_eq!(
        error,
        "--set network.reception=store-and-forward: \"store-and-forward\" needs network.model = \"latency\"; the switches of a \
         fabric cut through"
    );
    assert!(load("loggopsim2-int", &["network.model=fabric", "network.reception=cut-through"]).is_ok());
}

/// One core, by Little's law: 51 ns and 1000 bytes through ten lines of 64; a copy through twenty.
#[test]
fn copies_have_their_own_number_of_lines() {
    let host = load("sc17-int", &["host.copy_lines=20"]).unwrap().host;
    assert_eq!(host.memory_time(1000, 1000), Time::from_ps(51_000 + 79_688));
    assert_eq!(host.copy_time(1000), Time::from_ps(51_000 + 39_844));
}

#[test]
fn kinds_of_card_have_capabilities() {
    for (kind, matches, runs) in [("rdma", false, false), ("portals4", true, false), ("spin", true, true)] {
        let nic = load("sc17-int", &[&format!("nic.kind={kind}")]).unwrap().nic;
        assert_eq!((nic.matches_on_card(), nic.runs_handlers()), (matches, runs), "{kind}");
    }
}

#[test]
fn parameters_describe_themselves() {
    let rows = load("sc17-int", &[]).unwrap().describe();
    for (key, value, unit) in [
        ("network.topology", "fat-tree", ""),
        ("network.wire_ns", "33.4", "ns"),
        ("network.G_ps_per_byte", "20", "ps/B"),
        ("network.mtu_bytes", "4096", "B"),
        ("hpu.clock_ghz", "2.5", "GHz"),
        ("nic.kind", "spin", ""),
        ("hpu.timing", "ooo-a15", ""),
        ("accelerator.put_blocks", "true", ""),
        ("accelerator.watchdog_cycles", "1000000", "cycles"),
    ] {
        assert!(rows.contains(&(key, value.to_owned(), unit)), "{key}");
    }
    // The description is complete: written back as a file, it gives the same machine.
    let quoted =
        |value: &str| if value.starts_with(char::is_alphabetic) { format!("{value:?}") } else { value.to_owned() };
    let overrides: Vec<String> = rows.iter().map(|(key, value, _)| format!("{key}={}", quoted(value))).collect();
    let overrides =
        overrides.iter().map(|text| text.replace("\"true\"", "true").replace("\"false\"", "false")).collect::<Vec<_>>();
    let described = Machine::parse("sc17-int.toml", "description = \"described\"", &overrides).unwrap();
    assert_eq!(described.describe(), rows);
}

#[test]
fn wrong_values_name_file_and_key() {
    for (from, to, expected) in [
        ("hpus = 4", "hpus = 0", "machines/x.toml: accelerator.hpus: must be at least 1, is 0"),
        ("hpus = 4", "hpus = \"x\"", "machines/x.toml: accelerator.hpus: must be an integer, is a string"),
        ("hpus = 4", "hpus = -4", "machines/x.toml: accelerator.hpus: must not be negative, is -4"),
        ("hpus = 4", "hpsu = 4", "machines/x.toml: accelerator.hpsu: unknown key, did you mean `accelerator.hpus`?"),
        ("[hpu]", "[hpus]", "machines/x.toml: hpus.clock_ghz: unknown key, did you mean `hpu.clock_ghz`?"),
        (
            "cores = 8",
            "mtu_bytes = 8",
            "machines/x.toml: host.mtu_bytes: unknown key, did you mean `network.mtu_bytes`?",
        ),
        ("cores = 8", "colour_of_the_case = 8", "machines/x.toml: host.colour_of_the_case: unknown key"),
        ("[network]", "[empty]\n[network]", "machines/x.toml: empty: unknown key"),
        ("hpus = 4", "", "machines/x.toml: accelerator.hpus: missing"),
        (
            "match_header_ns = 30",
            "match_header_ns = 0.0001",
            "machines/x.toml: nic.match_header_ns: 0.0001 is finer than a picosecond",
        ),
        (
            "kind = \"spin\"",
            "kind = \"fast\"",
            "machines/x.toml: nic.kind: must be one of \"rdma\", \"portals4\", \"spin\", is \"fast\"",
        ),
        ("radix = 36", "radix = 35", "machines/x.toml: network.radix: must be a multiple of 2, is 35"),
        ("radix = 36", "radix = 0", "machines/x.toml: network.radix: must be at least 2, is 0"),
        ("mtu_bytes = 4096", "mtu_bytes = 60", "machines/x.toml: network.mtu_bytes: must be at least 64, is 60"),
        ("mtu_bytes = 4096", "mtu_bytes = 68", "machines/x.toml: network.mtu_bytes: must be a multiple of 8, is 68"),
        ("cores = 8", "cores = 0", "machines/x.toml: host.cores: must be at least 1, is 0"),
        ("clock_ghz = 2.5", "clock_ghz = 0", "machines/x.toml: hpu.clock_ghz: must be more than 0, is 0"),
        (
            "cores = 8",
            "cores = 8\nclock_ghz = 2.5",
            "machines/x.toml: host.clock_ghz: is no longer a parameter, as nothing depended on it: remove it",
        ),
        (
            "switch_ns = 50",
            "switch_ns = 2e9",
            "machines/x.toml: network.switch_ns: must be at most 1000000000, is 2000000000",
        ),
        (
            "G_ps_per_byte = 20.0",
            "G_ps_per_byte = 1e12",
            "machines/x.toml: network.G_ps_per_byte: must be at most 1000000000, is 1000000000000",
        ),
        (
            "contexts = 4",
            "contexts = 3",
            "machines/x.toml: accelerator.contexts: must be at least accelerator.hpus (4), is 3",
        ),
        ("contexts = 4", "contexts = 65", "machines/x.toml: accelerator.contexts: must be at most 64, is 65"),
        (
            "stack_bytes = 8_192",
            "stack_bytes = 16384",
            "machines/x.toml: accelerator.stack_bytes: must be at most 15360, is 16384",
        ),
        (
            "stack_bytes = 8_192",
            "stack_bytes = 1000",
            "machines/x.toml: accelerator.stack_bytes: must be a multiple of 16, is 1000",
        ),
        (
            "memory_bytes = 1_048_576",
            "memory_bytes = 0x1000_0000",
            "machines/x.toml: accelerator.memory_bytes: must be at most 167772160, is 268435456",
        ),
        (
            "memory_bytes = 1_048_576",
            "memory_bytes = 1024",
            "machines/x.toml: accelerator.max_initial_state_bytes: must be at most accelerator.memory_bytes (1024), is 4096",
        ),
        (
            "program_bytes = 32_768",
            "program_bytes = 0",
            "machines/x.toml: accelerator.program_bytes: must be at least 16, is 0",
        ),
        (
            "data_bytes = 65_536",
            "data_bytes = 8_388_608",
            "machines/x.toml: accelerator.data_bytes: must be at most 4194304, is 8388608",
        ),
        (
            "packet_buffer_bytes = 1_048_576",
            "packet_buffer_bytes = 2048",
            "machines/x.toml: accelerator.packet_buffer_bytes: must hold a packet of network.mtu_bytes (4096), is 2048",
        ),
        (
            "packet_buffer_bytes = 1_048_576",
            "packet_buffer_bytes = 12_582_912",
            "machines/x.toml: accelerator.packet_buffer_bytes: has addresses for 3024 packets of network.mtu_bytes, 12386304 \
             bytes; is 12582912",
        ),
        (
            "max_user_hdr_bytes = 64",
            "max_user_hdr_bytes = 1024",
            "machines/x.toml: accelerator.max_user_hdr_bytes: must be at most 968, is 1024",
        ),
        (
            "watchdog_cycles = 1_000_000",
            "watchdog_cycles = 0",
            "machines/x.toml: accelerator.watchdog_cycles: must be at least 1, is 0",
        ),
        (
            "kind = \"rv32imafdc\"",
            "kind = \"\"",
            "machines/x.toml: hpu.kind: must name an instruction set such as \"rv32imac\", is \"\"",
        ),
        (
            "kind = \"sc17\"",
            "kind = \"sc18\"",
            "machines/x.toml: accelerator.kind: must be one of \"sc17\", \"pspin\", is \"sc18\"",
        ),
        ("kind = \"sc17\"", "", "machines/x.toml: accelerator.kind: missing"),
        (
            "model = \"latency\"",
            "model = \"ether\"",
            "machines/x.toml: network.model: must be one of \"latency\", \"fabric\", is \"ether\"",
        ),
        (
            "put_blocks = true",
            "put_blocks = 1",
            "machines/x.toml: accelerator.put_blocks: must be true or false, is an integer",
        ),
    ] {
        assert_eq!(error_of(from, to), expected);
    }
    let error = Machine::parse("x.toml", "description = \"d\"\nnetwork = 3", &[]).unwrap_err();
    assert_eq!(error.to_string(), "x.toml: network: must be a table, is an integer");
}

#[test]
fn bad_toml_names_line_and_column() {
    for (text, expected) in [
        ("# ä\n[network]\nradix == 36\n", "x.toml:3:8: "),
        ("description = \"d\"\n\n  description = \"e\"", "x.toml:3:3: duplicate key"),
    ] {
        let error = Machine::parse("x.toml", text, &[]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn wrong_overrides_name_themselves() {
    for (argument, expected) in [
        ("accelerator.hpus=x", "--set accelerator.hpus=x: must be an integer, is a string"),
        ("accelerator.hpus=0", "--set accelerator.hpus=0: must be at least 1, is 0"),
        (
            "accelerator.scratchpad_cycles=4294967294",
            "--set accelerator.scratchpad_cycles=4294967294: must be at most 10000, is 4294967294",
        ),
        ("network.radix=4294967294", "--set network.radix=4294967294: must be at most 65536, is 4294967294"),
        ("hpu.clock_ghz=1001", "--set hpu.clock_ghz=1001: must be at most 1000, is 1001"),
        (
            "host.clock_ghz=2.5",
            "--set host.clock_ghz=2.5: is no longer a parameter, as nothing depended on it: remove it",
        ),
        (
            "accelerator.watchdog_cycles=9223372036854775807",
            "--set accelerator.watchdog_cycles=9223372036854775807: must be at most 2500000000000, 1000 s at hpu.clock_ghz (2.5), is \
             9223372036854775807",
        ),
        ("accelerator.hpsu=1", "--set accelerator.hpsu=1: unknown key, did you mean `accelerator.hpus`?"),
        ("hpu=1", "--set hpu=1: must be a table, is an integer"),
        ("accelerator.hpus", "--set accelerator.hpus: must be key=value"),
        ("=1", "--set =1: must be key=value, with a key such as `accelerator.hpus`"),
        ("hpu..count=1", "--set hpu..count=1: must be key=value, with a key such as `accelerator.hpus`"),
        ("base=sc17-dis", "--set base=sc17-dis: unknown key"),
    ] {
        assert_eq!(error_of_set(&[argument]), expected);
    }
    assert!(error_of_set(&["hpu.kind=[1,"]).starts_with("--set hpu.kind=[1,: the value is not TOML: "));
    assert!(
        error_of_set(&["accelerator.hpus=2\nx=3"])
            .starts_with("--set accelerator.hpus=2\nx=3: the value is not TOML: ")
    );
    // An error about a conflict names the key that is out of range, here the one in the file.
    assert_eq!(
        error_of_set(&["accelerator.hpus=5", "accelerator.contexts=4"]),
        "--set accelerator.contexts=4: must be at least accelerator.hpus (5), is 4"
    );
}

#[test]
fn contexts_follow_the_number_of_hpus_unless_they_are_set_with_it() {
    let of = |set: &[&str]| {
        let machine = load("sc17-int", set).unwrap();
        (sc17(&machine).hpus, sc17(&machine).contexts)
    };
    assert_eq!(of(&["accelerator.hpus=1"]), (1, 1));
    assert_eq!(of(&["hpu.count=16"]), (16, 16));
    assert_eq!(of(&["accelerator.contexts=32", "accelerator.hpus=16"]), (16, 32));
    assert_eq!(of(&["accelerator.contexts=8"]), (4, 8));
    assert_eq!(error_of_set(&["accelerator.hpus=65"]), "--set accelerator.hpus=65: must be at most 64, is 65");

    // A file that changes the number, and options on top of a file that sets both.
    let origin = folder().join("mine.toml").display().to_string();
    let based = |keys: &str, set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&text| text.to_owned()).collect();
        let machine = Machine::parse(&origin, &format!("base = \"sc17-int\"\n[accelerator]\n{keys}"), &set).unwrap();
        (sc17(&machine).hpus, sc17(&machine).contexts)
    };
    assert_eq!(based("hpus = 6", &[]), (6, 6));
    assert_eq!(based("hpus = 6\ncontexts = 12", &[]), (6, 12));
    assert_eq!(based("hpus = 6\ncontexts = 12", &["accelerator.hpus=7"]), (7, 7));
    assert_eq!(based("contexts = 16", &["dma.L_ns=1"]), (4, 16));

    let sourced = Machine::load_with_sources("sc17-int", &[folder()], &["hpu.count=2".to_owned()]).unwrap();
    assert_eq!(sourced.sources["accelerator.contexts"], "as accelerator.hpus, which was set without it");
}

#[test]
fn missing_machines_and_files() {
    assert_eq!(
        load("sc18", &[]).unwrap_err().to_string(),
        format!("sc18: no such machine; known are: {}", NAMES.join(", "))
    );
    for (wrong, meant) in [("sc17int", "sc17-int"), ("pspin400g", "pspin-400g"), ("loggopsim-dis", "loggopsim2-dis")] {
        let error = load(wrong, &[]).unwrap_err().to_string();
        let known = NAMES.join(", ");
        assert_eq!(error, format!("{wrong}: no such machine; did you mean `{meant}`? Known are: {known}"));
    }
    let nowhere = Machine::load("sc17-int", &[PathBuf::from("/nonexistent")], &[]).unwrap_err();
    assert_eq!(nowhere.to_string(), "sc17-int: no such machine; known are: none");
    let error = Machine::load("/nonexistent/x.toml", &[], &[]).unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/x.toml: No such file"), "{error}");
}

#[test]
fn bases_are_found_beside_a_file_and_blamed_for_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = fs::read_to_string(self::folder().join("sc17-int.toml")).unwrap();
    let base = write("mine.toml", &text.replace("hpus = 4", "hpus = 0"));
    let above = write("above.toml", "base = \"mine\"\n[hpu]\nclock_ghz = 1\n");
    let error = Machine::load(&above, &[], &[]).unwrap_err().to_string();
    assert_eq!(error, format!("{base}: accelerator.hpus: must be at least 1, is 0"));
    let machine = Machine::load(&above, &[], &["accelerator.hpus=1".to_owned()]).unwrap();
    assert_eq!((machine.name.as_str(), machine.hpu.clock), ("above", Clock::from_khz(1_000_000)));

    let circle = write("circle.toml", "base = \"circle\"");
    let error = Machine::load(&circle, &[], &[]).unwrap_err().to_string();
    assert_eq!(error, format!("{circle}: base: circle is based on this machine itself"));
    let lost = write("lost.toml", "base = \"nothing\"");
    let error = Machine::load(&lost, &[], &[]).unwrap_err().to_string();
    assert_eq!(error, format!("{lost}: base: nothing: no such machine; known are: above, circle, lost, mine"));
    let number = write("number.toml", "base = 3");
    let error = Machine::load(&number, &[], &[]).unwrap_err().to_string();
    assert_eq!(error, format!("{number}: base: must be a string, is an integer"));
}

/// Boundary values of counts, sums and products.
fn extreme() -> impl Strategy<Value = String> {
    let powers = (0_u32..64, -1_i64..2).prop_map(|(power, off)| ((1_i64 << power.min(62)) + off).to_string());
    let decimals = (1_u64..10_000, 0_usize..7).prop_map(|(digits, places)| {
        let text = format!("{digits:08}");
        format!("{}.{}", text[..8 - places].parse::<u64>().unwrap(), &format!("{}0", &text[8 - places..]))
    });
    let others =
        prop::sample::select(vec!["0", "-1", "1e18", "1e-3", "9223372036854775807", "inf", "nan", "true", "x"]);
    prop_oneof![4 => powers, 2 => decimals, 1 => others.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any parameters, either the machine is refused with the name of a key, or all derived values are within
    /// their bounds. Overflow checks are on in unoptimised builds.
    #[test]
    fn extreme_parameters_are_refused_or_computed_with(
        changes in prop::collection::vec((0_usize..64, extreme()), 1..4),
        bytes: u64,
    ) {
        let keys: Vec<&str> = load("sc17-int", &[]).unwrap().describe().iter().map(|row| row.0).collect();
        let sets: Vec<String> =
            changes.iter().map(|(key, value)| format!("{}={value}", keys[key % keys.len()])).collect();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        match load("sc17-int", &sets) {
            Err(error) => {
                let text = error.to_string();
                prop_assert!(keys.iter().any(|key| text.contains(key)), "{text}");
            }
            Ok(machine) => {
                let (hpu, unit, network) = (&machine.hpu, sc17(&machine), &machine.network);
                let slots = unit.slots(network.mtu);
                prop_assert!(slots >= 1 && u64::from(slots) * u64::from(Sc17::slot_bytes(network.mtu)) < 1 << 32);
                prop_assert!(unit.contexts * abi::device::map::CONTEXT_STRIDE < 1 << 24);
                // Longest block of an HPU, and longest handler.
                prop_assert!(i32::try_from(64 * (unit.scratchpad_cycles + 100)).is_ok());
                prop_assert!(hpu.clock.time(unit.watchdog_cycles + 512) < sim::Time::from_ns(1 << 51));
                prop_assert!(hpu.clock.time(1) > sim::Time::ZERO);
                let once = machine.host.memory_time(bytes, 0);
                prop_assert!(machine.host.memory_time(bytes, bytes) >= once);
                let path = (network.switch + network.wire) * 64 + machine.dma.latency * 2 + machine.host.overhead;
                prop_assert!(path.saturating_add(network.gap_per_byte.time(1 << 30)) < sim::Time::MAX);
                prop_assert_eq!(load("sc17-int", &sets).unwrap(), machine);
            }
        }
    }
}

#[test]
fn switches_with_handlers_need_what_runs_them() {
    let handlers = "network.switch.handlers=[\"switch 0 of level 2\", \"switch * of level 1\"]";
    let fabric = "network.model=fabric";
    let error = |settings: &[&str]| {
        let text = error_of_set(settings);
        text.rsplit_once(": ").map(|(_, what)| what.to_owned()).unwrap_or(text)
    };
    let needs = |settings: &[&str]| error_of_set(&[&[handlers], settings].concat());
    assert!(needs(&[]).contains("needs network.model = \"fabric\""), "{}", needs(&[]));
    assert!(needs(&[fabric, "nic.kind=rdma"]).contains("needs nic.kind = \"spin\""));
    assert!(needs(&[fabric, "network.topology=\"./net.dot\""]).contains("needs a topology that spinkit builds"));
    assert!(error(&[fabric, "network.switch.hpus=8"]).contains("decides nothing without network.switch.handlers"));
    assert_eq!(error(&[fabric, handlers, "network.switch.hpus=65"]), "must be at most 64, is 65");
    assert_eq!(error(&[fabric, handlers, "network.switch.speedup=0"]), "must be at least 1, is 0");
    assert!(error(&[fabric, "network.switch.handlers=3"]).contains("must be a list of strings"));

    let settings = [fabric, handlers, "network.switch.hpus=16", "network.switch.speedup=4"].map(str::to_owned);
    let machine = Machine::load("sc17-int", &[folder()], &settings).unwrap();
    let shown: Vec<_> = machine.describe().into_iter().filter(|(key, ..)| key.starts_with("network.switch.")).collect();
    assert_eq!(shown[0], ("network.switch.handlers", "switch 0 of level 2; switch * of level 1".to_owned(), ""));
    assert_eq!(shown[1..], [("network.switch.hpus", "16".into(), ""), ("network.switch.speedup", "4".into(), "")]);
    // Four links of 20 ps/B, 16 HPUs instead of 4, and as many contexts.
    let of_switch = machine.of_switch();
    assert_eq!(of_switch.network.gap_per_byte.as_fs_per_byte(), 5_000);
    assert_eq!(of_switch.network.gap.as_ps(), 6_700 / 4);
    assert_eq!((machine.accelerator.hpus(), of_switch.accelerator.hpus()), (4, 16));
    let Accelerator::Sc17(unit) = &of_switch.accelerator else { panic!("the kind stays") };
    assert_eq!(unit.contexts, 16);
    let one_string = ["network.model=fabric", "network.switch.handlers=\"a; b\""].map(str::to_owned);
    let machine = Machine::load("sc17-int", &[folder()], &one_string).unwrap();
    assert_eq!(machine.network.switch_cards.handlers, ["a", "b"]);
    assert_eq!(machine.of_switch().accelerator, machine.accelerator, "no key, no difference");
    let pspin = ["network.model=fabric", handlers, "network.switch.hpus=8"].map(str::to_owned);
    let error = Machine::load("pspin-400g", &[folder()], &pspin).unwrap_err().to_string();
    assert!(error.contains("needs accelerator.kind = \"sc17\""), "{error}");
}
