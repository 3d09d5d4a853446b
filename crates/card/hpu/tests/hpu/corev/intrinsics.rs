// SPDX-License-Identifier: Apache-2.0
//! `<corev.h>`: each function compiled with and without CORE-V. Both ELF files are built from `intrinsics.c` by `zig cc
//! -target riscv32-freestanding-ilp32 -mcpu=generic_rv32+m+a+c+zicsr -O2 -g0 -nostdlib -Wl,-T,intrinsics.ld -Wl,-e,0
//! -Wl,--no-gc-sections -Wl,--discard-all -I sdk/pspin/rt/runtime/include`, the first with additional
//! `+xcvalu+xcvmem+xcvmac+xcvbi+xcvbitmanip+xcvsimd`.

use std::sync::Arc;

use abi::device::map;
use hpu::{Engine, Memory, Program, Sharing, Stop, Thread, Watched, Window};
use machine::TimingKind;

use super::{KIND, numbers};
use crate::card::{STACK_TOP, load};

const COREV: &[u8] = include_bytes!("intrinsics.elf");
const PLAIN: &[u8] = include_bytes!("intrinsics-plain.elf");

struct Compiled {
    program: Arc<Program>,
    engine: Engine,
}

impl Compiled {
    fn new(elf: &[u8], kind: &str) -> Compiled {
        let program = Arc::new(load(elf, kind).unwrap());
        Compiled { engine: Engine::new(program.clone(), TimingKind::InOrder, 1), program }
    }

    /// Returns result and number of instructions of a handler; the words at the data address are 0, 3, 6 …
    fn run(&mut self, handler: &str, args: [u32; 3]) -> (u32, u64) {
        let mut arena: Vec<u8> = (0..256_u32).flat_map(|word| (3 * word).to_le_bytes()).collect();
        arena.resize(2048, 0);
        let window = |base, offset| Window { base, len: 1024, offset, write: true, sharing: Sharing::Private };
        let windows = [window(map::DATA, 0), window(STACK_TOP - 1024, 1024)];
        let mut thread = Thread::new(&self.program, self.program.entry(handler).unwrap(), STACK_TOP, args);
        let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut Watched::default() };
        match self.engine.run(&mut thread, &mut memory, u64::MAX) {
            Stop::Return(value) => (value, thread.instructions()),
            stop => panic!("{handler}: {stop:?}"),
        }
    }
}

#[test]
fn functions_do_the_same_with_and_without_the_extensions() {
    let (mut corev, mut plain) = (Compiled::new(COREV, KIND), Compiled::new(PLAIN, "rv32imac"));
    let values: Vec<u32> = numbers().collect();
    for handler in ["lanes", "shifts", "sums", "fields", "selected"] {
        let mut instructions = (0, 0);
        for (index, a) in values.iter().enumerate() {
            let args = [*a, values[(index * 7 + 3) % values.len()], values[(index * 11 + 5) % values.len()]];
            let (with, without) = (corev.run(handler, args), plain.run(handler, args));
            assert_eq!(with.0, without.0, "{handler} {args:x?}");
            instructions = (instructions.0 + with.1, instructions.1 + without.1);
        }
        assert!(instructions.0 < instructions.1, "{handler}: {instructions:?}");
    }
}

#[test]
fn a_loop_in_c_repeats_for_nothing() {
    let (mut corev, mut plain) = (Compiled::new(COREV, KIND), Compiled::new(PLAIN, "rv32imac"));
    for count in [0, 1, 2, 200] {
        let expected = 5 + (0..count).map(|word| 3 * word + 1).sum::<u32>();
        let [with, without] = [&mut corev, &mut plain].map(|compiled| compiled.run("sum", [map::DATA, count, 5]));
        assert_eq!((with.0, without.0), (expected, expected));
        if count == 200 {
            // Three instructions per word, and about ten others.
            assert!((600..620).contains(&with.1), "{}", with.1);
        }
    }
}
