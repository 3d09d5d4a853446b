// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin serve`: a card on a real network interface.
//!
//! * `options`: its options; `ports`: opens the interfaces
//! * `sorter`: match-action table; `card`: the interface of engines; `simulated`: model and
//!   hardware; `native`: handlers as machine code of this computer

mod card;
mod native;
pub mod options;
mod ports;
mod simulated;
mod sorter;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use frames::port::{MOST, Port};
use frames::signals::{EndSignals, wait};
use output::Scratch;
use packets::rules::{self, Action, End, FLOW, Processing, Rule, Transfer};
use pspin_nic::host::HostMemory;
use pspin_nic::program::Loaded;
use pspin_nic::report::Report;
use pspin_nic::system::System;
use pspin_nic::watch::Watch;
use pspin_rtl::Rtl;

use ::native::image::Image;

use self::card::{Card, Output};
use self::native::Native;
use self::options::{Arguments, Engine, NAME};
use self::ports::Ports;
use self::simulated::Simulated;
use self::sorter::{Sorter, Verdict, arp_answer};
use super::alone::only;
use super::run::{compile, compile_native, show};
use super::unit_machine::Unit;
use command::sdk::Sdk;
use spincc::{Error, Result};

/// Frames taken from a port in one turn of the loop.
const BURST: usize = 64;
/// Time for packets inside at the end.
const DRAIN: Duration = Duration::from_secs(1);
/// Number of handler errors printed.
const TOLD: u64 = 20;

/// Runs the command. Returns true if no handler failed.
///
/// # Errors
/// When the program does not compile or does not fit, or an interface cannot be used.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let sdk = Sdk::find()?;
    let unit = Unit::load(&sdk, &arguments.machine, &arguments.set)?;
    let signals = EndSignals::open().map_err(Error::other)?;
    let (prepared, rules) = prepare(arguments, &sdk, &unit)?;
    let most_held = unit.config.inbound.reorder_packets;
    // The interface appears only once the card can answer.
    let Some(ports) = Ports::open(arguments, &signals)? else { return Ok(true) };
    let mut card: Box<dyn Card> = match prepared {
        Prepared::Simulated(card) => card,
        Prepared::Native(image) => Box::new(Native::new(arguments, &unit, image, &rules, ports.wire.fd())?),
    };
    let mut server = Server {
        arguments,
        ports,
        sorter: Sorter::new(rules, most_held),
        buffer: vec![0; MOST],
        failed: 0,
        refused: 0,
        unsent: 0,
    };
    server.serve(&mut *card, &signals)?;
    server.drain(&mut *card)?;
    let report = server.finish(card.report(), card.unsent());
    show(&report, &unit, arguments.json.as_deref())?;
    Ok(arguments.expect_failures || report.faults + report.watchdog == 0)
}

/// Card before its port opens.
enum Prepared {
    /// The card itself.
    Simulated(Box<dyn Card>),
    /// Executable of the handlers, whose process gets the port at its start.
    Native(Image),
}

/// Compiles the program, and reads its rules.
fn prepare(arguments: &Arguments, sdk: &Sdk, unit: &Unit) -> Result<(Prepared, Vec<Rule>)> {
    let (file, context) = (&arguments.program, &arguments.context);
    let is_source = file.extension().is_some_and(|extension| extension == "c");
    if !is_source && !file.is_file() {
        let reason =
            "it is neither a C source nor a program of pspin-cc; folders with drivers are for spinkit pspin run";
        return Err(Error::malformed(file, reason));
    }
    if arguments.engine == Engine::Native {
        if !is_source {
            let reason = "--engine native compiles for this computer and needs the C source";
            return Err(Error::Usage(format!("{}: {reason}", file.display())));
        }
        let image = Image::new(&compile_native(file, &arguments.define)?);
        let image = image.map_err(|error| Error::malformed(file, error))?;
        let rules = rules_of(arguments, image.symbols.names())?;
        return Ok((Prepared::Native(image), rules));
    }
    let room = Scratch::new("spinkit-pspin.").map_err(Error::write(&std::env::temp_dir()))?;
    let elf = if is_source {
        compile(file, arguments.hpu.as_deref().unwrap_or("rv32imac").into(), &arguments.define, room.path())?
    } else {
        file.clone()
    };
    let elf = std::fs::read(&elf).map_err(Error::read(&elf))?;
    let loaded = Loaded::new(&elf, &unit.config).map_err(|error| Error::malformed(file, error))?;
    let rules = rules_of(arguments, loaded.program().names())?;
    let (config, clock, watch) = (unit.config.clone(), unit.clock, Watch::new(&unit.config, None));
    let card: Box<dyn Card> = if arguments.engine == Engine::Rtl {
        let library = unit.hardware(sdk, NAME, false)?;
        let hardware = Rtl::new(&library, 0, config.clone(), clock, &loaded, false, watch).map_err(Error::other)?;
        let system = System::around(hardware, config, clock, HostMemory::default());
        Box::new(Simulated::new(system, file, context, (unit, "rtl"), loaded, &rules)?)
    } else {
        let system = System::new(config.clone(), clock, loaded.hpus(config), watch);
        Box::new(Simulated::new(system, file, context, (unit, "model"), loaded, &rules)?)
    };
    Ok((Prepared::Simulated(card), rules))
}

/// Returns the rules: those of a file, or one that makes each frame a message for the program's only handlers.
fn rules_of<'a>(arguments: &Arguments, functions: impl Iterator<Item = &'a str>) -> Result<Vec<Rule>> {
    let beside = arguments.program.with_extension("toml");
    let beside = (arguments.context.handlers.is_none() && beside.is_file()).then_some(beside);
    if let Some(path) = arguments.rules.clone().or(beside) {
        let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
        return rules::read(&text).map_err(|error| Error::malformed(&path, error));
    }
    let context = match &arguments.context.handlers {
        Some(name) => name.clone(),
        None => only(&arguments.program, functions)?,
    };
    let end = End { packets: Some(1), ..End::default() };
    let processing = Processing { context, message: FLOW.to_vec(), header: Vec::new(), end, transfer: Transfer::All };
    Ok(vec![Rule { priority: 0, matches: Vec::new(), action: Action::Context(Box::new(processing)) }])
}

/// Event loop of a live card.
struct Server<'a> {
    arguments: &'a Arguments,
    ports: Ports,
    sorter: Sorter,
    buffer: Vec<u8>,
    /// Failures of handlers so far.
    failed: u64,
    /// Frames for the host without a host.
    refused: u64,
    /// Frames that an interface did not take.
    unsent: u64,
}

impl Server<'_> {
    /// Serves until the user ends it, its time is over, or its client has gone.
    fn serve(&mut self, card: &mut dyn Card, signals: &EndSignals) -> Result<()> {
        let end =
            self.arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let left = left.map_or(-1, |left| left.as_millis().min(1_000_000) as i32 + 1);
            let wanted = card.wait_ms();
            let timeout = if wanted < 0 || left < 0 { wanted.max(left) } else { wanted.min(left) };
            // Without room, frames wait in the queue of the interface.
            let has_room = card.has_room();
            let wire = has_room.then(|| self.ports.wire.fd());
            let host = self.ports.host.as_ref().map(Port::fd);
            let files: Vec<_> = [Some(signals.fd()), host, card.fd(), wire].into_iter().flatten().collect();
            let mut ready = [false; 4];
            wait(&files, timeout, &mut ready).map_err(Error::other)?;
            let from_wire = has_room && ready[files.len() - 1];
            if ready[0] {
                return Ok(());
            }
            if self.ports.host.is_some() && ready[1] {
                self.receive_host()?;
            }
            if from_wire && !self.receive_wire(card)? {
                return Ok(());
            }
            for output in card.work()? {
                self.put_out(output)?;
            }
        }
    }

    /// Lets the packets inside end, but not for long.
    fn drain(&mut self, card: &mut dyn Card) -> Result<()> {
        let end = Instant::now() + DRAIN;
        while card.is_busy() && Instant::now() < end {
            for output in card.work()? {
                self.put_out(output)?;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Takes frames from the wire. Returns false if the client has gone.
    fn receive_wire(&mut self, card: &mut dyn Card) -> Result<bool> {
        for _ in 0..BURST {
            let count = match self.ports.wire.receive(&mut self.buffer) {
                Ok(Some(0)) => continue,
                Ok(Some(count)) => count,
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(false);
                }
                Err(error) => return Err(gone(self.ports.wire.name(), &error)),
            };
            let frame = &self.buffer[..count];
            match self.sorter.arrive(frame) {
                Verdict::Handlers => {
                    while let Some(packet) = self.sorter.next_ready() {
                        card.arrive(packet);
                    }
                }
                Verdict::Host => match (&mut self.ports.host, self.ports.card) {
                    (Some(host), _) => self.unsent += u64::from(host.send(frame).is_err()),
                    (None, Some((network, mac))) if let Some(answer) = arp_answer(frame, network, mac) => {
                        self.unsent += u64::from(self.ports.wire.send(&answer).is_err());
                    }
                    (None, _) => self.refused += 1,
                },
                Verdict::Dropped => {}
            }
        }
        Ok(true)
    }

    /// Passes frames of the host to the wire.
    fn receive_host(&mut self) -> Result<()> {
        let Some(host) = &mut self.ports.host else { return Ok(()) };
        for _ in 0..BURST {
            match host.receive(&mut self.buffer) {
                Ok(Some(count)) => self.unsent += u64::from(self.ports.wire.send(&self.buffer[..count]).is_err()),
                Ok(None) => break,
                Err(error) => return Err(gone(host.name(), &error)),
            }
        }
        Ok(())
    }

    fn put_out(&mut self, output: Output) -> Result<()> {
        match output {
            Output::Frame(frame) => self.unsent += u64::from(self.ports.wire.send(&frame).is_err()),
            Output::Line(line) => {
                let text = line + "\n";
                if self.arguments.json.as_deref() == Some(Path::new("-")) {
                    // A closed reader does not end the run.
                    _ = io::stderr().write_all(text.as_bytes());
                } else {
                    output::print(&text).map_err(Error::write(Path::new("standard output")))?;
                }
            }
            Output::Failed(text) => {
                self.failed += 1;
                if self.failed <= TOLD {
                    eprintln!("{NAME}: error: {text}");
                }
            }
            Output::Forgotten(message) => self.sorter.forget(message),
        }
        Ok(())
    }

    /// Completes the card's report by the frames that it did not see, and prints the notes of the end.
    fn finish(&self, mut report: Report, (unsent, puts): (u64, u64)) -> Report {
        if self.failed > TOLD {
            eprintln!("{NAME}: error: {} more handlers failed", self.failed - TOLD);
        }
        for (count, text) in [
            (self.refused, "frames that no rule takes were dropped: --host NAME makes a host behind the card"),
            (self.unsent + unsent, "frames were dropped, because an interface did not take them"),
            (puts, "RDMA puts were dropped, which have no headers"),
        ] {
            if count > 0 {
                eprintln!("{NAME}: note: {count} {text}");
            }
        }
        let sorted = self.sorter.sorted();
        let packets = &mut report.packets;
        packets.arrived += sorted.to_host + sorted.dropped + sorted.overtook;
        (packets.to_host, packets.dropped.rule, packets.dropped.overtook) =
            (sorted.to_host, sorted.dropped, sorted.overtook);
        report
    }
}

/// Makes the error of an interface that vanishes.
fn gone(name: &str, error: &io::Error) -> Error {
    Error::Program(format!("{name}: cannot receive: {error}: the interface has vanished or is down"))
}
