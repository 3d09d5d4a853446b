// SPDX-License-Identifier: Apache-2.0
//! Collectives of AI workloads: algorithm, channels, chunks and wire protocol.

use std::str::FromStr;

use goal::generate::{Pattern, Place, Spec, SpecError, emit};
use goal::{Action, BuildError, Builder, Wait};

use crate::switches::{Shape, Switches};

/// Collective operation. The comments define the meaning of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Bytes of the vector of each rank.
    AllReduce,
    /// Bytes of the vector of each rank.
    Reduce,
    /// Bytes of one rank's part.
    AllGather,
    /// Bytes of one rank's part.
    Gather,
    /// Bytes of one rank's part.
    Scatter,
    /// Bytes of the message.
    Broadcast,
    /// Bytes that a rank sends in total, its part for itself included.
    AllToAll,
    /// Bytes of the vector of each rank; a rank ends with an equal part of it.
    ReduceScatter,
    /// No data.
    Barrier,
}

impl Operation {
    /// Returns the name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all-reduce",
            Operation::Reduce => "reduce",
            Operation::AllGather => "all-gather",
            Operation::Gather => "gather",
            Operation::Scatter => "scatter",
            Operation::Broadcast => "broadcast",
            Operation::AllToAll => "all-to-all",
            Operation::ReduceScatter => "reduce-scatter",
            Operation::Barrier => "barrier",
        }
    }
}

/// Algorithm of all-reduce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllReduce {
    /// Reduce-scatter and all-gather around a ring.
    #[default]
    Ring,
    /// Reduction and broadcast along a binomial tree.
    Tree,
    /// Recursive halving and doubling.
    Halving,
    /// Whole vectors at doubling distance.
    Doubling,
    /// Reduce-scatter within a node, all-reduce of the parts between nodes, all-gather within the node; all by rings.
    Hierarchical,
    /// Hierarchical, but chunks are added and forwarded independently, as by handlers of cards.
    Card,
    /// A tree of switches, which are ranks after those of the application.
    Switch,
}

/// Algorithm of all-to-all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllToAll {
    /// All messages at once.
    #[default]
    Linear,
    /// One partner a round.
    Pairwise,
}

/// Bytes on the wire for each byte of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Data only.
    #[default]
    Simple,
    /// A flag of 4 bytes with each 4 bytes, as NCCL's LL.
    Ll,
    /// A flag of 8 bytes with each 120 bytes, as NCCL's LL128.
    Ll128,
}

impl Protocol {
    fn on_wire(self, bytes: u64) -> u64 {
        match self {
            Protocol::Simple => bytes,
            Protocol::Ll => bytes.div_ceil(4).saturating_mul(8),
            Protocol::Ll128 => bytes.div_ceil(120).saturating_mul(128),
        }
    }
}

/// Options of all collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collectives {
    /// Algorithm of all-reduce.
    pub all_reduce: AllReduce,
    /// Algorithm of all-to-all.
    pub all_to_all: AllToAll,
    /// Protocol on the wire.
    pub protocol: Protocol,
    /// Parts of the data that travel independently.
    pub channels: u32,
    /// Bytes of one rank's part of a ring, from which a channel needs several rounds; 0 for one round.
    pub chunk: u64,
    /// Ranks of a node, for the hierarchical algorithm.
    pub ranks_per_node: u32,
    /// Trees of switches.
    pub switches: Shape,
}

impl Default for Collectives {
    fn default() -> Collectives {
        Collectives {
            all_reduce: AllReduce::default(),
            all_to_all: AllToAll::default(),
            protocol: Protocol::default(),
            channels: 1,
            chunk: 0,
            ranks_per_node: 8,
            switches: Shape::default(),
        }
    }
}

impl FromStr for Collectives {
    type Err = String;

    /// Parses `allreduce=tree,channels=4,chunk=524288`.
    fn from_str(text: &str) -> Result<Collectives, String> {
        const KEYS: &str = "allreduce=ring|tree|halving|doubling|hierarchical|card|switch, \
                            alltoall=linear|pairwise, protocol=simple|ll|ll128, channels=1..64, chunk=BYTES, \
                            node=RANKS, tree=RANKS[xSWITCHES…], planes=N";
        let mut options = Collectives::default();
        for word in text.split(',') {
            let wrong = || format!("{word}: no such choice; there are: {KEYS}");
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            match (key, value) {
                ("allreduce", "ring") => options.all_reduce = AllReduce::Ring,
                ("allreduce", "tree") => options.all_reduce = AllReduce::Tree,
                ("allreduce", "halving") => options.all_reduce = AllReduce::Halving,
                ("allreduce", "doubling") => options.all_reduce = AllReduce::Doubling,
                ("allreduce", "hierarchical") => options.all_reduce = AllReduce::Hierarchical,
                ("allreduce", "card") => options.all_reduce = AllReduce::Card,
                ("allreduce", "switch") => options.all_reduce = AllReduce::Switch,
                ("tree", levels) => options.switches = options.switches.with_levels(levels).ok_or_else(wrong)?,
                ("planes", number) => {
                    options.switches.planes =
                        number.parse().ok().filter(|count| (1..=64).contains(count)).ok_or_else(wrong)?;
                }
                ("alltoall", "linear") => options.all_to_all = AllToAll::Linear,
                ("alltoall", "pairwise") => options.all_to_all = AllToAll::Pairwise,
                ("protocol", "simple") => options.protocol = Protocol::Simple,
                ("protocol", "ll") => options.protocol = Protocol::Ll,
                ("protocol", "ll128") => options.protocol = Protocol::Ll128,
                ("channels", number) => {
                    options.channels =
                        number.parse().ok().filter(|count| (1..=64).contains(count)).ok_or_else(wrong)?;
                }
                ("chunk", number) => options.chunk = number.parse().map_err(|_| wrong())?,
                ("node", number) => {
                    options.ranks_per_node = number.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(options)
    }
}

/// One rank's view of a call.
pub struct Call<'a> {
    /// Operation.
    pub operation: Operation,
    /// Size, as [`Operation`] defines it.
    pub bytes: u64,
    /// Index of the root among the members.
    pub root: u32,
    /// Ranks of the group, in the order of the algorithms.
    pub members: &'a [u32],
    /// Index of this rank among the members.
    pub me: u32,
    /// Matching space.
    pub space: u16,
    /// Number of the call in its space; its messages have the tags from `number << TAG_BITS` on.
    pub number: u32,
}

/// Tags of a call: 2 to this power.
const TAG_BITS: u32 = 12;
/// Rounds of a channel beyond which chunks grow.
const MAX_ROUNDS: u64 = 16;
/// Limit for all channels together of cards and switches, whose rounds overlap.
const MAX_OVERLAPPING_ROUNDS: u64 = 64;
/// Highest number of a call.
pub const MAX_CALLS: u32 = 1 << (31 - TAG_BITS);

impl Collectives {
    /// Returns the switches of an application with `ranks` ranks.
    pub fn switches(&self, ranks: u32) -> Switches {
        Switches::new(self.switches, ranks, self.all_reduce == AllReduce::Switch)
    }

    /// Adds one rank's part of a call to the current rank of a schedule, after the ends of `after`. Returns the
    /// operations at its end; `after` itself if this rank has nothing to do.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn add(
        &self,
        call: &Call,
        after: &[u32],
        switches: &mut Switches,
        builder: &mut Builder,
    ) -> Result<Vec<u32>, SpecError> {
        let ranks = u32::try_from(call.members.len()).map_err(|_| SpecError::Ranks(u32::MAX))?;
        if ranks < 2 {
            return Ok(after.to_vec());
        }
        let mut tag = (call.number % MAX_CALLS) << TAG_BITS;
        let mut ends = Vec::new();
        let channels = if call.operation == Operation::Barrier { 1 } else { u64::from(self.channels) };
        for channel in 0..channels {
            let bytes = share(call.bytes, channel, channels);
            if bytes == 0 && channel > 0 {
                continue;
            }
            let rounds = self.rounds(call.operation, bytes, ranks);
            let plane = call.members[0].wrapping_mul(self.channels).wrapping_add(u32::try_from(channel).unwrap_or(0));
            let mut last = after.to_vec();
            for round in 0..rounds {
                let part = self.protocol.on_wire(share(bytes, round, rounds));
                let state = State { call, tag: &mut tag, switches, builder, plane };
                if self.overlaps(call.operation) {
                    ends.extend(self.round(state, part, after.to_vec())?);
                } else {
                    last = self.round(state, part, last)?;
                }
            }
            if !self.overlaps(call.operation) {
                ends.extend(last);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        Ok(ends)
    }

    /// Returns true if the rounds of a channel overlap: each part of the data is forwarded as soon as it arrives.
    fn overlaps(&self, operation: Operation) -> bool {
        operation == Operation::AllReduce && matches!(self.all_reduce, AllReduce::Card | AllReduce::Switch)
    }

    /// Returns the number of rounds in which a channel processes its bytes.
    fn rounds(&self, operation: Operation, bytes: u64, ranks: u32) -> u64 {
        let in_flight = match operation {
            _ if self.chunk == 0 => return 1,
            Operation::AllReduce if self.all_reduce == AllReduce::Switch => self.chunk,
            Operation::AllReduce | Operation::ReduceScatter => self.chunk.saturating_mul(ranks.into()),
            Operation::AllGather | Operation::Broadcast | Operation::Reduce => self.chunk,
            _ => return 1,
        };
        let most =
            if self.overlaps(operation) { MAX_OVERLAPPING_ROUNDS / u64::from(self.channels) } else { MAX_ROUNDS };
        bytes.div_ceil(in_flight).clamp(1, most)
    }

    fn round(&self, mut state: State, bytes: u64, after: Vec<u32>) -> Result<Vec<u32>, SpecError> {
        let call = state.call;
        let ranks = u64::from(u32::try_from(call.members.len()).unwrap_or(u32::MAX));
        let all = Part { members: call.members.to_vec(), me: call.me, root: call.root };
        match call.operation {
            Operation::AllReduce => self.all_reduce(&mut state, &all, bytes, after),
            Operation::Reduce => state.emit(Pattern::Reduce, &all, bytes, after),
            Operation::AllGather => state.emit(Pattern::AllgatherRing, &all, bytes, after),
            Operation::Gather => state.emit(Pattern::GatherBinomial, &all, bytes, after),
            Operation::Scatter => state.emit(Pattern::ScatterBinomial, &all, bytes, after),
            Operation::Broadcast => state.emit(Pattern::Bcast, &all, bytes, after),
            Operation::AllToAll => {
                let pattern = match self.all_to_all {
                    AllToAll::Linear => Pattern::Alltoall,
                    AllToAll::Pairwise => Pattern::AlltoallPairwise,
                };
                state.emit(pattern, &all, bytes.div_ceil(ranks), after)
            }
            Operation::ReduceScatter => state.emit(Pattern::ReduceScatterRing, &all, bytes, after),
            Operation::Barrier => state.emit(Pattern::Dissemination, &all, 1, after),
        }
    }

    fn all_reduce(&self, state: &mut State, all: &Part, bytes: u64, after: Vec<u32>) -> Result<Vec<u32>, SpecError> {
        match self.all_reduce {
            AllReduce::Ring => state.emit(Pattern::AllreduceRing, all, bytes, after),
            AllReduce::Halving => state.emit(Pattern::AllreduceRabenseifner, all, bytes, after),
            AllReduce::Doubling => state.emit(Pattern::AllreduceRecursiveDoubling, all, bytes, after),
            AllReduce::Tree => {
                let reduced = state.emit(Pattern::Reduce, all, bytes, after)?;
                state.emit(Pattern::Bcast, all, bytes, reduced)
            }
            AllReduce::Switch => state.switch(bytes, after),
            AllReduce::Hierarchical | AllReduce::Card => {
                let node = self.ranks_per_node as usize;
                let count = all.members.len();
                if count <= node || !count.is_multiple_of(node) {
                    return state.emit(Pattern::AllreduceRing, all, bytes, after);
                }
                let me = all.me as usize;
                let (first, place) = (me - me % node, me % node);
                let within = Part::of(all.members[first..first + node].iter().copied(), place);
                let between = Part::of(all.members.iter().copied().skip(place).step_by(node), me / node);
                let part = bytes.div_ceil(node as u64);
                let scattered = state.emit(Pattern::ReduceScatterRing, &within, bytes, after)?;
                let reduced = state.emit(Pattern::AllreduceRing, &between, part, scattered)?;
                state.emit(Pattern::AllgatherRing, &within, part, reduced)
            }
        }
    }
}

/// Returns part `index` of `count` parts of nearly equal size.
fn share(bytes: u64, index: u64, count: u64) -> u64 {
    let start = |index: u64| u128::from(bytes) * u128::from(index) / u128::from(count.max(1));
    u64::try_from(start(index + 1) - start(index)).unwrap_or(bytes)
}

/// Makes one operation of several, so that each of several later ones has one dependency.
///
/// # Errors
/// If the schedule has too many operations.
pub fn join(after: Vec<u32>, builder: &mut Builder) -> Result<Vec<u32>, BuildError> {
    if after.len() < 2 {
        return Ok(after);
    }
    let op = builder.add(Action::Calc(0), 0, 0)?;
    after.iter().for_each(|earlier| builder.depend(op, *earlier, Wait::Done));
    Ok(vec![op])
}

/// Members of a step, and this rank's index among them.
struct Part {
    members: Vec<u32>,
    me: u32,
    root: u32,
}

impl Part {
    fn of(members: impl Iterator<Item = u32>, me: usize) -> Part {
        Part { members: members.collect(), me: u32::try_from(me).unwrap_or(u32::MAX), root: 0 }
    }
}

struct State<'a, 'b> {
    call: &'a Call<'a>,
    tag: &'b mut u32,
    switches: &'b mut Switches,
    builder: &'b mut Builder,
    /// Plane of the switches of this channel.
    plane: u32,
}

impl State<'_, '_> {
    /// Adds one chunk of a vector that switches add.
    fn switch(&mut self, bytes: u64, after: Vec<u32>) -> Result<Vec<u32>, SpecError> {
        let (call, chunk) = (self.call, (*self.tag, bytes));
        *self.tag += 1;
        let after = join(after, self.builder)?;
        let end = self.switches.add_member(call.members, call.me, self.plane, chunk, &after, self.builder)?;
        Ok(vec![end])
    }

    /// Adds one pattern with separate tags.
    fn emit(&mut self, pattern: Pattern, part: &Part, bytes: u64, after: Vec<u32>) -> Result<Vec<u32>, SpecError> {
        let spec = Spec {
            ranks: u32::try_from(part.members.len()).unwrap_or(u32::MAX),
            bytes,
            root: part.root,
            tag: *self.tag,
            ..Spec::default()
        };
        *self.tag += 1;
        let after = join(after, self.builder)?;
        let waits: Vec<(u32, Wait)> = after.iter().map(|op| (*op, Wait::Done)).collect();
        let members = |number: u32| part.members[number as usize];
        let place = Place { me: part.me, members: &members, space: self.call.space, sizes: None, after: &waits };
        let mut ends = Vec::new();
        emit(pattern, &spec, place, self.builder, &mut ends)?;
        Ok(if ends.is_empty() { after } else { ends })
    }
}
