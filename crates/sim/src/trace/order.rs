//! The order of events in the file, and the lanes that overlapping slices need.

use std::cmp::Reverse;

use super::{Event, What};
use crate::Time;

/// One packet to be: the start or end of a slice, or an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) at: Time,
    /// Number of the lane, over all tracks.
    pub(super) lane: u32,
    pub(super) event: u32,
    pub(super) end: bool,
}

/// A row of the picture: lane `number`, from 0, of `track`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) track: u32,
    pub(super) number: u32,
}

/// Every track has at least one lane. In a lane two slices are apart or one is within the other, as Perfetto demands.
/// Steps come by time, and at one time lane by lane, in the order that nests them.
pub(super) fn order(events: &[Event], tracks: usize) -> (Vec<Lane>, Vec<Step>) {
    let mut sorted: Vec<u32> = (0..events.len() as u32).collect();
    // By start, a slice before those that it contains.
    sorted.sort_by_key(|&number| {
        let event = &events[number as usize];
        (event.track, event.start, Reverse(end(event)), number)
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
                    let at = end(&events[done as usize]);
                    if at > event.start {
                        break;
                    }
                    stack.pop();
                    steps.push(Step { at, lane: (first + lane) as u32, event: done, end: true });
                }
            };
            let fits = |stack: &Vec<u32>| stack.last().is_none_or(|outer| end(event) <= end(&events[*outer as usize]));
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
            if matches!(event.what, What::Slice { .. }) {
                open[lane].push(number);
            }
        }
        for (number, mut stack) in open.into_iter().enumerate() {
            while let Some(done) = stack.pop() {
                let at = end(&events[done as usize]);
                steps.push(Step { at, lane: (first + number) as u32, event: done, end: true });
            }
            lanes.push(Lane { track, number: number as u32 });
        }
    }
    // Stable: what is said of one lane stays in its order.
    steps.sort_by_key(|step| (step.at, step.lane));
    (lanes, steps)
}

fn end(event: &Event) -> Time {
    match event.what {
        What::Slice { end, .. } => end,
        What::Instant => event.start,
    }
}
