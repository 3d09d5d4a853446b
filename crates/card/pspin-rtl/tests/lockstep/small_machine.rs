// SPDX-License-Identifier: Apache-2.0
//! The unit of a small machine: events, cycles, memory and instructions of the hardware equal those of the model.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pspin_nic::driver::{Driver, Request};
use pspin_nic::program::Loaded;
use pspin_rtl::build::{Design, build};
use pspin_rtl::lockstep::comparison::{Compared, Lockstep, LockstepError, Times};
use pspin_rtl::lockstep::traffic::{Packet, Traffic};
use pspin_rtl::training;
use pspin_unit::her::ExecutionContext;
use sim::Clock;

use super::{ENDS, HANDLERS, RANDOM, cache, home, machine, program, unit};

/// Model and hardware of pspin-tiny.
pub struct Tiny {
    library: PathBuf,
    config: Rc<machine::Pspin>,
    /// The programs of all sources.
    programs: [Loaded; 3],
    /// Additional inputs of the design.
    pub inputs: Vec<(&'static str, u64)>,
}

/// Parameters of a run, besides its packets.
pub struct Run<'a> {
    /// Handlers of each context.
    pub names: &'a [&'a str],
    pub packets: Vec<Packet>,
    pub times: Times,
    pub seed: u32,
    pub held: u64,
    pub held_data: u64,
    pub watchdog: u64,
    pub idle: u64,
}

impl Default for Run<'_> {
    fn default() -> Self {
        let (names, packets): (&[&str], _) = (&["empty"], Vec::new());
        let [held, held_data] = [0; 2];
        Run { names, packets, times: Times::Exact, seed: 1, held, held_data, watchdog: 20_000, idle: 30_000 }
    }
}

/// Thresholds of idle messages and of the watchdog in the runs that test them.
const IDLE: u64 = 3_000;
const WATCHDOG: u64 = 2_000;
/// Bytes of handler memory and of a scratchpad, for all contexts together.
const MEMORY: u32 = 32_768;
/// Limit of a run in cycles: base, and per packet.
const MOST_CYCLES: u64 = 100_000;
const MOST_EACH: u64 = 1_000;

pub type Result = std::result::Result<Compared, LockstepError>;

impl Tiny {
    pub fn new() -> Tiny {
        Tiny::of(&home())
    }

    /// Returns the unit built from the sources in a folder.
    pub fn of(folder: &Path) -> Tiny {
        let config = unit("pspin-tiny");
        let programs = [HANDLERS, RANDOM, ENDS].map(|source| Loaded::new(&program(source), &config).unwrap());
        let design = Design::unit(&machine("pspin-tiny")).unwrap();
        let library = build(folder, &cache(), &design, |text| eprintln!("{text}")).unwrap();
        Tiny { library, config, programs, inputs: Vec::new() }
    }

    /// Creates a context whose handlers of all roles have this name; missing roles have no handler.
    fn context(driver: &mut Driver, loaded: &Loaded, tenant: u32, run: &Run) -> Rc<ExecutionContext> {
        let name = run.names[tenant as usize];
        let memory = MEMORY / run.names.len().next_power_of_two() as u32;
        let handler = |suffix| loaded.handler(&format!("{name}_{suffix}")).unwrap_or_default();
        let request = Request {
            tenant,
            handlers: [handler("hh"), handler("ph"), handler("th")],
            code: vec![loaded.code()],
            handler_memory: memory,
            scratchpad: memory,
            host: 1 << 20,
            watchdog_cycles: Some(run.watchdog),
            idle_cycles: Some(run.idle),
            ..Request::default()
        };
        Rc::new(driver.context(&request).unwrap())
    }

    pub fn run(&self, run: Run) -> Result {
        let is_of = |loaded: &&Loaded| loaded.handler(&format!("{}_ph", run.names[0])).is_some();
        let loaded = self.programs.iter().find(is_of);
        let loaded = loaded.unwrap_or_else(|| panic!("there are no handlers {}", run.names[0]));
        let mut driver = Driver::new(&self.config, loaded.program().data_segment().len() as u32);
        let contexts = (0..run.names.len() as u32).map(|tenant| Tiny::context(&mut driver, loaded, tenant, &run));
        let contexts = contexts.collect();
        let Run { packets, times, seed, held, held_data, .. } = run;
        let lockstep = Lockstep {
            library: &self.library,
            inputs: self.inputs.clone(),
            seed,
            config: self.config.clone(),
            clock: Clock::from_khz(1_000_000),
            loaded,
            contexts,
            most_cycles: MOST_CYCLES + MOST_EACH * packets.len() as u64,
            packets,
            times,
            held,
            held_data,
            is_warm: true,
        };
        lockstep.run()
    }

    /// Runs random packets for contexts with these handlers, with several seeds; every run must agree.
    fn random(&self, names: &[&str], seeds: RangeInclusive<u32>, packets: usize, times: Times) -> Result {
        let traffic = Traffic { packets, contexts: names.len(), unfinished: 0, broken: 0 };
        let mut compared = Compared::default();
        for seed in seeds {
            // In some runs, the NIC blocks feedback or other ports are blocked in some cycles.
            let held = u64::from(seed % 2 == 0) * 4;
            let held_data = u64::from(seed % 4 < 2) * 4;
            let packets = traffic.draw(seed.into());
            let run = Run { names, packets, times, seed, held, held_data, watchdog: WATCHDOG, ..Run::default() };
            let more = self.run(run);
            let more = more.inspect_err(|_| println!("{names:?}, seed {seed}"))?;
            compared.packets += more.packets;
            compared.events += more.events;
            compared.checked.instructions += more.checked.instructions;
            compared.failed += more.failed;
            if let Some(spread) = more.spread {
                let Compared { cycles, conflicts, misses, .. } = more;
                println!(
                    "{names:?}, seed {seed}: {cycles:?} cycles, {conflicts:?} conflicts, {misses:?} misses, {spread}"
                );
            }
        }
        Ok(compared)
    }

    /// Runs packets for these handlers.
    fn packets(&self, name: &str, packets: impl Iterator<Item = Packet>) -> Result {
        self.run(Run { names: &[name], packets: packets.collect(), ..Run::default() })
    }
}

pub fn packet(at: u64, message: u32, size: usize, is_last: bool) -> Packet {
    let bytes = (0..size).map(|byte| (byte * 7 + message as usize) as u8).collect();
    Packet { at, bytes, message, is_last, transfer: size as u32, context: 0 }
}

/// Run with its name.
type Named = (&'static str, fn(&Tiny) -> Result);

/// Runs by name, each of which finds some defects (`rtl/tests/lockstep/defects.toml`).
pub const RUNS: [Named; 16] = [
    ("mixes", |tiny| tiny.random(&["empty", "empty"], 1..=1, 600, Times::Exact)),
    ("loops", |tiny| tiny.random(&["loops"], 1..=2, 200, Times::Exact)),
    ("copies", |tiny| tiny.random(&["copies"], 1..=1, 1_000, Times::Exact)),
    ("commands", |tiny| tiny.random(&["commands"], 1..=1, 1_000, Times::Exact)),
    ("faults", |tiny| tiny.random(&["faults"], 1..=1, 1_000, Times::Loaded)),
    // Messages without a last packet, with others behind them waiting for their queues.
    ("broken", |tiny| {
        let packets = Traffic { packets: 300, contexts: 1, unfinished: 0, broken: 2 }.draw(1);
        let compared = tiny.run(Run { names: &["loops"], packets, times: Times::Loaded, ..Run::default() })?;
        assert!(compared.idle > 3, "{compared:?}");
        Ok(compared)
    }),
    // Messages that are idle between packets, below the threshold; finally they are given up.
    ("idle", |tiny| {
        let packets = (0..12).map(|number| packet(u64::from(number / 3) * IDLE * 3 / 4, number % 3, 64, false));
        let compared = tiny.run(Run { packets: packets.collect(), idle: IDLE, ..Run::default() })?;
        assert_eq!(compared.idle, 3, "{compared:?}");
        Ok(compared)
    }),
    // Exceeds the packet buffer.
    ("large", |tiny| {
        let size = |number: u32| [2_048, 1_500, 4_096, 1_000, 3_000][number as usize % 5];
        tiny.packets("loops", (0..100).map(|number| packet(0, number % 8, size(number), number >= 92)))
    }),
    ("memory", |tiny| tiny.packets("memory", (0..4).map(|number| packet(0, number, 64, true)))),
    ("sends", |tiny| tiny.packets("send", (0..64).map(|number| packet(0, number % 8, 500, number >= 56)))),
    ("to_host", |tiny| tiny.packets("to_host", (0..8).map(|number| packet(0, number, 500, true)))),
    ("contention", |tiny| tiny.packets("contention", (0..8).map(|number| packet(0, number, 64, true)))),
    ("edge", |tiny| tiny.packets("edge", (0..2).map(|number| packet(0, number, 64, true)))),
    ("orphan", |tiny| tiny.packets("orphan", (0..3).map(|number| packet(number * 5_000, 1, 64, true)))),
    ("held", |tiny| {
        let packets = Traffic { packets: 300, contexts: 1, unfinished: 0, broken: 0 }.draw(3);
        tiny.run(Run { packets, held: 12, ..Run::default() })
    }),
    // A watchdog that expires soon after the end of a handler whose completion is blocked.
    ("short-watchdog", |tiny| {
        let packets = Traffic { packets: 300, contexts: 1, unfinished: 0, broken: 0 }.draw(3);
        tiny.run(Run { packets, held: 12, watchdog: 16, ..Run::default() })
    }),
];

/// Unwraps the result of a run.
fn checked(name: &str, result: Result) -> Compared {
    result.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Performs all runs even if one fails.
fn all<'a>(names: impl IntoIterator<Item = &'a str>, run: impl Fn(&str) -> Result) {
    let mut failed = Vec::new();
    for name in names {
        match run(name) {
            Ok(Compared { packets, events, checked, failed, idle, .. }) => {
                let instructions = checked.instructions;
                println!(
                    "{name}: {packets} packets, {events} events, {instructions} instructions, {failed} failed, {idle} idle"
                );
            }
            Err(error) => {
                println!("{name}: {error}");
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "model and hardware differ in {}", failed.join(", "));
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_run_is_the_same() {
    let tiny = Tiny::new();
    all(RUNS.map(|(name, _)| name), |wanted| {
        let run = RUNS.iter().find(|(name, _)| *name == wanted);
        run.map_or(Err(LockstepError::Nothing), |(_, run)| run(&tiny))
    });
}

/// The training run of a large unit's simulator, here with the small design, executes instructions and reports an
/// unusable library by name.
#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn training_executes_instructions() {
    training::run(&Tiny::new().library).unwrap();
    let nothing = home().join("Cargo.toml");
    let error = training::run(&nothing).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: ", nothing.display())), "{error}");
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn one_packet_has_the_stages_of_the_model() {
    let tiny = Tiny::new();
    for (size, latency) in [(64, 26), (128, 26), (256, 28), (512, 32), (1_024, 40), (1_536, 48)] {
        let compared = checked(&format!("{size} B"), tiny.packets("empty", [packet(0, 1, size, true)].into_iter()));
        let before_request = 4 + size.div_ceil(64) as u64;
        assert_eq!(compared.cycles, [before_request + latency; 2], "{size} B");
        assert_eq!((compared.packets, compared.events), (1, 7), "{size} B");
    }
}

/// Every size up to 2,048 B, one packet at a time.
#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_size() {
    let tiny = Tiny::new();
    let packets = (1..=2_048).map(|size| packet(size * 400, size as u32 % 8, size as usize, true));
    assert_eq!(checked("sizes", tiny.packets("empty", packets)).events, 7 * 2_048);
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn a_thousand_packets_of_eight_messages() {
    let tiny = Tiny::new();
    let packets = (0..1_000_u32).map(|number| {
        let size = [64, 512, 1_024, 100][number as usize % 4];
        packet(u64::from(number) * 3, number % 8, size, number >= 992)
    });
    let compared = checked("eight messages", tiny.packets("empty", packets));
    assert_eq!((compared.packets, compared.events), (1_000, 7_000));
    assert!(compared.checked.instructions > 8_000 && compared.checked.registers > 3_000, "{compared:?}");
}

/// Each seed draws another mix of messages; every commit runs some of them.
#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn random_packets() {
    let tiny = Tiny::new();
    all(["loops", "words", "divisions", "counters", "copies", "commands"], |name| {
        let compared = tiny.random(&[name, name], 10..=15, 200, Times::Exact)?;
        assert!(compared.packets >= 1_200 && compared.events > 6 * compared.packets, "{name}: {compared:?}");
        Ok(compared)
    });
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn loaded_packet_by_packet() {
    let tiny = Tiny::new();
    // The last ones together exceed the instruction cache.
    all(["loops", "words", "faults", "all", "loops copies commands faults"], |names| {
        let names: Vec<&str> = names.split(' ').collect();
        tiny.random(&names, 52..=53, 3_000, Times::Loaded)
    });
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_kind_of_work() {
    let tiny = Tiny::new();
    for name in ["empty", "memory", "corev", "arithmetic", "send", "to_host", "direct", "copy", "remote"] {
        for count in [1, 8] {
            let packets =
                (0..count).map(|number| packet(u64::from(number) * 5, number, 64 + 200 * number as usize, true));
            let compared = checked(name, tiny.packets(name, packets));
            assert!(compared.events >= 7 * u64::from(count), "{name}: {compared:?}");
        }
    }
}

/// One packet at a time, so that no two handlers share the host. Longer packets delay a host-direct command, which has
/// a separate path in the model.
#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn commands_with_the_host() {
    let tiny = Tiny::new();
    for name in ["from_host", "round_trip", "refused"] {
        for size in [64, 512] {
            let packets = (0..3).map(|number| packet(number * 20_000, 1, size, number == 2));
            let compared = checked(&format!("{name}, {size} B"), tiny.packets(name, packets));
            assert_eq!(compared.packets, 3, "{name}, {size} B");
        }
    }
}
