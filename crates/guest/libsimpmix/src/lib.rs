//! `libsimpmix.so`, which `spinrun` preloads into programs of Open MPI 5: the functions of PMIx that need a server.
//!
//! Open MPI 5 starts through PMIx. The library that it links asks a server, over sockets and in threads whose time only the
//! real clock decides. So the functions with state are here, in front of those of that library: they ask the simulator by the lines of PMI-1
//! ([`abi::pmi`]) and return when it has answered. There is neither a server nor a thread. Functions that only handle values (such as `PMIx_Info_load`)
//! remain those of the library that the program links; the layouts are those of the PMIx Standard's ABI, which versions 4 and 5 share.
//!
//! * [`layout`]: structures and numbers of `pmix_common.h`
//! * [`value`]: values as bytes
//! * [`buffer`]: values in a row, which a program sends to others
//! * [`store`]: what the ranks have published, and what is known of each rank
//! * [`api`]: the functions

pub mod api;
pub mod buffer;
pub mod layout;
pub mod store;
pub mod value;
