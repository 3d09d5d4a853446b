// SPDX-License-Identifier: Apache-2.0
//! Memory access in progress.

use sim::WorkId;

use crate::cores::Core;

/// A CPU's access to memory whose bandwidth it shares with its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub(crate) rank: usize,
    pub(crate) core: Core,
    pub(crate) work: WorkId,
}
