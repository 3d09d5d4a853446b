//! Schedules of collective operations and of common patterns of applications.

mod exchange;
mod grid;
mod offload;
mod tree;

use thiserror::Error;

use crate::build::{BuildError, Builder};
use crate::op::{Action, MAX_CALC_NS, MAX_RANKS};
use crate::schedule::{Schedule, Wait};

/// A pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Broadcast along a binomial tree, nearest ranks first.
    Bcast,
    /// Broadcast along a k-nomial tree; k is [`Spec::radix`].
    BcastKnomial,
    /// Broadcast along a chain, cut into [`Spec::segment`]s.
    BcastPipeline,
    /// Broadcast of one half along each of two binary trees (Sanders, Speck, Träff 2009), cut into segments.
    BcastDoubleTree,
    /// Broadcast as binomial scatter and ring all-gather (van de Geijn).
    BcastScatterAllgather,
    /// Broadcast by triggered puts of the cards along a binomial tree. It needs cards that match messages.
    BcastTriggered,
    /// Broadcast by the handlers of `sdk/handlers/broadcast`; [`Spec::segment`] is a packet's size. It needs cards with
    /// HPUs.
    BcastSpin,
    /// Reduction along a binomial tree.
    Reduce,
    /// All-reduce as ring reduce-scatter and ring all-gather.
    AllreduceRing,
    /// All-reduce by exchange of everything with ranks of doubling distance.
    AllreduceRecursiveDoubling,
    /// All-reduce as recursive halving and doubling (Rabenseifner).
    AllreduceRabenseifner,
    /// Everyone hears of everyone in log2 rounds: a barrier.
    Dissemination,
    /// All-to-all, all messages at once.
    Alltoall,
    /// All-to-all in rounds with one partner each.
    AlltoallPairwise,
    /// Gather, each rank straight to the root.
    Gather,
    /// Scatter, the root straight to each rank.
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
    /// Exchange with all neighbours of a grid with [`Spec::dims`], then computation, again and again.
    Halo,
    /// Wavefronts over a grid of two dimensions, from one corner after the other.
    Sweep,
}

impl Pattern {
    /// All.
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

    /// Whether its operations are those of a card (`run --model nic`).
    pub fn needs_cards(self) -> bool {
        matches!(self, Pattern::BcastTriggered | Pattern::BcastSpin)
    }

    /// As on a command line.
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

    /// What it is, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Pattern::Bcast => "broadcast, binomial tree",
            Pattern::BcastKnomial => "broadcast, k-nomial tree (--radix)",
            Pattern::BcastPipeline => "broadcast, chain with segments (--segment)",
            Pattern::BcastDoubleTree => "broadcast, a half along each of two binary trees (--segment)",
            Pattern::BcastScatterAllgather => "broadcast, binomial scatter and ring all-gather",
            Pattern::BcastTriggered => "broadcast, binomial tree of triggered puts (run --model nic)",
            Pattern::BcastSpin => {
                "broadcast, binomial tree of handlers of sdk/handlers/broadcast (run --model nic; --segment: packet)"
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

/// What to make of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of ranks
    pub ranks: u32,
    /// Bytes of the collective's vector; of one rank's part in all-to-all, gather, scatter and all-gather; of a message
    /// of halo and sweep
    pub bytes: u64,
    /// Where broadcast and scatter start, and reduce and gather end
    pub root: u32,
    /// Tag of all messages; the second of two trees adds one, halo twice the dimension and one for upward
    pub tag: u32,
    /// Nanoseconds of computation after each receive; halo and sweep: of each step
    pub calc_ns: u64,
    /// Bytes of a segment of pipelined patterns; 0: the whole
    pub segment: u64,
    /// k of a k-nomial tree
    pub radix: u32,
    /// Size of the grid in each dimension; their product is the number of ranks
    pub dims: Vec<u32>,
    /// Nanoseconds of a halo step's computation that needs no message, and runs while they travel
    pub overlap_ns: u64,
    /// Whether the receives of a halo step are posted before the last step's computation
    pub early_receives: bool,
    /// Whether the grid of a halo exchange is a torus
    pub periodic: bool,
    /// Steps of halo and sweep
    pub iterations: u32,
}

impl Default for Spec {
    /// One rank, one byte, and nothing special.
    fn default() -> Spec {
        Spec {
            ranks: 1,
            bytes: 1,
            root: 0,
            tag: 0,
            calc_ns: 0,
            segment: 0,
            radix: 2,
            dims: Vec::new(),
            overlap_ns: 0,
            early_receives: false,
            periodic: false,
            iterations: 1,
        }
    }
}

/// Why a pattern cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SpecError {
    /// No or too many ranks.
    #[error("the number of ranks is from 1 to {MAX_RANKS}, not {0}")]
    Ranks(u32),
    /// The root is no rank.
    #[error("root {root} does not exist: there are {ranks} ranks, numbered from 0")]
    Root {
        /// Asked for
        root: u32,
        /// Number of ranks
        ranks: u32,
    },
    /// A tree of which nothing grows.
    #[error("the radix of a k-nomial tree is at least 2, not {0}")]
    Radix(u32),
    /// The grid has other dimensions than the pattern.
    #[error("{pattern} takes {expected} dimensions, not {found}")]
    Dimensions {
        /// Its name
        pattern: &'static str,
        /// How many
        expected: &'static str,
        /// How many were given
        found: usize,
    },
    /// The grid has another number of ranks.
    #[error("a grid of {dims:?} is {product} ranks, not {ranks}")]
    Grid {
        /// The grid
        dims: Vec<u32>,
        /// Its ranks
        product: u64,
        /// Number of ranks
        ranks: u32,
    },
    /// A number beyond its limit.
    #[error("the {0} is too large: at most {1}")]
    TooLarge(&'static str, u64),
    /// Too many segments or operations.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Largest size of a message in a generated schedule.
const MAX_BYTES: u64 = 1 << 62;

/// Where the operations of one rank's part in a pattern go: into a rank of a schedule in the making.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The rank's number in the pattern
    pub me: u32,
    /// The schedule's rank of each number
    pub members: &'a dyn Fn(u32) -> u32,
    /// Matching space of the messages
    pub space: u16,
    /// Sizes that differ from rank to rank: of the linear, pairwise and ring patterns without a root, and of the root of
    /// linear gather and scatter
    pub sizes: Option<Sizes<'a>>,
    /// What the pattern's first operations wait for
    pub after: &'a [(u32, Wait)],
}

/// Bytes by number in the pattern; counted through again from the start where there are fewer than ranks.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// For each rank
    pub send: &'a [u64],
    /// From each rank
    pub recv: &'a [u64],
}

/// Makes the schedule of a pattern.
///
/// # Errors
/// See [`SpecError`].
pub fn generate(pattern: Pattern, spec: &Spec) -> Result<Schedule, SpecError> {
    let (of_rank, dims) = prepare(pattern, spec)?;
    let mut builder = Builder::new(spec.ranks);
    for me in 0..spec.ranks {
        let place = Place { me, members: &|rank| rank, space: 0, sizes: None, after: &[] };
        builder.begin_rank(me);
        of_rank(&mut Rank { builder: &mut builder, spec, dims: &dims, place, waited_for: None })?;
        builder.end_rank()?;
    }
    Ok(builder.finish()?)
}

/// Adds one rank's part of a pattern to the present rank of a schedule in the making. `ends` gets the operations that
/// no other of the part waits for.
///
/// # Errors
/// See [`SpecError`].
pub fn emit(
    pattern: Pattern,
    spec: &Spec,
    place: Place,
    builder: &mut Builder,
    ends: &mut Vec<u32>,
) -> Result<(), SpecError> {
    let (of_rank, dims) = prepare(pattern, spec)?;
    let first = builder.len();
    let mut rank = Rank { builder, spec, dims: &dims, place, waited_for: Some((first, Vec::new())) };
    of_rank(&mut rank)?;
    let (_, waited_for) = rank.waited_for.unwrap_or_default();
    ends.extend((first..builder.len()).filter(|op| !waited_for.get((op - first) as usize).unwrap_or(&false)));
    Ok(())
}

type OfRank = fn(&mut Rank) -> Result<(), BuildError>;

fn prepare(pattern: Pattern, spec: &Spec) -> Result<(OfRank, Vec<u32>), SpecError> {
    check(spec)?;
    let of_rank: OfRank = match pattern {
        Pattern::Bcast => |rank| tree::broadcast(rank, 2),
        Pattern::BcastKnomial if spec.radix < 2 => return Err(SpecError::Radix(spec.radix)),
        Pattern::BcastKnomial => |rank| tree::broadcast(rank, rank.spec.radix),
        Pattern::BcastPipeline => tree::pipeline,
        Pattern::BcastDoubleTree => tree::double_tree,
        Pattern::BcastScatterAllgather => tree::scatter_allgather,
        Pattern::BcastTriggered => offload::triggered,
        Pattern::BcastSpin => offload::spin,
        Pattern::Reduce => tree::reduce,
        Pattern::AllreduceRing => exchange::ring,
        Pattern::AllreduceRecursiveDoubling => exchange::recursive_doubling,
        Pattern::AllreduceRabenseifner => exchange::rabenseifner,
        Pattern::Dissemination => exchange::dissemination,
        Pattern::Alltoall => exchange::all_to_all,
        Pattern::AlltoallPairwise => exchange::pairwise,
        Pattern::Gather => tree::gather,
        Pattern::Scatter => tree::scatter,
        Pattern::GatherBinomial => tree::gather_binomial,
        Pattern::ScatterBinomial => tree::scatter_binomial,
        Pattern::AllgatherRing => exchange::allgather_ring,
        Pattern::AllgatherBruck => exchange::allgather_bruck,
        Pattern::ReduceScatterRing => exchange::reduce_scatter_ring,
        Pattern::Scan => exchange::scan,
        Pattern::Halo => grid::halo,
        Pattern::Sweep => grid::sweep,
    };
    let dims = match pattern {
        Pattern::Halo => grid::dims(pattern.name(), spec, 1..=4, "1 to 4")?,
        Pattern::Sweep => grid::dims(pattern.name(), spec, 2..=2, "2")?,
        _ => Vec::new(),
    };
    Ok((of_rank, dims))
}

fn check(spec: &Spec) -> Result<(), SpecError> {
    if spec.ranks == 0 || spec.ranks > MAX_RANKS {
        return Err(SpecError::Ranks(spec.ranks));
    }
    if spec.root >= spec.ranks {
        return Err(SpecError::Root { root: spec.root, ranks: spec.ranks });
    }
    // Halo adds up to seven.
    for (what, value, most) in [
        ("size", spec.bytes, MAX_BYTES),
        ("tag", u64::from(spec.tag), u64::from(u32::MAX) - 8),
        ("computation", spec.calc_ns.max(spec.overlap_ns), MAX_CALC_NS),
    ] {
        if value > most {
            return Err(SpecError::TooLarge(what, most));
        }
    }
    Ok(())
}

/// A rank in the making.
struct Rank<'a> {
    builder: &'a mut Builder,
    spec: &'a Spec,
    dims: &'a [u32],
    place: Place<'a>,
    /// The first operation, and for each from there on whether another waits for it; if anyone wants to know.
    waited_for: Option<(u32, Vec<bool>)>,
}

impl Rank<'_> {
    /// This rank's number.
    fn me(&self) -> u32 {
        self.place.me
    }

    fn ranks(&self) -> u32 {
        self.spec.ranks
    }

    /// This rank's number when the root is 0 and the others follow it.
    fn relative(&self) -> u32 {
        (u64::from(self.me()) + u64::from(self.ranks()) - u64::from(self.spec.root)) as u32 % self.ranks()
    }

    /// The rank of a relative number.
    fn absolute(&self, relative: u32) -> u32 {
        ((u64::from(relative) + u64::from(self.spec.root)) % u64::from(self.ranks())) as u32
    }

    /// The rank `ahead` after this one, in a ring.
    fn ahead(&self, ahead: u32) -> u32 {
        ((u64::from(self.me()) + u64::from(ahead)) % u64::from(self.ranks())) as u32
    }

    /// The rank `behind` before this one, in a ring.
    fn behind(&self, behind: u32) -> u32 {
        self.ahead(self.ranks() - behind % self.ranks())
    }

    fn after(&mut self, op: u32, after: &[u32]) -> u32 {
        for &earlier in after {
            self.builder.depend(op, earlier, Wait::Done);
            if let Some((first, waited_for)) = &mut self.waited_for {
                let index = (earlier - *first) as usize;
                waited_for.resize(waited_for.len().max(index + 1), false);
                waited_for[index] = true;
            }
        }
        op
    }

    /// Adds an operation, that of the pattern's start if it is after none.
    fn add(&mut self, action: Action, after: &[u32]) -> Result<u32, BuildError> {
        let op = self.builder.add(action, 0, 0)?;
        if after.is_empty() {
            for &(earlier, wait) in self.place.after {
                self.builder.depend(op, earlier, wait);
            }
        }
        Ok(self.after(op, after))
    }

    fn tagged_send(&mut self, to: u32, bytes: u64, tag: u32, after: &[u32]) -> Result<u32, BuildError> {
        let to = (self.place.members)(to);
        self.add(Action::Send { bytes, to, tag, space: self.place.space }, after)
    }

    fn tagged_recv(&mut self, from: u32, bytes: u64, tag: u32) -> Result<u32, BuildError> {
        let from = Some((self.place.members)(from));
        self.add(Action::Recv { bytes, from, tag: Some(tag), space: self.place.space }, &[])
    }

    fn send(&mut self, to: u32, bytes: u64, after: &[u32]) -> Result<u32, BuildError> {
        self.tagged_send(to, bytes, self.spec.tag, after)
    }

    /// Receives and computes. Returns what stands for both.
    fn recv(&mut self, from: u32, bytes: u64) -> Result<u32, BuildError> {
        let op = self.tagged_recv(from, bytes, self.spec.tag)?;
        self.computed(op)
    }

    /// The computation after a receive, if there is any.
    fn computed(&mut self, receive: u32) -> Result<u32, BuildError> {
        if self.spec.calc_ns == 0 { Ok(receive) } else { self.calc(&[receive]) }
    }

    fn calc(&mut self, after: &[u32]) -> Result<u32, BuildError> {
        self.calc_for(self.spec.calc_ns, after)
    }

    fn calc_for(&mut self, ns: u64, after: &[u32]) -> Result<u32, BuildError> {
        self.add(Action::Calc(ns), after)
    }

    /// Bytes of so many ranks' parts.
    fn parts(&self, count: u32) -> u64 {
        self.spec.bytes.saturating_mul(count.into())
    }

    /// Bytes for another rank, where each gets its own.
    fn bytes_to(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.send[other as usize % sizes.send.len()])
    }

    /// Bytes from another rank, where each gives its own.
    fn bytes_from(&self, other: u32) -> u64 {
        self.place.sizes.map_or(self.spec.bytes, |sizes| sizes.recv[other as usize % sizes.recv.len()])
    }

    /// Bytes of the blocks `from..to` when the vector is cut into one block a rank, as even as can be.
    fn blocks(&self, from: u32, to: u32) -> u64 {
        let start = |block: u32| {
            let start = u128::from(self.spec.bytes) * u128::from(block) / u128::from(self.ranks());
            start as u64
        };
        start(to) - start(from)
    }

    /// Sizes of the segments of `bytes`; one at least.
    fn segments(&self, bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let segment = if self.spec.segment == 0 { bytes.max(1) } else { self.spec.segment };
        (0..bytes.div_ceil(segment).max(1)).map(move |index| segment.min(bytes - index * segment))
    }
}

#[cfg(test)]
mod tests;
