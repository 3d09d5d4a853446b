//! The packets that both sides get, and packets by chance: sizes, mixes of messages, bursts, numbers of messages that are used again.

/// A packet for both sides: its arrival behind the end of the boot, in cycles.
#[derive(Clone, Debug)]
pub struct Packet {
    /// When it arrives.
    pub at: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The message.
    pub message: u32,
    /// Whether it is the last one.
    pub is_last: bool,
    /// The bytes that are copied to L1.
    pub transfer: u32,
    /// The context, by its number.
    pub context: usize,
}

/// Random numbers that are the same on every machine (SplitMix64).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that this seed decides.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

fn mix(mut number: u64) -> u64 {
    number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// Whether something is held in a cycle: the same for all who ask, in `sixteenths` of all cycles.
pub fn is_held(seed: u64, cycle: u64, sixteenths: u64) -> bool {
    // In bursts of 8 cycles.
    mix(seed ^ (cycle / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15)) % 16 < sixteenths
}

/// Sizes at which something changes: beats, banks, the largest packets.
const EDGES: [u64; 10] = [1, 4, 63, 64, 65, 128, 512, 1_024, 1_500, 2_048];
/// Numbers of messages, of which the same are used again and again, and messages that come at the same time.
const NUMBERS: u64 = 24;
const OPEN: usize = 6;
/// Message queues of the smallest unit.
const QUEUES: u32 = 8;
/// The most packets of a message.
const LONGEST: u64 = 8;

/// A message whose packets come.
struct Open {
    message: u32,
    left: u64,
    context: usize,
}

/// Makes packets for this many contexts. Each message is complete.
pub fn packets(seed: u64, count: usize, contexts: usize) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut open: Vec<Open> = Vec::new();
    let (mut at, mut packets) = (0, Vec::new());
    while packets.len() < count || !open.is_empty() {
        if open.len() < OPEN && packets.len() < count {
            let message = random.below(NUMBERS) as u32;
            // Requests come in order: one for a queue that has another message would wait for packets behind it.
            if open.iter().all(|other| other.message % QUEUES != message % QUEUES) {
                let (left, context) = (1 + random.below(LONGEST), random.below(contexts as u64) as usize);
                open.push(Open { message, left, context });
            }
            if open.is_empty() || random.below(2) == 0 {
                continue;
            }
        }
        let place = random.below(open.len() as u64) as usize;
        let Open { message, left, context } = &mut open[place];
        *left -= 1;
        let (message, is_last, context) = (*message, *left == 0, *context);
        if is_last {
            open.swap_remove(place);
        }
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
        at += match random.below(4) {
            0 => random.below(200),
            _ => random.below(6),
        };
        let bytes = (0..size).map(|_| random.number() as u8).collect();
        packets.push(Packet { at, bytes, message, is_last, transfer: transfer as u32, context });
    }
    packets
}
