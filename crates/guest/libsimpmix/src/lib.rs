// SPDX-License-Identifier: Apache-2.0
//! `libsimpmix.so`, which `spinrun` preloads into programs of Open MPI 5: the functions of PMIx that need a server.
//!
//! Open MPI 5 starts through PMIx. Its library queries a server, over sockets and in threads whose timing depends on
//! the real clock. So this library replaces the functions with state: they send PMI-1 requests to the simulator
//! ([`abi::pmi`]) and return with its answer, without a server or a thread. Functions that only handle values (such as
//! `PMIx_Info_load`) remain those of the linked library; the layouts are those of the PMIx Standard's ABI, which
//! versions 4 and 5 share.
//!
//! * [`layout`]: structures and constants of `pmix_common.h`
//! * [`value`]: serialised values
//! * [`buffer`]: serialised sequences of values, which a program sends to others
//! * [`nodes`]: nodes of the ranks
//! * [`store`]: values that the ranks publish, and fixed values of each rank
//! * [`api`]: the functions

pub mod api;
pub mod buffer;
pub mod layout;
pub mod nodes;
pub mod store;
pub mod value;
