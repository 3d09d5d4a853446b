//! `spinkit pspin run`: runs handlers on a card with a PsPIN unit, and shows what happened.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use machine::{Accelerator, Machine};
use sim::{Clock, Time};
use smartnic::report::Report;

use super::{alone, folder, table};
use crate::sdk::Sdk;
use crate::spincc::{Error, Result};
use crate::units::parse_ns;

/// Run handlers on a card with a PsPIN unit, and show latency, throughput, and what HPUs and memories did
///
/// PROGRAM is a C source or a program of `pspin-cc`: its handlers NAME_hh, NAME_ph and NAME_th process packets that are
/// generated, or that a capture has. Or it is a folder in the layout of the published programs: its Makefile builds it, and its
/// own driver makes the packets.
///
/// Exit status: 1 when a handler fails or is killed, a driver fails, or the program does not compile; 2 for wrong usage or a bad
/// machine file.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A C source with handlers, a program that `pspin-cc` has linked, or a folder with a Makefile
    pub program: PathBuf,
    /// Machine to simulate: a name from `spinkit machines`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "pspin-400g")]
    pub machine: String,
    /// Set a parameter of the machine, such as accelerator.clusters=8
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Kind of cores for which handlers are compiled: rv32imac, or rv32imac-corev [default: that of the Makefile, else rv32imac]
    #[arg(long, value_name = "KIND")]
    pub hpu: Option<String>,
    /// Define a macro for the source, or for a folder whose Makefile compiles with $(DEFINITIONS)
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub define: Vec<String>,
    #[command(flatten)]
    pub load: LoadArguments,
    #[command(flatten)]
    pub context: ContextArguments,
    /// End with status 0 although handlers fail or are killed
    #[arg(long)]
    pub expect_failures: bool,
    /// Write the packets that handlers send to FILE: pcap for .pcap, else pcapng
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the results as JSON to FILE; `-` is standard output, which then has no table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a timeline for ui.perfetto.dev to FILE
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Options of a folder's driver; generic drivers also get --messages, --packets, --size, --gap and --message-gap as -m, -p, -s,
    /// -d and -l
    #[arg(last = true, value_name = "OPTIONS")]
    pub driver: Vec<OsString>,
}

/// Which packets arrive. Without an option, the default of its help; a folder's driver has defaults of its own.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packets")]
pub struct LoadArguments {
    /// Number of messages [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "pcap")]
    pub messages: Option<u32>,
    /// Number of packets of each message [default: 128]
    #[arg(long, value_name = "N", conflicts_with = "pcap")]
    pub packets: Option<u32>,
    /// Bytes of packets with all headers; with several sizes, packets of a message take turns [default: 1024]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', conflicts_with = "pcap")]
    pub size: Vec<u32>,
    /// Number of messages that arrive at the same time [default: 8]
    #[arg(long, value_name = "N", conflicts_with = "pcap")]
    pub flows: Option<u32>,
    /// Time between the beginnings of two packets, besides that of the network's rate [default: 0]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    pub gap: Option<Time>,
    /// Time more in front of each message but the first [default: 0]
    #[arg(long, value_name = "NS", value_parser = parse_ns, conflicts_with = "pcap")]
    pub message_gap: Option<Time>,
    /// Decides the contents of packets [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "pcap")]
    pub seed: Option<u64>,
    /// What generated packets begin with: ethernet, or ip as the published programs expect [default: ip]
    #[arg(long, value_name = "LINK", value_parser = ["ethernet", "ip"], conflicts_with = "pcap")]
    pub link: Option<String>,
    /// Read packets and their times from a capture, pcap or pcapng
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Sort packets into messages by the rules of a TOML file [default: each flow of UDP or TCP is a message; generated messages
    /// end with their last packet, those of a capture do not end]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
}

/// What execution contexts get.
#[derive(Debug, Args)]
#[command(next_help_heading = "Execution contexts")]
pub struct ContextArguments {
    /// Which handlers process packets when the program has several and there are no rules: NAME_hh, NAME_ph, NAME_th
    #[arg(long, value_name = "NAME")]
    pub handlers: Option<String>,
    /// L2 handler memory of each context [default: what the program has put there, at least 64 KiB]
    #[arg(long, value_name = "BYTES")]
    pub handler_memory: Option<u32>,
    /// Scratchpad of each context in the L1 of each cluster [default: 64 KiB]
    #[arg(long, value_name = "BYTES")]
    pub scratchpad: Option<u32>,
    /// Host memory of each context [default: 1 GiB]
    #[arg(long, value_name = "BYTES")]
    pub host_memory: Option<u64>,
    /// Cycles after which a handler is killed [default: that of the machine]
    #[arg(long, value_name = "CYCLES")]
    pub watchdog: Option<u64>,
}

/// A machine with a PsPIN unit.
pub struct Unit {
    /// Its name.
    pub name: String,
    /// The unit.
    pub config: Rc<machine::Pspin>,
    /// Its clock.
    pub clock: Clock,
}

impl Unit {
    /// Loads a machine, and tells what it has to say.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such machine, or it has no PsPIN unit.
    pub fn load(sdk: &Sdk, name: &str, set: &[String]) -> Result<Unit> {
        let machine = Machine::load(name, &[sdk.home.join("machines")], set);
        let machine = machine.map_err(|error| Error::Usage(error.to_string()))?;
        for notice in &machine.notices {
            eprintln!("spinkit pspin run: note: {notice}");
        }
        let (name, clock) = (machine.name, machine.hpu.clock);
        match machine.accelerator {
            Accelerator::Pspin(unit) => Ok(Unit { name, config: Rc::from(unit), clock }),
            Accelerator::Sc17(_) => {
                let text =
                    format!("{name}: accelerator.kind is \"sc17\"; this command needs \"pspin\", as pspin-400g has");
                Err(Error::Usage(text))
            }
        }
    }
}

/// Runs the command. Returns whether no handler failed.
///
/// # Errors
/// When the program does not compile or does not fit, or a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let sdk = Sdk::find()?;
    let unit = Unit::load(&sdk, &arguments.machine, &arguments.set)?;
    let is_folder = std::fs::metadata(&arguments.program).map_err(Error::read(&arguments.program))?.is_dir();
    let report = if is_folder { folder::run(arguments, &sdk, &unit)? } else { program(arguments, &unit)? };
    show(&report, &unit, arguments.json.as_deref())?;
    Ok(arguments.expect_failures || report.faults + report.watchdog == 0)
}

/// Runs a program or a source.
fn program(arguments: &Arguments, unit: &Unit) -> Result<Report> {
    if !arguments.driver.is_empty() {
        return Err(Error::Usage("what follows -- is for drivers of folders; a program has none".to_owned()));
    }
    let room = tempfile::tempdir().map_err(Error::write(Path::new("a temporary folder")))?;
    let elf = match arguments.program.extension().and_then(|extension| extension.to_str()) {
        Some("c") => compile(arguments, room.path())?,
        _ => arguments.program.clone(),
    };
    let elf = std::fs::read(&elf).map_err(Error::read(&elf))?;
    alone::run(arguments, unit, &elf)
}

/// Compiles a source. Returns the program.
fn compile(arguments: &Arguments, room: &Path) -> Result<PathBuf> {
    let program = room.join("program.elf");
    let mut words: Vec<OsString> =
        ["--hpu", arguments.hpu.as_deref().unwrap_or("rv32imac"), "-O3", "-g"].map(OsString::from).to_vec();
    words.extend(arguments.define.iter().flat_map(|define| ["-D".into(), define.into()]));
    words.extend([arguments.program.clone().into(), "-o".into(), program.clone().into()]);
    super::cc::compile(super::words::parse(words)?)?;
    Ok(program)
}

/// Writes the results: as JSON to a file, and as a table to the standard output unless that is the file.
///
/// # Errors
/// When a file cannot be written.
pub fn show(report: &Report, unit: &Unit, json: Option<&Path>) -> Result<()> {
    let standard = Path::new("standard output");
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(report).expect("numbers and texts are JSON") + "\n";
        if path == Path::new("-") {
            return std::io::stdout().write_all(text.as_bytes()).map_err(Error::write(standard));
        }
        output::write(path, |out| out.write_all(text.as_bytes())).map_err(Error::write(path))?;
    }
    std::io::stdout().write_all(table::text(report, unit).as_bytes()).map_err(Error::write(standard))
}
