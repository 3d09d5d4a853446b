// SPDX-License-Identifier: Apache-2.0
//! Converts workloads of other tools to GOAL schedules.
//!
//! [`chakra`] reads the execution traces of MLCommons, [`connections`] the connection matrices of htsim, and [`llm`]
//! generates a step of the training of a large language model. [`collective`] has the algorithms that they share.

#![deny(clippy::cast_possible_truncation)] // values come from input

pub mod chakra;
pub mod collective;
pub mod connections;
pub mod llm;
mod switches;
