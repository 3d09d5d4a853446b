//! The environment in which handlers of a published program are built: a folder in the layout that its Makefile expects.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::sdk::Sdk;
use crate::spincc::{Error, Result};

/// Writes the folder into the user's cache, and prints the variable that names it.
///
/// # Errors
/// When a folder or the standard output cannot be written.
pub fn print(sdk: &Sdk) -> Result<()> {
    let folder = sdk.cache_dir().join("pspin/rt");
    let source = sdk.library_dir().join("pspin/rt");
    for part in ["rules", "runtime"] {
        link(&source.join(part), &folder.join(part))?;
    }
    let command = std::env::current_exe().map_err(Error::read(Path::new("/proc/self/exe")))?;
    let script = format!("#!/bin/sh\nexec {} cc \"$@\"\n", quoted(&command));
    let compiler = folder.join("bin/pspin-cc");
    make_parent(&compiler)?;
    // Written under another name and renamed, as make may be running it.
    let fresh = compiler.with_extension(std::process::id().to_string());
    fs::write(&fresh, script).map_err(Error::write(&fresh))?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o755)).map_err(Error::write(&fresh))?;
    fs::rename(&fresh, &compiler).map_err(Error::write(&compiler))?;
    let text = format!("export PSPIN_RT={}\n", quoted(&folder));
    std::io::stdout().write_all(text.as_bytes()).map_err(Error::write(Path::new("standard output")))
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
