//! The unit of a small machine: events, cycles and instructions of the hardware are those of the model.

use std::path::PathBuf;
use std::rc::Rc;

use accel::pspin::her::ExecutionContext;
use rtl::build::{Design, build};
use rtl::lockstep::run::{Compared, Lockstep, LockstepError};
use rtl::lockstep::tape::Times;
use rtl::lockstep::traffic::{self, Packet};
use sim::Clock;
use smartnic::driver::{Driver, Request};
use smartnic::program::Loaded;

use super::{cache, home, machine, program, unit};

struct Tiny {
    library: PathBuf,
    config: Rc<machine::Pspin>,
    loaded: Loaded,
}

impl Tiny {
    fn new() -> Tiny {
        let config = unit("pspin-tiny");
        let loaded = Loaded::new(&program(), &config).unwrap();
        let design = Design::unit(&machine("pspin-tiny")).unwrap();
        let library = build(&home(), &cache(), &design, |text| eprintln!("{text}")).unwrap();
        Tiny { library, config, loaded }
    }

    /// A context whose handlers of all parts have this name; parts without one have none.
    fn context(&self, driver: &mut Driver, tenant: u32, name: &str) -> Rc<ExecutionContext> {
        let handler = |suffix| self.loaded.handler(&format!("{name}_{suffix}")).unwrap_or_default();
        let request = Request {
            tenant,
            handlers: [handler("hh"), handler("ph"), handler("th")],
            code: vec![self.loaded.code()],
            handler_memory: 4_096,
            scratchpad: 8_192,
            host: 4_096,
            watchdog_cycles: Some(20_000),
            ..Request::default()
        };
        Rc::new(driver.context(&request).unwrap())
    }

    fn run(&self, name: &str, packets: Vec<Packet>) -> Result<Compared, LockstepError> {
        self.run_with(&[name], packets, 1, 0)
    }

    /// Packets for contexts with these handlers, when the NIC takes no feedback in some cycles.
    fn run_with(&self, names: &[&str], packets: Vec<Packet>, seed: u32, held: u64) -> Result<Compared, LockstepError> {
        let mut driver = Driver::new(&self.config, self.loaded.program().data_segment().len() as u32);
        let lockstep = Lockstep {
            library: &self.library,
            seed,
            config: self.config.clone(),
            clock: Clock::from_khz(1_000_000),
            loaded: &self.loaded,
            contexts: names
                .iter()
                .enumerate()
                .map(|(tenant, name)| self.context(&mut driver, tenant as u32, name))
                .collect(),
            packets,
            times: Times::Exact,
            held,
            is_warm: true,
            most_cycles: 100_000,
        };
        lockstep.run()
    }
}

fn packet(at: u64, message: u32, size: usize, is_last: bool) -> Packet {
    let bytes = (0..size).map(|byte| (byte * 7 + message as usize) as u8).collect();
    Packet { at, bytes, message, is_last, transfer: size as u32, context: 0 }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn one_packet_has_the_stages_of_the_model() {
    let tiny = Tiny::new();
    for (size, latency) in [(64, 26), (128, 26), (256, 28), (512, 32), (1_024, 40), (1_536, 48)] {
        let compared = tiny.run("empty", vec![packet(0, 1, size, true)]);
        let compared = compared.unwrap_or_else(|error| panic!("{size} B: {error}"));
        let before_request = 4 + size.div_ceil(64) as u64;
        assert_eq!(compared.cycles, [before_request + latency; 2], "{size} B");
        assert_eq!((compared.packets, compared.events), (1, 7), "{size} B");
    }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn a_thousand_packets_of_eight_messages() {
    let tiny = Tiny::new();
    let packets = (0..1_000_u32).map(|number| {
        let size = [64, 512, 1_024, 100][number as usize % 4];
        packet(u64::from(number) * 3, number % 8, size, number >= 992)
    });
    let compared = tiny.run("empty", packets.collect()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((compared.packets, compared.events), (1_000, 7_000));
    assert!(compared.instructions > 8_000 && compared.registers > 3_000, "{compared:?}");
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn random_packets() {
    let tiny = Tiny::new();
    for seed in 1..=30 {
        let packets = traffic::packets(seed, 200, 2);
        let compared = tiny.run_with(&["empty", "empty"], packets, seed as u32, 0);
        let compared = compared.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(compared.packets >= 200 && compared.events > 6 * compared.packets, "{compared:?}");
    }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn each_kind_of_work() {
    let tiny = Tiny::new();
    for name in ["empty", "memory", "corev", "arithmetic", "send", "to_host", "direct", "copy", "remote"] {
        for count in [1, 8] {
            let packets =
                (0..count).map(|number| packet(u64::from(number) * 5, number, 64 + 200 * number as usize, true));
            let compared = tiny.run(name, packets.collect()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(compared.events >= 7 * u64::from(count), "{name}: {compared:?}");
        }
    }
}

/// One packet after the other, so that no two handlers share the host. Longer packets keep a host-direct command waiting, which has
/// a way of its own in the model.
#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn commands_with_the_host() {
    let tiny = Tiny::new();
    for name in ["from_host", "round_trip", "refused"] {
        for size in [64, 512] {
            let packets = (0..3).map(|number| packet(number * 20_000, 1, size, number == 2));
            let compared =
                tiny.run(name, packets.collect()).unwrap_or_else(|error| panic!("{name}, {size} B: {error}"));
            assert_eq!(compared.packets, 3, "{name}, {size} B");
        }
    }
}
