// SPDX-License-Identifier: Apache-2.0
//! Timing: the cycles of a block, and the pipeline state after it, are a function of the block, the state before it,
//! and the exit. Each such transition is simulated once and then looked up.

mod inorder;
mod memo;
mod ooo;
mod pipeline;

pub(crate) use inorder::{SYSTEM, access_cycles};
pub(crate) use memo::{Memo, Position};
pub(crate) use pipeline::{Exit, Timed, Wait};
