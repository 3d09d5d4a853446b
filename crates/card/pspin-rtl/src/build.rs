// SPDX-License-Identifier: Apache-2.0
//! Builds the library of a design with Verilator, once for each configuration and version of the sources.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use machine::{Accelerator, Machine};
use output::{Cache, is_whole, seal};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::RtlError;
use crate::tools::{self, Tools};
use crate::training;

/// Design to be simulated.
#[derive(Clone, Debug)]
pub struct Design {
    /// Machine name, used in diagnostics and for the build directory.
    pub name: String,
    /// Top module.
    pub top: String,
    /// Generated files: names and contents.
    pub generated: Vec<(String, String)>,
    /// Files with modules that no other module instantiates, besides the top: bound modules. Relative to `rtl/`.
    pub bound: Vec<&'static str>,
    /// Set to share the code of a cluster and of an HPU among all instances.
    pub is_shared: bool,
    /// Set to check assertions and to randomize state without reset.
    pub is_checked: bool,
    /// Set to support waveforms, which makes the simulator slower.
    pub is_traced: bool,
    /// Set to compile twice, the second time with a profile (not with waveforms): a longer build, a faster simulator.
    pub is_profiled: bool,
}

/// Returns the reason for which the hardware cannot simulate a unit, if it lacks a feature.
pub fn refusal(unit: &machine::Pspin) -> Option<String> {
    use machine::{Scheduler, Sharing};
    let Sharing { scheduler, fragment, .. } = &unit.sharing;
    let (key, value) = match (scheduler, fragment) {
        (Some(other), _) if *other != Scheduler::RoundRobin => ("scheduler", other.name().to_owned()),
        (_, Some(bytes)) => ("fragment_bytes", bytes.to_string()),
        _ => return None,
    };
    Some(format!(
        "accelerator.sharing.{key}={value}: the engine rtl serves message queues in turn and moves data whole; remove the key, or \
         use the engine model"
    ))
}

impl Design {
    /// Returns the unit of a machine, with observers; `None` when the machine has none.
    pub fn unit(machine: &Machine) -> Option<Design> {
        let generated = machine.systemverilog()?;
        let Accelerator::Pspin(unit) = &machine.accelerator else { return None };
        let hpus = unit.units.clusters * unit.units.hpus;
        Some(Design {
            name: machine.name.clone(),
            top: "pspin_harness".to_owned(),
            generated: generated.into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
            bound: OBSERVERS.to_vec(),
            is_shared: hpus > MOST_FLAT,
            is_checked: false,
            is_traced: false,
            is_profiled: hpus > MOST_PLAIN,
        })
    }
}

/// Largest number of HPUs with separate code: Verilator optimizes that more, but for more HPUs it compiles too long and
/// exceeds the processor's caches.
const MOST_FLAT: u32 = 4;
/// Largest number of HPUs compiled without a profile: such units are fast enough, and their tests are short.
const MOST_PLAIN: u32 = 8;
/// Additional sources of a design with shared code: Verilator directives for modules, and a clock gate.
const SHARED_FILES: [&str; 2] = ["tests/harness/shared.vlt", "tests/harness/pspin_gate.sv"];

/// Observers that report the events of a unit and its instructions.
const OBSERVERS: [&str; 4] = [
    "observe/pspin_observe_csched.sv",
    "observe/pspin_observe_driver.sv",
    "observe/pspin_observe_unit.sv",
    "observe/pspin_retire.sv",
];

/// Verilator flags of all designs.
const FLAGS: &[&str] = &[
    "--cc",
    "--lib-create",
    LIBRARY,
    "--prefix",
    "Vdesign",
    "--no-timing",
    "--output-split",
    "20000",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
];
/// Verilator flags for instances: flatten everything into one module; or keep modules apart, and disable optimizations
/// that put names or constants of one instance into the shared code.
const FLAT: &[&str] = &["-O3"];
const SHARED: &[&str] = &["-fno-dfg", "-fno-table"];
/// Verilator flags for speed or for checks.
const FAST: &[&str] = &["--noassert", "--x-assign", "fast", "--x-initial", "fast"];
const CHECKED: &[&str] = &["--assert", "--x-assign", "unique", "--x-initial", "unique"];
/// Verilator flags for waveforms: all signals, structures by member.
const TRACED: &[&str] = &["--trace-vcd", "--trace-structs"];
/// Options of the C++ compiler. Symbols stay hidden, so that several libraries can be open.
const CXX: &str = "-fPIC -fvisibility=hidden -fvisibility-inlines-hidden -DVL_USER_FATAL";
/// Variables of Verilator's Makefiles: a flag that its package leaves empty, and optimization of code that does not run
/// every cycle.
const MAKE: [&str; 3] = ["CFG_CXXFLAGS_PCH_I=-include", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"];
/// Optimization of code that runs every cycle: without a profile, collecting one, and with one. The harness calls the
/// function.
const PLAIN: &[&str] = &["OPT_FAST=-O2"];
const COUNTING: &[&str] = &["OPT_FAST=-O2 -fprofile-generate", "LDFLAGS=-Wl,-u,__gcov_dump"];
const PROFILED: &[&str] = &["OPT_FAST=-O2 -fprofile-use -Wno-missing-profile"];
/// Name of the Makefile.
const MAKEFILE: &str = "Vdesign.mk";
/// Name of the library, without `lib` and `.so`.
const LIBRARY: &str = "pspin_rtl";
/// Folders of `rtl/` whose files belong to every design, and the harness.
const FOLDERS: [&str; 3] = ["core", "src", "tests/harness"];

/// Returns the library of a design, and builds it when `cache` has none for these sources. `home` contains the folder
/// `rtl`; `say` reports the start of a build and the wait for another process with the same build.
///
/// # Errors
/// When tools or sources are missing, or the build fails.
pub fn build(home: &Path, cache: &Cache, design: &Design, say: impl Fn(&str)) -> Result<PathBuf, RtlError> {
    let rtl = home.join("rtl");
    if !rtl.join("src").is_dir() {
        return Err(RtlError::NoSources(rtl));
    }
    let tools = Tools::find(home)?;
    let key = key(&rtl, &tools, design)?;
    let parent = cache.folder("rtl")?;
    let folder = parent.join(format!("{}-{key:016x}", design.name));
    let library = folder.join(file_name());
    if is_whole(&library) {
        return Ok(library);
    }
    // Other processes with the same build wait here. Compilers that outlive this process keep the lock.
    let lock = parent.join(format!(".{}-{key:016x}.lock", design.name));
    let failed = |error: rustix::io::Errno| RtlError::File(lock.clone(), error.into());
    let held = File::create(&lock).map_err(|error| RtlError::File(lock.clone(), error))?;
    fcntl_setfd(&held, FdFlags::empty()).map_err(failed)?;
    if flock(&held, FlockOperation::NonBlockingLockExclusive).is_err() {
        say(&format!("waiting for another process, which builds the hardware of {}", design.name));
        flock(&held, FlockOperation::LockExclusive).map_err(failed)?;
    }
    if is_whole(&library) {
        return Ok(library);
    }
    tools.check()?;
    say(&format!("building the hardware of {}, once for this configuration", design.name));
    let room = parent.join(format!(".{}-{key:016x}", design.name));
    let log = parent.join(format!("{}-{key:016x}.log", design.name));
    // Remains of an unfinished build.
    remove(&room)?;
    fs::create_dir(&room).map_err(|error| RtlError::File(room.clone(), error))?;
    let built = make(&rtl, &tools, design, &room, &log, &say).and_then(|()| {
        // Keep only the library: objects take many times its room.
        let kept = room.join("kept");
        let built = room.join("design").join(file_name());
        fs::create_dir(&kept).map_err(|error| RtlError::File(kept.clone(), error))?;
        fs::rename(&built, kept.join(file_name())).map_err(|error| RtlError::File(built, error))?;
        seal(&kept.join(file_name())).map_err(|error| RtlError::File(kept.clone(), error))?;
        remove(&folder)?;
        fs::rename(&kept, &folder).map_err(|error| RtlError::File(folder, error))
    });
    remove(&room)?;
    built.map(|()| library)
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> Result<(), RtlError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RtlError::File(folder.to_owned(), error)),
        _ => Ok(()),
    }
}

fn file_name() -> String {
    format!("lib{LIBRARY}.so")
}

/// Returns a hash of everything that the library depends on.
fn key(rtl: &Path, tools: &Tools, design: &Design) -> Result<u64, RtlError> {
    let mut hasher = DefaultHasher::new();
    let Design { top, generated, bound, is_shared, is_checked, is_traced, is_profiled, name: _ } = design;
    (top, bound, is_shared, is_checked, is_traced, is_profiled, tools.version()).hash(&mut hasher);
    (FLAGS, FLAT, SHARED, FAST, CHECKED, TRACED, CXX, MAKE).hash(&mut hasher);
    (PLAIN, COUNTING, PROFILED, training::VERSION).hash(&mut hasher);
    let mut files = bound.iter().map(|file| rtl.join(file)).collect();
    for folder in FOLDERS {
        list(&rtl.join(folder), &mut files)?;
    }
    files.sort();
    let mut words = HashSet::new();
    for file in files {
        file.strip_prefix(rtl).unwrap_or(&file).hash(&mut hasher);
        let text = fs::read_to_string(&file).map_err(|error| RtlError::File(file.clone(), error))?;
        text.hash(&mut hasher);
        words.extend(text.split(is_no_letter).map(str::to_owned));
    }
    for (name, text) in generated {
        name.hash(&mut hasher);
        decisive(text, &words).for_each(|line| line.hash(&mut hasher));
    }
    Ok(hasher.finish())
}

fn is_no_letter(letter: char) -> bool {
    !letter.is_alphanumeric() && letter != '_'
}

/// Returns the lines of a package, without constants that appear neither in the `words` of the sources nor in another
/// line: those describe the surroundings of the hardware.
fn decisive<'a>(package: &'a str, words: &HashSet<String>) -> impl Iterator<Item = &'a str> {
    package.lines().filter(move |line| {
        let constant = line.trim_start().strip_prefix("localparam ").and_then(|rest| rest.split(" =").next());
        constant.and_then(|constant| constant.split_whitespace().last()).is_none_or(|name| {
            words.contains(name) || package.split(is_no_letter).filter(|word| *word == name).count() > 1
        })
    })
}

/// Adds the files in a folder and below it.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), RtlError> {
    let failed = |error| RtlError::File(folder.to_owned(), error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => list(&path, files)?,
            Some("sv" | "cpp" | "vlt" | "py" | "sha256") => files.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Generates the core from its package, and runs Verilator and the C++ compiler in `room`.
fn make(
    rtl: &Path,
    tools: &Tools,
    design: &Design,
    room: &Path,
    log: &Path,
    say: impl Fn(&str),
) -> Result<(), RtlError> {
    let file = |path: &Path, error| RtlError::File(path.to_owned(), error);
    let output = File::create(log).map_err(|error| file(log, error))?;
    let core = room.join("core");
    run(Command::new(tools.python()).arg(rtl.join("core/prepare.py")).arg(&core), &output, log)?;
    let mut verilator = Command::new(tools.verilator().join("bin/verilator"));
    verilator.current_dir(room).args(FLAGS).args(if design.is_checked { CHECKED } else { FAST });
    if design.is_traced {
        verilator.args(TRACED);
    }
    verilator.args(if design.is_shared { SHARED } else { FLAT });
    verilator.args(["--top-module", &design.top, "-Mdir", "design", "-CFLAGS", CXX]);
    verilator.arg(rtl.join("tests/harness/public.vlt")).arg(rtl.join("src/pspin_pkg.sv"));
    // The core uses another name for the module of this file.
    verilator.arg(rtl.join("src/common/pspin_clock_gate.sv"));
    for (name, text) in &design.generated {
        let path = room.join(name);
        fs::write(&path, text).map_err(|error| file(&path, error))?;
        verilator.arg(path);
    }
    if design.is_shared {
        verilator.args(SHARED_FILES.map(|file| rtl.join(file)));
    }
    let mut folders: Vec<PathBuf> = fs::read_dir(rtl.join("src"))
        .map_err(|error| file(&rtl.join("src"), error))?
        .filter_map(|entry| Some(entry.ok()?.path()).filter(|path| path.is_dir()))
        .collect();
    folders.sort();
    for folder in folders.iter().chain([&rtl.join("tests/harness")]) {
        verilator.arg("-y").arg(folder);
    }
    verilator.arg("-f").arg(core.join("files.f")).arg(rtl.join(format!("tests/harness/{}.sv", design.top)));
    verilator.args(design.bound.iter().map(|bound| rtl.join(bound))).arg(rtl.join("tests/harness/harness.cpp"));
    let call = |command: &mut Command| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([tools.bin()].into_iter().chain(std::env::split_paths(&path)));
        command.env("VERILATOR_ROOT", tools.verilator()).env_remove("MAKEFLAGS").env("PATH", path.unwrap_or_default());
        run(command, &output, log)
    };
    call(&mut verilator)?;
    let folder = room.join("design");
    let compile = |variables: &[&str]| {
        let mut make = Command::new("make");
        call(make.current_dir(&folder).args(["-j", "2", "-f", MAKEFILE]).args(MAKE).args(variables))
    };
    if !design.is_profiled || design.is_traced {
        return compile(PLAIN);
    }
    if !tools::is_gcc() {
        say("the C++ compiler is not gcc, so the simulator is compiled without a profile, and is slower");
        return compile(PLAIN);
    }
    compile(COUNTING)?;
    training::run(&folder.join(file_name()))?;
    forget(&folder)?;
    compile(PROFILED)
}

/// Removes the instrumented objects, so that they are compiled again; the counts stay.
fn forget(folder: &Path) -> Result<(), RtlError> {
    let failed = |error| RtlError::File(folder.to_owned(), error);
    let mut has_counts = false;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(unit) = name.strip_suffix(".gcda") {
            has_counts = true;
            fs::remove_file(folder.join(format!("{unit}.o"))).map_err(failed)?;
        } else if name.ends_with(".fast.gch") {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    if has_counts {
        Ok(())
    } else {
        Err(RtlError::Library(folder.join(file_name()), "it has counted nothing".to_owned()))
    }
}

/// Runs a program with its output in the log.
fn run(command: &mut Command, output: &File, log: &Path) -> Result<(), RtlError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error| RtlError::File(PathBuf::from(&name), error);
    command.stdin(Stdio::null());
    command.stdout(output.try_clone().map_err(failed)?).stderr(output.try_clone().map_err(failed)?);
    let status = command.status().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|line| line.contains("rror")).take(10).collect();
    Err(RtlError::Build(log.to_owned(), if errors.is_empty() { status.to_string() } else { errors.join("\n") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_that_nothing_reads_decide_nothing() {
        let package = "package p;\n  localparam int unsigned A = 1;  // a\n  localparam bit B = 1'b1;\n  localparam int C = D + 1;\n  \
                       localparam int D = 2;\nendpackage\n";
        let words = HashSet::from(["C".to_owned()]);
        let lines: Vec<&str> = decisive(package, &words).map(str::trim).collect();
        assert_eq!(lines, ["package p;", "localparam int C = D + 1;", "localparam int D = 2;", "endpackage"]);
    }
}
