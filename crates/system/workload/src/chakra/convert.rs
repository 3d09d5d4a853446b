// SPDX-License-Identifier: Apache-2.0
//! Conversion of traces to a schedule.
//!
//! CPU 0 of a rank executes its CPU operations and the messages, CPU 1 the computation of its accelerator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use goal::{Action, Builder, MAX_CALC_NS, MAX_RANKS, MAX_SPACE, Schedule, Wait};

use super::error::ChakraError;
use super::files::Files;
use super::groups::{Groups, of_dimensions};
use super::node::{Node, Work};
use super::reader;
use crate::collective::{Call, Collectives, MAX_CALLS, Operation, join};
use crate::switches::Switches;

/// CPU of an accelerator's computation.
const ACCELERATOR: u8 = 1;

/// Peak rates of an accelerator (roofline model).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Floating-point operations in a nanosecond.
    pub operations_per_ns: f64,
    /// Bytes of memory in a nanosecond.
    pub bytes_per_ns: f64,
}

/// Options of the conversion.
#[derive(Clone, Debug)]
pub struct Options {
    /// Algorithms of collectives.
    pub collectives: Collectives,
    /// Scale factor of all computation.
    pub calc_scale: f64,
    /// File of groups, as ASTRA-sim reads it.
    pub groups: Option<PathBuf>,
    /// Sides of the grid of ranks, for collectives of some dimensions; dimension 0 is that of neighbours.
    pub dims: Vec<u32>,
    /// Rates by which accelerators compute; without them nodes take their recorded durations.
    pub roofline: Option<Roofline>,
}

impl Default for Options {
    fn default() -> Options {
        let collectives = Collectives::default();
        Options { collectives, calc_scale: 1.0, groups: None, dims: Vec::new(), roofline: None }
    }
}

/// Schedule converted from traces, and a report of the traces.
#[derive(Debug)]
pub struct Import {
    /// Schedule.
    pub schedule: Schedule,
    /// Reports of all ranks.
    pub ranks: Vec<RankReport>,
    /// Warnings about parts of the traces that the schedule omits.
    pub warnings: Vec<String>,
}

/// Totals of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankReport {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of point-to-point messages that the rank sends.
    pub messages: u64,
    /// Bytes of these messages.
    pub message_bytes: u64,
    /// Number of collectives.
    pub collectives: u64,
    /// Bytes of these collectives, as the trace counts them.
    pub collective_bytes: u64,
    /// Computation in nanoseconds.
    pub compute_ns: u64,
}

/// Converts the traces of a workload to a schedule.
///
/// # Errors
/// See [`ChakraError`].
pub fn import(files: &Files, options: &Options) -> Result<Import, ChakraError> {
    let ranks = u32::try_from(files.paths().len()).unwrap_or(u32::MAX);
    let first = &files.paths()[0];
    let grid = options.dims.iter().try_fold(1u32, |product, side| product.checked_mul(*side));
    if !options.dims.is_empty() && grid != Some(ranks) {
        let problem = format!("a grid of {:?} has not the {ranks} ranks of the workload", options.dims);
        return Err(ChakraError::Files { path: first.clone(), problem });
    }
    let groups = options.groups.as_deref().map(|path| Groups::of_file(path, ranks)).transpose()?.unwrap_or_default();
    let switches = options.collectives.switches(ranks);
    let mut converter = Converter {
        options,
        ranks,
        builder: Builder::new(u32::try_from(switches.all_ranks()).unwrap_or(MAX_RANKS)),
        switches,
        groups,
        numbers: HashMap::new(),
        calls: Vec::new(),
        omitted: BTreeMap::new(),
        reports: Vec::new(),
    };
    for (rank, path) in (0..ranks).zip(files.paths()) {
        converter.rank(rank, path, &reader::open(path)?)?;
    }
    converter.finish(files)
}

/// Collective of a group, as its first rank calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    operation: Operation,
    bytes: u64,
    root: u64,
}

/// Calls of a group.
struct Calls {
    name: String,
    members: Vec<u32>,
    shapes: Vec<Shape>,
    /// Number of calls of each rank that called.
    counts: HashMap<u32, usize>,
}

struct Converter<'a> {
    options: &'a Options,
    ranks: u32,
    switches: Switches,
    builder: Builder,
    groups: Groups,
    /// Number of each group, by name and members.
    numbers: HashMap<(String, Vec<u32>), usize>,
    calls: Vec<Calls>,
    /// Nodes without time, by their kind.
    omitted: BTreeMap<&'static str, u64>,
    reports: Vec<RankReport>,
}

/// Group and number of a collective.
#[derive(Clone, Copy)]
struct Numbered {
    group: usize,
    number: usize,
}

impl Converter<'_> {
    fn rank(&mut self, rank: u32, path: &Path, nodes: &[Node]) -> Result<(), ChakraError> {
        for node in nodes {
            if let Work::Groups(text) = &node.work {
                let added = self.groups.add_of_trace(text, self.ranks);
                added.map_err(|problem| node.error(path, problem))?;
            }
        }
        let order = order(nodes, path)?;
        let numbered = self.number(rank, path, nodes)?;
        self.builder.begin_rank(rank);
        let mut report = RankReport { nodes: nodes.len() as u64, ..RankReport::default() };
        let index: HashMap<u64, usize> = nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
        for place in order {
            let node = &nodes[place];
            let mut after: Vec<u32> = node.after.iter().flat_map(|id| ends[index[id]].iter().copied()).collect();
            after.sort_unstable();
            after.dedup();
            let collective = numbered.get(&place).copied();
            ends[place] = self.work(rank, node, path, after, collective, &mut report)?;
        }
        self.reports.push(report);
        Ok(self.builder.end_rank()?)
    }

    /// Numbers the collectives of a rank in the order of their nodes' numbers, and compares them with those of other
    /// ranks.
    fn number(&mut self, rank: u32, path: &Path, nodes: &[Node]) -> Result<HashMap<usize, Numbered>, ChakraError> {
        let mut places: Vec<usize> = (0..nodes.len()).collect();
        places.sort_by_key(|place| nodes[*place].id);
        let mut numbered = HashMap::new();
        for place in places {
            let node = &nodes[place];
            let Work::Collective { operation, bytes, group, root, involved } = &node.work else { continue };
            let (name, members) = self.group(rank, node, path, group, involved)?;
            if !members.contains(&rank) {
                return Err(node.error(path, format!("rank {rank} is not in its group {name}")));
            }
            if *root >= members.len() as u64 {
                return Err(
                    node.error(path, format!("root {root} is not among the {} members of its group", members.len()))
                );
            }
            let next = self.calls.len();
            let group = *self.numbers.entry((name.clone(), members.clone())).or_insert(next);
            if group == next {
                self.calls.push(Calls { name, members, shapes: Vec::new(), counts: HashMap::new() });
            }
            let calls = &mut self.calls[group];
            let count = calls.counts.entry(rank).or_insert(0);
            let shape = Shape { operation: *operation, bytes: *bytes, root: *root };
            match calls.shapes.get(*count) {
                None => calls.shapes.push(shape),
                Some(other) if *other == shape => {}
                Some(other) => {
                    let problem = format!(
                        "collective {} of group {} is {} of {bytes} bytes, but {} of {} bytes on the ranks before: the \
                         traces are of different runs",
                        *count + 1,
                        calls.name,
                        operation.name(),
                        other.operation.name(),
                        other.bytes
                    );
                    return Err(node.error(path, problem));
                }
            }
            numbered.insert(place, Numbered { group, number: *count });
            *count += 1;
        }
        Ok(numbered)
    }

    fn group(
        &self,
        rank: u32,
        node: &Node,
        path: &Path,
        name: &str,
        involved: &[bool],
    ) -> Result<(String, Vec<u32>), ChakraError> {
        if !name.is_empty() {
            let members = self.groups.members(name, self.ranks);
            let unknown = || node.error(path, format!("group {name} is unknown: give the file of groups (--groups)"));
            return Ok((name.to_owned(), members.ok_or_else(unknown)?));
        }
        if involved.iter().all(|dim| *dim) {
            return Ok(("of all ranks".into(), (0..self.ranks).collect()));
        }
        if self.options.dims.is_empty() {
            let problem = "its collective is of some dimensions: give the sides of the grid of ranks (--dims)";
            return Err(node.error(path, problem));
        }
        Ok((format!("of dimensions {involved:?}"), of_dimensions(rank, &self.options.dims, involved)))
    }

    /// Adds the operations of a node. Returns those at its end.
    fn work(
        &mut self,
        rank: u32,
        node: &Node,
        path: &Path,
        after: Vec<u32>,
        collective: Option<Numbered>,
        report: &mut RankReport,
    ) -> Result<Vec<u32>, ChakraError> {
        let peer = |number: u64| {
            let found = u32::try_from(number).ok().filter(|peer| *peer < self.ranks);
            found.ok_or_else(|| node.error(path, format!("rank {number} does not exist: there are {}", self.ranks)))
        };
        let tag = |number: u64| {
            let found = u32::try_from(number).ok().filter(|tag| *tag < u32::MAX);
            found.ok_or_else(|| node.error(path, format!("tag {number} is beyond 32 bits")))
        };
        let action = match &node.work {
            Work::Nothing | Work::Groups(_) => return Ok(join(after, &mut self.builder)?),
            Work::Compute { on_cpu, operations, bytes } => {
                let ns = self.compute_ns(node, path, *on_cpu, *operations, *bytes)?;
                return self.calc(ns, if *on_cpu { 0 } else { ACCELERATOR }, &after, report);
            }
            Work::Memory { bytes } => {
                if node.duration_ns == 0 && *bytes > 0 {
                    *self.omitted.entry("accesses to remote memory without a duration").or_default() += 1;
                }
                return self.calc(node.duration_ns, ACCELERATOR, &after, report);
            }
            Work::Other(kind) => {
                if node.duration_ns == 0 {
                    *self.omitted.entry(kind).or_default() += 1;
                }
                return self.calc(node.duration_ns, 0, &after, report);
            }
            &Work::Send { from, to, bytes, tag: number } => {
                if from.is_some_and(|from| from != u64::from(rank)) {
                    return Err(node.error(
                        path,
                        format!("it sends from rank {}, in the trace of rank {rank}", from.unwrap_or(0)),
                    ));
                }
                report.messages += 1;
                report.message_bytes = report.message_bytes.saturating_add(bytes);
                Action::Send { bytes, to: peer(to)?, tag: tag(number)?, space: 0 }
            }
            &Work::Recv { from, to, bytes, tag: number } => {
                if to.is_some_and(|to| to != u64::from(rank)) {
                    return Err(node
                        .error(path, format!("it receives on rank {}, in the trace of rank {rank}", to.unwrap_or(0))));
                }
                Action::Recv { bytes, from: Some(peer(from)?), tag: Some(tag(number)?), space: 0 }
            }
            Work::Collective { operation, bytes, root, .. } => {
                report.collectives += 1;
                report.collective_bytes = report.collective_bytes.saturating_add(*bytes);
                let Some(Numbered { group, number }) = collective else {
                    return Err(node.error(path, "its collective has no group"));
                };
                let members = &self.calls[group].members;
                let me = members.iter().position(|member| *member == rank).unwrap_or_default();
                let call = Call {
                    operation: *operation,
                    bytes: *bytes,
                    root: u32::try_from(*root).unwrap_or(0),
                    members,
                    me: u32::try_from(me).unwrap_or(u32::MAX),
                    space: space(group),
                    number: u32::try_from(number % MAX_CALLS as usize).unwrap_or(0),
                };
                return Ok(self.options.collectives.add(&call, &after, &mut self.switches, &mut self.builder)?);
            }
        };
        Ok(vec![self.add(action, 0, &after)?])
    }

    fn add(&mut self, action: Action, cpu: u8, after: &[u32]) -> Result<u32, ChakraError> {
        let op = self.builder.add(action, cpu, 0)?;
        after.iter().for_each(|earlier| self.builder.depend(op, *earlier, Wait::Done));
        Ok(op)
    }

    fn calc(&mut self, ns: u64, cpu: u8, after: &[u32], report: &mut RankReport) -> Result<Vec<u32>, ChakraError> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a larger product becomes u64::MAX"
        )]
        let ns = if self.options.calc_scale == 1.0 { ns } else { (ns as f64 * self.options.calc_scale).round() as u64 };
        let ns = ns.min(MAX_CALC_NS);
        report.compute_ns = report.compute_ns.saturating_add(ns);
        Ok(vec![self.add(Action::Calc(ns), cpu, after)?])
    }

    /// Returns the time of a computation: its recorded duration, or on an accelerator that of the roofline.
    fn compute_ns(
        &self,
        node: &Node,
        path: &Path,
        on_cpu: bool,
        operations: u64,
        bytes: u64,
    ) -> Result<u64, ChakraError> {
        match self.options.roofline {
            Some(roofline) if !on_cpu && operations > 0 => {
                let arithmetic = operations as f64 / roofline.operations_per_ns;
                let memory = bytes as f64 / roofline.bytes_per_ns;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                let ns = arithmetic.max(memory).round() as u64;
                Ok(ns.min(MAX_CALC_NS))
            }
            None if node.duration_ns == 0 && operations > 0 => {
                let problem = "it has operations but no duration: give the rates of the accelerator \
                               (--peak-tflops, --memory-gbps)";
                Err(node.error(path, problem))
            }
            _ => Ok(node.duration_ns),
        }
    }

    fn finish(mut self, files: &Files) -> Result<Import, ChakraError> {
        for calls in &self.calls {
            for member in &calls.members {
                let count = calls.counts.get(member).copied().unwrap_or(0);
                if count != calls.shapes.len() {
                    let problem = format!(
                        "rank {member} has {count} of the {} collectives of group {}: the traces are of different runs",
                        calls.shapes.len(),
                        calls.name
                    );
                    return Err(ChakraError::Files { path: files.paths()[*member as usize].clone(), problem });
                }
            }
        }
        let mut warnings: Vec<String> =
            self.omitted.iter().map(|(kind, count)| format!("{count} nodes take no time: {kind}")).collect();
        if self.calls.len() > usize::from(MAX_SPACE) {
            warnings.push(format!("{} groups share {MAX_SPACE} matching spaces", self.calls.len()));
        }
        self.switches.add(&mut self.builder)?;
        Ok(Import { schedule: self.builder.finish()?, ranks: self.reports, warnings })
    }
}

/// Returns the matching space of a group; point-to-point messages have space 0.
fn space(group: usize) -> u16 {
    u16::try_from(group % usize::from(MAX_SPACE)).unwrap_or(0) + 1
}

/// Returns the nodes in an order in which each follows those that it waits for; otherwise in the order of the file.
fn order(nodes: &[Node], path: &Path) -> Result<Vec<usize>, ChakraError> {
    let mut index = HashMap::new();
    for (place, node) in nodes.iter().enumerate() {
        if index.insert(node.id, place).is_some() {
            return Err(node.error(path, "another node has the same number"));
        }
    }
    let mut waits = vec![0u32; nodes.len()];
    let mut dependents = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        for earlier in &node.after {
            let Some(earlier) = index.get(earlier) else {
                return Err(node.error(path, format!("it waits for node {earlier}, which is not in the file")));
            };
            dependents[*earlier].push(place);
            waits[place] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|place| waits[*place] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(place)) = ready.pop() {
        order.push(place);
        for later in &dependents[place] {
            waits[*later] -= 1;
            if waits[*later] == 0 {
                ready.push(Reverse(*later));
            }
        }
    }
    match (0..nodes.len()).find(|place| waits[*place] > 0) {
        None => Ok(order),
        Some(place) => Err(nodes[place].error(path, "it waits for itself, through other nodes")),
    }
}
