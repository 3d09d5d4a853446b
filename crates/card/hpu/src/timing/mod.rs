//! Timing: the cycles of a block, and the state in which it leaves the pipeline, are a function of the block, of the
//! state in which it finds the pipeline, and of how it is left. Each such transition is simulated once and then looked
//! up.

mod inorder;
mod memo;
mod ooo;
mod pipeline;

pub(crate) use inorder::{SYSTEM, access_cycles};
pub(crate) use memo::{Memo, Position};
pub(crate) use pipeline::{Exit, Timed, Wait};
