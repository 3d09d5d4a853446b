// SPDX-License-Identifier: Apache-2.0
//! Harness that builds the programs of `tests/programs` and runs them under `spinrun`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

/// Returns the root of the checkout.
pub fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// Returns the text of a source of `tests/programs`.
pub fn source(name: &str) -> String {
    std::fs::read_to_string(home().join("tests/programs").join(name)).unwrap()
}

/// Returns the folder into which cargo writes `libportals.so` and `libsimclock.so`: that of this test's executable.
pub fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Returns a folder for the outputs of tests.
pub fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("spinrun");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Makes a file once per run of the tests, shared by all tests that need it.
fn once(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, &'static OnceLock<PathBuf>>> = Mutex::new(BTreeMap::new());
    let made = *MADE.lock().unwrap().entry(name.into()).or_insert_with(|| Box::leak(Box::default()));
    made.get_or_init(|| {
        let path = scratch().join(name);
        make(&path);
        path
    })
    .clone()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command:?}: {}", text(&output.stderr));
}

/// Compiles `source` with spincc and these options.
pub fn spincc(source: &Path, options: &[&str], to: &Path) {
    let options = ["-O2", "-g", "-Wall", "-Wextra", "-Werror"].iter().chain(options);
    let mut command = Command::new(env!("CARGO_BIN_EXE_spincc"));
    run(command.args(options).arg(source).arg("-o").arg(to).env("SPIN_LIBDIR", libraries()));
}

/// Compiles a program of `tests/programs` with spincc.
pub fn program(name: &str) -> PathBuf {
    once(name, |path| spincc(&home().join("tests/programs").join(name).with_extension("c"), &[], path))
}

/// Compiles a program of `tests/programs` without handlers like any Portals program.
pub fn plain(name: &str) -> PathBuf {
    once(name, |path| {
        let library = libraries();
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"]);
        command.arg(home().join("tests/programs").join(name).with_extension("c")).arg("-o").arg(path);
        command.arg("-I").arg(home().join("sdk/include")).arg("-L").arg(&library);
        run(command.arg(format!("-Wl,-rpath,{}", library.display())).arg("-lportals"));
    })
}

/// Compiles a program of `tests/programs` that links no library of the toolkit.
pub fn without_portals(name: &str) -> PathBuf {
    once(name, |path| {
        let source = home().join("tests/programs").join(name).with_extension("c");
        run(Command::new("cc")
            .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"])
            .arg(source)
            .arg("-o")
            .arg(path));
    })
}

/// Compiles the program of the ping-pong experiment.
pub fn ping_pong() -> PathBuf {
    once("ping-pong", |path| spincc(&home().join("experiments/sc17/ping-pong/ping-pong.c"), &[], path))
}

/// Compiles the program of the accumulate experiment.
pub fn accumulate() -> PathBuf {
    once("accumulate", |path| spincc(&home().join("experiments/sc17/accumulate/accumulate.c"), &[], path))
}

/// Compiles the program of the broadcast experiment.
pub fn broadcast() -> PathBuf {
    once("broadcast", |path| spincc(&home().join("experiments/sc17/broadcast/broadcast.c"), &[], path))
}

/// Results of a run.
pub struct Run {
    /// Exit status of spinrun.
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// Returns the standard output of a run that must succeed without messages.
    pub fn ok(self) -> String {
        assert!(self.status == 0 && self.err.is_empty(), "status {}: {}{}", self.status, self.out, self.err);
        self.out
    }

    /// Returns the standard output of a run that must succeed with a warning about lost messages.
    pub fn lossy(self) -> String {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        let is_told = |line: &str| {
            line.starts_with("spinrun: warning: ") && (line.contains(" lost ") || line.contains("flow control"))
        };
        assert!(!self.err.is_empty() && self.err.lines().all(is_told), "{}", self.err);
        self.out
    }

    /// Returns the lines of one rank, without their prefix, of a program that starts each with `rank N: `.
    pub fn rank(&self, rank: u32) -> Vec<&str> {
        let mark = format!("rank {rank}: ");
        self.out.lines().filter_map(|line| line.strip_prefix(&mark)).collect()
    }

    /// Checks that the run ended with this status and these words on standard error.
    pub fn ended(&self, status: i32, words: &str) {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        assert!(self.err.contains(words), "{:?} is not in {}", words, self.err);
    }
}

/// Returns the command that runs `program`; options and arguments are separated by blanks.
pub fn command(options: &str, program: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinrun"));
    command.args(options.split_whitespace()).arg(program).args(arguments.split_whitespace());
    command.env("SPIN_LIBDIR", libraries());
    command
}

/// Runs `program` under spinrun.
pub fn spinrun(options: &str, program: &Path, arguments: &str) -> Run {
    let Output { status, stdout, stderr } = command(options, program, arguments).output().unwrap();
    Run { status: status.code().expect("spinrun ends by itself"), out: text(&stdout), err: text(&stderr) }
}

/// Runs `program` under spinrun. Also returns the report.
pub fn reported(options: &str, program: &Path, arguments: &str) -> (Run, serde_json::Value) {
    let report = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    let options = format!("{options} --json {}", report.path().display());
    let run = spinrun(&options, program, arguments);
    let json = std::fs::read_to_string(report.path()).unwrap();
    (run, serde_json::from_str(&json).expect("the report is JSON"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
