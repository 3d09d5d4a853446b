// SPDX-License-Identifier: Apache-2.0
//! Determines the members of communicators. For each communicator, a liballprof trace has a number valid only on this
//! rank, and the rank's index in it. The other members follow from matching the calls of all ranks that created it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::arguments::{Arguments, CommUse, parse};
use super::calls::Call;
use super::line::Line;
use crate::error::Damage;
use crate::event::{Group, index_of};

/// An item of a rank's trace that concerns a communicator.
#[derive(Debug)]
enum Item {
    /// First use of a number since the last communicator with that number was freed.
    Sight { used: CommUse, line: u64 },
    /// A communicator is created from another one.
    Make { parent: i64, how: How, address: u64 },
    /// The communicator at an address is freed.
    Free { address: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Dup,
    Split {
        color: i64,
        key: i64,
    },
    Other,
    /// Created by only some of the parent's ranks.
    Group,
}

/// Communicator items in a rank's trace.
pub struct Survey(Vec<Item>);

/// Detects sights among the uses of communicators, both for the survey and for reading a trace.
#[derive(Default)]
pub struct Sights {
    seen: HashSet<i64>,
}

impl Sights {
    pub fn is_new(&mut self, handle: i64) -> bool {
        self.seen.insert(handle)
    }

    pub fn freed(&mut self) {
        self.seen.clear();
    }
}

/// Collects the items of a trace that concern communicators.
pub fn survey(mut rest: &[u8]) -> Result<Survey, Damage> {
    let (mut line, mut arguments, mut sights) = (Line::new(), Arguments::default(), Sights::default());
    let mut items = Vec::new();
    while line.next(&mut rest)? {
        let call = parse(&line, &mut arguments)?;
        if let Some(used) = arguments.comm.filter(|_| !matches!(call, Call::Local | Call::Other))
            && sights.is_new(used.handle)
        {
            items.push(Item::Sight { used, line: line.number() });
        }
        let how = match call {
            Call::Dup => How::Dup,
            Call::Split => How::Split { color: arguments.keys[0], key: arguments.keys[1] },
            Call::OtherComm => How::Other,
            Call::GroupComm => How::Group,
            Call::CommFree => {
                sights.freed();
                items.push(Item::Free { address: arguments.made.unwrap_or(0) });
                continue;
            }
            _ => continue,
        };
        if let (Some(used), Some(address)) = (arguments.comm, arguments.made) {
            items.push(Item::Make { parent: used.handle, how, address });
        }
    }
    Ok(Survey(items))
}

/// Communicators of a rank, and for each sight, in order, its communicator.
pub struct Known {
    pub comms: Vec<Arc<Group>>,
    pub sights: Vec<u32>,
}

/// Error of mismatched communicators: rank and location.
pub struct Misfit {
    pub rank: u32,
    pub damage: Damage,
}

/// A communicator: the rank for each index in it.
type Places = Vec<Option<u32>>;

/// An operation that creates communicators from another one.
struct Making {
    /// Colour and key of each rank of the parent that has made the call so far.
    given: Vec<Option<(i64, i64)>>,
    missing: usize,
    /// Resulting communicators, by colour, or by size if only that is known.
    made: BTreeMap<i64, usize>,
}

/// A communicator that a rank has created and not used yet.
#[derive(Clone, Copy)]
struct Unused {
    making: usize,
    how: How,
    address: u64,
}

#[derive(Default)]
struct RankState {
    next: usize,
    bound: HashMap<i64, usize>,
    unused: Vec<Unused>,
    /// Communicators in use, by the addresses of their variables.
    addresses: HashMap<u64, i64>,
    /// For each communicator, the number of communicators created from it, separately for those that only some of its
    /// ranks created.
    makings: HashMap<(usize, bool), u32>,
    sights: Vec<usize>,
}

struct Resolver {
    ranks: u32,
    comms: Vec<Places>,
    makings: Vec<Making>,
    /// Operations, by parent, by participation (true if only some of its ranks take part), and by the number of earlier
    /// ones.
    numbers: HashMap<(usize, bool, u32), usize>,
}

const WORLD: usize = 0;

/// Determines the members of all communicators.
pub fn resolve(surveys: &[Survey]) -> Result<Vec<Known>, Misfit> {
    let ranks = index_of(surveys.len());
    // MPI_COMM_WORLD is followed by one MPI_COMM_SELF for each rank.
    let world: Places = (0..ranks).map(Some).collect();
    let selves = (0..ranks).map(|rank| vec![Some(rank)]);
    let comms = std::iter::once(world).chain(selves).collect();
    let mut resolver = Resolver { ranks, comms, makings: Vec::new(), numbers: HashMap::new() };
    let mut states: Vec<RankState> = surveys.iter().map(|_| RankState::default()).collect();
    loop {
        let (mut moved, mut done) = (false, true);
        for ((rank, survey), state) in (0..).zip(surveys).zip(&mut states) {
            while let Some(item) = survey.0.get(state.next) {
                if !resolver.step(rank, item, state)? {
                    done = false;
                    break;
                }
                state.next += 1;
                moved = true;
            }
        }
        if done {
            break;
        }
        if !moved {
            return Err(stuck(surveys, &states));
        }
    }
    resolver.fill();
    let mut groups: HashMap<usize, Arc<Group>> = HashMap::new();
    let mut known = Vec::with_capacity(surveys.len());
    for (rank, state) in (0..).zip(states) {
        let mut all = Known { comms: Vec::new(), sights: Vec::with_capacity(state.sights.len()) };
        let mut places: HashMap<usize, u32> = HashMap::new();
        for comm in state.sights {
            let place = match places.get(&comm) {
                Some(&place) => place,
                None => {
                    all.comms.push(resolver.group(comm, &mut groups).map_err(|damage| Misfit { rank, damage })?);
                    let place = index_of(all.comms.len()) - 1;
                    places.insert(comm, place);
                    place
                }
            };
            all.sights.push(place);
        }
        known.push(all);
    }
    Ok(known)
}

fn stuck(surveys: &[Survey], states: &[RankState]) -> Misfit {
    for ((rank, survey), state) in (0..).zip(surveys).zip(states) {
        if let Some(Item::Sight { used, line }) = survey.0.get(state.next) {
            let what = format!(
                "communicator {} (rank {} of {}) comes from no call before, or the calls of other ranks are missing",
                used.handle, used.rank, used.size
            );
            return Misfit { rank, damage: Damage::at_line(*line, 1, what) };
        }
    }
    Misfit { rank: 0, damage: Damage::at_line(1, 1, "its communicators cannot be told".into()) }
}

impl Resolver {
    /// Processes one item of a rank. Returns false if it must wait for other ranks.
    fn step(&mut self, rank: u32, item: &Item, state: &mut RankState) -> Result<bool, Misfit> {
        match *item {
            Item::Free { address } => {
                if let Some(handle) = state.addresses.remove(&address) {
                    state.bound.remove(&handle);
                } else {
                    // The communicator was created and freed without use.
                    state.unused.retain(|unused| unused.address != address);
                }
            }
            Item::Make { parent, how, address } => {
                // The parent's first use is this very call.
                let Some(&parent) = state.bound.get(&parent) else { return Ok(false) };
                let making = self.make(rank, parent, how, state);
                if !matches!(how, How::Split { color, .. } if color < 0) {
                    state.unused.push(Unused { making, how, address });
                }
            }
            Item::Sight { used, line } => {
                if used.size > self.ranks {
                    let (handle, size) = (used.handle, used.size);
                    let what = format!("communicator {handle} has {size} ranks, but there are {} traces", self.ranks);
                    return Err(Misfit { rank, damage: Damage::at_line(line, 1, what) });
                }
                let Some(comm) = self.bind(rank, used, state) else { return Ok(false) };
                let place = &mut self.comms[comm][used.rank as usize];
                if place.is_some_and(|other| other != rank) {
                    let what = format!("rank {} of communicator {} is another process, too", used.rank, used.handle);
                    return Err(Misfit { rank, damage: Damage::at_line(line, 1, what) });
                }
                *place = Some(rank);
                state.bound.insert(used.handle, comm);
                state.sights.push(comm);
            }
        }
        Ok(true)
    }

    fn make(&mut self, rank: u32, parent: usize, how: How, state: &mut RankState) -> usize {
        let is_of_some = how == How::Group;
        let before = state.makings.entry((parent, is_of_some)).or_default();
        let size = self.comms[parent].len();
        let fresh = self.makings.len();
        let making = *self.numbers.entry((parent, is_of_some, *before)).or_insert(fresh);
        *before += 1;
        if making == fresh {
            self.makings.push(Making { given: vec![None; size], missing: size, made: BTreeMap::new() });
        }
        match how {
            How::Dup if making == fresh => {
                self.comms.push(self.comms[parent].clone());
                self.makings[making].made.insert(size as i64, self.comms.len() - 1);
            }
            How::Split { color, key } => {
                let place = self.comms[parent].iter().position(|&other| other == Some(rank));
                let all = &mut self.makings[making];
                if let Some(given) = place.and_then(|place| all.given.get_mut(place)) {
                    all.missing -= usize::from(given.is_none());
                    *given = Some((color, key));
                }
                if all.missing == 0 && all.made.is_empty() {
                    self.split(parent, making);
                }
            }
            _ => {}
        }
        making
    }

    /// Creates the communicators once all ranks have given colour and key (MPI 4.1 §7.4.2).
    fn split(&mut self, parent: usize, making: usize) {
        let mut colors: BTreeMap<i64, Vec<(i64, Option<u32>)>> = BTreeMap::new();
        for (given, &rank) in self.makings[making].given.iter().zip(&self.comms[parent]) {
            if let Some((color, key)) = *given {
                colors.entry(color).or_default().push((key, rank));
            }
        }
        for (color, mut members) in colors.into_iter().filter(|(color, _)| *color >= 0) {
            members.sort_by_key(|member| member.0);
            self.comms.push(members.into_iter().map(|member| member.1).collect());
            self.makings[making].made.insert(color, self.comms.len() - 1);
        }
    }

    /// Returns the communicator of a number.
    fn bind(&mut self, rank: u32, used: CommUse, state: &mut RankState) -> Option<usize> {
        let fits = |comm: &Places| {
            comm.len() == used.size as usize && comm[used.rank as usize].is_none_or(|other| other == rank)
        };
        if let Some(&comm) = state.bound.get(&used.handle).filter(|&&comm| fits(&self.comms[comm])) {
            return Some(comm);
        }
        if !state.bound.values().any(|&comm| comm == WORLD) && (used.rank, used.size) == (rank, self.ranks) {
            return Some(WORLD);
        }
        let mut found = None;
        for (index, unused) in state.unused.iter().enumerate() {
            let making = &mut self.makings[unused.making];
            let comm = match unused.how {
                How::Dup => making.made.values().next().copied(),
                // Until the colours of all ranks are known, it may be this communicator.
                How::Split { .. } if making.made.is_empty() => return None,
                How::Split { color, .. } => making.made.get(&color).copied(),
                How::Other | How::Group => Some(*making.made.entry(used.size.into()).or_insert_with(|| {
                    self.comms.push(vec![None; used.size as usize]);
                    self.comms.len() - 1
                })),
            };
            if let Some(comm) = comm.filter(|&comm| fits(&self.comms[comm])) {
                found = Some((index, comm));
                break;
            }
        }
        if let Some((index, comm)) = found {
            let unused = state.unused.remove(index);
            state.addresses.insert(unused.address, used.handle);
            return Some(comm);
        }
        (used.size == 1).then_some(1 + rank as usize)
    }

    /// Returns the processes of a communicator, all of them known at this point.
    fn group(&self, comm: usize, groups: &mut HashMap<usize, Arc<Group>>) -> Result<Arc<Group>, Damage> {
        if let Some(group) = groups.get(&comm) {
            return Ok(Arc::clone(group));
        }
        let local: Option<Vec<u32>> = self.comms[comm].iter().copied().collect();
        let Some(local) = local else {
            let what = "a communicator's processes cannot be told from a liballprof trace: not all of them use it";
            return Err(Damage::at_line(1, 1, what.into()));
        };
        let group = Arc::new(Group { local, remote: None, ordinal: index_of(comm) });
        groups.insert(comm, Arc::clone(&group));
        Ok(group)
    }

    /// Adds ranks that never use a communicator of all ranks of its parent: they are members nevertheless.
    fn fill(&mut self) {
        for comm in &mut self.comms {
            if comm.len() == self.ranks as usize && comm.contains(&None) {
                let there: HashSet<u32> = comm.iter().flatten().copied().collect();
                let mut missing = (0..self.ranks).filter(|rank| !there.contains(rank));
                comm.iter_mut().filter(|place| place.is_none()).for_each(|place| *place = missing.next());
            }
        }
    }
}
