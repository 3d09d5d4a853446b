// SPDX-License-Identifier: Apache-2.0
//! List of patterns, with names and descriptions.

/// A communication pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Broadcast along a binomial tree, nearest ranks first.
    Bcast,
    /// Broadcast along a k-nomial tree; k is [`Spec::radix`](super::Spec::radix).
    BcastKnomial,
    /// Broadcast along a chain, cut into [`Spec::segment`](super::Spec::segment)s.
    BcastPipeline,
    /// Broadcast of one half along each of two binary trees (Sanders, Speck, Träff 2009), cut into segments.
    BcastDoubleTree,
    /// Broadcast as binomial scatter and ring all-gather (van de Geijn).
    BcastScatterAllgather,
    /// Broadcast by triggered puts of the cards along a binomial tree. Needs cards that match messages.
    BcastTriggered,
    /// Broadcast by the handlers of `sdk/handlers/broadcast`; [`Spec::segment`](super::Spec::segment) is the packet
    /// size. Needs cards with HPUs.
    BcastSpin,
    /// Reduction along a binomial tree.
    Reduce,
    /// All-reduce as ring reduce-scatter and ring all-gather.
    AllreduceRing,
    /// All-reduce by exchange of whole vectors with ranks at doubling distance.
    AllreduceRecursiveDoubling,
    /// All-reduce as recursive halving and doubling (Rabenseifner).
    AllreduceRabenseifner,
    /// Barrier in log2 rounds (dissemination).
    Dissemination,
    /// All-to-all, all messages at once.
    Alltoall,
    /// All-to-all in rounds with one partner each.
    AlltoallPairwise,
    /// Gather, directly from each rank to the root.
    Gather,
    /// Scatter, directly from the root to each rank.
    Scatter,
    /// Gather along a binomial tree.
    GatherBinomial,
    /// Scatter along a binomial tree.
    ScatterBinomial,
    /// All-gather around a ring.
    AllgatherRing,
    /// All-gather at doubling distance (Bruck).
    AllgatherBruck,
    /// Reduce-scatter around a ring.
    ReduceScatterRing,
    /// Inclusive prefix by doubling distance (Hillis and Steele).
    Scan,
    /// Repeated exchange with all neighbours of a grid with [`Spec::dims`](super::Spec::dims), then computation.
    Halo,
    /// Wavefronts over a two-dimensional grid, from one corner after the other.
    Sweep,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 24] = [
        Pattern::Bcast,
        Pattern::BcastKnomial,
        Pattern::BcastPipeline,
        Pattern::BcastDoubleTree,
        Pattern::BcastScatterAllgather,
        Pattern::BcastTriggered,
        Pattern::BcastSpin,
        Pattern::Reduce,
        Pattern::AllreduceRing,
        Pattern::AllreduceRecursiveDoubling,
        Pattern::AllreduceRabenseifner,
        Pattern::Dissemination,
        Pattern::Alltoall,
        Pattern::AlltoallPairwise,
        Pattern::Gather,
        Pattern::Scatter,
        Pattern::GatherBinomial,
        Pattern::ScatterBinomial,
        Pattern::AllgatherRing,
        Pattern::AllgatherBruck,
        Pattern::ReduceScatterRing,
        Pattern::Scan,
        Pattern::Halo,
        Pattern::Sweep,
    ];

    /// Returns true if the pattern consists of card operations (`spinkit goal run nic`).
    pub fn needs_cards(self) -> bool {
        matches!(self, Pattern::BcastTriggered | Pattern::BcastSpin)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Bcast => "bcast",
            Pattern::BcastKnomial => "bcast-knomial",
            Pattern::BcastPipeline => "bcast-pipeline",
            Pattern::BcastDoubleTree => "bcast-double-tree",
            Pattern::BcastScatterAllgather => "bcast-scatter-allgather",
            Pattern::BcastTriggered => "bcast-triggered",
            Pattern::BcastSpin => "bcast-spin",
            Pattern::Reduce => "reduce",
            Pattern::AllreduceRing => "allreduce-ring",
            Pattern::AllreduceRecursiveDoubling => "allreduce-recursive-doubling",
            Pattern::AllreduceRabenseifner => "allreduce-rabenseifner",
            Pattern::Dissemination => "dissemination",
            Pattern::Alltoall => "alltoall",
            Pattern::AlltoallPairwise => "alltoall-pairwise",
            Pattern::Gather => "gather",
            Pattern::Scatter => "scatter",
            Pattern::GatherBinomial => "gather-binomial",
            Pattern::ScatterBinomial => "scatter-binomial",
            Pattern::AllgatherRing => "allgather-ring",
            Pattern::AllgatherBruck => "allgather-bruck",
            Pattern::ReduceScatterRing => "reduce-scatter-ring",
            Pattern::Scan => "scan",
            Pattern::Halo => "halo",
            Pattern::Sweep => "sweep",
        }
    }

    /// Returns a one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Pattern::Bcast => "broadcast, binomial tree",
            Pattern::BcastKnomial => "broadcast, k-nomial tree (--radix)",
            Pattern::BcastPipeline => "broadcast, chain with segments (--segment)",
            Pattern::BcastDoubleTree => "broadcast, a half along each of two binary trees (--segment)",
            Pattern::BcastScatterAllgather => "broadcast, binomial scatter and ring all-gather",
            Pattern::BcastTriggered => "broadcast, binomial tree of triggered puts (run nic)",
            Pattern::BcastSpin => {
                "broadcast, binomial tree of handlers of sdk/handlers/broadcast (run nic; --segment: packet)"
            }
            Pattern::Reduce => "reduction, binomial tree",
            Pattern::AllreduceRing => "all-reduce, ring reduce-scatter and all-gather",
            Pattern::AllreduceRecursiveDoubling => "all-reduce, whole vectors at doubling distance",
            Pattern::AllreduceRabenseifner => "all-reduce, recursive halving and doubling",
            Pattern::Dissemination => "barrier, dissemination",
            Pattern::Alltoall => "all-to-all, all messages at once",
            Pattern::AlltoallPairwise => "all-to-all, one partner a round",
            Pattern::Gather => "gather, straight to the root",
            Pattern::Scatter => "scatter, straight from the root",
            Pattern::GatherBinomial => "gather, binomial tree",
            Pattern::ScatterBinomial => "scatter, binomial tree",
            Pattern::AllgatherRing => "all-gather, ring",
            Pattern::AllgatherBruck => "all-gather, doubling distance",
            Pattern::ReduceScatterRing => "reduce-scatter, ring",
            Pattern::Scan => "inclusive prefix, doubling distance",
            Pattern::Halo => "exchange with the neighbours of a grid of 1 to 4 dimensions (--dims, --iterations)",
            Pattern::Sweep => "wavefronts over a grid of 2 dimensions (--dims, --iterations)",
        }
    }
}
