// SPDX-License-Identifier: Apache-2.0
//! Tests the conversion of traces on disk to schedules: sizes, peers, tags, and completion.

use std::fs;
use std::path::{Path, PathBuf};

use goal::loggops::{LogGops, run};
use goal::{Action, Schedule, text};
use mpi_trace::{Import, Options, import};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/traces/liballprof")
}

/// Returns bytes, receiver, tag and space of all sends of a rank.
fn sends(schedule: &Schedule, rank: u32) -> Vec<(u64, u32, u32, u16)> {
    let action = |op| match schedule.action(op) {
        Action::Send { bytes, to, tag, space } => Some((bytes, to, tag, space)),
        _ => None,
    };
    schedule.of_rank(rank).filter_map(action).collect()
}

fn end_ns(schedule: &Schedule) -> u64 {
    let outcome = run(schedule, &LogGops::default(), &goal::loggops::Options::default()).unwrap();
    assert_eq!(outcome.unreceived, []);
    outcome.end().as_ps() / 1000
}

fn sample(options: &Options) -> Import {
    import(&samples(), options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_liballprof_trace_becomes_the_schedule_of_its_calls() {
    let Import { schedule, ranks, warnings } = sample(&Options::default());
    assert_eq!(schedule.ranks(), 4);
    assert_eq!(warnings, ["MPI_File_sync is not in the schedule (4 ranks call it)"]);
    // Rank 1 is the second of the odd ranks, which are in key order: 3 before 1.
    let expected = [
        &[(800, 2, 7, 0), (40, 2, 1, 0), (4, 2, 2, 0)][..],
        // The split is a barrier: dissemination in the world's space of collectives.
        &[(1, 2, 0, 1), (1, 3, 0, 1)],
        &[(4, 3, 0, 5)],
        &[(24, 2, 3, 0)],
        &[(20, 2, 2, 1), (10, 2, 2, 1), (40, 2, 2, 1)],
        // Recursive doubling of 32 bytes, then the barrier.
        &[(32, 0, 4, 1), (32, 3, 4, 1), (1, 2, 6, 1), (1, 3, 6, 1)],
    ];
    assert_eq!(sends(&schedule, 1), expected.concat());
    assert_eq!(sends(&schedule, 3)[5], (4, 1, 0, 5));
    // The halves have separate matching spaces.
    let spaces: Vec<u16> = (0..4).map(|rank| sends(&schedule, rank).iter().map(|send| send.3).max().unwrap()).collect();
    assert_eq!(spaces[0], spaces[2]);
    assert_eq!(spaces[1], spaces[3]);
    assert_ne!(spaces[0], spaces[1]);
    assert!(end_ns(&schedule) > 300_000);
    assert_eq!((ranks[1].calls, ranks[1].messages, ranks[1].collectives), (24, 4, 5));
    assert_eq!(ranks[1].message_bytes, 800 + 40 + 4 + 24);
    // 19 gaps of 5 us, one of 100 and one of 50.
    assert_eq!(ranks[1].compute_ns, 19 * 5_000 + 150_000);
}

#[test]
fn calls_wait_for_what_they_waited_for() {
    let Import { schedule, .. } = sample(&Options::default());
    let mut shown = Vec::new();
    text::write(&schedule, 1..2, &mut shown).unwrap();
    let shown = String::from_utf8(shown).unwrap();
    for line in [
        "l1: calc 5000\nl2: recv 800b from 0 tag 7\nl3: calc 5000\nl4: send 800b to 2 tag 7\nl5: calc 5000\n",
        "l6: recv 40b from 0 tag 1\nl7: calc 5000\nl8: send 40b to 2 tag 1\nl9: calc 100000\nl10: calc 5000\n",
        // Computation continues once a non-blocking call has started; after the wait it depends on both.
        "l7 irequires l6\n",
        "l9 irequires l8\n",
        "l10 requires l9\n",
        "l10 requires l6\n",
        "l10 requires l8\n",
        "recv 4b from any tag any\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
}

#[test]
fn copies_share_the_collectives_of_all_ranks_only() {
    let options = Options { extrapolate: 3, ..Options::default() };
    let Import { schedule, ranks, .. } = sample(&options);
    assert_eq!((schedule.ranks(), ranks.len()), (12, 4));
    // Rank 5 is rank 1 of the second copy; the world's barriers now have 12 ranks, in four rounds.
    let all = sends(&schedule, 5);
    assert_eq!(all[..3], [(800, 6, 7, 0), (40, 6, 1, 0), (4, 6, 2, 0)]);
    let barrier: Vec<u32> = all.iter().filter(|send| send.0 == 1).map(|send| send.1).collect();
    assert_eq!(barrier, [6, 7, 9, 1, 6, 7, 9, 1]);
    assert_eq!(all[7], (4, 7, 0, 5));
    end_ns(&schedule);
}

#[test]
fn computation_is_scaled() {
    let calcs = |calc_scale| -> u64 {
        let Import { schedule, .. } = sample(&Options { calc_scale, ..Options::default() });
        let ns = |op| if let Action::Calc(ns) = schedule.action(op) { ns } else { 0 };
        schedule.of_rank(1).map(ns).sum()
    };
    assert_eq!((calcs(1.0), calcs(0.5), calcs(0.0)), (245_000, 122_500, 0));
}

/// Returns the error for a copy of the samples with a change.
fn damaged(change: impl Fn(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(samples()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    change(folder.path());
    let error = import(folder.path(), &Options::default()).unwrap_err().to_string();
    error.replace(&format!("{}", folder.path().display()), "DIR")
}

/// Returns the error for samples with a change of the text of rank 1.
fn changed(from: &str, to: &str) -> String {
    damaged(|folder| {
        let file = folder.join("pmpi-trace-rank-1.txt");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from));
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    })
}

#[test]
fn damage_is_named_with_its_place() {
    let file = "DIR/pmpi-trace-rank-1.txt";
    for (from, to, place, what) in [
        (":7:1140850688,1,4:6000:1000015", "", "8:34", "MPI_Recv has 7 arguments, the line 3; a rank is next"),
        ("MPI_Recv:1000005:5000:100", "MPI_Recv:1000005:5000:1x0", "8:23", "`1x0` is no number"),
        ("MPI_Recv:1000005:5000:100", "MPI_Recv:1000005:5000:-1", "8:23", "a count is expected here"),
        ("MPI_Recv:1000005", "MPI_Recv:now", "8:10", "no time in microseconds"),
        (
            "8:0:7:1140850688,1,4:6000",
            "8:0:7:1140850688,1:6000",
            "8:38",
            "a communicator (number, rank, size) is expected here",
        ),
        ("8:0:7:", "8:9:7:", "8:1", "rank 9 of a communicator of 4 ranks"),
        ("MPI_Recv:1000005", "Recv:1000005", "8:1", "a call starts with MPI_ (or mpi_) and the name of a function"),
        (
            "-1006632960,1,2:1000257",
            "-1006632960,1,3:1000257",
            "19:1",
            "communicator -1006632960 (rank 1 of 3) comes from no call before, or the calls of other ranks are missing",
        ),
        ("\nMPI_Finalize:1000427:-\n", "\nMPI_Fin", "29:8", "the file is cut off within this line"),
    ] {
        assert_eq!(changed(from, to), format!("{file}:{place}: {what}"));
    }
    assert_eq!(
        damaged(|folder| fs::remove_file(folder.join("pmpi-trace-rank-2.txt")).unwrap()),
        "DIR: the trace of rank 2 is missing"
    );
    assert_eq!(
        damaged(|folder| fs::write(folder.join("rank-0.spintrace"), "").unwrap()),
        "DIR: traces of libspintrace.so and of liballprof: which ones?"
    );
}

#[test]
fn a_trace_without_finalize_is_said_to_be_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..4 {
        let name = format!("pmpi-trace-rank-{rank}.txt");
        let text = fs::read_to_string(samples().join(&name)).unwrap();
        let end = text.find("# Finalize").unwrap();
        fs::write(folder.path().join(name), &text[..end]).unwrap();
    }
    let Import { warnings, .. } = import(folder.path(), &Options::default()).unwrap();
    assert_eq!(warnings[1], "rank 1: its trace is cut off (the program ended without MPI_Finalize): 23 calls are used");
}

#[test]
fn traces_of_any_name_are_found_by_their_contents() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |rank: usize, name: &str| {
        fs::copy(samples().join(format!("pmpi-trace-rank-{rank}.txt")), folder.path().join(name)).unwrap();
    };
    let ranks = fs::read_dir(samples()).unwrap().count();
    (0..ranks).for_each(|rank| copy(rank, &format!("run7-{rank:03}.out")));
    fs::write(folder.path().join("notes0.txt"), "nothing").unwrap();
    let schedule = |path: &Path| import(path, &Options::default()).map(|import| import.schedule);
    let expected = end_ns(&sample(&Options::default()).schedule);
    assert_eq!(end_ns(&schedule(folder.path()).unwrap()), expected);
    assert_eq!(end_ns(&schedule(&folder.path().join("run7-000.out")).unwrap()), expected);
    let problem = |path: &str| schedule(&folder.path().join(path)).unwrap_err().to_string();
    assert!(
        problem("run7-001.out").ends_with("it is not the trace of rank 0; give that one, or the folder of the traces")
    );
    assert!(problem("notes0.txt").ends_with("it is no trace of spinkit trace or liballprof"));
    copy(0, "other-0.out");
    assert!(problem("").ends_with("give the file of rank 0 of one: other-0.out, run7-0.out"), "{}", problem(""));
    fs::remove_file(folder.path().join("run7-001.out")).unwrap();
    assert!(problem("run7-000.out").ends_with("the trace of rank 1 (run7-1.out) is missing"));
    let empty = tempfile::tempdir().unwrap();
    let error = schedule(empty.path()).unwrap_err().to_string();
    assert!(error.contains("expected rank-0.spintrace (spinkit trace), pmpi-trace-rank-0.txt or another"), "{error}");
}
