// SPDX-License-Identifier: Apache-2.0
//! Tests lines of liballprof traces: each kind of call, and information that such traces lack.

use std::fs;

use goal::loggops::{LogGops, run};
use goal::{Schedule, text};
use mpi_trace::{Import, Options, import};

/// MPI_COMM_WORLD of two ranks in a trace of Open MPI.
const WORLD: [&str; 2] = ["940,0,2", "940,1,2"];
/// 64-bit numbers: 13,8,8.
const TYPE: &str = "13,8,8";

/// Converts traces of two ranks with these calls, `NAME:arguments`, each of 10 us and 5 us after the one before.
fn imported(ranks: [&[String]; 2], options: &Options) -> Result<Import, String> {
    let folder = tempfile::tempdir().unwrap();
    for (rank, calls) in ranks.iter().enumerate() {
        let mut lines = vec!["MPI_Init:-:0:0:1000".to_string()];
        for (call, start) in calls.iter().zip((1005..).step_by(15)) {
            let (name, arguments) = call.split_once(':').unwrap();
            lines.push(format!("{name}:{start}:{arguments}:{}", start + 10));
        }
        lines.push(format!("MPI_Finalize:{}:-\n", 1005 + 15 * calls.len()));
        fs::write(folder.path().join(format!("pmpi-trace-rank-{rank}.txt")), lines.join("\n")).unwrap();
    }
    import(folder.path(), options).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "DIR"))
}

/// Returns the schedule after checking that it finishes.
fn schedule(ranks: [&[String]; 2]) -> Schedule {
    for options in [Options { extrapolate: 3, ..Options::default() }, Options::default()] {
        let Import { schedule, warnings, .. } = imported(ranks, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(warnings, [""; 0]);
        let outcome = run(&schedule, &LogGops::default(), &goal::loggops::Options::default());
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{error}")).unreceived, []);
        if options.extrapolate == 1 {
            return schedule;
        }
    }
    unreachable!("one of them is not extrapolated")
}

/// Returns the sends and receives of a rank, without labels.
fn messages(schedule: &Schedule, rank: u32) -> Vec<String> {
    let mut out = Vec::new();
    text::write(schedule, rank..rank + 1, &mut out).unwrap();
    let is_message = |line: &&str| line.contains(": send") || line.contains(": recv");
    let shown = String::from_utf8(out).unwrap();
    shown.lines().filter(is_message).map(|line| line.split_once(": ").unwrap().1.to_string()).collect()
}

#[test]
fn one_sided_calls() {
    let calls = |rank: usize, name: fn(&str) -> String| -> Vec<String> {
        let world = WORLD[rank];
        let call = |function: &str, arguments: String| format!("{}:{arguments}", name(function));
        let mut calls = vec![
            call("Win_create", format!("5000:64:1:0:{world}:9100")),
            call("Win_fence", "0:77".into()),
            call("Barrier", world.into()),
            call("Win_fence", "0:77".into()),
            call("Win_free", "9100".into()),
        ];
        if rank == 0 {
            let accesses = [
                call("Put", format!("4000:3:{TYPE}:1:0:3:{TYPE}:77")),
                call("Get", format!("4000:5:{TYPE}:1:0:5:{TYPE}:77")),
                call("Put", format!("4000:5:{TYPE}:-2:0:5:{TYPE}:77")), // to MPI_PROC_NULL
            ];
            calls.splice(2..2, accesses);
            let by_lock = [
                call("Win_lock", "1:1:0:77".into()),
                call("Accumulate", format!("4000:2:{TYPE}:1:0:2:{TYPE}:3:77")),
                call("Win_flush", "1:77".into()),
                call("Rget_accumulate", format!("4000:2:{TYPE}:4100:4:{TYPE}:1:0:2:{TYPE}:3:77:8000")),
                call("Wait", "8000:0".into()),
                call("Fetch_and_op", format!("4000:4100:{TYPE}:1:0:3:77")),
                call("Compare_and_swap", format!("4000:4100:4200:{TYPE}:1:0:77")),
                call("Win_unlock", "1:77".into()),
            ];
            calls.splice(7..7, by_lock);
        }
        calls
    };
    let ranks = [calls(0, |name| format!("MPI_{name}")), calls(1, |name| format!("mpi_{}_", name.to_lowercase()))];
    let made = schedule([&ranks[0], &ranks[1]]);
    let of_window = |rank| -> Vec<String> {
        messages(&made, rank).into_iter().filter(|message| message.ends_with("space 2")).collect()
    };
    let origin = [
        "send 24b to 1 tag 0 space 2",
        "send 1b to 1 tag 8 space 2",
        "recv 40b from 1 tag 9 space 2",
        "send 16b to 1 tag 16 space 2",
        "recv 1b from 1 tag 18 space 2", // of the flush
        "send 16b to 1 tag 24 space 2",
        "recv 32b from 1 tag 25 space 2",
        "send 8b to 1 tag 32 space 2",
        "recv 8b from 1 tag 33 space 2",
        "send 16b to 1 tag 40 space 2",
        "recv 8b from 1 tag 41 space 2",
    ];
    assert_eq!(of_window(0), origin);
    let mut target = of_window(1);
    target.sort();
    let swap = |message: &&str| {
        let (kind, rest) = message.split_at(4);
        let rest = rest.replace(" to 1", " X 0").replace(" from 1", " X 0");
        if kind == "send" {
            format!("recv{}", rest.replace('X', "from"))
        } else {
            format!("send{}", rest.replace('X', "to"))
        }
    };
    let mut expected: Vec<String> = origin.iter().map(swap).collect();
    expected.sort();
    assert_eq!(target, expected);
}

#[test]
fn newer_calls() {
    let calls = |rank: usize| -> Vec<String> {
        let (world, other) = (WORLD[rank], 1 - rank);
        vec![
            format!("MPI_Send_init_c:4000:3:{TYPE}:{other}:1:{world}:8000"),
            format!("MPI_Irecv:5000:3:{TYPE}:{other}:1:{world}:8008"),
            "MPI_Start:8000".into(),
            "MPI_Waitall:2:8000:0".into(),
            // Started twice.
            format!("MPI_Bcast_init:4000:7:{TYPE}:1:{world}:0:8100"),
            "MPI_Start:8100".into(),
            "MPI_Wait:8100:0".into(),
            "MPI_Start:8100".into(),
            "MPI_Wait:8100:0".into(),
            format!("MPI_Isendrecv:4000:5:{TYPE}:{other}:2:5000:5:{TYPE}:{other}:2:{world}:8200"),
            "MPI_Test:8200:0:0".into(),
            "MPI_Wait:8200:0".into(),
            format!("MPI_Comm_idup:{world}:9000:8300"),
            "MPI_Wait:8300:0".into(),
            format!("MPI_Isend:4000:6:{TYPE}:{other}:3:{},{rank},2:8400", 950),
            format!("MPI_Mprobe:{other}:3:{},{rank},2:6000:0", 950),
            format!("MPI_Mrecv:5000:6:{TYPE}:6000:0"),
            "MPI_Wait:8400:0".into(),
            // Four parts of two elements.
            format!("MPI_Psend_init:4000:4:2:{TYPE}:{other}:4:{world}:0:8500"),
            format!("MPI_Precv_init:5000:4:2:{TYPE}:{other}:4:{world}:0:8508"),
            "MPI_Startall:2:8500".into(),
            "MPI_Pready_range:0:3:8500".into(),
            "MPI_Waitall:2:8500:0".into(),
        ]
    };
    let ranks = [calls(0), calls(1)];
    let made = schedule([&ranks[0], &ranks[1]]);
    assert_eq!(
        messages(&made, 0),
        [
            "recv 24b from 1 tag 1",
            "send 24b to 1 tag 1",
            "recv 56b from 1 tag 0 space 1",
            "recv 56b from 1 tag 2 space 1",
            "send 40b to 1 tag 2",
            "recv 40b from 1 tag 2",
            "send 1b to 1 tag 4 space 1",
            "recv 1b from 1 tag 4 space 1",
            "send 48b to 1 tag 3 space 2",
            "recv 48b from 1 tag 3 space 2",
            "send 64b to 1 tag 4",
            "recv 64b from 1 tag 4",
        ]
    );
}

#[test]
fn a_communicator_of_some_is_made_without_the_others() {
    let alone = vec![format!("MPI_Comm_create_group:{}:7:0:9000", WORLD[0]), "MPI_Barrier:960,0,1".into()];
    let both = |rank: usize, mut before: Vec<String>| {
        before.push(format!("MPI_Comm_dup:{}:9100", WORLD[rank]));
        before.push(format!("MPI_Barrier:970,{rank},2"));
        before
    };
    let ranks = [both(0, alone), both(1, vec![])];
    assert_eq!(messages(&schedule([&ranks[0], &ranks[1]]), 0).len(), 4);
}

#[test]
fn calls_that_are_not_known_or_not_told_are_errors_with_their_place() {
    let world = WORLD[0];
    for (call, what) in [
        ("MPI_Sent:1:2".into(), "2:1: MPI_Sent is no function of MPI"),
        (
            "MPI_Win_post:7:0:77".into(),
            "2:1: MPI_Win_post: a liballprof trace does not tell which ranks are in a group",
        ),
        (
            format!("MPI_Alltoallw:1:1:1:1:1:1:1:1:{world}"),
            "2:1: MPI_Alltoallw: a liballprof trace does not tell the sizes of several datatypes",
        ),
        (
            format!("mpi_ineighbor_alltoall__:1:1:1:1:1:1:{world}:8"),
            "2:1: mpi_ineighbor_alltoall__: a liballprof trace does not tell who is whose neighbour",
        ),
        (
            "MPI_Intercomm_merge:7:0:9000".into(),
            "2:1: MPI_Intercomm_merge: a liballprof trace does not tell who is in an intercommunicator",
        ),
        ("MPI_Win_fence:0:77".into(), "2:1: window 77 comes from no call before"),
        ("MPI_Win_free:9100".into(), "2:19: no window was made there"),
        (format!("MPI_Mrecv:5000:6:{TYPE}:6000:0"), "2:30: no message was matched there"),
        (format!("MPI_Put:4000:3:{TYPE}:1:0:3:{TYPE}"), "2:41: MPI_Put has 8 arguments, the line 7; a window is next"),
    ] {
        let calls: [String; 1] = [call];
        assert_eq!(
            imported([&calls, &[]], &Options::default()).unwrap_err(),
            format!("DIR/pmpi-trace-rank-0.txt:{what}")
        );
    }
}

#[test]
fn absurd_numbers_in_a_trace_are_errors_or_take_no_longer() {
    let send = format!("MPI_Isend:1:1:{TYPE}:1:0:{}:4096", WORLD[0]);
    let sender = [send, "MPI_Waitall:4611686018427387904:4096:0".to_string()];
    let receiver = [format!("MPI_Recv:1:1:{TYPE}:0:0:{}:0", WORLD[1])];
    let schedule = schedule([&sender, &receiver]);
    assert_eq!(messages(&schedule, 0), ["send 8b to 1 tag 0"]);

    let huge = ["MPI_Comm_create:940,0,2:0:64".to_string(), "MPI_Barrier:950,0,1073741824".to_string()];
    let error = imported([&huge, &["MPI_Barrier:940,1,2".to_string()]], &Options::default()).unwrap_err();
    let told = "communicator 950 has 1073741824 ranks, but there are 2 traces";
    assert_eq!(error, format!("DIR/pmpi-trace-rank-0.txt:3:1: {told}"));
}

#[test]
fn totals_beyond_64_bits_are_errors() {
    let send = format!("MPI_Send:1:2305843009213693952:13,2,2:1:0:{}", WORLD[0]);
    let sends: Vec<String> = vec![send; 4];
    let error = imported([&sends, &[]], &Options::default()).unwrap_err();
    assert_eq!(error, "rank 0: the sum of its bytes of messages is beyond 2^64: the trace is damaged");
}
