// SPDX-License-Identifier: Apache-2.0
//! Output files of commands: only regular files are replaced, and errors are reported before the work.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::harness::{command, home, libraries, plain, spinrun};

const NOBODY: u32 = 65534;

/// Returns one of the other commands.
fn tool(executable: &str, words: &[&str]) -> Command {
    let mut command = Command::new(executable);
    command.args(words).env("SPIN_LIBDIR", libraries());
    command
}

fn goal(words: &[&str]) -> Command {
    tool(env!("CARGO_BIN_EXE_spinkit-goal"), words)
}

/// Returns every command that writes a file, for the file `to`.
fn commands(folder: &Path, to: &str) -> Vec<Command> {
    let schedule = folder.join("ring.goal");
    fs::write(&schedule, "num_ranks 2\nrank 0 { send 8b to 1 }\nrank 1 { recv 8b from 0 }\n").unwrap();
    let source = folder.join("empty.c");
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let (schedule, source) = (schedule.to_str().unwrap(), source.to_str().unwrap());
    let spinrun = |option: &str| command(&format!("-n 4 {option} {to}"), &plain("alltoall"), "64");
    let traces = home().join("tests/traces/liballprof");
    vec![
        spinrun("--json"),
        spinrun("--trace"),
        goal(&["gen", "bcast", "-n", "4", "-o", to]),
        goal(&["convert", schedule, to, "--format", "binary"]),
        goal(&["run", schedule, "--json", to]),
        goal(&["run", schedule, "--trace", to]),
        goal(&["run", "packet", schedule, "--trace", to]),
        goal(&["run", "nic", schedule, "--trace", to]),
        goal(&["import", traces.to_str().unwrap(), "-o", to]),
        goal(&["import", traces.to_str().unwrap(), "--json", to]),
        tool(env!("CARGO_BIN_EXE_spincc"), &[source, "-o", to]),
        tool(env!("CARGO_BIN_EXE_spincc"), &["-c", source, "-o", to]),
    ]
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {err}");
    output
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("out");
    (folder, path)
}

#[test]
fn a_pipe_is_written_in_place_and_a_link_keeps_its_file() {
    let (folder, pipe) = folder();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (link, file) = (folder.path().join("link"), folder.path().join("file"));
    symlink("file", &link).unwrap();
    let to_link = commands(folder.path(), link.to_str().unwrap());
    for (mut command, mut to_link) in commands(folder.path(), pipe.to_str().unwrap()).into_iter().zip(to_link) {
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        run(&mut command);
        let through = reader.join().unwrap();
        assert!(!through.is_empty(), "{command:?}");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{command:?}");

        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        run(&mut to_link);
        assert_ne!(fs::read(&file).unwrap(), b"before", "{to_link:?}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o666, 0o640, "{to_link:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{to_link:?}");
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["empty.c", "file", "link", "out", "ring.goal"]);
}

#[test]
fn files_that_cannot_be_written_are_errors_before_the_work() {
    let (folder, file) = folder();
    fs::write(&file, "before").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let (file, missing) = (file.to_str().unwrap(), folder.path().join("no/out"));
    let all = commands(folder.path(), missing.to_str().unwrap()).into_iter().map(|command| (command, "No such file"));
    // Root may write everything; the user "nobody" may write neither the file nor other files in its folder.
    let as_nobody = commands(folder.path(), file).into_iter().take(8).map(|mut command| {
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        (command, "Permission denied")
    });
    for (mut command, reason) in all.chain(as_nobody) {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let err = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(1), "{command:?}: {err}");
        assert!(err.contains(reason) && err.contains("out"), "{command:?}: {err}");
        assert!(stdout.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&stdout));
    }
    assert_eq!(fs::read(file).unwrap(), b"before");
}

#[test]
fn standard_output_is_appended_to_its_file() {
    let (folder, file) = folder();
    let program = plain("alltoall");
    for name in ["-", "/dev/stdout", "/dev/stderr"] {
        let out = fs::File::create(&file).unwrap();
        let mut command = command(&format!("-n 4 --json {name}"), &program, "64");
        assert!(command.stdout(out.try_clone().unwrap()).stderr(out).status().unwrap().success());
        let text = fs::read_to_string(&file).unwrap();
        let (ranks, report) = text.split_at(text.find('{').unwrap());
        assert_eq!(ranks.matches(": done at ").count(), 4, "{name}: {text}");
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        assert_eq!(report["ranks"], 4);
    }
    drop(folder);
}

/// Returns a pipe without a reader.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// `… | head` and `… 2>&1 | head`: no command panics, and the remaining output has no message about the pipe.
#[test]
fn a_reader_that_stops_early_ends_a_command_quietly() {
    let (folder, out) = folder();
    let traces = home().join("tests/traces/liballprof");
    let traces = traces.to_str().unwrap();
    let schedule = folder.path().join("ring.goal");
    fs::write(&schedule, "num_ranks 2\nrank 0 { send 8b to 1 }\nrank 1 { recv 8b from 0 }\n").unwrap();
    let (schedule, program) = (schedule.to_str().unwrap(), plain("alltoall"));
    let (machines, pspin) = (env!("CARGO_BIN_EXE_spinkit-machines"), env!("CARGO_BIN_EXE_spinkit-pspin"));
    let spincc = env!("CARGO_BIN_EXE_spincc");
    let make = || {
        vec![
            command("--help", &program, ""),
            command("-n 4 -v", &program, "64"),
            command("-n 4 -v --json -", &program, "64"),
            command("-n 2 --no-such-option", &program, "64"),
            command("--machine sc18", &program, "64"),
            tool(spincc, &["--help"]),
            tool(spincc, &["--version"]),
            tool(spincc, &["--cflags"]),
            tool(spincc, &["no-such-source.c"]),
            tool(machines, &[]),
            tool(machines, &["sc17-int", "--json"]),
            tool(machines, &["sc18"]),
            tool(pspin, &["env"]),
            tool(pspin, &["--help"]),
            tool(pspin, &["run", "no-such-source.c"]),
            goal(&["gen", "bcast", "-n", "4", "-o", "-"]),
            goal(&["check", schedule]),
            goal(&["stats", schedule]),
            goal(&["show", schedule]),
            goal(&["run", schedule]),
            goal(&["run", "packet", schedule, "--json", "-"]),
            goal(&["import", traces, "--json", "-"]),
            goal(&["run", "no-such-schedule"]),
        ]
    };
    for (mut output, mut errors) in make().into_iter().zip(make()) {
        let left = output.stdout(closed()).output().unwrap().stderr;
        let left = String::from_utf8_lossy(&left);
        assert!(
            !left.contains("panicked") && !left.contains("pipe") && !left.contains("SIGPIPE"),
            "{output:?}: {left}"
        );
        let status = errors.stdout(Stdio::null()).stderr(closed()).status().unwrap();
        assert!(matches!(status.code(), Some(0..=2)), "{errors:?}: {status}");
    }
    drop(out);
}

/// Messages of the library do not end programs that ignore SIGPIPE, like Python.
#[test]
fn a_library_that_nobody_hears_goes_on() {
    assert_eq!(spinrun("-n 1", &plain("ends"), "unheard").status, 0);
}

/// Commands ignore a small stack limit (`ulimit -s`), and report a file size limit (`ulimit -f`) as an error that names
/// the file.
#[test]
fn limits_of_stack_and_files_do_not_crash() {
    let limited = |limit: &str, words: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {limit}; exec \"$0\" {words}"), env!("CARGO_BIN_EXE_spinrun")]);
        let Output { status, stderr, .. } = command.env("SPIN_LIBDIR", libraries()).output().unwrap();
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let (_folder, out) = folder();
    let program = plain("alltoall");
    assert_eq!(limited("-s 64", &format!("-n 4 {} 64", program.display())), (Some(0), String::new()));
    // The shared memory of a job exceeds this number of 512 B blocks.
    let (status, err) = limited("-f 8", &format!("--trace {} -n 4 {} 64", out.display(), program.display()));
    assert_eq!(status, Some(1), "{err}");
    assert!(err.contains("File too large"), "{err}");
}
