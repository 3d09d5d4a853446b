// SPDX-License-Identifier: Apache-2.0
//! Small C programs that run as ranks.
#![allow(dead_code)] // no test uses everything

use ranks::{Job, JobSpec, Pause};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Kinds of cards.
pub const CARDS: [&str; 3] = ["nic.kind=rdma", "nic.kind=portals4", "nic.kind=spin"];

/// Beginning of C programs that use Portals: an interface, an event queue, and a check of return codes.
pub const PORTALS: &str = r#"
    #include <pthread.h>
    #include <portals4.h>
    #include <spin.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #define CHECK(call) do { int rc = (call); if (rc) { \
        printf("line %d: %s is %d\n", __LINE__, #call, rc); exit(1); } } while (0)
    static ptl_handle_ni_t ni;
    static ptl_handle_eq_t eq;
"#;

/// A compiled C program.
pub struct Program {
    _folder: TempDir,
    pub path: PathBuf,
}

/// Returns the folder of `libportals.so` and `libsimclock.so`: that of this test's executable.
pub fn libraries() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Compiles a program against the SDK's headers and this build's library.
pub fn compile(source: &str) -> Program {
    compile_with(source, &[])
}

/// Compiles a program as above, with compiler options.
pub fn compile_with(source: &str, options: &[&str]) -> Program {
    let folder = TempDir::new().unwrap();
    let (file, path) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../sdk/include");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Werror", "-Wno-unused-result", "-pthread"])
        .args(options)
        .arg("-o")
        .args([&path, &file])
        .arg("-I")
        .arg(include)
        .arg("-L")
        .arg(libraries())
        // RPATH rather than RUNPATH: it precedes the LD_LIBRARY_PATH set by cargo, which may contain an older build.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", libraries().display()))
        .arg("-lportals")
        .status()
        .expect("a C compiler is there");
    assert!(status.success());
    Program { _folder: folder, path }
}

/// Returns a job specification with `ranks` processes of a program.
pub fn spec(program: &Program, ranks: usize) -> JobSpec {
    let program = program.path.clone().into();
    JobSpec { program, ranks, adapts_affinity: true, post_ahead: 16, ..JobSpec::default() }
}

/// Returns the exit code if a pause reports that a rank exited.
#[allow(dead_code, reason = "not every program that shares this module asks")]
pub fn exit_code(pause: Pause) -> Option<i32> {
    match pause {
        Pause::Exited { status, .. } => status.code(),
        other => panic!("expected an exit, not {other:?}"),
    }
}

/// Creates a job of a program.
pub fn job(program: &Program, ranks: usize) -> Job {
    Job::new(spec(program, ranks)).unwrap()
}

/// Results of a run on the default machine.
#[allow(dead_code, reason = "as above")]
pub struct Run {
    pub end: world::End,
    /// Simulated end time of each rank.
    pub ends: Vec<sim::Time>,
    pub warnings: Vec<String>,
}

/// Runs a job on the default machine.
#[allow(dead_code, reason = "as above")]
pub fn run(spec: JobSpec) -> Run {
    run_with(spec, &[])
}

/// Runs a job on the default machine with these parameter settings.
#[allow(dead_code, reason = "as above")]
pub fn run_with(spec: JobSpec, settings: &[&str]) -> Run {
    run_job(Job::new(spec).unwrap(), settings)
}

/// Runs a job on the default machine, at most until this real time.
#[allow(dead_code, reason = "as above")]
pub fn run_until(spec: JobSpec, deadline: std::time::Instant) -> Run {
    let mut job = Job::new(spec).unwrap();
    job.set_deadline(Some(deadline));
    run_job(job, &[])
}

fn run_job(job: Job, settings: &[&str]) -> Run {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let machine = machine::Machine::load("sc17-int", &[machines], &settings).unwrap();
    let warnings = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let heard = warnings.clone();
    let warn = Box::new(move |message: world::Message<'_>| {
        if let world::Message::Warning(text) = message {
            heard.borrow_mut().push(text.to_owned());
        }
    });
    let mut world =
        world::World::new(nic::CardModel::new(machine).unwrap(), job, sim::trace::Trace::off(), warn).unwrap();
    let end = world.run().unwrap();
    let (ends, warnings) = (world.rank_ends().collect(), warnings.take());
    Run { end, ends, warnings }
}

/// Output destination that the test can read.
#[allow(dead_code, reason = "not every test file writes output")]
#[derive(Clone, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    /// Returns the output so far.
    #[allow(dead_code, reason = "as above")]
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}
