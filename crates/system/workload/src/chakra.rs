// SPDX-License-Identifier: Apache-2.0
//! Execution traces of MLCommons Chakra: a graph of computation and communication for each rank.
//!
//! Rank *N* of a workload is the file `PREFIX.N.et`, as ASTRA-sim names it: messages of Protocol Buffers, each after its
//! length. The first is the metadata of the trace, each other a node (`schema/protobuf/et_def.proto` of Chakra).

mod convert;
mod error;
mod files;
mod groups;
mod node;
mod proto;
mod reader;

pub use convert::{Import, Options, RankReport, Roofline, import};
pub use error::ChakraError;
pub use files::Files;
pub use reader::nodes;
