// SPDX-License-Identifier: Apache-2.0
//! Assigns each one-sided access to an epoch of its target. This requires the traces of all origins.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::event::{Access, Group, RankTrace, What, WindowCall};

/// Synchronisation of an access (MPI 4.1 §12.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epoch {
    /// After this number of fences.
    Fence(u32),
    /// Between start and complete, after this number of such epochs with this target.
    Started(u32),
    /// Opened by a lock, without a call of the target.
    Passive,
}

/// Epochs that a rank opens in a window to access others.
#[derive(Debug)]
pub struct Origin {
    rank: u32,
    fences: u32,
    /// Targets between start and complete, with the number of earlier such epochs.
    started: HashMap<u32, u32>,
    starts: HashMap<u32, u32>,
    locked: HashSet<u32>,
    all_locked: bool,
    /// Number of accesses to each target so far.
    accesses: HashMap<u32, u32>,
    /// Last access by a lock to each target since a flush, among accesses without an answer.
    unacknowledged: BTreeMap<u32, u32>,
}

impl Origin {
    pub fn new(rank: u32) -> Origin {
        Origin {
            rank,
            fences: 0,
            started: HashMap::new(),
            starts: HashMap::new(),
            locked: HashSet::new(),
            all_locked: false,
            accesses: HashMap::new(),
            unacknowledged: BTreeMap::new(),
        }
    }

    /// Returns the epoch of an access and the number of earlier accesses to its target. Returns `None` for an access to
    /// the rank itself, which needs no message.
    pub fn access(&mut self, access: &Access) -> Option<(Epoch, u32)> {
        let target = access.target;
        if target == self.rank {
            return None;
        }
        let before = self.accesses.entry(target).or_default();
        let number = *before;
        *before += 1;
        let epoch = if self.all_locked || self.locked.contains(&target) {
            Epoch::Passive
        } else if let Some(&times) = self.started.get(&target) {
            Epoch::Started(times)
        } else {
            Epoch::Fence(self.fences)
        };
        if epoch == Epoch::Passive && access.back.is_none() {
            self.unacknowledged.insert(target, number);
        }
        Some((epoch, number))
    }

    /// Processes a call. Returns the targets whose acknowledgements it waits for, with the last access to each.
    pub fn call(&mut self, call: &WindowCall) -> Vec<(u32, u32)> {
        match call {
            WindowCall::Fence => self.fences += 1,
            WindowCall::Start(targets) => {
                for &target in targets.iter().filter(|&&target| target != self.rank) {
                    let times = self.starts.entry(target).or_default();
                    self.started.insert(target, *times);
                    *times += 1;
                }
            }
            WindowCall::Complete => self.started.clear(),
            WindowCall::Lock(Some(target)) => drop(self.locked.insert(*target)),
            WindowCall::Lock(None) => self.all_locked = true,
            WindowCall::Unlock(target) => {
                match target {
                    Some(target) => drop(self.locked.remove(target)),
                    None => self.all_locked = false,
                }
                return self.flush(*target);
            }
            WindowCall::Flush(target) => return self.flush(*target),
            _ => {}
        }
        Vec::new()
    }

    fn flush(&mut self, target: Option<u32>) -> Vec<(u32, u32)> {
        match target {
            Some(target) => self.unacknowledged.remove_entry(&target).into_iter().collect(),
            None => std::mem::take(&mut self.unacknowledged).into_iter().collect(),
        }
    }

    /// Returns the number of fences so far.
    pub fn fences(&self) -> u32 {
        self.fences
    }

    /// Returns the targets between start and complete in rank order, with the number of earlier such epochs.
    pub fn started(&self) -> Vec<(u32, u32)> {
        let mut all: Vec<_> = self.started.iter().map(|(&target, &times)| (target, times)).collect();
        all.sort_unstable();
        all
    }
}

/// The target's view of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub from: u32,
    /// Number of earlier accesses of that rank to this one.
    pub number: u32,
    pub access: Access,
}

/// An item of the accesses by locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passive {
    Access(Arrival),
    /// The rank `from` waits until its accesses up to this number are complete.
    Acknowledge {
        from: u32,
        number: u32,
    },
}

/// Accesses to a rank in a window, in the order of each origin.
#[derive(Debug, Default)]
pub struct Incoming {
    /// Accesses after each number of fences.
    pub fences: HashMap<u32, Vec<Arrival>>,
    /// Accesses of each origin, by the origin and its number of earlier epochs.
    pub posts: HashMap<(u32, u32), Vec<Arrival>>,
    pub passive: Vec<Passive>,
}

/// Accesses to all ranks in all windows.
#[derive(Debug, Default)]
pub struct Arrivals {
    windows: HashMap<Arc<Group>, usize>,
    /// Accesses by window and target.
    incoming: Vec<HashMap<u32, Incoming>>,
}

impl Arrivals {
    /// Adds the accesses of a rank.
    pub fn add(&mut self, rank: u32, trace: &RankTrace) {
        // Identity of each window, by its index among the rank's communicators.
        let mut own: HashMap<u32, (usize, Origin)> = HashMap::new();
        for event in &trace.events {
            match &event.what {
                What::Window(place, call) if **call == WindowCall::Create => {
                    let fresh = self.incoming.len();
                    let group = &trace.comms[*place as usize];
                    let window = *self.windows.entry(Arc::clone(group)).or_insert(fresh);
                    if window == fresh {
                        self.incoming.push(HashMap::new());
                    }
                    own.insert(*place, (window, Origin::new(rank)));
                }
                What::Window(place, call) => {
                    let Some((window, origin)) = own.get_mut(place) else { continue };
                    for (target, number) in origin.call(call) {
                        let incoming = self.incoming[*window].entry(target).or_default();
                        incoming.passive.push(Passive::Acknowledge { from: rank, number });
                    }
                }
                What::Access(access) => {
                    let Some((window, origin)) = own.get_mut(&access.window) else { continue };
                    let Some((epoch, number)) = origin.access(access) else { continue };
                    let arrival = Arrival { from: rank, number, access: **access };
                    let incoming = self.incoming[*window].entry(access.target).or_default();
                    match epoch {
                        Epoch::Fence(fences) => incoming.fences.entry(fences).or_default().push(arrival),
                        Epoch::Started(times) => incoming.posts.entry((rank, times)).or_default().push(arrival),
                        Epoch::Passive => incoming.passive.push(Passive::Access(arrival)),
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the accesses to a rank in a window.
    pub fn to(&self, window: &Group, rank: u32) -> Option<&Incoming> {
        self.windows.get(window).and_then(|&window| self.incoming[window].get(&rank))
    }
}
