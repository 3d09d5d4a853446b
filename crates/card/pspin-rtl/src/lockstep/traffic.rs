// SPDX-License-Identifier: Apache-2.0
//! Packets for both sides, and random packets: sizes, mixes of messages, bursts, reused message numbers, messages
//! without a last packet.

use sim::random;

/// Packet for both sides, arriving relative to the end of the boot.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Arrival, in cycles.
    pub at: u64,
    /// Bytes of the packet.
    pub bytes: Vec<u8>,
    /// Message number.
    pub message: u32,
    /// Set for the last packet of its message.
    pub is_last: bool,
    /// Number of bytes copied to L1.
    pub transfer: u32,
    /// Index of the context.
    pub context: usize,
}

/// Random number generator with the same sequence on every machine.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        random::next(&mut self.0)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

/// Returns true if a port is blocked in a cycle: a pure function of `seed` and `cycle`, true in `sixteenths`/16 of all
/// cycles.
pub fn is_held(seed: u64, cycle: u64, sixteenths: u64) -> bool {
    // In bursts of 8 cycles.
    random::mix(seed ^ (cycle / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15)) % 16 < sixteenths
}

/// Boundary sizes: beats, banks, the largest packets.
const EDGES: [u64; 10] = [1, 4, 63, 64, 65, 128, 512, 1_024, 1_500, 2_048];
/// Number of message numbers, which are reused, and of concurrent messages.
const NUMBERS: u64 = 24;
const OPEN: usize = 6;
/// Message queues of the smallest unit.
const QUEUES: u32 = 8;
/// Largest number of packets in a message.
const LONGEST: u64 = 8;

/// Offset of the packet's number, from which handlers derive a private address; the bytes before are random.
const NUMBER: usize = 4;
/// Idle cycles before messages without a last packet, so that all others end.
const PAUSE: u64 = 20_000;

/// Parameters of the random traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Least number of packets.
    pub packets: usize,
    /// Number of contexts.
    pub contexts: usize,
    /// Number of messages without a last packet at the end, each in its own queue.
    pub unfinished: u32,
    /// Number of earlier messages in 16 without a last packet. The next message of such a queue waits until it is given
    /// up.
    pub broken: u64,
}

/// Message whose packets are arriving.
struct Open {
    message: u32,
    left: u64,
    context: usize,
    is_broken: bool,
}

impl Traffic {
    /// Draws packets. All messages are complete except those declared otherwise.
    pub fn draw(&self, seed: u64) -> Vec<Packet> {
        let Traffic { packets: count, contexts, unfinished, broken } = *self;
        let mut random = Random::new(seed);
        let mut open: Vec<Open> = Vec::new();
        // Messages without a last packet. Another packet with the same number would belong to them if it arrived before
        // they are given up. The next message of their queue waits in the NIC until then; it arrives when no other
        // message is open, so that no message with late packets is given up. `alone` is that message when it is next.
        let mut waits: [Option<u32>; QUEUES as usize] = Default::default();
        let mut alone = None;
        let (mut at, mut packets) = (0, Vec::new());
        while packets.len() < count || !open.is_empty() {
            if open.len() < OPEN && packets.len() < count {
                let message = alone.unwrap_or_else(|| random.below(NUMBERS) as u32);
                // The NIC lets packets pass one that waits for the queue of another message. With one open message per
                // queue, the NIC's request order is the order of packets on both sides, independent of the time of
                // feedback.
                let queue = message % QUEUES;
                let before = waits[queue as usize];
                let comes_alone = before.is_some_and(|before| before != message);
                alone = (comes_alone && !open.is_empty()).then_some(message);
                if alone.is_none()
                    && before != Some(message)
                    && open.iter().all(|other| other.message % QUEUES != queue)
                {
                    let (left, context) = (1 + random.below(LONGEST), random.below(contexts as u64) as usize);
                    let is_broken = broken > 0 && random.below(16) < broken;
                    waits[queue as usize] = is_broken.then_some(message);
                    open.push(Open { message, left, context, is_broken });
                }
                if open.is_empty() || alone.is_none() && random.below(2) == 0 {
                    continue;
                }
            }
            let place = random.below(open.len() as u64) as usize;
            let Open { message, left, context, is_broken } = &mut open[place];
            *left -= 1;
            let (message, ends, context, is_broken) = (*message, *left == 0, *context, *is_broken);
            if ends {
                open.swap_remove(place);
            }
            at += match random.below(4) {
                0 => random.below(200),
                _ => random.below(6),
            };
            packets.push(packet(&mut random, packets.len(), at, message, ends && !is_broken, context));
        }
        at += PAUSE;
        for message in 0..unfinished.min(QUEUES) {
            at += random.below(100);
            let context = random.below(contexts as u64) as usize;
            packets.push(packet(&mut random, packets.len(), at, message, false, context));
        }
        packets
    }
}

/// Returns a packet of random size and content.
fn packet(random: &mut Random, number: usize, at: u64, message: u32, is_last: bool, context: usize) -> Packet {
    let size = match random.below(3) {
        0 => EDGES[random.below(EDGES.len() as u64) as usize],
        1 => 1 + random.below(256),
        _ => 1 + random.below(2_048),
    };
    let transfer = match random.below(8) {
        0 => 0,
        1 => random.below(size + 1),
        _ => size,
    };
    let mut bytes: Vec<u8> = (0..size).map(|_| random.number() as u8).collect();
    if let Some(target) = bytes.get_mut(NUMBER..NUMBER + 4) {
        target.copy_from_slice(&(number as u32).to_le_bytes());
    }
    Packet { at, bytes, message, is_last, transfer: transfer as u32, context }
}
