// SPDX-License-Identifier: Apache-2.0
//! Build environment of programs for the published interface: folders in the layout that their Makefiles expect.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use output::Output;

use command::sdk::{Sdk, SdkError};
use spincc::{Error, Result};

/// Writes the folders into the user's cache, and prints the variables that name them.
///
/// # Errors
/// When a folder or the standard output cannot be written, or the library is missing.
pub fn print(sdk: &Sdk) -> Result<()> {
    let (runtime, hardware) = folders(sdk)?;
    let text = format!("export PSPIN_RT={}\nexport PSPIN_HW={}\n", quoted(&runtime), quoted(&hardware));
    output::print(&text).map_err(Error::write(Path::new("standard output")))
}

/// Writes the folders of `PSPIN_RT` and `PSPIN_HW` into the user's cache.
///
/// # Errors
/// When a folder cannot be written, or the library is missing.
pub fn folders(sdk: &Sdk) -> Result<(PathBuf, PathBuf)> {
    let cache = sdk.cache()?.for_make().and_then(|cache| cache.folder("pspin")).map_err(SdkError::from)?;
    let source = sdk.library_dir().join("pspin");
    let (runtime, hardware) = (cache.join("rt"), cache.join("hw"));
    for part in ["rules", "runtime"] {
        link(&source.join("rt").join(part), &runtime.join(part))?;
    }
    let command = std::env::current_exe().map_err(Error::read(Path::new("/proc/self/exe")))?;
    let compiler = runtime.join("bin/pspin-cc");
    replace(&compiler, &format!("#!/bin/sh\nexec {} cc \"$@\"\n", quoted(&command)), true)?;
    let model = hardware.join("verilator_model");
    link(&source.join("hw/verilator_model/include"), &model.join("include"))?;
    // A driver linked by these scripts keeps the full path of the library, so that it needs no LD_LIBRARY_PATH. The
    // library writes a timeline depending on the name under which it is loaded.
    let mut library = sdk.lib_dir()?.join("libpspin.so");
    if library.as_os_str().as_encoded_bytes().contains(&b'"') {
        // The scripts cannot write a quote.
        let plain = model.join("release/libpspin.so");
        link(&library, &plain)?;
        library = plain;
    }
    let debug = model.join("debug/libpspin_debug.so");
    link(&library, &debug)?;
    for (name, target) in [("libpspin.so", &library), ("libpspin_debug.so", &debug)] {
        replace(&model.join("lib").join(name), &format!("INPUT(\"{}\")\n", target.display()), false)?;
    }
    Ok((runtime, hardware))
}

/// Writes a file, unless it already has the text.
fn replace(path: &Path, text: &str, is_program: bool) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    make_parent(path)?;
    let write = |output: Output| output::complete(output, path, |out| out.write_all(text.as_bytes()));
    let made = if is_program { Output::create_program(path) } else { Output::create(path) };
    made.and_then(write).map_err(Error::write(path))
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs::create_dir_all(&parent).map_err(Error::write(&parent))
}

/// Makes `path` a link to `target`, unless it already is.
fn link(target: &Path, path: &Path) -> Result<()> {
    if fs::read_link(path).is_ok_and(|old| old == target) {
        return Ok(());
    }
    make_parent(path)?;
    let fresh = path.with_extension(std::process::id().to_string());
    symlink(target, &fresh).map_err(Error::write(&fresh))?;
    fs::rename(&fresh, path).map_err(Error::write(path))
}

/// Returns a path quoted for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}
