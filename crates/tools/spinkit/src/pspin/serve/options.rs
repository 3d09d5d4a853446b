// SPDX-License-Identifier: Apache-2.0
//! The options of `spinkit pspin serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use frames::address::Network;

use super::super::options::ContextArguments;

/// Name of the command in messages.
pub const NAME: &str = "spinkit pspin serve";

/// Run handlers on the packets of a real network interface, until Ctrl-C
///
/// The card has one port, at which frames arrive: a TAP interface that the command creates (--tap), an interface that exists
/// (--interface), or a Unix socket (--socket). Rules give frames to handlers, which get whole Ethernet frames; the packets that
/// handlers send leave through the same port. All other frames go to the host behind the card (--host).
///
/// Exit status: 1 when a handler fails or is killed, the program does not compile, or an interface cannot be used; 2 for wrong
/// usage or a bad machine file.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("port").required(true).args(["tap", "interface", "socket"]))]
pub struct Arguments {
    /// A C source with handlers NAME_hh, NAME_ph, NAME_th, or a program of `pspin-cc`
    pub program: PathBuf,
    /// Create a TAP interface: frames that this machine sends there arrive at the card
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
    /// Take the frames that arrive at an interface (AF_PACKET); its stack sees them, too, unless there is --host
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Wait for a client at a Unix socket (SOCK_SEQPACKET), each of whose messages is a frame; the run ends with it
    #[arg(long, value_name = "FILE")]
    pub socket: Option<PathBuf>,
    /// Address of the card, as 10.0.0.1/24. The machine's end of --tap gets the next one of the network; the host of --host gets
    /// the card's. Without --host the card answers ARP requests for it
    #[arg(long, value_name = "ADDRESS/BITS")]
    pub address: Option<Network>,
    /// Create a TAP interface for the host behind the card: it gets the frames that no rule takes, and sends past the handlers
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Engine that executes handlers
    #[arg(long, value_enum, default_value_t = Engine::Native)]
    pub engine: Engine,
    /// Give frames to handlers by the rules of a TOML file [default: PROGRAM with the ending .toml if that exists, else one rule:
    /// each frame is a message for the program's only handlers]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Machine whose unit is the card: a name from `spinkit machines`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "pspin-400g")]
    pub machine: String,
    /// Set a parameter of the machine, such as accelerator.clusters=8
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Kind of cores for which model and rtl compile handlers: rv32imac, or rv32imac-corev [default: rv32imac]
    #[arg(long, value_name = "KIND")]
    pub hpu: Option<String>,
    /// Define a macro for the source
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    pub define: Vec<String>,
    #[command(flatten)]
    pub context: ContextArguments,
    /// Threads that run handlers, with --engine native [default: one for each core of this machine, at most the machine's HPUs]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Microseconds for which an idle thread looks for work before it sleeps, with --engine native
    #[arg(long, value_name = "US", default_value_t = 50)]
    pub spin: u32,
    /// End after this time [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// End with status 0 although handlers fail or are killed
    #[arg(long)]
    pub expect_failures: bool,
    /// Write the results as JSON to FILE; `-` is standard output, which then has no table
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Engine of a live card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// This computer: handlers are its machine code, in a contained process.
    Native,
    /// The model, cycle by cycle.
    Model,
    /// The hardware, simulated by Verilator.
    Rtl,
}
