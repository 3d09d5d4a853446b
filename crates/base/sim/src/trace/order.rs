// SPDX-License-Identifier: Apache-2.0
//! Order of events in the file, and the rows (lanes) of a track with overlapping slices.

use std::cmp::Reverse;

use super::record::Event;
use crate::Time;

/// One packet of the file: the start or the end of a slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Time,
    /// Index of the lane among those of all tracks.
    pub(super) lane: u32,
    pub(super) event: u32,
    pub(super) end: bool,
}

/// One row of a track. `number` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) track: u32,
    pub(super) number: u32,
}

/// Distributes slices over lanes and sorts their starts and ends. Every track has at least one lane. Two slices of one
/// lane are disjoint or nested, as Perfetto requires. Steps are sorted by time and then by lane; within a lane they are
/// in nesting order.
pub(super) fn order(events: &[Event], tracks: usize) -> (Vec<Lane>, Vec<Step>) {
    let mut sorted: Vec<u32> = (0..events.len() as u32).collect();
    // Sorts by start, outer slices first. Among equal slices the last recorded is the outermost, as slices are recorded
    // when they end; slices of length 0 contain nothing and follow one another.
    sorted.sort_by_key(|&number| {
        let event = &events[number as usize];
        let within = if event.end > event.start { u32::MAX - number } else { number };
        (event.track, event.start, Reverse(event.end), within)
    });
    let mut sorted = sorted.into_iter().peekable();
    let (mut lanes, mut steps) = (Vec::new(), Vec::with_capacity(2 * events.len()));
    for track in 0..tracks as u32 {
        let first = lanes.len();
        let mut open: Vec<Vec<u32>> = vec![Vec::new()];
        while let Some(number) = sorted.next_if(|&number| events[number as usize].track == track) {
            let event = &events[number as usize];
            let mut close = |lane: usize, stack: &mut Vec<u32>| {
                while let Some(&done) = stack.last() {
                    let at = events[done as usize].end;
                    if at > event.start {
                        break;
                    }
                    stack.pop();
                    steps.push(Step { at, lane: (first + lane) as u32, event: done, end: true });
                }
            };
            let fits = |stack: &Vec<u32>| stack.last().is_none_or(|outer| event.end <= events[*outer as usize].end);
            let mut lane = 0;
            loop {
                if lane == open.len() {
                    open.push(Vec::new());
                }
                close(lane, &mut open[lane]);
                if fits(&open[lane]) {
                    break;
                }
                lane += 1;
            }
            steps.push(Step { at: event.start, lane: (first + lane) as u32, event: number, end: false });
            open[lane].push(number);
        }
        for (number, mut stack) in open.into_iter().enumerate() {
            while let Some(done) = stack.pop() {
                let at = events[done as usize].end;
                steps.push(Step { at, lane: (first + number) as u32, event: done, end: true });
            }
            lanes.push(Lane { track, number: number as u32 });
        }
    }
    // The sort is stable, so the steps of one lane keep their order.
    steps.sort_by_key(|step| (step.at, step.lane));
    (lanes, steps)
}
