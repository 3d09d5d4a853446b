// SPDX-License-Identifier: Apache-2.0
//! Simulated instructions per second with timing: a long compute loop, and short handlers, each of which is a new
//! start.

use std::hint::black_box;
use std::sync::Arc;

use abi::device::map;
use benches::cpu_time;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hpu::isa::instruction_set;
use hpu::{Engine, LoadMap, Memory, Program, Region, Sharing, Stop, Thread, Watched, Window};
use machine::TimingKind;

/// A compiled program: 64-bit shifts and multiplications, a jump table, divisions, loads and stores.
const MIX: &[u8] = include_bytes!("../../../card/hpu/tests/hpu/mix.elf");
/// [`MIX`] compiled for ARM.
const MIX_ARM: &[u8] = include_bytes!("../../../card/hpu/tests/hpu/mix-arm.elf");
const STACK_TOP: u32 = map::CONTEXTS + 0x4000;
const STACK: u32 = 1024;

/// Names of rows, timing models, HPU kinds and programs.
const KINDS: [(&str, TimingKind, &str, &[u8]); 3] = [
    ("inorder", TimingKind::InOrder, "rv32imac", MIX),
    ("ooo-a15", TimingKind::OooA15, "rv32imac", MIX),
    ("ooo-a15, ARM", TimingKind::OooA15, "armv7a", MIX_ARM),
];

struct Card {
    program: Arc<Program>,
    engine: Engine,
    thread: Thread,
    arena: Vec<u8>,
    windows: [Window; 3],
    watched: Watched,
}

impl Card {
    fn new(timing: TimingKind, kind: &str, elf: &[u8]) -> Card {
        let region = |name, base| Region { name, base, bytes: 1 << 16 };
        let load_map = LoadMap {
            name: "the bench",
            program: region("program memory", map::PROGRAM),
            data: region("static data", map::DATA),
            others: Vec::new(),
            return_address: map::RETURN,
        };
        let isa = instruction_set(kind).expect("an instruction set");
        let program = Arc::new(Program::load(elf, isa, &load_map).expect("a device program"));
        let (code, data) = (program.program_segment(), program.data_segment());
        let (code_len, data_len) = (code.len() as u32, data.len() as u32);
        let arena = [data, &vec![0; STACK as usize], code].concat();
        let windows = [
            Window { base: map::DATA, len: data_len, offset: 0, write: true, sharing: Sharing::Shared },
            Window { base: STACK_TOP - STACK, len: STACK, offset: data.len(), write: true, sharing: Sharing::Private },
            Window {
                base: map::PROGRAM,
                len: code_len,
                offset: data.len() + STACK as usize,
                write: false,
                sharing: Sharing::Private,
            },
        ];
        let thread = Thread::new(&program, map::PROGRAM, STACK_TOP, [0; 3]);
        let engine = Engine::new(program.clone(), timing, 1);
        Card { engine, program, thread, arena, windows, watched: Watched::default() }
    }

    /// Runs the handler at `entry` to its end. Returns the number of executed instructions.
    fn run(&mut self, entry: u32, args: [u32; 3]) -> u64 {
        self.thread.restart(&self.program, entry, STACK_TOP, args);
        let mut memory = Memory { arena: &mut self.arena, windows: &self.windows, watched: &mut self.watched };
        let stop = self.engine.run(&mut self.thread, &mut memory, u64::MAX);
        assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
        self.thread.instructions()
    }
}

fn benchmark(criterion: &mut Criterion, group: &str, handler: &str, args: [u32; 3]) {
    let mut group = criterion.benchmark_group(group);
    for (name, timing, kind, elf) in KINDS {
        let mut card = Card::new(timing, kind, elf);
        let entry = card.program.entry(handler).expect("a handler");
        group.throughput(Throughput::Elements(card.run(entry, args)));
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            bench.iter_custom(|runs| cpu_time(runs, || _ = black_box(card.run(entry, black_box(args)))));
        });
    }
    group.finish();
}

fn hpu(criterion: &mut Criterion) {
    benchmark(criterion, "compute loop", "hash", [0x1234_5678, 50_000, 3]);
    benchmark(criterion, "compiled C with unpredictable branches", "mix", [0xdead_beef, 10_000, 7]);
    benchmark(criterion, "short handlers", "header", [map::DATA + 4, 5, 1]);
}

criterion_group!(benches, hpu);
criterion_main!(benches);
