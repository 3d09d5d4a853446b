// SPDX-License-Identifier: Apache-2.0
//! libfabric provider over the simulated card, through which MPIs that use libfabric run unmodified.
//!
//! Its sources are part of the SDK (`sdk/ofi`) and are compiled like a user's program, once for each version of its
//! inputs. The ranks' variables always name its folder, so that an MPI loaded by an interpreter finds it, too; it is
//! built when the program links libfabric, or when the first rank that has loaded it speaks PMI.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use output::{Cache, CacheError, is_whole, seal};
use rustix::fs::{FlockOperation, flock};

use command::listable::Listable;
use command::progress;
use command::sdk::{Sdk, SdkError};

/// Name that libfabric looks for in the folders of `FI_PROVIDER_PATH`: `lib`, the provider's name and `-fi.so`.
const LIBRARY: &str = "libspin-fi.so";
/// Cache folder of all providers.
const FOLDER: &str = "ofi";
/// Inputs of the library, besides the compiler: folders of the SDK.
const PARTS: [&str; 3] = ["sdk/ofi", "sdk/include", "sdk/device"];
/// Variable with the folders in which libfabric looks for providers.
pub const PATH: &str = "FI_PROVIDER_PATH";
const FLAGS: [&str; 4] = ["-O2", "-fPIC", "-fvisibility=hidden", "-shared"];

/// Provider of this SDK, built or not.
pub struct Provider {
    sources: Vec<PathBuf>,
    compiler: PathBuf,
    /// Cache and its folder of providers, or the reason for which they are unusable.
    place: Result<(Cache, Listable), String>,
    /// Name of its folder in the cache.
    name: String,
}

impl Provider {
    /// Returns the provider of an SDK with its libraries in `lib_dir`, if its sources exist.
    ///
    /// # Errors
    /// The system's error when they cannot be read.
    pub fn find(sdk: &Sdk, lib_dir: &Path) -> io::Result<Option<Provider>> {
        let compiler = sdk.command("spincc");
        if !sdk.home.join(PARTS[0]).is_dir() || !compiler.is_file() {
            return Ok(None);
        }
        let mut hasher = DefaultHasher::new();
        let mut sources = Vec::new();
        for part in PARTS {
            for file in files(&sdk.home.join(part))? {
                (&file, fs::read(&file)?).hash(&mut hasher);
                sources.push(file);
            }
        }
        let provider = sdk.home.join(PARTS[0]);
        sources.retain(|file| file.starts_with(&provider) && file.extension().is_some_and(|kind| kind == "c"));
        // Identify the compiler by its date, which is cheaper than its contents; the library records the path of
        // libportals.
        let made = fs::metadata(&compiler)?;
        (env!("CARGO_PKG_VERSION"), made.len(), made.modified()?, Some(lib_dir)).hash(&mut hasher);
        let place = place(sdk).map_err(|error| error.to_string());
        Ok(Some(Provider { sources, compiler, place, name: format!("{:016x}", hasher.finish()) }))
    }

    /// Returns the variables that make libfabric find this provider and no other, and MPICH use libfabric for all
    /// messages: each rank has its own card, so no two share a node.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let fixed = [("FI_PROVIDER", "spin"), ("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")];
        let fixed = fixed.into_iter().map(|(name, value)| (name.into(), value.into()));
        let folder = self.place.iter().map(|(_, folder)| (PATH.into(), folder.name().join(&self.name).into()));
        folder.chain(fixed).collect()
    }

    /// Builds the library if it is missing.
    ///
    /// # Errors
    /// The reason, for the user.
    pub fn make(&self) -> Result<(), String> {
        self.compile()
            .map_err(|why| format!("needs the libfabric provider of the simulated card, which cannot be made: {why}"))
    }

    fn compile(&self) -> Result<(), String> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| format!("{path}: {error}")
        };
        let parent = self.place.as_ref()?.0.folder(FOLDER).map_err(|error| error.to_string())?;
        let folder = parent.join(&self.name);
        if is_whole(&folder.join(LIBRARY)) {
            return Ok(());
        }
        // Other processes with the same build wait here.
        let lock = folder.with_extension("lock");
        let held = File::create(&lock).map_err(failed(&lock))?;
        flock(&held, FlockOperation::LockExclusive).map_err(|error| failed(&lock)(error.into()))?;
        if is_whole(&folder.join(LIBRARY)) {
            return Ok(());
        }
        progress::say("spinrun: making the libfabric provider for MPI programs, once for this version");
        // A killed build may leave this folder.
        let room = parent.join(format!(".{}", self.name));
        remove(&room).map_err(failed(&room))?;
        DirBuilder::new().mode(0o700).create(&room).map_err(failed(&room))?;
        let made = self.run_compiler(&room.join(LIBRARY)).and_then(|()| {
            seal(&room.join(LIBRARY)).map_err(failed(&room))?;
            remove(&folder).map_err(failed(&folder))?;
            fs::rename(&room, &folder).map_err(failed(&folder))
        });
        if made.is_err() {
            remove(&room).map_err(failed(&room))?;
        }
        made
    }

    fn run_compiler(&self, library: &Path) -> Result<(), String> {
        let made = Command::new(&self.compiler)
            .args(FLAGS)
            .args(&self.sources)
            .arg("-ldl")
            .arg("-o")
            .arg(library)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.compiler.display()))?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            let errors: Vec<&str> = said.lines().filter(|line| !line.contains("warning:")).collect();
            return Err(format!("spincc fails\n{}", errors.join("\n")));
        }
        Ok(())
    }
}

/// Returns the cache and its folder of providers. The folder need not exist, unless it must be opened to get a name
/// without colons.
fn place(sdk: &Sdk) -> Result<(Cache, Listable), SdkError> {
    let cache = sdk.cache()?;
    let folder = cache.root().join(FOLDER);
    let folder = if Listable::is_plain(&folder) { folder } else { cache.folder(FOLDER)? };
    let listed = Listable::new(folder.clone()).map_err(|error| CacheError::File(folder, error))?;
    Ok((cache, listed))
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns all files below a folder, in order.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        if entry.is_dir() { all.extend(files(&entry)?) } else { all.push(entry) }
    }
    Ok(all)
}
