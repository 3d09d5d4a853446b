// SPDX-License-Identifier: Apache-2.0
//! HPU kinds: each is a folder of `sdk/device` with a `kind.toml`. All are linked with `sdk/device/layout.ld`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hpu::isa::{Isa, instruction_set};
use serde::Deserialize;

use super::{Error, Result};

/// `kind.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    description: String,
    compile_target: String,
    link_target: String,
    cpu: String,
    flags: Vec<String>,
    arch: String,
    program_bytes: u64,
    data_bytes: u64,
    stack_bytes: u64,
    #[serde(default)]
    on_request: bool,
}

/// One HPU kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Name of the folder, and of the kind in machine files.
    pub name: String,
    /// Instruction set of its cores, as in its name.
    pub isa: Arc<dyn Isa>,
    /// Description of one line.
    pub description: String,
    /// Compiler target for sources.
    pub compile_target: String,
    /// Compiler target for linking the device program.
    pub link_target: String,
    /// Value of `-mcpu`, for compiling and linking.
    pub cpu: String,
    /// Further flags of the compiler.
    pub flags: Vec<String>,
    /// Name of a header in `sdk/include/spin/arch`, without `.h`.
    pub arch: String,
    /// Largest size of code and constants, in bytes.
    pub program_bytes: u64,
    /// Largest size of static data, in bytes.
    pub data_bytes: u64,
    /// Size of a handler's stack, in bytes, unless a machine file changes it.
    pub stack_bytes: u64,
    /// Path of the linker script.
    pub script: PathBuf,
    /// Set if programs include code for it only when `--hpu` names it.
    pub on_request: bool,
}

/// Returns every installed kind, sorted by name.
///
/// # Errors
/// When a folder cannot be read, a `kind.toml` is malformed, or a name contains no instruction set.
pub fn installed(device_dir: &Path) -> Result<Vec<Kind>> {
    let entries = device_dir.read_dir().map_err(Error::read(device_dir))?;
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut kinds =
        folders.filter(|f| f.join("kind.toml").is_file()).map(|f| load(&f)).collect::<Result<Vec<Kind>>>()?;
    kinds.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(kinds)
}

/// Returns the kinds of `installed` that `--hpu` names, in the order of `installed`; without it, all but those on
/// request.
///
/// # Errors
/// When a named kind is not installed.
pub fn choose(installed: Vec<Kind>, wanted: Option<&[String]>) -> Result<Vec<Kind>> {
    let Some(wanted) = wanted else {
        return Ok(installed.into_iter().filter(|kind| !kind.on_request).collect());
    };
    if let Some(unknown) = wanted.iter().find(|name| !installed.iter().any(|k| k.name == **name)) {
        let names: Vec<String> = installed.iter().map(|k| format!("{} ({})", k.name, k.description)).collect();
        return Err(Error::Usage(format!("--hpu: no HPU kind '{unknown}'; installed: {}", names.join(", "))));
    }
    Ok(installed.into_iter().filter(|k| wanted.contains(&k.name)).collect())
}

fn load(folder: &Path) -> Result<Kind> {
    let path = folder.join("kind.toml");
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(&path).map_err(Error::read(&path))?;
    let file: File = toml::from_str(&text).map_err(|error| Error::malformed(&path, error.to_string().trim_end()))?;
    Ok(Kind {
        isa: instruction_set(&name).map_err(|error| Error::malformed(&path, error))?,
        name,
        description: file.description,
        compile_target: file.compile_target,
        link_target: file.link_target,
        cpu: file.cpu,
        flags: file.flags,
        arch: file.arch,
        program_bytes: file.program_bytes,
        data_bytes: file.data_bytes,
        stack_bytes: file.stack_bytes,
        script: folder.with_file_name("layout.ld"),
        on_request: file.on_request,
    })
}
