// SPDX-License-Identifier: Apache-2.0
//! Parameters of a card without its accelerator.

use sim::Time;

/// `[nic]`: the card.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// `kind`: capabilities of the card.
    pub kind: NicKind,
    /// `match_header_ns`: full search for the first packet of a message.
    pub match_header: Time,
    /// `match_cam_ns`: CAM look-up for each later packet.
    pub match_cam: Time,
    /// `match_reply_ns`: look-up of the first packet of an expected reply.
    pub match_reply: Time,
    /// `match_overlaps`: work of the receiving port during a match.
    pub match_overlaps: MatchOverlaps,
}

impl Nic {
    /// Returns true if the card matches messages and runs triggered operations; otherwise the CPU does.
    pub fn matches_on_card(&self) -> bool {
        self.kind.matches_on_card()
    }

    /// Returns true if the card has an accelerator that runs handlers.
    pub fn runs_handlers(&self) -> bool {
        self.kind.runs_handlers()
    }
}

/// Work of the receiving port while the card matches a packet. §4.2 of the sPIN paper says that "matching and the
/// network gap (g) can proceed in parallel".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOverlaps {
    /// "reception": the port receives the next packet.
    Reception,
    /// "gap": the port waits, as in LogGOPSim2. A packet of s bytes occupies it for (s − 1) G and the time of the
    /// match; the last packet of a message also for the remainder of g.
    Gap,
}

/// Capabilities of a card. Code queries a capability instead of comparing kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicKind {
    /// "rdma": the card moves data; the CPU matches and acts.
    Rdma,
    /// "portals4": the card matches and runs triggered operations.
    Portals4,
    /// "spin": like "portals4", and the card runs handlers.
    Spin,
}

impl NicKind {
    /// Returns true if the card matches messages and runs triggered operations; otherwise the CPU does.
    pub fn matches_on_card(self) -> bool {
        self != NicKind::Rdma
    }

    /// Returns true if the card has an accelerator that runs handlers.
    pub fn runs_handlers(self) -> bool {
        self == NicKind::Spin
    }
}
