//! The ports to host memory (§III-C): one channel for writes, one for requests to read, and one for the data that comes. The off-cluster
//! DMA engine and the host-direct unit share each of them.

use std::collections::VecDeque;

use machine::Pspin;
use sim::Clock;

use super::engines::beats;
use super::kinds::Issued;
use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::her::Range;
use crate::rate::Rate;

/// Beats of the host's data that wait to be written.
const BUFFER: usize = 16;

/// Two streams of packets that become one, packet by packet in turn.
#[derive(Default)]
pub struct Join {
    arbiter: RoundRobin,
    /// The stream whose packet has been offered and has not ended.
    held: Option<u32>,
}

impl Join {
    /// The stream whose beat is offered, of those that have one.
    pub fn offer(&mut self, streams: u64) -> Option<u32> {
        if let Some(stream) = self.held {
            return (streams & 1 << stream != 0).then_some(stream);
        }
        let stream = self.arbiter.choice(streams)?;
        self.arbiter.grant(stream);
        self.held = Some(stream);
        Some(stream)
    }

    /// The packet ends with the beat that is taken.
    pub fn end(&mut self) {
        self.held = None;
    }
}

/// Data that comes from the host, for one command.
struct Data {
    /// When it begins to come.
    at: Cycle,
    issued: Issued,
    /// Bytes that have not come.
    left: u32,
    /// What the host says, when it has been asked.
    answer: Option<Answer>,
}

/// What the host says to a read.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether it refuses the address.
    pub is_refused: bool,
}

/// A beat of the host's data in the buffer.
#[derive(Clone, Copy)]
struct Stored {
    /// The first cycle in which it can be written.
    at: Cycle,
    is_last: bool,
    is_refused: bool,
}

/// A read of the off-cluster DMA engine whose data is written.
struct Load {
    issued: Issued,
    /// The next word that is written, and how many are left.
    next: u32,
    left: u32,
}

/// Data from the host on its way to a handler: to the driver of its HPU, or to memory.
pub struct FromHost {
    /// The channel gives this much.
    rate: Rate,
    data: VecDeque<Data>,
    buffer: VecDeque<Stored>,
    loads: VecDeque<Load>,
    answers: VecDeque<Answer>,
    /// The stream of the first read has ended before its range.
    is_drained: bool,
    width: u32,
}

impl FromHost {
    /// Nothing comes.
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

    /// The next cycle in which something happens.
    pub fn wake(&self) -> Cycle {
        if !self.buffer.is_empty() || self.is_drained {
            return Cycle::ZERO;
        }
        self.data.front().map_or(Cycle::NEVER, |data| data.at.max(self.rate.free()))
    }

    /// A command asks the host for data, which begins to come in cycle `at`; `range` is where it goes, if it goes to memory.
    pub fn ask(&mut self, at: Cycle, issued: Issued, size: u32, range: Option<Range>) {
        self.data.push_back(Data { at, issued, left: size, answer: None });
        if let Some(range) = range {
            let next = range.address - range.address % self.width;
            self.loads.push_back(Load { issued, next, left: beats(range, self.width) });
        }
    }

    /// The command whose data begins to come in cycle `now`, of which the host has not been asked.
    pub fn begins(&self, now: Cycle) -> Option<Issued> {
        self.data.front().filter(|data| data.at <= now && data.answer.is_none()).map(|data| data.issued)
    }

    /// What the host says to that.
    pub fn answer(&mut self, answer: Answer) {
        if let Some(data) = self.data.front_mut() {
            data.answer = Some(answer);
        }
    }

    /// A beat of data comes in cycle `now`; `is_direct` says whether the data of a command goes to the driver of an HPU. Returns such a
    /// command, which is done, with what the host has said.
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

    /// Writes the first beat that is there in cycle `now`. `port` takes the word in the memory, unless it is taken. Returns the command
    /// whose last beat is written, with what the host has said.
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
