// SPDX-License-Identifier: Apache-2.0
//! Run of the card alone: generated or captured packets, a match-action table, the unit, and files of its output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use packets::capture::{self, Captured, Format, Writer};
use packets::frame::Link;
use packets::generate::{Generator, Load, Pace};
use packets::rules::{self, Action, End, FLOW, Limits, Processing, Rule, Transfer};
use pspin_nic::driver::{Driver, Request};
use pspin_nic::host::HostMemory;
use pspin_nic::inbound::Done;
use pspin_nic::network::Table;
use pspin_nic::program::Loaded;
use pspin_nic::report::{self, Report};
use pspin_nic::system::System;
use pspin_nic::timeline::Timeline;
use pspin_nic::watch::Watch;
use pspin_rtl::Rtl;
use pspin_unit::her::{DriverEvent, ExecutionContext, Share};
use pspin_unit::{Cycle, Unit};
use sim::Time;

use super::options::{Arguments, ContextArguments, Engine, HandlerLink, LoadArguments};
use super::unit_machine::Unit as Machine;
use command::progress::{self, Task};
use command::sdk::Sdk;
use spincc::{Error, Result};

/// Number of packets queued at the inbound engine before they arrive.
const AHEAD: usize = 64;
/// Number with separate tenants: packets of others must be in the queue behind those of a paused tenant.
const AHEAD_APART: usize = 65_536;
/// Default bytes of L2 handler memory of a context; the program or an option may demand more.
const HANDLER_MEMORY: u32 = 65_536;
/// Address at which programs place the initial content of a context's handler memory (`sdk/pspin/rt/linker/pspin.ld`).
const HANDLER_DATA: u32 = 3 << 20;
/// Default bytes of scratchpad and of host memory of a context.
const SCRATCHPAD: u32 = 65_536;
const HOST_MEMORY: u64 = 1 << 30;
/// Defaults of generated traffic: messages, packets of each, their size, concurrent messages.
const MESSAGES: u32 = 8;
const PACKETS: u32 = 128;
const SIZE: u32 = 1_024;
const FLOWS: u32 = 8;
/// Number of handler errors printed.
const TOLD: usize = 5;

/// Limits of contexts by name.
type AllLimits = BTreeMap<String, Limits>;

/// Packets in time order, with their times.
type Packets = Box<dyn Iterator<Item = (Time, Link, Vec<u8>)>>;

/// Runs a program. Returns the report.
///
/// # Errors
/// When the program does not fit, a file cannot be read or written, or the run does not end.
pub fn run(arguments: &Arguments, sdk: &Sdk, unit: &Machine, elf: &[u8]) -> Result<Report> {
    let (file, wave) = (&arguments.program, arguments.wave()?);
    let loaded = Loaded::new(elf, &unit.config).map_err(|error| Error::malformed(file, error))?;
    let (packets, count, link) = arriving(&arguments.load)?;
    let (rules, limits) = rules_of(arguments, &loaded)?;
    let timeline = arguments.trace.as_ref().map(|path| {
        let program = loaded.program().clone();
        let name = move |address| program.function(address).unwrap_or("handler").to_owned();
        Timeline::to_file(path, &unit.config, unit.clock, name).map_err(Error::write(path))
    });
    let watch = Watch::new(&unit.config, timeline.transpose()?);
    let (config, clock) = (unit.config.clone(), unit.clock);
    match arguments.engine {
        Engine::Model => {
            let system = System::new(config.clone(), clock, loaded.hpus(config), watch);
            on(system, arguments, unit, &loaded, (packets, count, link), (rules, limits))
        }
        Engine::Rtl => {
            let library = unit.hardware(sdk, "spinkit pspin run", wave.is_some())?;
            let mut hardware =
                Rtl::new(&library, 0, config.clone(), clock, &loaded, false, watch).map_err(Error::other)?;
            if let Some(wave) = &wave {
                hardware.write_wave(wave).map_err(Error::other)?;
            }
            let system = System::around(hardware, config, clock, HostMemory::default());
            on(system, arguments, unit, &loaded, (packets, count, link), (rules, limits))
        }
    }
}

/// Runs a program on a card.
fn on<U: Unit<Observer = Watch>>(
    mut system: System<U>,
    arguments: &Arguments,
    unit: &Machine,
    loaded: &Loaded,
    (packets, count, link): (Packets, Option<u64>, Link),
    (rules, limits): (Vec<Rule>, AllLimits),
) -> Result<Report> {
    let file = &arguments.program;
    loaded.write(system.unit());
    let mut contexts = Contexts { limits, ..Contexts::new(&arguments.context, unit, loaded, &rules) };
    let most_held = unit.config.inbound.reorder_packets;
    let table = Table::new(rules, most_held, |name| {
        let context = contexts.make(name).map_err(|reason| Error::malformed(file, reason))?;
        system.host().register(context.tenant, context.descriptor, 64 + context.host.size);
        system.unit().prepare(&context);
        Ok::<_, Error>(context)
    })?;
    boot(&mut system, file)?;
    let table = if arguments.load.link == Some(HandlerLink::Ip) { table.from_ip() } else { table };
    let sent = Sent::new(arguments.out.as_deref(), link)?;
    let has_json_out = arguments.json.as_deref() == Some(Path::new("-"));
    let is_apart = unit.config.sharing.separated().is_some();
    let ahead = if is_apart { AHEAD_APART } else { AHEAD };
    let mut run = Run { system, table, packets, ahead, begin: Time::ZERO, sent, told: 0, has_json_out };
    run.begin = unit.clock.time(run.system.unit().now().0);
    let done = AtomicU64::new(0);
    let counted = || done.load(Ordering::Relaxed);
    let task = match count {
        Some(all) => Task::Counted { done: &counted, all },
        None => Task::Unknown("packets".to_owned()),
    };
    let end = progress::watch("spinkit pspin run", None, &task, || run.simulate(loaded, &done)).0;
    end.map_err(|reason| Error::malformed(file, reason))?;
    let Run { mut system, table, sent, told, .. } = run;
    if told > TOLD {
        eprintln!("spinkit pspin run: error: {} more handlers failed", told - TOLD);
    }
    sent.finish()?;
    let mut report = system.report(&unit.name, unit.clock);
    let sorted = table.sorted();
    if sorted.without_ip > 0 {
        let count = sorted.without_ip;
        eprintln!("spinkit pspin run: note: {count} packets without an IP header went to the host (--link ip)");
    }
    let packets = &mut report.packets;
    packets.arrived += sorted.to_host + sorted.dropped + sorted.overtook + sorted.malformed + table.held();
    packets.to_host = sorted.to_host;
    packets.dropped.rule = sorted.dropped;
    packets.dropped.overtook = sorted.overtook + table.held();
    packets.dropped.malformed = sorted.malformed;
    if let (Some(timeline), Some(path)) = (system.unit().observer().take_timeline(), &arguments.trace) {
        timeline.finish().map_err(Error::write(path))?;
    }
    Ok(report)
}

/// Limit of cycles until the program waits for packets.
const MOST_BOOT: u64 = 100_000_000;

/// Boots a card, and runs `init_handlers` of the program.
///
/// # Errors
/// When that function fails or does not return.
pub fn boot<U: Unit<Observer = Watch>>(system: &mut System<U>, file: &Path) -> Result<()> {
    if !system.boot(Cycle(MOST_BOOT)) {
        return Err(Error::malformed(file, format!("init_handlers() has not returned after {MOST_BOOT} cycles")));
    }
    if let Some(reason) = system.unit().failure() {
        return Err(Error::malformed(file, reason));
    }
    if system.unit().core_counters().failed > 0 {
        return Err(Error::malformed(file, INIT_FAILED));
    }
    Ok(())
}

/// Reason for refusing a program.
pub const INIT_FAILED: &str =
    "init_handlers() has failed: it left the program or its memory, or its instructions are illegal";

/// Returns the arriving packets, their number if known, and their first header.
fn arriving(load: &LoadArguments) -> Result<(Packets, Option<u64>, Link)> {
    let Some(path) = &load.pcap else {
        let link = if load.link == Some(HandlerLink::Ethernet) { Link::Ethernet } else { Link::Ip };
        let (messages, packets) = (load.messages.unwrap_or(MESSAGES), load.packets.unwrap_or(PACKETS));
        let ps = |time: Option<Time>| time.unwrap_or_default().as_ps();
        let generator = Generator::new(Load {
            link,
            messages,
            packets,
            sizes: if load.size.is_empty() { vec![SIZE] } else { load.size.clone() },
            flows: load.flows.unwrap_or(FLOWS).min(messages.max(1)),
            // The inbound engine sets the rate.
            pace: Pace { fs_per_byte: 0, gap_ps: ps(load.gap), message_gap_ps: ps(load.message_gap) },
            seed: load.seed.unwrap_or(1),
        });
        let generator = generator.map_err(|error| Error::Usage(error.to_string()))?;
        let count = u64::from(messages) * u64::from(packets);
        let packets = generator.map(move |packet| (Time::from_ps(packet.at_ps), link, packet.bytes));
        return Ok((Box::new(packets), Some(count), link));
    };
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    let captured = capture::read(&bytes).map_err(|error| Error::malformed(path, error))?;
    let (count, first) = (captured.len() as u64, captured.first().map_or(0, |packet| packet.time_ns));
    let link = handler_link(path, load.link, &captured)?;
    let mut latest = Time::ZERO;
    let gap = load.gap.unwrap_or_default();
    let packets = captured.into_iter().enumerate().map(move |(number, packet)| {
        let at = Time::from_ns(packet.time_ns.saturating_sub(first)) + Time::from_ps(gap.as_ps() * number as u64);
        // A captured packet may be older than the one before.
        latest = latest.max(at);
        (latest, packet.link, packet.bytes)
    });
    Ok((Box::new(packets), Some(count), link))
}

/// Returns the first header of captured packets as seen by handlers.
fn handler_link(path: &Path, wanted: Option<HandlerLink>, captured: &[Captured]) -> Result<Link> {
    let first = captured.first().map_or(Link::Ethernet, |packet| packet.link);
    let frames = captured.iter().filter(|packet| packet.link == Link::Ethernet).count();
    match wanted {
        Some(HandlerLink::Ip) => Ok(Link::Ip),
        Some(HandlerLink::Ethernet) if frames < captured.len() => {
            let (without, all) = (captured.len() - frames, captured.len());
            let reason =
                format!("{without} of its {all} packets have no Ethernet header: --link ip gives all to handlers");
            Err(Error::malformed(path, reason))
        }
        Some(HandlerLink::Ethernet) => Ok(first),
        None => {
            if frames > 0 {
                eprintln!(
                    "spinkit pspin run: note: {}: handlers get whole frames, which begin with an Ethernet header; pkt_hdr_t of \
                     packets.h begins with an IP header: --link ip gives them packets from there on, --link ethernet says that \
                     whole frames are right",
                    path.display()
                );
            }
            Ok(first)
        }
    }
}

/// Returns the rules of the file, or one rule that sends all packets to the program's only handlers.
fn rules_of(arguments: &Arguments, loaded: &Loaded) -> Result<(Vec<Rule>, AllLimits)> {
    let LoadArguments { rules, pcap, packets, .. } = &arguments.load;
    if let Some(path) = rules {
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        let both = rules::read(&text).and_then(|read| Ok((read, rules::limits(&text)?)));
        return both.map_err(|error| Error::malformed(path, error));
    }
    let context = match &arguments.context.handlers {
        Some(name) => name.clone(),
        None => only(&arguments.program, loaded.program().names())?,
    };
    let end = End { packets: pcap.is_none().then_some(packets.unwrap_or(PACKETS)), ..End::default() };
    let processing = Processing { context, message: FLOW.to_vec(), header: Vec::new(), end, transfer: Transfer::All };
    let rule = Rule { priority: 0, matches: Vec::new(), action: Action::Context(Box::new(processing)) };
    Ok((vec![rule], AllLimits::new()))
}

/// Suffixes of the names of header, payload and completion handlers.
pub const SUFFIXES: [&str; 3] = ["_hh", "_ph", "_th"];

/// Returns the common name of all handlers of a program with these functions.
///
/// # Errors
/// When it has no handlers, or handlers of several names.
pub fn only<'a>(file: &Path, functions: impl Iterator<Item = &'a str>) -> Result<String> {
    let name = |function: &str| SUFFIXES.iter().find_map(|suffix| function.strip_suffix(suffix)).map(str::to_owned);
    let names: BTreeSet<String> = functions.filter_map(name).filter(|name| !name.is_empty()).collect();
    let reason = match names.len() {
        1 => return Ok(names.into_iter().next().unwrap_or_default()),
        0 => "it has no handlers: functions with names that end in _hh, _ph or _th".to_owned(),
        _ => {
            let names: Vec<_> = names.into_iter().collect();
            format!(
                "it has handlers of several names: {}; --handlers selects one, or --rules gives packets to each",
                names.join(", ")
            )
        }
    };
    Err(Error::malformed(file, reason))
}

/// Creates execution contexts, one for each name in the rules.
pub struct Contexts<'a> {
    arguments: &'a ContextArguments,
    loaded: &'a Loaded,
    driver: Driver,
    handler_memory: u32,
    scratchpad: u32,
    /// Limits of contexts by name.
    limits: AllLimits,
    made: BTreeMap<String, Rc<ExecutionContext>>,
}

impl<'a> Contexts<'a> {
    /// Creates none yet, for the contexts that the rules name.
    pub fn new(arguments: &'a ContextArguments, unit: &Machine, loaded: &'a Loaded, rules: &[Rule]) -> Contexts<'a> {
        let data = loaded.program().data_segment().len() as u32;
        let names: BTreeSet<&str> = rules
            .iter()
            .filter_map(|rule| match &rule.action {
                Action::Context(processing) => Some(processing.context.as_str()),
                Action::Host | Action::Drop => None,
            })
            .collect();
        // With one context, the program's data in handler memory is its initial content.
        let own = data.saturating_sub(HANDLER_DATA);
        let is_own = own > 0 && names.len() <= 1;
        let first = if is_own { HANDLER_DATA } else { data };
        // A small unit gives each of them less.
        let share = |bytes: u32| bytes / names.len().max(1) as u32 / 64 * 64;
        let room = share(unit.config.l2_handler.bytes.saturating_sub(first));
        let wanted = HANDLER_MEMORY.min(room).max(if is_own { own } else { 0 });
        let handler_memory = arguments.handler_memory.unwrap_or(wanted);
        let scratchpad = SCRATCHPAD.min(share(unit.config.scratchpad()));
        let driver = Driver::new(&unit.config, first);
        Contexts {
            arguments,
            loaded,
            driver,
            handler_memory,
            scratchpad,
            limits: AllLimits::new(),
            made: BTreeMap::new(),
        }
    }

    /// Returns the context of a name; creates it if needed.
    ///
    /// # Errors
    /// The reason, if the program has no handlers of this name, or a memory is exhausted.
    pub fn make(&mut self, name: &str) -> Result<Rc<ExecutionContext>, String> {
        if let Some(context) = self.made.get(name) {
            return Ok(context.clone());
        }
        let handlers = SUFFIXES.map(|suffix| self.loaded.handler(&format!("{name}{suffix}")));
        if handlers.iter().all(Option::is_none) {
            return Err(format!("it has none of the handlers {name}_hh, {name}_ph and {name}_th"));
        }
        let limits = self.limits.get(name);
        let share = limits.map(|limits| Share { weight: limits.weight, priority: limits.priority });
        let request = Request {
            tenant: self.made.len() as u32,
            handlers: handlers.map(Option::unwrap_or_default),
            code: vec![self.loaded.code()],
            handler_memory: self.handler_memory,
            scratchpad: self.arguments.scratchpad.unwrap_or(self.scratchpad),
            host: self.arguments.host_memory.unwrap_or(HOST_MEMORY),
            watchdog_cycles: limits.and_then(|limits| limits.watchdog_cycles).or(self.arguments.watchdog),
            share: share.unwrap_or_default(),
            ..Request::default()
        };
        let context = Rc::new(self.driver.context(&request).map_err(|error| error.to_string())?);
        self.made.insert(name.to_owned(), context.clone());
        Ok(context)
    }
}

/// File of packets sent by handlers.
struct Sent<'a> {
    file: Option<(&'a Path, Writer<Vec<u8>>)>,
    /// Number of RDMA puts, whose data is not a packet.
    puts: u64,
}

impl<'a> Sent<'a> {
    fn new(path: Option<&'a Path>, link: Link) -> Result<Sent<'a>> {
        let writer = |path: &'a Path| {
            let writer = Writer::new(Vec::new(), Format::of(path), link).map_err(Error::write(path))?;
            Ok::<_, Error>((path, writer))
        };
        Ok(Sent { file: path.map(writer).transpose()?, puts: 0 })
    }

    fn finish(self) -> Result<()> {
        let Some((path, writer)) = self.file else { return Ok(()) };
        if self.puts > 0 {
            let (file, puts) = (path.display(), self.puts);
            eprintln!("spinkit pspin run: note: {file} lacks the data of {puts} RDMA puts, which have no headers");
        }
        let bytes = writer.finish();
        output::write(path, |out| out.write_all(&bytes)).map_err(Error::write(path))
    }
}

/// Run in progress.
struct Run<'a, U> {
    system: System<U>,
    table: Table,
    packets: Packets,
    /// Number of packets queued before they arrive.
    ahead: usize,
    /// Time of the first packet at the earliest, after the program's initialization.
    begin: Time,
    sent: Sent<'a>,
    /// Number of handler errors printed so far.
    told: usize,
    /// Set if standard output carries the JSON results, so that handlers must not print there.
    has_json_out: bool,
}

impl<U: Unit<Observer = Watch>> Run<'_, U> {
    /// Simulates until everything is done.
    fn simulate(&mut self, loaded: &Loaded, done: &AtomicU64) -> Result<(), String> {
        let mut ended: Vec<Done> = Vec::new();
        loop {
            self.fill();
            let goes_on = self.system.advance(Cycle::NEVER, |_, packet| ended.push(packet));
            let goes_on = goes_on.map_err(|error| error.to_string())?;
            done.fetch_add(ended.len() as u64, Ordering::Relaxed);
            if let Some(timeline) = self.system.unit().observer().timeline() {
                ended.iter().for_each(|packet| timeline.packet(packet));
            }
            ended.clear();
            self.take_out(loaded)?;
            if !goes_on && self.system.inbound().coming() == 0 {
                return Ok(());
            }
        }
    }

    /// Passes the next packets to the inbound engine.
    fn fill(&mut self) {
        while self.system.inbound().coming() < self.ahead {
            while let Some(arrival) = self.table.next_ready() {
                self.system.push(arrival);
            }
            let Some((at, link, bytes)) = self.packets.next() else { return };
            self.table.arrive(self.begin + at, link, bytes);
        }
    }

    /// Takes the outputs: packets, lines of text, errors.
    fn take_out(&mut self, loaded: &Loaded) -> Result<(), String> {
        for sent in self.system.take_sent() {
            let Some((path, writer)) = &mut self.sent.file else { continue };
            if sent.send.flow == 0 {
                let written = writer.write(sent.at.0, &sent.bytes, None);
                written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
            } else {
                self.sent.puts += 1;
            }
        }
        for (hpu, line) in self.system.unit().take_output() {
            let text = format!("[{},{}] {}\n", hpu.cluster, hpu.hpu, String::from_utf8_lossy(&line));
            if self.has_json_out {
                // A closed reader does not end the run.
                _ = io::stderr().write_all(text.as_bytes());
            } else {
                output::print(&text).map_err(|error| format!("cannot write standard output: {error}"))?;
            }
        }
        for (at, event) in self.system.take_events() {
            if let DriverEvent::Terminated { hpu } = event {
                let (cluster, hpu, at) = (hpu.cluster, hpu.hpu, at.0);
                return Err(format!("HPU {hpu} of cluster {cluster} has ended the run (TERMINATE) in cycle {at}"));
            }
            let DriverEvent::Failed { hpu, role, message, outcome, .. } = event else { continue };
            self.told += 1;
            if self.told <= TOLD {
                progress::say(&format!(
                    "spinkit pspin run: error: the {} handler of message {message} on HPU {} of cluster {} {}, in cycle {}",
                    role.name(),
                    hpu.hpu,
                    hpu.cluster,
                    report::ending(outcome, self.system.killed_at(hpu), loaded.program()),
                    at.0
                ));
            }
        }
        Ok(())
    }
}
