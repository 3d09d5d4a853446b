//! The PsPIN unit as hardware: the SystemVerilog of `rtl/`, simulated by Verilator in this process.
//!
//! * [`build`](mod@build): makes the library of a design, once for each configuration; [`tools`]: what that needs; [`training`]: the run
//!   from which a compiler learns what is done most
//! * [`simulation`]: a library that is open: ports, memories, clock, what observers tell
//! * `unit`: the hardware as a unit, [`Rtl`]; `nic`: the streams of its ports; [`events`]: what its observers tell
//! * [`lockstep`]: hardware and model side by side

pub mod build;
pub mod events;
pub mod lockstep;
mod nic;
pub mod simulation;
pub mod tools;
pub mod training;
mod unit;

pub use unit::{Rtl, Wave};

use std::path::PathBuf;

use thiserror::Error;

/// The error of hardware that cannot be simulated.
#[derive(Debug, Error)]
pub enum RtlError {
    /// The tools are not installed.
    #[error(
        "simulating the hardware needs Verilator in {0}, which is not there: `make -C rtl tools` in a checkout installs it, or set \
         SPINKIT_RTL_TOOLS to a Python environment with the packages of rtl/requirements.txt"
    )]
    NoTools(PathBuf),
    /// A program of the system is not installed.
    #[error("simulating the hardware needs {0}, which is in no folder of PATH: apt-get install {1}")]
    NoProgram(&'static str, &'static str),
    /// The sources are not there.
    #[error("the sources of the hardware are not in {0}")]
    NoSources(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] output::CacheError),
    /// A program of the build has failed.
    #[error("building the hardware has failed: see {0}\n{1}")]
    Build(PathBuf, String),
    /// The library is not what was built.
    #[error("{0}: {1}")]
    Library(PathBuf, String),
    /// A port of the design that the harness needs is not there.
    #[error("the design has no port {0}")]
    NoPort(String),
}
