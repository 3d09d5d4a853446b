// SPDX-License-Identifier: Apache-2.0
//! `libpmi.so`: the C interface of PMI-1 for programs that `spinrun` starts. Processes of a job use it to exchange
//! addresses.
//!
//! Programs that speak PMI-1's wire protocol themselves (MPICH, Sandia OpenSHMEM) do not need it. Others load a
//! library: Open MPI 4 loads the file named by `FLUX_PMI_LIBRARY_PATH`, which `spinrun` sets to this library.
//!
//! * [`api`]: every function of `pmi.h`
//! * [`code`]: return codes
//!
//! [`abi::pmi`] implements the connection to the simulator.

#![deny(clippy::cast_possible_truncation)] // values come from input

pub mod api;
pub mod code;
