// SPDX-License-Identifier: Apache-2.0
//! CPU time between calls: measured, recorded and replayed.

mod common;

use common::{Program, compile, spec};
use ranks::{Job, JobSpec};
use sim::Time;
use world::{Computation, ComputeTimes, End, World};

/// Simulated picoseconds per microsecond of CPU time at equal speed.
const EQUAL: u64 = 1_000_000;

/// Runs a program. Returns the end of the run, the end times of the ranks, and the world.
fn run(program: &Program, ranks: usize, computation: Computation) -> (End, Vec<Time>, World) {
    let machines = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let machine = machine::Machine::load("sc17-int", &[machines], &[]).unwrap();
    let measures = matches!(computation, Computation::Recorded(_));
    let spec = JobSpec { compute_scale_milli: if measures { EQUAL } else { 0 }, ..spec(program, ranks) };
    let silent =
        Box::new(|message: world::Message<'_>| assert!(!matches!(message, world::Message::Warning(_)), "{message:?}"));
    let machine = nic::CardModel::new(machine).unwrap();
    let mut world = World::new(machine, Job::new(spec).unwrap(), sim::trace::Trace::off(), silent).unwrap();
    world.set_computation(computation);
    let end = world.run().unwrap();
    let ends = world.rank_ends().collect();
    (end, ends, world)
}

/// Runs a program and records its computation.
fn record(program: &Program, ranks: usize) -> (Vec<Time>, ComputeTimes) {
    let (end, ends, world) = run(program, ranks, Computation::Recorded(vec![Vec::new(); ranks]));
    assert_eq!(end, End::Finished);
    (ends, world.computation().recorded().unwrap().clone())
}

#[test]
fn a_recorded_run_is_replayed_to_the_bit() {
    let program = compile(
        r#"
        #include <pthread.h>
        #include <spin.h>
        static void work(void) {
            for (volatile int i = 0; i < 100000; i++);
        }
        static void *meet(void *argument) {
            work();
            spin_host_compute(100);
            work();
            spin_barrier();
            return argument;
        }
        int main(void) {
            pthread_t thread;
            spin_barrier();
            if (pthread_create(&thread, NULL, meet, NULL)) return 2;
            for (int i = 0; i <= spin_rank(); i++) {
                work();
                spin_host_compute(100);
            }
            pthread_join(thread, NULL);
            return 0;
        }"#,
    );
    let (ends, times) = record(&program, 3);
    assert!(times.iter().flatten().sum::<u64>() > 1000, "{times:?}");
    for _ in 0..2 {
        let (end, again, world) = run(&program, 3, Computation::replay(times.clone(), EQUAL));
        assert_eq!((end, &again, world.computation().left_over()), (End::Finished, &ends, vec![]));
    }
    // Other recorded times lead to another end time: the recording decides.
    let zeros = times.iter().map(|times| vec![0; times.len()]).collect();
    let (_, zero, _) = run(&program, 3, Computation::replay(zeros, EQUAL));
    assert!(zero.iter().zip(&ends).all(|(zero, end)| zero < end), "{zero:?}, {ends:?}");

    let mut short = times.clone();
    let calls = short[1].len() - 1;
    short[1].truncate(calls);
    let End::BadProgram { rank: 1, message } = run(&program, 3, Computation::replay(short, EQUAL)).0 else {
        panic!("not refused")
    };
    let told =
        format!("it makes more library calls than the {calls} for which computation was recorded: program, input or");
    assert!(message.starts_with(&told), "{message}");
    let mut long = times;
    long[2].push(5);
    let (end, again, world) = run(&program, 3, Computation::replay(long.clone(), EQUAL));
    assert_eq!(
        (end, again, world.computation().left_over()),
        (End::Finished, ends, vec![(2, calls_of(&long, 2), long[2].len())])
    );
}

fn calls_of(times: &ComputeTimes, rank: usize) -> usize {
    times[rank].len() - 1
}

/// Four iterations of two polls, calculated by hand. Up to 10 us of computation between two polls belong to the loop.
#[test]
fn the_loop_around_polls_is_not_charged() {
    let program = compile(
        r#"
        #include <portals4.h>
        #include <spin.h>
        int main(void) {
            ptl_handle_ni_t ni;
            ptl_handle_eq_t eq;
            ptl_event_t event;
            if (PtlInit() || PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni) ||
                PtlEQAlloc(ni, 8, &eq))
                return 3;
            for (int i = 0; i < 4; i++) {
                if (PtlEQGet(eq, &event) != PTL_EQ_EMPTY) return 4;
                spin_idle();
            }
            return 0;
        }"#,
    );
    let calls = record(&program, 1).1[0].len();
    let polls = Time::from_ns(8 * 51);
    let end = |before: [u64; 8]| {
        let mut times = vec![0; calls - 8];
        times.extend(before);
        let (end, ends, _) = run(&program, 1, Computation::replay(vec![times], EQUAL));
        assert_eq!(end, End::Finished);
        ends[0]
    };
    assert_eq!(end([0; 8]), polls);
    // Computation before the first poll belongs to the program.
    assert_eq!(end([9000; 8]), Time::from_ns(9000) + polls);
    assert_eq!(end([0, 10_000, 10_000, 0, 0, 10_000, 0, 10_000]), polls);
    assert_eq!(end([0, 0, 0, 0, 10_001, 0, 0, 12_000]), Time::from_ns(22_001) + polls);
}
