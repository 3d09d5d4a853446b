// SPDX-License-Identifier: Apache-2.0
//! The options of `spinkit pspin run`.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pspin_rtl::Wave;
use sim::Time;

use command::units::parse_ns;
use spincc::{Error, Result};

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
    /// Engine that executes: the model, or the hardware of rtl/ in a simulator, which is built once for each machine
    #[arg(long, value_enum, default_value_t = Engine::Model)]
    pub engine: Engine,
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
    /// Write a waveform of all signals to FILE, as VCD, with --engine rtl; its simulator is another one
    #[arg(long, value_name = "FILE")]
    pub wave: Option<PathBuf>,
    /// Cycles that the waveform shows [default: all]
    #[arg(long, value_name = "FROM..TO", value_parser = parse_cycles, requires = "wave")]
    pub wave_cycles: Option<Range<u64>>,
    /// Options of a folder's driver; generic drivers also get --messages, --packets, --size, --gap and --message-gap as -m, -p, -s,
    /// -d and -l
    #[arg(last = true, value_name = "OPTIONS")]
    pub driver: Vec<OsString>,
}

impl Arguments {
    /// Returns the requested waveform.
    ///
    /// # Errors
    /// [`Error::Usage`] with the model, which has no signals.
    pub fn wave(&self) -> Result<Option<Wave>> {
        let Some(file) = &self.wave else { return Ok(None) };
        if self.engine != Engine::Rtl {
            return Err(Error::Usage(
                "--wave is for --engine rtl: the model has no signals; --trace draws its timeline".to_owned(),
            ));
        }
        let file = std::path::absolute(file).map_err(Error::write(file))?;
        Ok(Some(Wave { file, cycles: self.wave_cycles.clone().unwrap_or(0..u64::MAX) }))
    }
}

/// Parses a range of cycles.
fn parse_cycles(text: &str) -> std::result::Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.filter(|range: &Range<u64>| !range.is_empty()).ok_or_else(|| "two cycles, as 1000..2000".to_owned())
}

/// Engine of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// The model, cycle by cycle.
    Model,
    /// The hardware, simulated by Verilator.
    Rtl,
}

/// First header of the packets passed to handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HandlerLink {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
}

/// Arriving packets. Defaults are in the help of each option; a folder's driver has its own defaults.
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
    /// First header of the packets that handlers get: ethernet, or ip as the published programs expect. Of a capture with Ethernet
    /// headers, ip leaves these out [default: ip for generated packets; as they were captured]
    #[arg(long, value_enum, value_name = "LINK")]
    pub link: Option<HandlerLink>,
    /// Read packets and their times from a capture, pcap or pcapng, which may be compressed by gzip
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Sort packets into messages by the rules of a TOML file [default: each flow of UDP or TCP is a message; generated messages
    /// end with their last packet, those of a capture do not end]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
}

/// Resources of execution contexts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Execution contexts")]
pub struct ContextArguments {
    /// Handlers that process packets, when the program has several and there are no rules: NAME_hh, NAME_ph, NAME_th
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
