// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin run`: runs handlers on a card with a PsPIN unit, and shows the results.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use output::Scratch;
use pspin_nic::report::Report;

use super::options::Arguments;
use super::unit_machine::Unit;
use super::{alone, folder, table};
use command::sdk::Sdk;
use spincc::{Error, Result};

/// Runs the command. Returns true if no handler failed.
///
/// # Errors
/// When the program does not compile or does not fit, or a file cannot be read or written.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let sdk = Sdk::find()?;
    let unit = Unit::load(&sdk, &arguments.machine, &arguments.set)?;
    let is_folder = std::fs::metadata(&arguments.program).map_err(Error::read(&arguments.program))?.is_dir();
    let report = if is_folder { folder::run(arguments, &sdk, &unit)? } else { program(arguments, &sdk, &unit)? };
    show(&report, &unit, arguments.json.as_deref())?;
    Ok(arguments.expect_failures || report.faults + report.watchdog == 0)
}

/// Runs a program or a source.
fn program(arguments: &Arguments, sdk: &Sdk, unit: &Unit) -> Result<Report> {
    if !arguments.driver.is_empty() {
        return Err(Error::Usage("what follows -- is for drivers of folders; a program has none".to_owned()));
    }
    let room = Scratch::new("spinkit-pspin.").map_err(Error::write(&std::env::temp_dir()))?;
    let elf = match arguments.program.extension().and_then(|extension| extension.to_str()) {
        Some("c") => compile(
            &arguments.program,
            arguments.hpu.as_deref().unwrap_or("rv32imac").into(),
            &arguments.define,
            room.path(),
        )?,
        _ => arguments.program.clone(),
    };
    let elf = std::fs::read(&elf).map_err(Error::read(&elf))?;
    alone::run(arguments, sdk, unit, &elf)
}

/// Compiles a source for a kind of cores, with macros. Returns the program.
///
/// # Errors
/// When it does not compile.
pub fn compile(source: &Path, hpu: OsString, define: &[impl AsRef<OsStr>], room: &Path) -> Result<PathBuf> {
    let program = room.join("program.elf");
    let mut words: Vec<OsString> = vec!["--hpu".into(), hpu, "-O3".into(), "-g".into()];
    words.extend(define.iter().flat_map(|define| ["-D".into(), define.as_ref().to_owned()]));
    words.extend([source.into(), "-o".into(), program.clone().into()]);
    super::cc::compile(super::words::parse(words)?)?;
    Ok(program)
}

/// Compiles a source for this computer, with macros. Returns the executable.
///
/// # Errors
/// When it does not compile.
pub fn compile_native(source: &Path, define: &[impl AsRef<OsStr>]) -> Result<Vec<u8>> {
    let mut words: Vec<OsString> = vec!["-O3".into(), "-g".into()];
    words.extend(define.iter().flat_map(|define| ["-D".into(), define.as_ref().to_owned()]));
    words.extend([source.into(), "-o".into(), "program.elf".into()]);
    super::cc::native(&super::words::parse(words)?)
}

/// Writes the results: as JSON to a file, and as a table to standard output unless that is the file.
///
/// # Errors
/// When a file cannot be written.
pub fn show(report: &Report, unit: &Unit, json: Option<&Path>) -> Result<()> {
    let standard = Path::new("standard output");
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(report).expect("numbers and texts are JSON") + "\n";
        if path == Path::new("-") {
            return output::print(&text).map_err(Error::write(standard));
        }
        output::write(path, |out| out.write_all(text.as_bytes())).map_err(Error::write(path))?;
    }
    output::print(&table::text(report, unit)).map_err(Error::write(standard))
}
