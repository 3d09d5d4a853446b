// SPDX-License-Identifier: Apache-2.0
//! The PsPIN unit as hardware: the SystemVerilog of `rtl/`, simulated by Verilator in this process.
//!
//! * [`build`](mod@build): builds the library of a design, once for each configuration; [`tools`]: the tools for that;
//!   [`training`]: the run that collects the compiler's profile
//! * [`simulation`]: an open library: ports, memories, clock, observer events
//! * `hardware_unit`: the hardware as a unit, [`Rtl`]; `nic`: the streams of its ports; [`events`]: its observer events
//! * [`lockstep`]: hardware against model

pub mod build;
pub mod events;
mod hardware_unit;
pub mod lockstep;
mod nic;
pub mod simulation;
pub mod tools;
pub mod training;

pub use hardware_unit::{Rtl, Wave};

use std::path::PathBuf;

use thiserror::Error;

/// Error of hardware that cannot be simulated.
#[derive(Debug, Error)]
pub enum RtlError {
    /// The tools are not installed.
    #[error(
        "simulating the hardware needs Verilator in {0}, which is not there: `make -C rtl tools` in a checkout installs it, or set \
         SPINKIT_RTL_TOOLS to a Python environment with the packages of rtl/requirements.txt"
    )]
    NoTools(PathBuf),
    /// A system program is not installed.
    #[error("simulating the hardware needs {0}, which is in no folder of PATH: apt-get install {1}")]
    NoProgram(&'static str, &'static str),
    /// The sources are missing.
    #[error("the sources of the hardware are not in {0}")]
    NoSources(PathBuf),
    /// A file or folder cannot be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] output::CacheError),
    /// A program of the build failed.
    #[error("building the hardware has failed: see {0}\n{1}")]
    Build(PathBuf, String),
    /// The library is not the one that was built.
    #[error("{0}: {1}")]
    Library(PathBuf, String),
    /// The design lacks a port that the harness needs.
    #[error("the design has no port {0}")]
    NoPort(String),
}
