//! The parameters of a card without its accelerator.

use sim::Time;

/// `[nic]`: the card.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// `kind`: what the card does without the CPU.
    pub kind: NicKind,
    /// `match_header_ns`: full search for the first packet of a message.
    pub match_header: Time,
    /// `match_cam_ns`: CAM look-up for each later packet.
    pub match_cam: Time,
    /// `match_reply_ns`: look-up of the first packet of a reply, which the card expects.
    pub match_reply: Time,
    /// `match_overlaps`: what the receiving port does while a packet is matched.
    pub match_overlaps: MatchOverlaps,
}

impl Nic {
    /// Whether the card matches messages and runs triggered operations; otherwise the CPU does.
    pub fn matches_on_card(&self) -> bool {
        self.kind.matches_on_card()
    }

    /// Whether the card has an accelerator that runs handlers.
    pub fn runs_handlers(&self) -> bool {
        self.kind.runs_handlers()
    }
}

/// What the receiving port does while the card matches a packet. §4.2 of the sPIN paper says that "matching and the network
/// gap (g) can proceed in parallel".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOverlaps {
    /// "reception": it receives the next packet.
    Reception,
    /// "gap": it waits, as in LogGOPSim2. A packet of s bytes occupies it for (s − 1) G and the time of the match; the last
    /// one of a message also for what then remains of g.
    Gap,
}

/// What a card does without the CPU. Code that depends on it queries a capability instead of comparing kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicKind {
    /// "rdma": the card moves data; the CPU matches and acts.
    Rdma,
    /// "portals4": the card matches and runs triggered operations.
    Portals4,
    /// "spin": the card does what "portals4" does, and runs handlers.
    Spin,
}

impl NicKind {
    /// Whether the card matches messages and runs triggered operations; otherwise the CPU does.
    pub fn matches_on_card(self) -> bool {
        self != NicKind::Rdma
    }

    /// Whether the card has an accelerator that runs handlers.
    pub fn runs_handlers(self) -> bool {
        self == NicKind::Spin
    }
}
