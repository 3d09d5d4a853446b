// SPDX-License-Identifier: Apache-2.0
//! Ports to host memory (§III-C): one channel each for writes, read requests, and read data. The off-cluster DMA engine
//! and the host-direct unit share all three.

use std::collections::VecDeque;

use machine::Pspin;
use sim::Clock;

use super::engines::beats;
use super::kinds::Issued;
use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::her::Range;
use crate::rate::Rate;

/// Capacity in beats of the buffer for read data that waits to be written.
const BUFFER: usize = 16;

/// Merges two streams of packets, packet by packet, round robin.
#[derive(Default)]
pub struct Join {
    arbiter: RoundRobin,
    /// Stream whose packet is offered and has not ended.
    held: Option<u32>,
}

impl Join {
    /// Returns the stream whose beat is offered, among those in the set `streams`.
    pub fn offer(&mut self, streams: u64) -> Option<u32> {
        if let Some(stream) = self.held {
            return (streams & 1 << stream != 0).then_some(stream);
        }
        let stream = self.arbiter.choice(streams)?;
        self.arbiter.grant(stream);
        self.held = Some(stream);
        Some(stream)
    }

    /// Ends the packet with the beat that is taken.
    pub fn end(&mut self) {
        self.held = None;
    }
}

/// Read data from the host for one command.
struct Data {
    /// Cycle in which the first beat arrives.
    at: Cycle,
    issued: Issued,
    /// Bytes outstanding.
    left: u32,
    /// Host's answer, once the access is performed.
    answer: Option<Answer>,
}

/// Host's answer to a read.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Data read.
    pub bytes: Vec<u8>,
    /// Set when the host refuses the address.
    pub is_refused: bool,
}

/// A beat of read data in the buffer.
#[derive(Clone, Copy)]
struct Stored {
    /// First cycle in which it can be written.
    at: Cycle,
    is_last: bool,
    is_refused: bool,
}

/// A read of the off-cluster DMA engine whose data is being written.
struct Load {
    issued: Issued,
    /// Address of the next word to write, and number of words left.
    next: u32,
    left: u32,
}

/// Read data in flight to a handler: to the driver of its HPU, or to memory.
pub struct FromHost {
    /// Bandwidth of the channel.
    rate: Rate,
    data: VecDeque<Data>,
    buffer: VecDeque<Stored>,
    loads: VecDeque<Load>,
    answers: VecDeque<Answer>,
    /// Set when the stream of the first read has ended, but not all words of its range are written.
    is_drained: bool,
    width: u32,
}

impl FromHost {
    /// Creates an idle channel.
    pub fn new(unit: &Pspin, clock: Clock) -> FromHost {
        FromHost {
            rate: Rate::new(unit.host.gap_per_byte.max(unit.host.read_gap_per_byte), clock),
            data: VecDeque::new(),
            buffer: VecDeque::new(),
            loads: VecDeque::new(),
            answers: VecDeque::new(),
            is_drained: false,
            width: unit.nhi.width_bits / 8,
        }
    }

    /// Returns the next active cycle.
    pub fn wake(&self) -> Cycle {
        if !self.buffer.is_empty() || self.is_drained {
            return Cycle::ZERO;
        }
        self.data.front().map_or(Cycle::NEVER, |data| data.at.max(self.rate.free()))
    }

    /// Requests data for a command from the host; it starts arriving in cycle `at`. `range` is the destination, if it
    /// is memory.
    pub fn ask(&mut self, at: Cycle, issued: Issued, size: u32, range: Option<Range>) {
        self.data.push_back(Data { at, issued, left: size, answer: None });
        if let Some(range) = range {
            let next = range.address - range.address % self.width;
            self.loads.push_back(Load { issued, next, left: beats(range, self.width) });
        }
    }

    /// Returns the bytes that the host has not delivered yet.
    pub fn outstanding(&self) -> u32 {
        self.data.iter().map(|data| data.left).sum()
    }

    /// Returns the command whose read data starts arriving in cycle `now`, if the host access is not yet performed.
    pub fn begins(&self, now: Cycle) -> Option<Issued> {
        self.data.front().filter(|data| data.at <= now && data.answer.is_none()).map(|data| data.issued)
    }

    /// Supplies the host's answer for that command.
    pub fn answer(&mut self, answer: Answer) {
        if let Some(data) = self.data.front_mut() {
            data.answer = Some(answer);
        }
    }

    /// Receives a beat of data in cycle `now`; `is_direct` returns true if the data of a command goes to the driver of
    /// an HPU. Returns such a command once it is complete, with the host's answer.
    pub fn come(&mut self, now: Cycle, is_direct: impl Fn(&Issued) -> bool) -> Option<(Issued, Answer)> {
        let waiting = self.buffer.len();
        let data = self.data.front_mut().filter(|data| data.at <= now && self.rate.free() <= now)?;
        let goes_to_driver = is_direct(&data.issued);
        if !goes_to_driver && waiting == BUFFER {
            return None;
        }
        let bytes = data.left.min(self.width);
        self.rate.take(now, bytes);
        data.left -= bytes;
        let is_last = data.left == 0;
        if !goes_to_driver {
            let is_refused = data.answer.as_ref().is_some_and(|answer| answer.is_refused);
            self.buffer.push_back(Stored { at: now + 1_u64, is_last, is_refused });
        }
        if !is_last {
            return None;
        }
        let Data { issued, answer, .. } = self.data.pop_front()?;
        let answer = answer.unwrap_or_default();
        if goes_to_driver {
            return Some((issued, answer));
        }
        self.answers.push_back(answer);
        None
    }

    /// Writes the first buffered beat that is ready in cycle `now`. `port` returns true if the memory accepts the word.
    /// Returns the command whose last beat is written, with the host's answer.
    pub fn write(&mut self, now: Cycle, port: impl FnOnce(u32) -> bool) -> Option<(Issued, Answer)> {
        let load = self.loads.front_mut()?;
        let first = self.buffer.front().copied().filter(|stored| stored.at <= now);
        let ends = match first {
            Some(Stored { is_refused: true, is_last, .. }) if !self.is_drained => {
                self.buffer.pop_front();
                is_last
            }
            _ => {
                if !self.is_drained && first.is_none() || !port(load.next) {
                    return None;
                }
                if !self.is_drained {
                    self.buffer.pop_front();
                    self.is_drained = first.is_some_and(|stored| stored.is_last);
                }
                load.next = load.next.wrapping_add(self.width);
                load.left -= 1;
                load.left == 0
            }
        };
        if !ends {
            return None;
        }
        self.is_drained = false;
        let Load { issued, .. } = self.loads.pop_front()?;
        Some((issued, self.answers.pop_front().unwrap_or_default()))
    }
}
