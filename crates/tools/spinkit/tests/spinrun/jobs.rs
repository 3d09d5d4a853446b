// SPDX-License-Identifier: Apache-2.0
//! Several programs of a job, and several jobs on one network: seats, ends, and isolation from a hostile neighbour.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{Run, command, libraries, plain, program, scratch};

/// Runs spinrun with these arguments. Also returns its report, if it wrote one.
fn run(arguments: &[&str]) -> (Run, Value) {
    let report = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinrun"));
    command.arg("--json").arg(report.path()).args(arguments).env("SPIN_LIBDIR", libraries());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = Run { status: status.code().unwrap(), out: text(stdout), err: text(stderr) };
    (run, serde_json::from_slice(&std::fs::read(report.path()).unwrap()).unwrap_or(Value::Null))
}

/// Writes a jobs file.
fn jobs_file(name: &str, text: &str) -> PathBuf {
    let path = scratch().join(format!("{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

fn job(name: &str, program: &Path, argument: &str, rest: &str) -> String {
    format!("[[job]]\nname = \"{name}\"\nprogram = [{:?}, {argument:?}]\n{rest}\n", program.to_str().unwrap())
}

#[test]
fn programs_separated_by_colons_share_one_rank_space() {
    let (alltoall, ping) = (plain("alltoall"), program("tenants"));
    let alltoall = alltoall.to_str().unwrap();
    let (one, report) = run(&["-n", "4", alltoall, "3000"]);
    assert_eq!(report["programs"], Value::Null);
    let (several, report) =
        run(&["-np", "1", alltoall, "3000", ":", "-n", "2", alltoall, "3000", ":", alltoall, "3000"]);
    assert_eq!((one.status, sorted(&one.ok())), (0, sorted(&several.ok())));
    let ranks: Vec<&Value> = report["programs"].as_array().unwrap().iter().map(|program| &program["ranks"]).collect();
    assert_eq!(ranks, [&json!([0]), &json!([1, 2]), &json!([3])]);
    assert_eq!(report["programs"][1]["arguments"], json!(["3000"]));
    // Each program has the handlers that it contains.
    let ping = ping.to_str().unwrap();
    let (run, report) = run(&[ping, "victim", ":", ping, "victim"]);
    assert!(run.ok().starts_with("victim: 100 messages intact after "));
    assert_eq!(report["programs"][0]["handlers"], json!({}));
    assert_eq!(report["programs"][1]["handlers"]["completion"]["calls"], 100);
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn programs_have_variables_and_folders_of_their_own() {
    let script = r#"echo "$SPIN_RANK of $SPIN_SIZE in $(pwd): $K $HOME""#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinrun"));
    let first = ["-x", "K=one", "sh", "-c", script, ":"];
    command.args(first).args(["-x", "HOME", "-x", "K=two", "--wdir", "/", "sh", "-c", script]);
    let output = command.current_dir("/usr").env("HOME", "/h").env("SPIN_LIBDIR", libraries()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(sorted(&text), ["0 of 2 in /usr: one /h", "1 of 2 in /: two /h"]);
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    for (arguments, words) in [
        (
            &["true", ":", "--machine", "sc17-dis", "true"][..],
            "--machine is an option of the whole run: give it before",
        ),
        (&["true", ":", "-v", "true"], "-v is an option of the whole run"),
        (
            &["true", ":", "--frob", "true"],
            "--frob is no option of a program after a colon: those are -n, -x and --wdir",
        ),
        (&["true", ":"], "a colon is followed by no program"),
        (&["true", ":", "-n", "0", "true"], "invalid value '0'"),
        (&["-x", "SPIN_NO_SUCH_VARIABLE", "true"], "is no variable of spinrun's environment"),
        (&["--wdir", "/no/folder", "true"], "--wdir: cannot enter /no/folder"),
        (&["-n", "40000", "true", ":", "-n", "40000", "true"], "80000 ranks: a job has 1 to 65536 ranks"),
        (&["--jobs", "/no/file"], "--jobs: /no/file: No such file"),
        (&["--jobs", "x", "-n", "2"], "cannot be used with"),
        (&["--jobs", "x", "true"], "cannot be used with"),
        (&["--jobs", "x", ":", "true"], "--jobs runs the programs of its file"),
        (&["--start", "fork", "true", ":", "true"], "--start fork: ranks of true cannot be copies of one process"),
        (&["--isolation", "thread", "true", ":", "true"], "the run has several programs"),
        (&["--gdb", "2", "true", ":", "true"], "--gdb: there is no rank 2; the last is 1"),
    ] {
        let (run, _) = run(arguments);
        run.ended(2, words);
    }
}

#[test]
fn jobs_run_as_if_alone_where_they_share_nothing() {
    let alltoall = plain("alltoall");
    let (alone, _) = run(&["-n", "3", alltoall.to_str().unwrap(), "9000"]);
    let file = jobs_file(
        "apart",
        &(job("a", &alltoall, "9000", "ranks = 3\nnodes = [4, 0, 2]\nuser = 7")
            + &job("b", &alltoall, "9000", "ranks = 3\nweight = 2")),
    );
    let (run, report) = run(&["--tag-output", "--jobs", file.to_str().unwrap()]);
    for name in ["a", "b"] {
        let lines: Vec<String> = (0..3).map(|rank| format!("[{name} {rank}] rank {rank}: ")).collect();
        let of_job = |line: &str| lines.iter().find_map(|start| line.strip_prefix(start.as_str()).map(str::to_owned));
        let times: Vec<String> = run.out.lines().filter_map(of_job).collect();
        let wanted: Vec<&str> = alone.out.lines().map(|line| line.split_once(": ").unwrap().1).collect();
        assert_eq!(times, wanted, "{name}: {}", run.out);
    }
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let facts =
        |job: &Value| json!([job["name"], job["user"], job["weight"], job["nodes"], job["end"]["how"], job["status"]]);
    let jobs: Vec<Value> = report["jobs"].as_array().unwrap().iter().map(facts).collect();
    assert_eq!(jobs[0], json!(["a", 7, 1, [4, 0, 2], "finished", 0]));
    assert_eq!((&jobs[1][2], &jobs[1][3]), (&json!(2), &json!([1, 3, 5])));
    assert_eq!(report["jobs"][0]["bytes_sent"], 3 * 3 * 9000);
}

#[test]
fn a_job_ends_alone() {
    let (ends, alltoall) = (program("ends"), plain("alltoall"));
    let file = jobs_file(
        "ends",
        &(job("crash", &ends, "abort", "ranks = 2")
            + &job("deadlock", &ends, "deadlock", "ranks = 2")
            + &job("late", &alltoall, "70000", "ranks = 3\nstart = \"40us\"")),
    );
    let (run, report) = run(&["--jobs", file.to_str().unwrap()]);
    assert_eq!(run.out.lines().filter(|line| line.contains(": done at 4")).count(), 3, "{}", run.out);
    assert!(run.err.contains("spinrun: job crash ("), "{}", run.err);
    assert!(run.err.contains("spinrun: job deadlock: deadlock at "), "{}", run.err);
    let hows: Vec<&Value> = report["jobs"].as_array().unwrap().iter().map(|job| &job["end"]["how"]).collect();
    assert_eq!(hows, ["rank-failed", "deadlock", "finished"]);
    let late = &report["jobs"][2];
    assert_eq!((late["start_ps"].as_u64(), &late["status"]), (Some(40_000_000), &json!(0)));
    assert!(late["end_ps"].as_u64() > Some(40_000_000));
    let first_failed = report["jobs"][0]["status"].as_i64().unwrap();
    assert_eq!(i64::from(run.status), first_failed);
}

/// Attempts of a hostile job. The victim's results and times are those that it has alone, and its canaries hold.
#[test]
fn a_hostile_job_reaches_nothing_of_another() {
    let (tenants, errors) = (program("tenants"), program("errors"));
    let victim = job("victim", &tenants, "victim", "ranks = 2\nnodes = [1, 3]\nuser = 1001");
    let file = jobs_file("victim", &victim);
    let (alone, report) = run(&["--jobs", file.to_str().unwrap()]);
    let alone = alone.ok();
    assert!(alone.starts_with("victim: 100 messages intact after "), "{alone}");
    let of_victim = |report: &Value| json!([report["jobs"][0], report["cards"][1], report["cards"][3]]);
    for (program, argument, told) in [
        // Two nodes belong to the victim; the network has no further ones.
        (&tenants, "ids", "ids: 4 violations, 40 undeliverable"),
        (&tenants, "map", "map: 4 violations, 40 undeliverable"),
        (&tenants, "handles", "handles: 1792 refused"),
        (&tenants, "exhaust", "exhaust: 64 portal table entries, "),
        (&tenants, "loop", "loop: the message fails with HANDLER_TIMEOUT"),
        (&tenants, "flood", "flood: sent"),
        (&errors, "payload\", \"poke", ""),
        (&errors, "payload\", \"peek", ""),
        (&errors, "payload\", \"wild-put", ""),
        (&errors, "payload\", \"wild-dma", ""),
    ] {
        let hostile = job("hostile", program, argument, "ranks = 2\nnodes = [0, 2]\nuser = 1002").replace("\\\"", "\"");
        let file = jobs_file("hostile", &(victim.clone() + &hostile));
        let (run, beside) = run(&["--jobs", file.to_str().unwrap()]);
        assert_eq!(run.status, 0, "{argument}: {}", run.err);
        let [own, others]: [Vec<&str>; 2] =
            [true, false].map(|is_own| run.out.lines().filter(|line| line.starts_with("victim: ") == is_own).collect());
        assert_eq!(own.join("\n"), alone.trim_end(), "{argument}");
        assert!(others.iter().any(|line| line.starts_with(told)), "{argument}: {others:?}");
        assert_eq!(of_victim(&beside), of_victim(&report), "{argument}");
    }
}

#[test]
fn processes_of_a_job_may_be_killed() {
    let alltoall = plain("alltoall");
    let file = jobs_file(
        "killed",
        &(job("a", &alltoall, "9000", "ranks = 3\nfail = [\"1@300ns\"]\nnodes = [4, 0, 2]")
            + &job("b", &alltoall, "9000", "ranks = 2")),
    );
    let (run, report) = run(&["--jobs", file.to_str().unwrap()]);
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.contains("rank 1 of job a: its process is killed at 300.000 ns"), "{}", run.err);
    let hows: Vec<&Value> = report["jobs"].as_array().unwrap().iter().map(|job| &job["end"]["how"]).collect();
    assert_eq!(hows, ["deadlock", "finished"]);
    assert_eq!(report["failures"]["deaths"][0], json!({ "rank": 0, "at_ps": 300_000, "victim": "process" }));
}

#[test]
fn recorded_computation_makes_runs_of_jobs_equal() {
    let alltoall = plain("alltoall");
    let jobs = job("a", &alltoall, "9000", "ranks = 2") + &job("b", &alltoall, "900", "ranks = 2\nnodes = [0, 1]");
    let file = jobs_file("computing", &jobs);
    let times = scratch().join("computing.json");
    let once = |how: &str| {
        let compute = format!("{how}:{}", times.display());
        let (run, report) = run(&["--compute", &compute, "--jobs", file.to_str().unwrap()]);
        assert_eq!(run.status, 0, "{}", run.err);
        (run.out, report)
    };
    let (_, recorded) = once("record");
    let first = once("perf");
    assert_eq!(first.1, recorded);
    assert_eq!(once("perf"), first);
    let (_, free) = run(&["--jobs", file.to_str().unwrap()]);
    assert_ne!(free["rank_end_ps"], recorded["rank_end_ps"]);
}

/// The run is the same in each detail, whatever the other jobs are.
#[test]
fn runs_of_jobs_are_equal() {
    let alltoall = plain("alltoall");
    let file = jobs_file(
        "equal",
        &(job("a", &alltoall, "5000", "ranks = 2") + &job("b", &alltoall, "100", "ranks = 5\nstart = \"300ns\"")),
    );
    let once = || run(&["--machine", "sc17-int", "--set", "network.model=fabric", "--jobs", file.to_str().unwrap()]);
    let ((first, report), (second, again)) = (once(), once());
    assert_eq!((first.status, first.out.lines().count()), (0, 7));
    assert_eq!((first.out, first.err, report), (second.out, second.err, again));
}

/// The command of the harness still passes a word that merely contains a colon.
#[test]
fn a_colon_within_a_word_is_no_separator() {
    let output = command("-n 1", Path::new("echo"), "a:b ::").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a:b ::\n");
}
