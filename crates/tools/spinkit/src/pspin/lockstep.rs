// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin lockstep`: random packets on the hardware and on the model, compared in every cycle.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use output::Scratch;
use pspin_nic::driver::{Driver, Request};
use pspin_nic::program::Loaded;
use pspin_rtl::lockstep::comparison::{Compared, Lockstep, Times};
use pspin_rtl::lockstep::instructions::Counts;
use pspin_rtl::lockstep::traffic::Traffic;

use super::alone::{SUFFIXES, only};
use super::run::compile;
use super::unit_machine::Unit;
use command::sdk::Sdk;
use spincc::{Error, Result};

/// Run random packets on the hardware of rtl/ and on the model, and compare events, their cycles, memory, and every instruction
///
/// Packets have a random word, then their number: rtl/tests/lockstep/random.c has handlers that do what it says. Exit status: 1 at the first difference, which is printed with what was told before and after it on both sides.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A C source with handlers, or a program that `pspin-cc` has linked
    pub program: PathBuf,
    /// Machine to simulate: a name from `spinkit machines`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "pspin-tiny")]
    pub machine: String,
    /// Set a parameter of the machine, such as accelerator.clusters=8
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Handlers that process packets, when the program has several: NAME_hh, NAME_ph, NAME_th
    #[arg(long, value_name = "NAME")]
    pub handlers: Option<String>,
    /// Number of packets of a run, at least
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub packets: usize,
    /// Decides sizes, messages, times and contents of the packets of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Number of runs, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u32,
    /// In how many of 16 cycles the NIC takes no feedback
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub held: u64,
    /// In how many of 16 cycles each other port does not go on: packets to the network, writes to the host, reads, and their data
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub held_data: u64,
    /// Compare packet by packet: each has the same tasks and ends, and any 1,000 of them take the same time within 2 %
    #[arg(long)]
    pub loaded: bool,
    /// Number of messages in 16 without a last packet; the next message of such a queue waits until the hardware gives
    /// it up, so they belong to --loaded
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub broken: u64,
    /// Messages without a last packet at the end of a run, each for a queue of its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub unfinished: u32,
    /// The threshold of the watchdog in cycles
    #[arg(long, value_name = "CYCLES", default_value_t = 2_000)]
    pub watchdog: u64,
    /// The threshold of messages that are idle in cycles
    #[arg(long, value_name = "CYCLES", default_value_t = 30_000)]
    pub idle: u64,
    /// Begin with empty instruction caches, whose misses take other cycles in the hardware than in the model
    #[arg(long)]
    pub cold: bool,
}

/// Bytes of handler memory and scratchpad of the context, and of its host memory.
const MEMORY: u32 = 16_384;
const HOST_MEMORY: u64 = 1 << 20;
/// Cycles after the last packet within which a run must end.
const MOST_CYCLES: u64 = 10_000_000;

/// Runs the command.
///
/// # Errors
/// The first difference, or when a side cannot be simulated.
pub fn run(arguments: &Arguments) -> Result<()> {
    let (sdk, file) = (Sdk::find()?, &arguments.program);
    let unit = Unit::load(&sdk, &arguments.machine, &arguments.set)?;
    let room = Scratch::new("spinkit-pspin.").map_err(Error::write(&std::env::temp_dir()))?;
    let elf = match file.extension().and_then(|extension| extension.to_str()) {
        Some("c") => compile(file, "rv32imac-corev".into(), &[] as &[OsString], room.path())?,
        _ => file.clone(),
    };
    let elf = std::fs::read(&elf).map_err(Error::read(&elf))?;
    let loaded = Loaded::new(&elf, &unit.config).map_err(|error| Error::malformed(file, error))?;
    let name = arguments.handlers.clone().map_or_else(|| only(file, loaded.program().names()), Ok)?;
    let library = unit.hardware(&sdk, "spinkit pspin lockstep", false)?;
    let request = Request {
        handlers: SUFFIXES.map(|suffix| loaded.handler(&format!("{name}{suffix}")).unwrap_or_default()),
        code: vec![loaded.code()],
        handler_memory: MEMORY,
        scratchpad: MEMORY,
        host: HOST_MEMORY,
        watchdog_cycles: Some(arguments.watchdog),
        idle_cycles: Some(arguments.idle),
        ..Request::default()
    };
    let mut driver = Driver::new(&unit.config, loaded.program().data_segment().len() as u32);
    let context = driver.context(&request).map_err(|error| Error::malformed(file, error))?;
    let contexts = vec![Rc::new(context)];
    let traffic = Traffic {
        packets: arguments.packets,
        contexts: contexts.len(),
        unfinished: arguments.unfinished,
        broken: arguments.broken,
    };
    for seed in (arguments.seed..).take(arguments.runs as usize) {
        let lockstep = Lockstep {
            library: &library,
            inputs: Vec::new(),
            seed,
            config: unit.config.clone(),
            clock: unit.clock,
            loaded: &loaded,
            contexts: contexts.clone(),
            packets: traffic.draw(seed.into()),
            times: if arguments.loaded { Times::Loaded } else { Times::Exact },
            held: arguments.held,
            held_data: arguments.held_data,
            is_warm: !arguments.cold,
            most_cycles: MOST_CYCLES,
        };
        let compared = lockstep.run().map_err(|error| Error::Program(format!("seed {seed}: {error}")))?;
        output::print(&told(seed, &compared)).map_err(Error::write(Path::new("standard output")))?;
    }
    Ok(())
}

/// Returns the lines about a run: numbers of comparisons.
fn told(seed: u32, compared: &Compared) -> String {
    let Compared { packets, events, checked, failed, idle, bytes, cycles, conflicts, misses, spread } = compared;
    let Counts { instructions, registers, words } = checked;
    let [[model, hardware], [conflicts, hardware_conflicts], [misses, hardware_misses]] = [cycles, conflicts, misses];
    let spread = spread.as_ref().map(|spread| format!("  {spread}\n")).unwrap_or_default();
    format!(
        "seed {seed}: {packets} packets, {events} events, {instructions} instructions, {registers} registers, {words} accesses, \
         {failed} failures, {idle} messages given up, {bytes} bytes of memory\n  \
         model {model} cycles, {conflicts} of waiting for banks, {misses} misses; \
         hardware {hardware}, {hardware_conflicts}, {hardware_misses}\n{spread}"
    )
}
