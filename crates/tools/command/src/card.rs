// SPDX-License-Identifier: Apache-2.0
//! `--card` of `spinrun` and `spinkit goal run`.

use clap::ValueEnum;

/// Kinds of network cards, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Card {
    /// The card moves data; the CPU matches, copies and acts
    Rdma,
    /// Matching and triggered operations on the card
    Portals4,
    /// As portals4, and handlers
    Spin,
}

impl From<Card> for machine::NicKind {
    fn from(card: Card) -> machine::NicKind {
        match card {
            Card::Rdma => machine::NicKind::Rdma,
            Card::Portals4 => machine::NicKind::Portals4,
            Card::Spin => machine::NicKind::Spin,
        }
    }
}
