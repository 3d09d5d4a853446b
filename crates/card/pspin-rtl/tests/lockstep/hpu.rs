// SPDX-License-Identifier: Apache-2.0
//! One HPU: every instruction against the simulator, recovery, and cycles of the runtime's loop.

use pspin_nic::program::Loaded;
use pspin_rtl::build::{Design, build};
use pspin_rtl::lockstep::instructions::Instructions;
use pspin_rtl::simulation::{Event, Port, Simulation};
use pspin_unit::her::HpuId;
use pspin_unit::memory::{Arena, Place};

use super::{HANDLERS, cache, home, program, unit};

const L1: u32 = 0x1000_0000;
const STACK: u32 = 1024;
/// Limit of every handler but an endless one, in cycles.
const MOST: u64 = 50_000;
const FAULTED: u64 = 2;
const TIMED_OUT: u64 = 3;

struct Bench {
    simulation: Simulation,
    checker: Instructions,
    events: Vec<Event>,
    cycle: u64,
}

impl Bench {
    fn new(loaded: &Loaded) -> Bench {
        let design = Design {
            name: "hpu".to_owned(),
            top: "pspin_hpu_bench".to_owned(),
            generated: Vec::new(),
            bound: vec!["observe/pspin_retire.sv"],
            is_shared: false,
            is_traced: false,
            is_checked: true,
            is_profiled: false,
        };
        let library = build(&home(), &cache(), &design, |text| eprintln!("{text}")).unwrap();
        let simulation = Simulation::open(&library, 1).unwrap();
        let id = HpuId { cluster: 0, hpu: 0 };
        let checker = Instructions::new(loaded.program().clone(), loaded.runtime(), [(id, L1 + STACK)]).is_alone();
        let mut bench = Bench { simulation, checker, events: Vec::new(), cycle: 0 };
        let program = loaded.program();
        bench.write("u_program", program.program_segment());
        bench.write("u_handler_memory", program.data_segment());
        for (name, value) in [
            ("rst_ni", 0),
            ("enable_i", 0),
            ("entry_i", loaded.runtime().boot),
            ("again_i", loaded.runtime().again),
            ("code_size_i", program.program_segment().len() as u32),
            ("data_size_i", program.data_segment().len() as u32),
            ("assign_valid_i", 0),
        ] {
            bench.set(name, value);
        }
        bench.tick();
        bench.tick();
        bench.set("rst_ni", 1);
        bench.set("enable_i", 1);
        bench
    }

    fn write(&mut self, name: &str, bytes: &[u8]) {
        let place = self.simulation.memories().iter().position(|memory| memory.scope.contains(name)).unwrap();
        assert_eq!(self.simulation.memories()[place].row_bytes, 4);
        self.simulation.rows(place)[..bytes.len()].copy_from_slice(bytes);
    }

    fn port(&self, name: &str) -> Port {
        self.simulation.port(name).unwrap()
    }

    fn set(&mut self, name: &str, value: u32) {
        let port = self.port(name);
        self.simulation.set(port, value.into());
    }

    fn get(&self, name: &str) -> u64 {
        self.simulation.get(self.port(name))
    }

    fn tick(&mut self) {
        self.simulation.settle();
        self.simulation.tick();
        assert_eq!(self.simulation.failure(), None);
        self.cycle += 1;
        self.simulation.take_events(&mut self.events);
        for event in self.events.drain(..) {
            self.checker.take(&event).unwrap_or_else(|difference| panic!("{difference}"));
        }
    }

    fn until(&mut self, name: &str) {
        let port = self.port(name);
        let limit = self.cycle + MOST;
        while self.simulation.get(port) == 0 {
            self.tick();
            assert!(self.cycle < limit, "{name} does not come; {:?} compared", self.checker.compared());
        }
    }

    /// Runs a handler. Returns the cycles from its assignment to its end, and its outcome.
    fn run(&mut self, handler: u32, watchdog: u32) -> (u64, u64) {
        self.until("idle_o");
        for (name, value) in [("function_i", handler), ("packet_i", L1 + 0xC000), ("packet_size_i", 64)] {
            self.set(name, value);
        }
        self.set("watchdog_i", watchdog);
        self.set("assign_valid_i", 1);
        let begin = self.cycle;
        self.tick();
        self.set("assign_valid_i", 0);
        self.until("done_valid_o");
        let end = (self.cycle - begin, self.get("done_kind_o"));
        self.tick();
        end
    }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-lockstep"]
fn every_instruction_is_that_of_the_simulator() {
    let config = unit("pspin-400g");
    let loaded = Loaded::new(&program(HANDLERS), &config).unwrap();
    let mut bench = Bench::new(&loaded);
    let entry = |name: &str| loaded.handler(name).unwrap().address;
    assert_eq!(Arena::start(Place::L1(0)), L1);
    let empty = bench.run(entry("empty_ph"), 1_000_000);
    for name in
        ["arithmetic_ph", "memory_ph", "atomic_ph", "corev_ph", "fault_ph", "memory_ph", "endless_ph", "empty_ph"]
    {
        let before = bench.checker.compared().instructions;
        let (cycles, kind) = bench.run(entry(name), 20_000);
        let expected = match name {
            "fault_ph" => FAULTED,
            "endless_ph" => TIMED_OUT,
            _ => 0,
        };
        println!("{name}: {cycles} cycles, {} instructions", bench.checker.compared().instructions - before);
        assert_eq!(kind, expected, "{name}");
    }
    // Assigned in T, the function pointer in T + 1, the doorbell 8 cycles later, and the end is registered.
    assert_eq!(empty, (10, 0));
    assert_eq!(bench.run(entry("empty_ph"), 1_000_000), empty);
    bench.until("idle_o");
    (0..100).for_each(|_| bench.tick());
    let compared = bench.checker.compared();
    println!("{compared:?}");
    assert!(compared.instructions > 10_000 && compared.registers > 8_000 && compared.words > 3_000, "{compared:?}");
    assert!(bench.checker.waiting() <= 4, "{} wait", bench.checker.waiting());
}
