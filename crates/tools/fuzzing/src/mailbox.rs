// SPDX-License-Identifier: Apache-2.0
//! Fuzzes the memory shared by ranks and the simulator.
//!
//! The simulator must read the same as a plain read of the file, and may change only the words of its answers. A copy
//! of the file holds the expected contents, compared at the end.

use std::fs::{File, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use abi::calls::{Op, PtlCTGet, PtlNIInit};
use abi::mailbox::{
    self, ARGS, BOUNCE, COUNTERS, DATA, DOORBELL_SLEEPS, Header, KNOWN, Known, KnownCounter, PAYLOAD, POST_ARGS, POSTS,
    Post, SLOTS, Slot, state,
};
use abi::portals::{CtEvent, Event, Le, Md, Me, NiLimits, ReturnCode};
use arbitrary::{Result, Unstructured};
use bytemuck::{Pod, bytes_of};
use ranks::shared_memory::SharedMemory;
use ranks::{Caller, Lookahead, Reply, process_tree};
use sim::Time;

/// Number of ranks of the job.
const RANKS: usize = 2;
/// Maximum number of actions of an input.
const STEPS: usize = 200;
/// Process id without a process, for the rank.
const PROCESS: u32 = i32::MAX as u32;

/// Runs an input.
pub fn slots(bytes: &[u8]) {
    let mut job = Mailbox::new();
    let mut input = Unstructured::new(bytes);
    for _ in 0..STEPS {
        if input.is_empty() || job.step(&mut input).is_err() {
            break;
        }
    }
    assert!(job.copy == read(&job.file), "the simulator has written what is not its own");
}

struct Mailbox {
    shared: SharedMemory,
    /// Shared memory as accessed by ranks.
    file: File,
    /// Expected contents of the memory.
    copy: Vec<u8>,
    /// Calls handed out, one bit per slot.
    inside: [u32; RANKS],
}

impl Mailbox {
    fn new() -> Mailbox {
        let shared = SharedMemory::new(RANKS, 0, POSTS as u32, POSTS as u32).expect("memory");
        let path = format!("/proc/self/fd/{}", shared.fd());
        let file = OpenOptions::new().read(true).write(true).open(path).expect("the memory file");
        let copy = read(&file);
        assert_eq!(copy.len(), mailbox::file_size(RANKS));
        Mailbox { shared, file, copy, inside: [0; RANKS] }
    }

    fn step(&mut self, input: &mut Unstructured) -> Result<()> {
        let rank = input.int_in_range(0..=RANKS - 1)?;
        let k = if input.arbitrary()? { 0 } else { input.int_in_range(0..=SLOTS - 1)? };
        let caller = Caller { rank: rank as u32, slot: k as u32 };
        match input.int_in_range(0..=9)? {
            // A rank writes a word of a slot: a likely value, or an arbitrary one.
            0..=2 => {
                let words = [
                    0,
                    1,
                    2,
                    offset_of!(Slot, elapsed_ns) / 4,
                    offset_of!(Slot, tid) / 4,
                    offset_of!(Slot, posted) / 4,
                    offset_of!(Slot, taken) / 4,
                    offset_of!(Slot, posts) / 4,
                ];
                let word = *input.choose(&words)?;
                let value = match input.int_in_range(0..=4)? {
                    0 => state::REQUEST,
                    1 => *input.choose(Op::ALL)? as u32,
                    2 => PROCESS,
                    3 => u32::from(input.arbitrary::<u8>()?) + input.int_in_range(0..=1)? * state::SLEEPS,
                    _ => input.arbitrary()?,
                };
                let claimed = self.word(mailbox::claimed_offset(rank)) | 1 << k;
                self.write(mailbox::claimed_offset(rank), &claimed.to_le_bytes());
                self.write(slot(rank, k) + 4 * word, &value.to_le_bytes());
            }
            // A rank writes anywhere.
            3 => {
                let at = if input.arbitrary()? { slot(rank, k) } else { 0 } + input.int_in_range(0..=4096)?;
                let length = input.int_in_range(0..=256)?;
                let bytes = input.bytes(length.min(input.len()))?;
                self.write(at, bytes);
            }
            4..=6 => self.take_call(rank),
            7 => {
                let rc = input.arbitrary()?;
                let reply = Reply { rc, out: input.arbitrary()?, ..Reply::new(ReturnCode::Ok) };
                let reply = match input.int_in_range(0..=2)? {
                    0 => reply,
                    1 => reply.with(PtlCTGet::read(&[]).event, &self.shared.data::<CtEvent>(caller)),
                    _ => reply.with(PtlNIInit::read(&[]).actual, &self.shared.data::<NiLimits>(caller)),
                };
                let known = input.arbitrary::<bool>()?.then(|| input.arbitrary()).transpose()?;
                self.answer(caller, &reply, known);
            }
            8 => {
                let length = input.int_in_range(0..=BOUNCE)?;
                self.copy_memory(caller, input.arbitrary()?, length, input.arbitrary()?);
            }
            _ => {
                self.look(caller);
                self.doorbell(input.arbitrary()?);
                if input.ratio(1, 8)? {
                    self.shared.end(caller);
                    self.put(slot(rank, k) + offset_of!(Slot, state), &state::END.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    /// Lets the simulator take the next posted call of a rank, which it must refuse if invalid. Returns true if there
    /// was one.
    fn take_post(&mut self, rank: usize) -> bool {
        let word = |k: usize, at: usize| self.word(slot(rank, k) + at);
        let left = |k: usize| {
            word(k, offset_of!(Slot, posted)).min(POSTS as u32).saturating_sub(word(k, offset_of!(Slot, taken)))
        };
        let first = self.claimed(rank).find(|&k| self.inside[rank] & 1 << k == 0 && left(k) > 0);
        assert_eq!(self.shared.first_post(rank, self.inside[rank]), first);
        assert_eq!(self.shared.all_posts_left(rank), self.claimed(rank).map(left).sum::<u32>());
        let Some(k) = first else { return false };

        let taken = word(k, offset_of!(Slot, taken));
        let post = slot(rank, k) + offset_of!(Slot, posts) + taken as usize % POSTS * size_of::<Post>();
        let pid = word(k, offset_of!(Slot, pid));
        let op = Op::ALL.iter().copied().find(|&op| op as u32 == self.word(post));
        let taking = self
            .shared
            .take_post(Caller { rank: rank as u32, slot: k as u32 }, |pid| process_tree::belongs(pid, PROCESS));
        self.put(slot(rank, k) + offset_of!(Slot, taken), &(taken + 1).to_le_bytes());
        match taking {
            Ok((call, of, payload)) => {
                assert_eq!((Some(call.op), of, pid), (op, PROCESS, PROCESS));
                let args = call.args[..POST_ARGS].iter().flat_map(|word| word.to_le_bytes());
                assert!(args.eq(self.at(post + offset_of!(Post, args), 8 * POST_ARGS).iter().copied()));
                let length = (self.word(post + offset_of!(Post, payload_len)) as usize).min(PAYLOAD);
                let address = self.at(post + offset_of!(Post, payload_addr), 8).try_into().expect("eight bytes");
                let bytes = self.at(post + offset_of!(Post, payload), length);
                match u64::from_le_bytes(address) {
                    0 => {
                        assert_eq!(payload.get(0, length), None);
                        let structure = payload.structure::<[u8; PAYLOAD]>();
                        let expected: [u8; PAYLOAD] = std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0));
                        assert_eq!(structure, (length > 0).then_some(expected));
                    }
                    address => assert_eq!(payload.get(address, length), Some(bytes)),
                }
                self.inside[rank] |= 1 << k;
            }
            Err(why) => assert!(op.is_none() || pid != PROCESS, "a posted call was refused: {why}"),
        }
        true
    }

    /// Lets the simulator take the next call of a rank, which it must refuse if invalid.
    fn take_call(&mut self, rank: usize) {
        if self.take_post(rank) {
            return;
        }
        let word = |k: usize, at: usize| self.word(slot(rank, k) + at);
        let asks = |&k: &usize| {
            let state = word(k, offset_of!(Slot, state)) & !state::SLEEPS;
            self.inside[rank] & 1 << k == 0 && [state::REQUEST, state::COPIED].contains(&state)
        };
        let tid = |k: usize| word(k, offset_of!(Slot, tid));
        let first = self.claimed(rank).filter(asks).map(|k| (tid(k), k)).min().map(|(tid, k)| (k, tid));
        assert_eq!(self.shared.first_request(rank, self.inside[rank]), first);
        let Some((k, _)) = first else { return };

        let caller = Caller { rank: rank as u32, slot: k as u32 };
        let pid = word(k, offset_of!(Slot, pid));
        let op = Op::ALL.iter().copied().find(|&op| op as u32 == word(k, offset_of!(Slot, op)));
        match self.shared.call(caller, |pid| process_tree::belongs(pid, PROCESS)) {
            Ok((call, of)) => {
                assert_eq!((Some(call.op), of, pid), (op, PROCESS, PROCESS));
                assert_eq!(call.caller, caller);
                assert_eq!(call.elapsed_ns.to_le_bytes(), self.at(slot(rank, k) + offset_of!(Slot, elapsed_ns), 8));
                let args = call.args.map(u64::to_le_bytes).concat();
                assert_eq!(args, self.at(slot(rank, k) + offset_of!(Slot, args), 8 * ARGS));
                self.inside[rank] |= 1 << k;
            }
            Err(why) => {
                assert!(op.is_none() || pid != PROCESS, "a call was refused: {why}");
                self.answer(caller, &Reply::new(ReturnCode::Fail), None);
            }
        }
    }

    /// Answers a call, and announces the number of events in a queue if `known`.
    fn answer(&mut self, caller: Caller, reply: &Reply, known: Option<(u8, u32)>) {
        let place = slot(caller.rank as usize, caller.slot as usize) + offset_of!(Slot, known);
        let (mut count, mut counters) = (0, [KnownCounter::NONE; COUNTERS]);
        if let Some((events, queue)) = known {
            let events: Vec<Event> =
                (0..u64::from(events)).map(|number| Event { hdr_data: number, ..Event::default() }).collect();
            counters[COUNTERS - 1] = KnownCounter::new(!queue, u64::from(queue) << 7);
            self.shared.tell(caller, (queue, events.iter()), counters, Lookahead::default());
            count = events.len().min(KNOWN) as u32;
            let bytes: Vec<u8> = events[..count as usize].iter().flat_map(bytes_of).copied().collect();
            self.put(place + offset_of!(Known, events), &bytes);
            self.put(place + offset_of!(Known, queue), &queue.to_le_bytes());
        }
        self.put(place + offset_of!(Known, count), &count.to_le_bytes());
        self.put(place + offset_of!(Known, counters), bytes_of(&counters));
        self.shared.answer(caller, reply);
        self.inside[caller.rank as usize] &= !(1 << caller.slot);
        let at = slot(caller.rank as usize, caller.slot as usize);
        assert!(reply.data.bytes().len() <= DATA);
        self.put(at + offset_of!(Slot, posted), &[0; 4]);
        self.put(at + offset_of!(Slot, taken), &[0; 4]);
        self.put(at + offset_of!(Slot, result), &reply.rc.to_le_bytes());
        self.put(at + offset_of!(Slot, out), &reply.out.map(u64::to_le_bytes).concat());
        self.put(at + offset_of!(Slot, data), reply.data.bytes());
        self.put(at + offset_of!(Slot, state), &state::REPLY.to_le_bytes());
    }

    /// Lets the simulator copy through the bounce area of a rank.
    fn copy_memory(&mut self, caller: Caller, address: u64, length: usize, write: bool) {
        let (rank, at) = (caller.rank as usize, slot(caller.rank as usize, caller.slot as usize));
        let bounce = mailbox::bounce_offset(RANKS, rank);
        if write {
            let bytes: Vec<u8> = (0..length).map(|at| (address as usize).wrapping_add(at) as u8).collect();
            self.shared.write_bounce(rank, &bytes);
            self.put(bounce, &bytes);
        }
        self.shared.ask_copy(caller, address, length, write);
        self.put(at + offset_of!(Slot, copy_addr), &address.to_le_bytes());
        self.put(at + offset_of!(Slot, copy_len), &(length as u32).to_le_bytes());
        self.put(at + offset_of!(Slot, copy_write), &u32::from(write).to_le_bytes());
        self.put(at + offset_of!(Slot, state), &state::COPY.to_le_bytes());
        if !write {
            let mut bytes = vec![0; length];
            self.shared.read_bounce(rank, &mut bytes);
            assert!(bytes == self.at(bounce, length), "the bounce area of rank {rank}");
        }
    }

    /// Lets the simulator read a slot.
    fn look(&self, caller: Caller) {
        let (rank, k) = (caller.rank as usize, caller.slot as usize);
        let word = |k: usize, at: usize| self.word(slot(rank, k) + at);
        let activity = |k: usize| word(k, offset_of!(Slot, state)) & !state::SLEEPS;
        let (pid, tid) = (word(k, offset_of!(Slot, pid)), word(k, offset_of!(Slot, tid)));
        assert_eq!(self.shared.activity(rank, k), activity(k));
        assert_eq!((self.shared.pid(rank, k), self.shared.tid(rank, k)), (pid, tid));
        assert_eq!(self.shared.copy_result(caller) as u32, word(k, offset_of!(Slot, copy_result)));
        let waits = [state::REQUEST, state::COPY, state::COPIED].contains(&activity(k));
        let is_claimed = self.claimed(rank).any(|claimed| claimed == k);
        assert!(!waits || !is_claimed || self.shared.is_inside(rank, pid, tid), "a thread that waits is inside");
        self.structure::<Me>(caller);
        self.structure::<Le>(caller);
        self.structure::<Md>(caller);
        self.structure::<CtEvent>(caller);
        self.structure::<NiLimits>(caller);
    }

    fn structure<T: Pod>(&self, caller: Caller) {
        let at = slot(caller.rank as usize, caller.slot as usize) + offset_of!(Slot, data);
        assert_eq!(bytes_of(&self.shared.data::<T>(caller)), self.at(at, size_of::<T>()));
    }

    /// Lets the simulator set the clock, and watch the doorbell while no rank rings it.
    fn doorbell(&mut self, now: u64) {
        self.shared.set_now(Time::from_ps(now));
        self.put(offset_of!(Header, now_ps), &now.to_le_bytes());
        let bell = self.shared.doorbell();
        assert_eq!(bell, self.word(offset_of!(Header, doorbell)) & !DOORBELL_SLEEPS);
        assert!(!self.shared.watch_doorbell(bell), "nobody rings");
        self.shared.sleep(bell, Some(Duration::ZERO));
    }

    /// Lets a rank write at a place of the file.
    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, at as u64).expect("within the file");
        self.put(at, bytes);
    }

    /// Sets the expected bytes at a place of the file.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.copy[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn at(&self, at: usize, length: usize) -> &[u8] {
        &self.copy[at..at + length]
    }

    /// Returns the slots of a rank that the simulator examines.
    fn claimed(&self, rank: usize) -> impl Iterator<Item = usize> + use<> {
        let claimed = self.word(mailbox::claimed_offset(rank));
        (0..SLOTS).filter(move |k| claimed & 1 << k != 0)
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.at(at, 4).try_into().expect("four bytes"))
    }
}

fn slot(rank: usize, k: usize) -> usize {
    mailbox::slot_offset(RANKS, rank, k)
}

fn read(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().expect("its size").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("all of it");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rank may claim to be any process, including those of the kernel, which have no process group.
    #[test]
    fn a_rank_may_claim_to_be_any_process() {
        for pid in (0..=300).chain([PROCESS - 1, u32::MAX]) {
            let mut job = Mailbox::new();
            job.write(mailbox::claimed_offset(0), &1_u32.to_le_bytes());
            job.write(slot(0, 0) + offset_of!(Slot, pid), &pid.to_le_bytes());
            job.write(slot(0, 0) + offset_of!(Slot, op), &(Op::ALL[0] as u32).to_le_bytes());
            job.write(slot(0, 0) + offset_of!(Slot, state), &state::REQUEST.to_le_bytes());
            job.take_call(0);
            assert_eq!(job.inside, [0; RANKS], "{pid}");
        }
    }
}
