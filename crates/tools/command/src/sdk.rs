// SPDX-License-Identifier: Apache-2.0
//! Finds the files of the SDK: headers, device code, machine files, `libportals.so`, and zig.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use output::{Cache, CacheError};
use thiserror::Error;

/// SDK in a checkout or in an installation; both have the same folders below [`home`](Sdk::home).
#[derive(Clone, Debug)]
pub struct Sdk {
    /// Folder that holds `sdk/` and `machines/`.
    pub home: PathBuf,
    executable: PathBuf,
}

/// Error of a missing SDK file.
#[derive(Debug, Error)]
pub enum SdkError {
    /// The executable is neither in an installation nor in a checkout.
    #[error("cannot find the spinkit SDK (sdk/include/portals4.h) from {0}; set SPINKIT_HOME to its folder")]
    NoSdk(PathBuf),
    /// `SPINKIT_HOME` names a folder without an SDK.
    #[error("SPINKIT_HOME is {0}, which has no sdk/include/portals4.h")]
    BadHome(PathBuf),
    /// `libportals.so` was not found.
    #[error("cannot find libportals.so (looked in {}); run `make build`, or set SPIN_LIBDIR to its folder",
            .0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoLibrary(Vec<PathBuf>),
    /// zig was not found.
    #[error(
        "cannot find zig, the compiler for the card; `make build` installs it (Python package ziglang), or set \
             SPIN_ZIG to its path"
    )]
    NoZig,
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// `SPIN_ZIG` does not name an executable file.
    #[error("SPIN_ZIG is {0}, which is not a file")]
    BadZig(PathBuf),
}

impl Sdk {
    /// Finds the SDK: in `$SPINKIT_HOME`, else in `../share/spinkit` relative to the executable, else in the checkout
    /// that contains the executable.
    ///
    /// # Errors
    /// [`SdkError`] when it is in none of these.
    pub fn find() -> Result<Sdk, SdkError> {
        let executable = env::current_exe().and_then(|p| p.canonicalize()).unwrap_or_default();
        let is_home = |p: &Path| p.join("sdk/include/portals4.h").is_file();
        if let Some(home) = env::var_os("SPINKIT_HOME") {
            let home = PathBuf::from(home);
            return if is_home(&home) { Ok(Sdk { home, executable }) } else { Err(SdkError::BadHome(home)) };
        }
        let installed = executable.parent().and_then(Path::parent).map(|prefix| prefix.join("share/spinkit"));
        let home = installed.into_iter().chain(executable.ancestors().map(Path::to_owned)).find(|p| is_home(p));
        match home {
            Some(home) => Ok(Sdk { home, executable }),
            None => Err(SdkError::NoSdk(executable)),
        }
    }

    /// Returns the same SDK under another name of its folder.
    pub fn named(&self, home: &Path) -> Sdk {
        Sdk { home: home.to_owned(), executable: self.executable.clone() }
    }

    /// Returns the folder of the headers for user programs.
    pub fn include_dir(&self) -> PathBuf {
        self.home.join("sdk/include")
    }

    /// Returns the folder that contains `handlers/`, the handler library: `<handlers/accumulate/accumulate.h>`.
    pub fn library_dir(&self) -> PathBuf {
        self.home.join("sdk")
    }

    /// Returns the folder with one folder for each HPU kind, and the device runtime.
    pub fn device_dir(&self) -> PathBuf {
        self.home.join("sdk/device")
    }

    /// Returns the folder of `libportals.so`: `$SPIN_LIBDIR`, the folder of the executable, the release build of a
    /// checkout, or `lib` of an installation.
    ///
    /// # Errors
    /// [`SdkError`] when the library is in none of these.
    pub fn lib_dir(&self) -> Result<PathBuf, SdkError> {
        let candidates: Vec<PathBuf> = match env::var_os("SPIN_LIBDIR") {
            Some(dir) => vec![PathBuf::from(dir)],
            None => [
                self.executable.parent().map(Path::to_owned),
                Some(self.home.join("target/release")),
                self.home.parent().and_then(Path::parent).map(|prefix| prefix.join("lib")),
            ]
            .into_iter()
            .flatten()
            .collect(),
        };
        match candidates.iter().find(|dir| dir.join("libportals.so").is_file()) {
            // The absolute path works for programs started in any folder.
            Some(dir) => Ok(dir.canonicalize().unwrap_or_else(|_| dir.clone())),
            None => Err(SdkError::NoLibrary(candidates)),
        }
    }

    /// Returns the zig executable: `$SPIN_ZIG`, else that of the Python environment of the executable, of the checkout,
    /// or of the `python3` in `PATH`.
    ///
    /// # Errors
    /// [`SdkError`] when it is in none of these.
    pub fn zig(&self) -> Result<PathBuf, SdkError> {
        if let Some(zig) = env::var_os("SPIN_ZIG") {
            let zig = PathBuf::from(zig);
            return if zig.is_file() { Ok(zig) } else { Err(SdkError::BadZig(zig)) };
        }
        let prefix = self.executable.parent().and_then(Path::parent).map(Path::to_owned);
        let found = prefix.into_iter().chain([self.home.join(".venv")]).find_map(|prefix| zig_in_environment(&prefix));
        found.or_else(zig_of_python).ok_or(SdkError::NoZig)
    }

    /// Returns another command of the toolkit, installed beside this one.
    pub fn command(&self, name: &str) -> PathBuf {
        self.executable.with_file_name(name)
    }

    /// Returns the cache of zig, and of other data kept between runs.
    ///
    /// # Errors
    /// [`SdkError`] when other users could change its contents.
    pub fn cache(&self) -> Result<Cache, SdkError> {
        Ok(Cache::find(&self.home)?)
    }
}

/// Returns zig in the site-packages of the Python environment at `prefix`.
fn zig_in_environment(prefix: &Path) -> Option<PathBuf> {
    let mut pythons: Vec<PathBuf> =
        prefix.join("lib").read_dir().ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    pythons.sort();
    pythons.into_iter().map(|python| python.join("site-packages/ziglang/zig")).find(|zig| zig.is_file())
}

fn zig_of_python() -> Option<PathBuf> {
    let script = "import ziglang, os; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))";
    let output = Command::new("python3").args(["-c", script]).output().ok().filter(|o| o.status.success())?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim())).filter(|zig| zig.is_file())
}
