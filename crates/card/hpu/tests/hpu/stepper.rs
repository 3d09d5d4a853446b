// SPDX-License-Identifier: Apache-2.0
//! Threads that run access by access, in lockstep with the engine, and their times with busy memories.

use std::sync::Arc;

use abi::device::map;
use hpu::isa::Class;
use hpu::{Access, Fault, Lines, Memory, Pause, Program, Sharing, Stall, Stepper, Stop, Thread, Watched, Window};
use machine::TimingKind;

use crate::card::{Card, STACK_TOP, load};
use crate::elf::MIX;
use hpu::testing::*;

/// Line sizes: smaller than an instruction may need, as in a machine, and larger than the program.
const LINES: [u32; 3] = [4, 32, 4096];

/// Returns the window of an access; an empty one if there is none.
fn window(windows: &[Window], access: &Access) -> Window {
    let inside = |w: &&Window| {
        u64::from(access.address.wrapping_sub(w.base)) + u64::from(access.bytes) <= u64::from(w.len)
            && (w.write || access.class != Class::Store)
    };
    windows.iter().find(inside).copied().unwrap_or_default()
}

/// Returns the cycles by which an access is late in an engine whose loads take `stall` cycles longer.
fn delay(access: &Access, stall: u64) -> u64 {
    if access.class == Class::Store { 0 } else { stall }
}

/// Runs a thread whose loads and atomic operations are `stall` cycles late, with a cache that misses each line once.
fn steps(stepper: &mut Stepper, thread: &mut Thread, arena: &mut [u8], windows: &[Window], stall: u64) -> Stop {
    let mut lines = Lines::none(stepper.lines());
    loop {
        match stepper.run(thread, &lines, u64::MAX) {
            Pause::Line(line) => {
                assert!(!lines.contains(line));
                lines.insert(line);
            }
            Pause::Access(access) => {
                assert_eq!((access.at, access.class.accesses_memory()), (thread.cycles(), true));
                let window = window(windows, &access);
                if let Err(fault) = stepper.perform(thread, arena, window, Stall::answer(delay(&access, stall))) {
                    return Stop::Fault(fault);
                }
            }
            Pause::Call { number, argument } => return Stop::Call { number, argument },
            Pause::Return(value) => return Stop::Return(value),
            Pause::Fault(fault) => return Stop::Fault(fault),
            Pause::Until => panic!("there is no limit"),
        }
    }
}

/// Compares the visible state of two threads.
pub fn same(stepped: &Thread, thread: &Thread) {
    let state = |thread: &Thread| {
        let words = (0..64).map(|r| u64::from(thread.register(r)));
        (words.chain((0..32).map(|r| thread.float_register(r))).collect::<Vec<_>>(), thread.pc(), thread.instructions())
    };
    assert_eq!(state(stepped), state(thread));
    assert_eq!(stepped.cycles(), thread.cycles());
}

/// Runs the program of `card` again by steps from memory `arena`, and compares the visible state with the engine's.
pub fn lockstep(card: &Card, arena: Vec<u8>, args: [u32; 3], stall: u64, stop: Stop, thread: &Thread) {
    for line in LINES {
        let mut stepper = Stepper::new(card.program.clone(), line);
        let (mut stepped, mut arena) = (card.thread(args), arena.clone());
        assert_eq!(steps(&mut stepper, &mut stepped, &mut arena, &card.windows, stall), stop);
        same(&stepped, thread);
        assert!(arena == card.arena, "memory differs");
    }
}

#[test]
fn a_compiled_program_runs_in_lockstep() {
    let program = Arc::new(load(MIX, "rv32imac").unwrap());
    let (data, code) = (program.data_segment(), program.program_segment());
    let mut memory = data.to_vec();
    memory.resize(1024, 0);
    memory.extend_from_slice(code);
    let window = |base, len, offset, write| Window { base, len, offset, write, sharing: Sharing::Private };
    let windows = [
        window(map::DATA, data.len() as u32, 0, true),
        window(STACK_TOP - 512, 512, 512, true),
        window(map::PROGRAM, code.len() as u32, 1024, false),
    ];
    for (handler, args) in
        [("mix", [0xdead_beef, 300, 7]), ("hash", [0x1234_5678, 300, 3]), ("header", [map::DATA + 4, 5, 1])]
    {
        let entry = program.entry(handler).unwrap();
        for stall in [0, 1, 4] {
            let mut engine = hpu::Engine::new(program.clone(), TimingKind::InOrder, 1 + stall as u32);
            let (mut arena, mut watched) = (memory.clone(), Watched::default());
            let mut thread = Thread::new(&program, entry, STACK_TOP, args);
            let mut view = Memory { arena: &mut arena, windows: &windows, watched: &mut watched };
            let stop = engine.run(&mut thread, &mut view, u64::MAX);
            assert!(matches!(stop, Stop::Return(_)), "{stop:?}");

            let mut stepper = Stepper::new(program.clone(), 32);
            // The second run finds all transitions in the memo.
            for _ in 0..2 {
                let mut stepped = Thread::new(&program, entry, STACK_TOP, args);
                let mut by_steps = memory.clone();
                assert_eq!(steps(&mut stepper, &mut stepped, &mut by_steps, &windows, stall), stop);
                same(&stepped, &thread);
                assert!(by_steps == arena);
            }
        }
    }
}

struct Core {
    program: Arc<Program>,
    stepper: Stepper,
    lines: Lines,
    thread: Thread,
    /// Data segment.
    data: [u8; 16],
}

impl Core {
    fn new(words: &[u32]) -> Core {
        Core::of(Card::new(words))
    }

    fn of(card: Card) -> Core {
        let stepper = Stepper::new(card.program.clone(), 32);
        let lines = Lines::all(stepper.lines());
        Core { thread: card.thread([0; 3]), program: card.program, stepper, lines, data: [0; 16] }
    }

    fn run(&mut self) -> Pause {
        self.stepper.run(&mut self.thread, &self.lines, u64::MAX)
    }

    fn access(&mut self) -> Access {
        match self.run() {
            Pause::Access(access) => access,
            pause => panic!("{pause:?}"),
        }
    }

    fn perform(&mut self, stall: u64) -> Result<(), Fault> {
        let window = Window { base: map::DATA, len: 16, offset: 0, write: true, sharing: Sharing::Shared };
        self.stepper.perform(&mut self.thread, &mut self.data, window, Stall::grant(stall))
    }
}

#[test]
fn an_access_waits_for_its_memory_and_its_user_for_the_access() {
    // lui, lw a1, addi a2 = a1 + 1, sw a2, ret
    let mut core = Core::new(&[DATA_A5, lw(A1, A5, 4), addi(A2, A1, 1), sw(A2, A5, 8), RET]);
    core.data[4] = 41;
    let load = Access { at: 1, address: map::DATA + 4, bytes: 4, class: Class::Load };
    assert_eq!((core.access(), load.words()), (load, 1));
    assert_eq!((core.thread.pc(), core.thread.instructions()), (map::PROGRAM + 4, 1));
    core.perform(7).unwrap();
    // The load is done at 1 + 7 + 1; the addition waits one more cycle and takes one.
    assert_eq!((core.thread.cycles(), core.thread.instructions()), (9, 2));
    let store = Access { at: 11, address: map::DATA + 8, bytes: 4, class: Class::Store };
    assert_eq!(core.access(), store);
    assert_eq!(core.data[8], 0);
    core.perform(2).unwrap();
    assert_eq!((core.data[8], core.thread.cycles()), (42, 14));
    // The return was in decode while the store waited.
    assert_eq!(core.run(), Pause::Return(0));
    assert_eq!((core.thread.cycles(), core.thread.instructions()), (15, 5));
}

/// Runs a thread with all accesses late until it returns.
fn returned(mut core: Core, stall: Stall) -> Thread {
    loop {
        match core.run() {
            Pause::Access(access) => {
                let window = Window { base: map::DATA, len: 16, offset: 0, write: true, sharing: Sharing::Shared };
                core.stepper.perform(&mut core.thread, &mut core.data, window, stall).unwrap();
                assert!(access.at < core.thread.cycles());
            }
            Pause::Return(_) => return core.thread,
            pause => panic!("{pause:?}"),
        }
    }
}

/// Returns the cycles from a program's last access to its return, with the access late.
fn behind(words: &[u32], stall: Stall) -> u64 {
    returned(Core::new(&[&[DATA_A5][..], words, &[RET]].concat()), stall).cycles() - 1
}

/// A jump in decode leaves for its target. So does one in the execute stage, but its target, like that of a branch,
/// enters decode only after the answer.
#[test]
fn what_is_behind_a_late_access_goes_as_far_as_it_can() {
    let store = sw(A1, A5, 0);
    for late in [1, 2, 7] {
        assert_eq!(behind(&[store], Stall::grant(late)), 1 + late + 1);
        assert_eq!(behind(&[store, NOP], Stall::grant(late)), 1 + late + 1 + 2);
        assert_eq!(behind(&[store], Stall::answer(late)), 1 + late + 2);
        assert_eq!(behind(&[store, NOP], Stall::answer(late)), 1 + late + 1 + 1);
        assert_eq!(behind(&[store, NOP, NOP], Stall::answer(late)), 1 + late + 2 + 2);
        // A branch that is not taken does not wait.
        assert_eq!(behind(&[store, branch(1, 0, 0, 8), NOP, NOP], Stall::answer(late)), 1 + late + 2 + 2);
        assert_eq!(behind(&[store, branch(0, 0, 0, 4), NOP, NOP], Stall::answer(late)), 1 + late + 2 + 2 + 2);
        // A late grant lets the jump leave decode, and then the answer is late as well.
        for grant in [1, 3, 9] {
            let stall = Stall { grant, answer: late };
            assert_eq!(behind(&[store], stall), 1 + grant + late + 1);
            assert_eq!(behind(&[store, NOP], stall), 1 + grant + late + 1 + 1);
        }
        // The user of the result starts when the load ends.
        assert_eq!(behind(&[lw(A1, A5, 0), addi(A2, A1, 1)], Stall::answer(late)), 1 + late + 1 + 1 + 2);
    }
    assert_eq!(behind(&[store, NOP], Stall::NONE), 1 + 1 + 2);
}

/// The instruction is in the execute stage while the previous access waits for its answer, and starts only after that
/// answer.
#[test]
fn a_counter_is_read_before_the_answer() {
    for late in [0, 1, 2, 7, 30] {
        for access in [sw(A1, A5, 0), lw(A1, A5, 0)] {
            let run = |stall, words: &[u32]| {
                let words = [&[DATA_A5, access], words, &[csrr(A0, 0xc00), NOP, RET]].concat();
                let thread = returned(Core::new(&words), stall);
                (thread.register(10), thread.cycles())
            };
            let late_end = 2 + late + 4 + 1 + 2;
            assert_eq!(run(Stall::answer(late), &[]), (2, late_end));
            assert_eq!(run(Stall::grant(late), &[]), (2 + late as u32, late_end));
            // Another instruction waits in the execute stage.
            assert_eq!(run(Stall::answer(late), &[NOP]), (3 + late as u32, late_end + 1));
        }
    }
}

/// The answer to an atomic operation takes two cycles. In the second one, the jump behind it occupies the execute
/// stage, so decode accepts nothing: a target that arrived in the first cycle gets its second word after that.
#[test]
fn the_second_word_of_a_target_waits_for_the_execute_stage() {
    const C_NOP: u32 = 0x0001;
    let run = |grant, halves: &[u32]| {
        // lui, amoadd.w a1, a2, (a5)
        let words = [&[DATA_A5, 0x00c7_a5af], halves, &[RET]].concat();
        let code: Vec<u8> =
            words.iter().flat_map(|w| w.to_le_bytes().into_iter().take(if w & 3 == 3 { 4 } else { 2 })).collect();
        returned(Core::of(Card::of_bytes(&code, TimingKind::InOrder, 1)), Stall::grant(grant)).cycles()
    };
    let begin = 1;
    for (grant, late) in [(0, 0), (1, 0), (2, 1), (9, 8)] {
        // The target is in the execute stage three cycles after the grant, or a cycle later if the jump left decode
        // only then.
        assert_eq!(run(grant, &[jal(0, 8), C_NOP, C_NOP, NOP]), begin + late + 4 + 1 + 2, "{grant}");
        assert_eq!(run(grant, &[jal(0, 6), C_NOP, NOP]), begin + late + 5 + 1 + 2, "{grant}");
    }
}

/// A division of 3 + 31 cycles by 1: cycles before the answer are saved after it, but at least one always remains.
#[test]
fn a_division_goes_on_while_the_access_before_it_waits_for_its_answer() {
    let divide = |source: u32| [addi(A3, 0, 1), lw(A1, A5, 0), divu(A2, source, A3), NOP, NOP];
    let rest = behind(&[addi(A3, 0, 1), lw(A1, A5, 0), NOP, NOP], Stall::NONE);
    for (late, shown) in [(0, 34), (1, 33), (2, 32), (7, 27), (33, 1), (34, 1), (50, 1)] {
        assert_eq!(behind(&divide(A4), Stall::answer(late)), rest + late + shown, "{late}");
        // It needs the answer, or does not start before the grant.
        assert_eq!(behind(&divide(A1), Stall::answer(late)), rest + late + 34 + 1, "{late}");
        assert_eq!(behind(&divide(A4), Stall::grant(late)), rest + late + 34, "{late}");
        assert_eq!(behind(&divide(A4), Stall { grant: 5, answer: late }), rest + 5 + late + shown, "{late}");
    }
    let skip = branch(1, 0, 0, 8);
    let words = [addi(A3, 0, 1), lw(A1, A5, 0), skip, divu(A2, A4, A3), NOP, NOP];
    assert_eq!(behind(&words, Stall::answer(7)), rest + 7 + 28, "behind a branch that is not taken");
}

#[test]
fn a_word_boundary_takes_another_grant_and_an_atomic_operation_two_cycles() {
    let mut core = Core::new(&[DATA_A5, lw(A1, A5, 3), 0x00c7_a5af, RET]);
    let load = core.access();
    assert_eq!((load.at, load.words()), (1, 2));
    core.perform(1).unwrap();
    // amoadd.w a1, a2, (a5)
    let atomic = core.access();
    assert_eq!((atomic.at, atomic.class, atomic.words()), (3, Class::Atomic, 1));
    core.perform(5).unwrap();
    assert_eq!(core.thread.cycles(), 3 + 5 + 2);
}

#[test]
fn accesses_outside_the_window_are_faults_at_their_time() {
    let pc = map::PROGRAM + 4;
    let mut core = Core::new(&[DATA_A5, lw(A1, A5, 13), RET]);
    core.access();
    assert_eq!(core.perform(3), Err(Fault::Load { pc, addr: map::DATA + 13, len: 4 }));
    assert_eq!((core.thread.pc(), core.thread.cycles(), core.thread.instructions()), (pc, 1 + 3 + 1, 1));

    let mut core = Core::new(&[DATA_A5, sw(A1, A5, 0), RET]);
    core.access();
    let read_only = Window { base: map::DATA, len: 16, ..Window::default() };
    let fault = core.stepper.perform(&mut core.thread, &mut core.data, read_only, Stall::NONE);
    assert_eq!(fault, Err(Fault::Store { pc, addr: map::DATA, len: 4 }));
    // A window larger than its memory contains nothing.
    let mut core = Core::new(&[DATA_A5, lw(A1, A5, 0), RET]);
    core.access();
    let larger = Window { base: map::DATA, len: 17, ..Window::default() };
    let fault = core.stepper.perform(&mut core.thread, &mut core.data, larger, Stall::NONE);
    assert_eq!(fault, Err(Fault::Load { pc, addr: map::DATA, len: 4 }));

    let mut core = Core::new(&[DATA_A5, addi(A5, A5, 2), 0x00c7_a5af, RET]);
    core.access();
    assert_eq!(core.perform(0), Err(Fault::Misaligned { pc: pc + 4, addr: map::DATA + 2 }));
    let mut core = Core::new(&[NOP, 0]);
    assert_eq!(core.run(), Pause::Fault(Fault::Illegal { pc, word: 0 }));
    assert_eq!((core.thread.pc(), core.thread.cycles(), core.thread.instructions()), (pc, 2, 1));
}

/// PsPIN §III-B2: the runtime loads the handler's address from a register of the HPU driver (which delays the load
/// until a task arrives), calls it, and rings the doorbell. An instruction without effect is on both sides of the call,
/// as in the published runtime, where these instructions mark a handler's start and end in core traces.
#[test]
fn the_runtime_takes_ten_cycles_from_the_data_to_the_doorbell() {
    // loop: lw t0, 0(a5); nop; mv a0, s1; jalr t0; nop; sw x0, 4(a5); j loop; handler: ret
    let (t0, s1) = (5, 9);
    let words = [DATA_A5, lw(t0, A5, 0), NOP, addi(A0, s1, 0), jalr(1, t0, 0), NOP, sw(0, A5, 4), jal(0, -24), RET];
    let mut core = Core::new(&words);
    core.data[..4].copy_from_slice(&(map::PROGRAM + 32).to_le_bytes());
    let mut waits_from = core.access().at;
    assert_eq!(waits_from, 1);
    for data in [1_000, 2_000] {
        // The data arrives, a cycle later the task is assigned, and a cycle later the load is answered.
        let answered = data + 1 + 1;
        core.perform(answered - 1 - waits_from).unwrap();
        assert_eq!(core.thread.cycles(), answered);
        let doorbell = core.access();
        assert_eq!((doorbell.class, doorbell.at), (Class::Store, data + 9));
        core.perform(0).unwrap();
        assert_eq!(core.thread.cycles(), data + 10);
        // Jump back to the load
        waits_from = core.access().at;
        assert_eq!(waits_from, data + 12);
    }
}

/// A handler without a runtime's instructions: in the above, the jump ends six cycles after the arrival of the data.
#[test]
fn a_called_handler_returns_as_from_the_runtime() {
    for (words, cycles) in [(&[RET][..], 8), (&[NOP, RET], 9), (&[NOP, NOP, RET], 10)] {
        let mut core = Core::new(words);
        core.stepper.call(&mut core.thread, 6);
        assert_eq!((core.run(), core.thread.cycles()), (Pause::Return(0), cycles));
    }
    // The target of the call is split over two words.
    let card = Card::of_bytes(&[&[1, 0][..], &NOP.to_le_bytes(), &RET.to_le_bytes()].concat(), TimingKind::InOrder, 1);
    let mut stepper = Stepper::new(card.program.clone(), 32);
    let mut thread = Thread::new(&card.program, map::PROGRAM + 2, STACK_TOP, [0; 3]);
    stepper.call(&mut thread, 6);
    let lines = Lines::all(stepper.lines());
    assert_eq!((stepper.run(&mut thread, &lines, u64::MAX), thread.cycles()), (Pause::Return(0), 6 + 2 + 2));
}

#[test]
fn a_thread_stops_when_its_time_is_over() {
    // An endless loop of 3 cycles per iteration
    let mut core = Core::new(&[addi(A0, A0, 1), jal(0, -4)]);
    for (until, cycles, rounds) in [(300, 300, 100), (300, 300, 100), (301, 303, 101), (0, 303, 101)] {
        assert_eq!(core.stepper.run(&mut core.thread, &core.lines, until), Pause::Until);
        assert_eq!((core.thread.cycles(), core.thread.register(10)), (cycles, rounds));
    }
}

#[test]
fn lines_that_are_not_in_the_cache_are_asked_for() {
    // 16 bytes per line: three instructions and a jump over line 1 to line 2, where an instruction crosses from line 2
    // to 3.
    const C_NOP: u32 = 0x0001;
    let halves = [NOP, NOP, NOP, jal(0, 20), NOP, NOP, NOP, NOP, C_NOP, NOP, NOP, NOP, NOP, RET];
    let code: Vec<u8> =
        halves.iter().flat_map(|w| w.to_le_bytes().into_iter().take(if w & 3 == 3 { 4 } else { 2 })).collect();
    let card = Card::of_bytes(&code, TimingKind::InOrder, 1);
    let mut stepper = Stepper::new(card.program.clone(), 16);
    assert_eq!((code.len(), stepper.lines()), (54, 4));
    let (mut thread, mut lines, mut missed) = (card.thread([0; 3]), Lines::none(4), Vec::new());
    loop {
        match stepper.run(&mut thread, &lines, u64::MAX) {
            Pause::Line(line) => {
                missed.push((line, thread.cycles()));
                lines.insert(line);
                stepper.wait(&mut thread, 10);
            }
            pause => break assert_eq!(pause, Pause::Return(0)),
        }
    }
    // Three instructions and the jump in line 0, four in line 2, one that begins there and ends in line 3, the return.
    assert_eq!(missed, [(0, 0), (2, 10 + 5), (3, 10 + 5 + 10 + 4)]);
    assert_eq!(thread.cycles(), 30 + 5 + 4 + 1 + 2);
    // A hit costs nothing, and a replaced line is requested again.
    let mut thread = card.thread([0; 3]);
    lines.remove(2);
    assert_eq!(stepper.run(&mut thread, &lines, u64::MAX), Pause::Line(2));
}

#[test]
fn a_wait_lets_results_arrive() {
    for (cycles, expected) in [(0, 3), (1, 3), (2, 4), (50, 52)] {
        // The user of the load would stall for a cycle.
        let mut core = Core::new(&[lw(A1, A5, 0), addi(A2, A1, 1), RET]);
        core.thread = Thread::new(&core.program, map::PROGRAM, STACK_TOP, [0; 3]);
        core.access();
        let anywhere = Window { base: 0, len: 16, ..Window::default() };
        core.stepper.perform(&mut core.thread, &mut core.data, anywhere, Stall::NONE).unwrap();
        core.stepper.wait(&mut core.thread, cycles);
        assert_eq!((core.run(), core.thread.cycles()), (Pause::Return(0), expected + 2), "{cycles}");
    }
}

/// Returns a loop like a runtime's: it loads a word of a device, executes `body`, and stores to the device.
fn runtime(body: &[u32]) -> Vec<u32> {
    let back = -4 * (body.len() as i32 + 2);
    [&[lw(A1, A5, 0)][..], body, &[sw(A1, A5, 4), jal(0, back)]].concat()
}

/// Checks that passing from access to access of a device with these answers and delays equals executing, in the visible
/// state of the thread. The cache loses all lines at every `lost`th access.
fn passes(body: &[u32], answers: &[(u32, u64)], lost: usize) {
    let mut both = [Core::new(&runtime(body)), Core::new(&runtime(body))];
    for core in &mut both {
        core.thread.set_register(A5 as u8, 0x5000);
        core.access();
    }
    let [passing, executing] = &mut both;
    for (index, (answer, stall)) in answers.iter().copied().cycle().take(40).enumerate() {
        if index % lost == lost - 1 {
            for core in [&mut *passing, &mut *executing] {
                (0..core.stepper.lines()).for_each(|line| core.lines.remove(line));
            }
        }
        let mut bytes = u64::from(answer).to_le_bytes();
        let address = 0x5000 + 4 * (index as u32 % 2);
        let Core { stepper, thread, lines, .. } = passing;
        let mut passed = stepper.pass(thread, lines, address, bytes, stall, 1000).unwrap();
        let Core { stepper, thread, lines, .. } = executing;
        let window = Window { base: address, len: 8, write: true, ..Window::default() };
        stepper.perform(thread, &mut bytes, window, Stall::answer(stall)).unwrap();
        let mut executed = stepper.run(thread, lines, thread.cycles() + 1000);
        while let Pause::Line(line) = passed {
            assert_eq!(passed, executed);
            passing.lines.insert(line);
            executing.lines.insert(line);
            (passed, executed) = (passing.run(), executing.run());
        }
        assert_eq!(passed, executed, "{index}");
        // Writes to x0 are discarded in this register.
        executing.thread.set_register(32, passing.thread.register(32));
        same(&passing.thread, &executing.thread);
    }
}

#[test]
fn what_a_thread_knows_by_heart_is_what_it_would_do() {
    let bodies = [
        vec![],
        vec![addi(A2, 0, 7), addi(A3, A2, 1)],
        // A register that counts, one that depends on the answer, and a branch on the answer.
        vec![addi(A2, A2, 1)],
        vec![add(A2, A2, A1)],
        vec![branch(1, A1, 0, 8), NOP, NOP],
        // A branch on the time that leaves the registers unchanged: csrr a2, cycle; andi a2, a2, 4.
        vec![0xc000_2673, 0x0046_7613, branch(1, A2, 0, 12), NOP, NOP, addi(A2, 0, 0)],
    ];
    for body in &bodies {
        for lost in [usize::MAX, 7] {
            passes(body, &[(0, 0)], lost);
            passes(body, &[(5, 3)], lost);
            passes(body, &[(0, 0), (1, 0), (0, 2), (0, 0), (1, 1), (1, 0), (1, 0)], lost);
        }
    }
}
