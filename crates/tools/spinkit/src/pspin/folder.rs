// SPDX-License-Identifier: Apache-2.0
//! Run of a folder in the layout of the published programs: its Makefile builds handlers and driver, and the driver
//! runs on `libpspin.so`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use output::Scratch;
use pspin_nic::report::Report;
use pspin_rtl::Wave;
use rustix::fs::{FlockOperation, flock};
use sim::Time;

use super::options::{Arguments, Engine};
use super::unit_machine::Unit;
use super::{env, mirror};
use command::sdk::{Sdk, SdkError};
use spincc::{Error, Result};

/// Builds the folder and runs its driver. Returns the report.
///
/// # Errors
/// When the folder does not build, an option does not apply to folders, or the driver fails.
pub fn run(arguments: &Arguments, sdk: &Sdk, unit: &Unit) -> Result<Report> {
    let (options, wave) = (driver_options(arguments, unit)?, arguments.wave()?);
    let source = arguments.program.canonicalize().map_err(Error::read(&arguments.program))?;
    if !source.join("Makefile").is_file() {
        let reason = "it has no Makefile; a folder has Makefile, handlers and driver";
        return Err(Error::malformed(&arguments.program, reason));
    }
    let (runtime, hardware) = env::folders(sdk)?;
    let built = build(arguments, sdk, &source, &[("PSPIN_RT", &runtime), ("PSPIN_HW", &hardware)])?;
    let room = Scratch::new("spinkit-pspin.").map_err(Error::write(&std::env::temp_dir()))?;
    let json = room.path().join("report.json");
    let mut command = Command::new(&built.driver);
    command.args(options).current_dir(&built.folder);
    command.env("PSPIN_RT", &runtime).env("PSPIN_HW", &hardware);
    command.env("SPINKIT_PSPIN_MACHINE", machine(&arguments.machine)).env("SPINKIT_PSPIN_JSON", &json);
    command.env("SPINKIT_PSPIN_SET", arguments.set.join("\n"));
    command.env("SPINKIT_PSPIN_ENGINE", if arguments.engine == Engine::Rtl { "rtl" } else { "model" });
    if let Some(Wave { file, cycles: Range { start, end } }) = wave {
        command.env("SPINKIT_PSPIN_WAVE", file).env("SPINKIT_PSPIN_WAVE_CYCLES", format!("{start}..{end}"));
    }
    if let Some(path) = &arguments.trace {
        command.env("SPINKIT_PSPIN_TRACE", std::path::absolute(path).map_err(Error::write(path))?);
    }
    if arguments.json.as_deref() == Some(Path::new("-")) {
        command.stdout(std::io::stderr());
    }
    let name = built.driver.display().to_string();
    let status = command.status().map_err(|source| Error::Start { program: name.clone(), source })?;
    if !status.success() {
        return Err(Error::malformed(&arguments.program, format!("its driver ended with {status}")));
    }
    let missing = "its driver has run nothing: it did not call pspinsim_run() and pspinsim_fini()";
    let text = fs::read(&json).map_err(|_| Error::malformed(&arguments.program, missing))?;
    serde_json::from_slice(&text).map_err(|error| Error::malformed(&json, error))
}

/// Returns the name of a machine, or its file as a path valid in every folder.
fn machine(name: &str) -> OsString {
    let path = Path::new(name);
    let is_file = path.components().count() > 1 || path.extension().is_some_and(|extension| extension == "toml");
    let absolute = is_file.then(|| std::path::absolute(path).ok()).flatten();
    absolute.map_or_else(|| name.into(), PathBuf::into_os_string)
}

/// Returns the options of the driver: those of the generic driver for the packets, and those after `--`.
fn driver_options(arguments: &Arguments, unit: &Unit) -> Result<Vec<OsString>> {
    let (load, context) = (&arguments.load, &arguments.context);
    let refused = [
        ("--pcap", load.pcap.is_some()),
        ("--rules", load.rules.is_some()),
        ("--flows", load.flows.is_some()),
        ("--seed", load.seed.is_some()),
        ("--link", load.link.is_some()),
        ("--out", arguments.out.is_some()),
        ("--size with several sizes", load.size.len() > 1),
        ("--handlers", context.handlers.is_some()),
        ("--handler-memory", context.handler_memory.is_some()),
        ("--scratchpad", context.scratchpad.is_some()),
        ("--host-memory", context.host_memory.is_some()),
        ("--watchdog", context.watchdog.is_some()),
    ];
    if let Some((option, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        let text =
            format!("{option} is for programs; {} is a folder, whose driver decides that", arguments.program.display());
        return Err(Error::Usage(text));
    }
    let cycles = |time: Time| unit.clock.cycles(time).to_string();
    let generic = [
        ("-m", load.messages.map(|count| count.to_string())),
        ("-p", load.packets.map(|count| count.to_string())),
        ("-s", load.size.first().map(|size| size.to_string())),
        ("-d", load.gap.map(cycles)),
        ("-l", load.message_gap.map(cycles)),
    ];
    let mut options = Vec::new();
    for (option, value) in generic {
        if let Some(value) = value {
            options.extend([option.into(), value.into()]);
        }
    }
    options.extend(arguments.driver.iter().cloned());
    Ok(options)
}

/// Built folder.
struct Built {
    folder: PathBuf,
    driver: PathBuf,
}

/// Builds a copy of a folder, so that runs for several kinds of cores may proceed concurrently, and the folder may be
/// read-only. The copy is kept: `make` builds only changes.
fn build(arguments: &Arguments, sdk: &Sdk, source: &Path, variables: &[(&str, &PathBuf); 2]) -> Result<Built> {
    let (Some(name), Some(parent)) = (source.file_name(), source.parent()) else {
        return Err(Error::malformed(source, "it is no folder of a program"));
    };
    let definitions = definitions(arguments, source)?;
    let mut hasher = DefaultHasher::new();
    (source, &arguments.hpu, &definitions).hash(&mut hasher);
    let room = format!("pspin/build/{:016x}", hasher.finish());
    let room = sdk.cache()?.for_make().and_then(|cache| cache.folder(room)).map_err(SdkError::from)?;
    let folder = room.join(name);
    // Another run of the same folder waits until this one has built it.
    let lock = File::open(&room).map_err(Error::read(&room))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| Error::write(&room)(error.into()))?;
    neighbours(parent, name, &room)?;
    mirror::update(source, &folder, &room.with_extension("files"))?;
    let mut make = Command::new("make");
    make.arg("--silent").arg("-C").arg(&folder).args(["deploy", "driver"]);
    if let Some(kind) = &arguments.hpu {
        make.arg(format!("SPIN_HPU={kind}"));
    }
    if let Some(text) = definitions {
        make.env("DEFINITIONS", text);
    }
    make.env_remove("MAKEFLAGS").envs(variables.iter().copied()).stdout(Stdio::null());
    let status = make.status().map_err(|source| Error::Start { program: "make".to_owned(), source })?;
    if !status.success() {
        return Err(Error::malformed(source, "it does not build"));
    }
    let driver = drivers(&folder)?;
    Ok(Built { folder, driver })
}

/// Returns the macros of `-D`, after those of the environment, for a Makefile that reads them as `sdk/handlers/pspin`
/// do.
fn definitions(arguments: &Arguments, source: &Path) -> Result<Option<OsString>> {
    let environment = std::env::var_os("DEFINITIONS");
    if arguments.define.is_empty() {
        return Ok(environment);
    }
    let makefile = source.join("Makefile");
    let text = fs::read_to_string(&makefile).map_err(Error::read(&makefile))?;
    if !text.contains("$(DEFINITIONS)") {
        let reason =
            "-D is for sources, and for folders whose Makefile compiles with $(DEFINITIONS); this one does not";
        return Err(Error::Usage(format!("{}: {reason}", makefile.display())));
    }
    let mut all = environment.unwrap_or_default();
    for define in &arguments.define {
        all.push(format!(" -D{define}"));
    }
    Ok(Some(all))
}

/// Links the neighbours of a folder, such as `../generic_driver`, next to its copy.
fn neighbours(parent: &Path, name: &OsStr, room: &Path) -> Result<()> {
    for entry in fs::read_dir(parent).map_err(Error::read(parent))? {
        let entry = entry.map_err(Error::read(parent))?;
        let link = room.join(entry.file_name());
        if entry.file_name() != name && fs::symlink_metadata(&link).is_err() {
            symlink(entry.path(), &link).map_err(Error::write(&link))?;
        }
    }
    Ok(())
}

/// Returns the built driver.
fn drivers(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(Error::read(folder))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            mirror::is_driver(path) && !name.ends_with("_debug")
        })
        .collect();
    found.sort();
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(Error::malformed(folder, "make driver has built no sim_NAME")),
        _ => Err(Error::malformed(folder, "make driver has built several sim_NAME; one is expected")),
    }
}
