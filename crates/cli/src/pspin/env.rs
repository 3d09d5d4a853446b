//! The environment in which programs for the published interface are built: folders in the layout that their Makefiles expect.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::sdk::Sdk;
use crate::spincc::{Error, Result};

/// Writes the folders into the user's cache, and prints the variables that name them.
///
/// # Errors
/// When a folder or the standard output cannot be written, or the library is missing.
pub fn print(sdk: &Sdk) -> Result<()> {
    let (runtime, hardware) = folders(sdk)?;
    let text = format!("export PSPIN_RT={}\nexport PSPIN_HW={}\n", quoted(&runtime), quoted(&hardware));
    output::print(&text).map_err(Error::write(Path::new("standard output")))
}

/// Writes the folders into the user's cache: what `PSPIN_RT` and `PSPIN_HW` name.
///
/// # Errors
/// When a folder cannot be written, or the library is missing.
pub fn folders(sdk: &Sdk) -> Result<(PathBuf, PathBuf)> {
    let (cache, source) = (sdk.cache_dir().join("pspin"), sdk.library_dir().join("pspin"));
    let (runtime, hardware) = (cache.join("rt"), cache.join("hw"));
    for part in ["rules", "runtime"] {
        link(&source.join("rt").join(part), &runtime.join(part))?;
    }
    let command = std::env::current_exe().map_err(Error::read(Path::new("/proc/self/exe")))?;
    let compiler = runtime.join("bin/pspin-cc");
    replace(&compiler, &format!("#!/bin/sh\nexec {} cc \"$@\"\n", quoted(&command)), 0o755)?;
    let model = hardware.join("verilator_model");
    link(&source.join("hw/verilator_model/include"), &model.join("include"))?;
    // A driver that is linked by these scripts keeps the whole path of the library, so that it needs no LD_LIBRARY_PATH. The
    // library knows by the name under which it was loaded that it is to write a timeline.
    let library = sdk.lib_dir()?.join("libpspin.so");
    let debug = model.join("debug/libpspin_debug.so");
    link(&library, &debug)?;
    for (name, target) in [("libpspin.so", &library), ("libpspin_debug.so", &debug)] {
        replace(&model.join("lib").join(name), &format!("INPUT(\"{}\")\n", target.display()), 0o644)?;
    }
    Ok((runtime, hardware))
}

/// Writes a file under another name and renames it, as make may be using the old one; a file that has the text stays.
fn replace(path: &Path, text: &str, mode: u32) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    make_parent(path)?;
    let fresh = path.with_extension(std::process::id().to_string());
    fs::write(&fresh, text).map_err(Error::write(&fresh))?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(mode)).map_err(Error::write(&fresh))?;
    fs::rename(&fresh, path).map_err(Error::write(path))
}

fn make_parent(path: &Path) -> Result<()> {
    let parent = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs::create_dir_all(&parent).map_err(Error::write(&parent))
}

/// Makes `path` a link to `target`, unless it is.
fn link(target: &Path, path: &Path) -> Result<()> {
    if fs::read_link(path).is_ok_and(|old| old == target) {
        return Ok(());
    }
    make_parent(path)?;
    let fresh = path.with_extension(std::process::id().to_string());
    symlink(target, &fresh).map_err(Error::write(&fresh))?;
    fs::rename(&fresh, path).map_err(Error::write(path))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}
