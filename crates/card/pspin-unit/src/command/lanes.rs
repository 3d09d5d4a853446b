// SPDX-License-Identifier: Apache-2.0
//! Queues of commands by tenant (`accelerator.sharing`), from which an engine takes parts of at most `fragment_bytes`.
//!
//! OSMOSIS (ATC'24) fragments transfers so that a large one does not hold up the small one of another tenant. A tenant
//! gets data in proportion to its weight among those with commands: the next part is that of the tenant with the lowest
//! virtual time, which advances by the bytes of its parts over its weight.

use std::collections::VecDeque;

use machine::{Scheduler, Sharing};

use super::kinds::{Command, Issued, Part};
use crate::cycle::Cycle;

/// Virtual time of a byte at weight 1.
const SCALE: u64 = 1 << 16;

/// Commands of one tenant.
#[derive(Default)]
struct Lane {
    commands: VecDeque<(Cycle, Issued)>,
    /// Bytes of the first command that are already in parts.
    started: u32,
    /// Virtual time.
    time: u64,
}

/// Commands of all tenants for one engine.
pub struct Lanes {
    lanes: Vec<Lane>,
    fragment: Option<u32>,
    is_strict: bool,
    /// Virtual time of the latest part.
    time: u64,
}

impl Lanes {
    /// Creates empty queues, if the machine separates tenants or divides transfers.
    pub fn new(sharing: &Sharing) -> Option<Lanes> {
        let is_on = sharing.separated().is_some() || sharing.fragment.is_some();
        let is_strict = sharing.scheduler == Some(Scheduler::Strict);
        is_on.then(|| Lanes { lanes: Vec::new(), fragment: sharing.fragment, is_strict, time: 0 })
    }

    /// Queues a command of its tenant, whose first part may be taken in cycle `from`.
    pub fn push(&mut self, from: Cycle, issued: Issued) {
        let index = issued.tenant as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        let lane = &mut self.lanes[index];
        if lane.commands.is_empty() {
            // Time without commands earns no credit.
            lane.time = lane.time.max(self.time);
        }
        lane.commands.push_back((from, issued));
    }

    /// Returns the first cycle in which a part can be taken.
    pub fn wake(&self) -> Cycle {
        let first = self.lanes.iter().filter_map(|lane| lane.commands.front());
        first.map(|(from, _)| *from).min().unwrap_or(Cycle::NEVER)
    }

    /// Takes the next part in cycle `now`, and returns it with the first cycle of its command.
    pub fn next(&mut self, now: Cycle) -> Option<(Cycle, Issued)> {
        let ready = |lane: &Lane| lane.commands.front().is_some_and(|(from, _)| *from <= now);
        let priority = |lane: &Lane| match (self.is_strict, lane.commands.front()) {
            (true, Some((_, issued))) => u8::MAX - issued.share.priority,
            _ => 0,
        };
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| ready(lane));
        let (index, _) = lanes.min_by_key(|(index, lane)| (priority(lane), lane.time, *index))?;
        let lane = &mut self.lanes[index];
        let (from, issued) = *lane.commands.front()?;
        let left = issued.command.local().unwrap_or_default().size - lane.started;
        // The card itself moves the data of its commands.
        let is_whole = matches!(issued.command, Command::Card { .. });
        let size = self.fragment.filter(|_| !is_whole).map_or(left, |fragment| fragment.min(left));
        let part = Part { start: lane.started, size, is_last: size == left };
        self.time = lane.time;
        lane.time += u64::from(size.max(1)) * SCALE / u64::from(issued.share.weight.max(1));
        lane.started += size;
        if part.is_last {
            lane.started = 0;
            lane.commands.pop_front();
        }
        Some((from, Issued { part: Some(part), ..issued }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, Send};
    use crate::her::{HpuId, Range, Share};

    fn lanes(scheduler: Scheduler, fragment: Option<u32>) -> Lanes {
        Lanes::new(&Sharing { scheduler: Some(scheduler), fragment, hold_cycles: None }).unwrap()
    }

    fn send(tenant: u32, size: u32, weight: u32, priority: u8) -> Issued {
        let command =
            Command::Send { data: Range { address: 0x1c00_0000, size }, send: Send { node: 0, flow: 0, user: 0 } };
        let issued = Issued::new(HpuId { cluster: 0, hpu: 0 }, 0, command);
        Issued { tenant, share: Share { weight, priority }, ..issued }
    }

    /// Returns tenant, offset and size of all parts.
    fn parts(lanes: &mut Lanes) -> Vec<(u32, u32, u32)> {
        let all = std::iter::from_fn(|| lanes.next(Cycle(9)));
        all.map(|(_, Issued { tenant, part, .. })| (tenant, part.unwrap().start, part.unwrap().size)).collect()
    }

    #[test]
    fn whole_commands_stay_in_order_without_the_keys() {
        assert!(Lanes::new(&Sharing::default()).is_none());
        let fifo = Sharing { scheduler: Some(Scheduler::Fifo), ..Sharing::default() };
        assert!(Lanes::new(&fifo).is_none());
    }

    /// A copy of 64 B waits for one part of 512 B, not for 4 KiB.
    #[test]
    fn a_small_command_passes_between_two_parts() {
        let mut lanes = lanes(Scheduler::Weighted, Some(512));
        lanes.push(Cycle(0), send(0, 1_100, 1, 0));
        assert_eq!(lanes.next(Cycle(0)).unwrap().1.part, Some(Part { start: 0, size: 512, is_last: false }));
        lanes.push(Cycle(3), send(1, 64, 1, 0));
        assert_eq!(lanes.wake(), Cycle(0));
        assert_eq!(parts(&mut lanes), [(1, 0, 64), (0, 512, 512), (0, 1_024, 76)]);
        assert_eq!(lanes.wake(), Cycle::NEVER);
    }

    #[test]
    fn tenants_get_bytes_by_weight() {
        let mut lanes = lanes(Scheduler::Weighted, Some(64));
        lanes.push(Cycle(0), send(0, 640, 1, 0));
        lanes.push(Cycle(0), send(1, 1_920, 3, 0));
        let found = parts(&mut lanes);
        let of_first = found[..16].iter().filter(|part| part.0 == 0).count();
        assert_eq!((of_first, found.len()), (4, 40));
    }

    #[test]
    fn the_higher_priority_goes_first() {
        let mut lanes = lanes(Scheduler::Strict, None);
        lanes.push(Cycle(0), send(0, 640, 1, 0));
        lanes.push(Cycle(0), send(1, 64, 1, 5));
        lanes.push(Cycle(0), send(1, 64, 1, 5));
        assert_eq!(parts(&mut lanes), [(1, 0, 64), (1, 0, 64), (0, 0, 640)]);
    }
}
