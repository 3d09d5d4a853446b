// SPDX-License-Identifier: Apache-2.0
//! Start of the ranks, and the limits of the system.

use std::path::Path;
use std::process::Command;

use crate::harness::{Run, libraries, plain, scratch, spinrun};

/// Runs a program under spinrun, which may open `files` files.
fn limited(files: u32, options: &str, program: &Path, arguments: &str) -> Run {
    let script = format!("ulimit -n {files} && exec \"$0\" {options} \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_spinrun")]).arg(program).args(arguments.split_whitespace());
    let output = command.env("SPIN_LIBDIR", libraries()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Ranks that do not use PMI need no descriptors of spinrun's; a limit that others would exceed is reported before the
/// start.
#[test]
fn few_files_are_enough_for_many_ranks() {
    for start in ["exec", "fork"] {
        limited(40, &format!("-n 64 --start {start}"), &plain("alltoall"), "8").ok();
    }
    let shell = Path::new("/bin/sh");
    let few = limited(40, "-n 64", shell, "-c echo");
    assert_eq!((few.status, few.out.as_str()), (1, ""), "{}", few.err);
    for words in ["spinrun: error: 64 ranks need ", " open files (one each for PMI)", "(ulimit -n) is 40: raise it"] {
        assert!(few.err.contains(words), "{words:?} is not in {}", few.err);
    }
    limited(40, "-n 64 --tag-output --isolation process", &plain("alltoall"), "8")
        .ended(1, "open files (two each for tagged output)");
}

#[test]
fn the_user_is_told_how_ranks_start() {
    let told = |options: &str| spinrun(&format!("-v -n 4 --isolation process {options}"), &plain("alltoall"), "8").err;
    assert!(told("").contains("spinrun: ranks are copies of one process (--start fork)\n"));
    assert!(told("--start exec").contains("alltoall (--start exec): as --start exec asks\n"));
    assert!(told("--compute measured:1").contains("(--start exec): --compute measures CPU time from its beginning\n"));
    assert!(told("-x LD_DEBUG=unused").contains("(--start exec): LD_DEBUG is set\n"));
    let few = spinrun("-v -n 3 --isolation process", &plain("alltoall"), "8").err;
    assert!(few.contains("(--start exec): there are fewer than 4\n"), "{few}");
}

/// Ranks in spinrun's process need no descriptors; a chosen start needs processes.
#[test]
fn ranks_are_threads_unless_the_user_starts_processes() {
    limited(40, "-n 64 --tag-output", &plain("alltoall"), "8").ok();
    let told = |options: &str| spinrun(&format!("-v -n 4 {options}"), &plain("alltoall"), "8").err;
    assert!(told("").contains("spinrun: ranks are threads of the simulator (--isolation thread)\n"));
    let why = "spinrun: ranks are processes (--isolation process): --start is an option of processes\n";
    assert!(told("--start fork").contains(why));
    let refused = spinrun("-n 4 --start exec --isolation thread", &plain("alltoall"), "8");
    refused.ended(2, "cannot be threads: --start is an option of processes; use --isolation auto");
}

#[test]
fn ranks_that_cannot_be_copies_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let script = scratch().join("start-script");
    std::fs::write(&script, "#!/bin/sh\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = plain("alltoall");
    let refused = spinrun("-n 4 --start fork", &script, program.to_str().unwrap());
    refused.ended(
        2,
        "start-script cannot be copies of one process: it is no program that the system's loader starts; use",
    );
    let by_script = spinrun("-n 4", &script, &format!("{} 8", program.display())).ok();
    assert_eq!(by_script, spinrun("-n 4", &program, "8").ok());
}

/// Only rank 0 reads standard input.
#[test]
fn input_goes_to_rank_0() {
    for start in ["exec", "fork"] {
        let script = format!("printf 'a line' | \"$0\" -n 4 --start {start} --tag-output /bin/cat");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_spinrun")]).env("SPIN_LIBDIR", libraries());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{start}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "[0] a line\n", "{start}");
    }
}
