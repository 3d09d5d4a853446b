//! The simulated cluster: ranks, cards and network in one event loop.
//!
//! Exactly one thing happens at a time, in the order of simulated time and then of insertion: a rank's program runs on
//! from a library call to its next one, a card handles an event, or a CPU finishes a piece of work.
//!
//! * `calls`: what each library call does and costs
//! * `idle`: ranks that only sleep
//! * `waiting`: threads of ranks that wait inside the library
//! * `barrier`: where all ranks meet
//! * `polling`: ranks that wait for their own memory to change
//! * `ports`: what a card sees of the world
//! * [`report`](crate::report): what is told at the end

mod barrier;
mod calls;
mod idle;
mod polling;
mod ports;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use machine::Machine;
use net::Interconnect;
use nic::{Card, CardEvent, Completion, Notice, Stats, Timeline};
use sim::trace::Trace;
use sim::{EventQueue, Time};

use std::process::ExitStatus;

use crate::job::{Call, Caller, Job, JobError, Pause, Reply};
use barrier::{Barrier, Meeting};
use idle::Idleness;
use ports::WorldPorts;
use waiting::Wait;

/// Something that is due.
enum Event {
    Card(u32, CardEvent),
    /// A call answers its thread.
    Resume(Caller, Box<Reply>),
    /// A call is made, after the CPU time that the rank has used since its last one.
    Call(Box<Call>),
    /// A rank's CPU has done a piece of work that an rdma card left to it.
    Progress(u32),
    /// A rank that polls its memory sees what was written to it.
    Notice(u32),
    /// A wait with a time limit ends, unless it is over already.
    Timeout(Caller, u64),
}

impl Event {
    /// The rank that it belongs to.
    fn rank(&self) -> usize {
        match self {
            Event::Card(rank, _) | Event::Progress(rank) | Event::Notice(rank) => *rank as usize,
            Event::Resume(caller, _) | Event::Timeout(caller, _) => caller.rank as usize,
            Event::Call(call) => call.caller.rank as usize,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every rank has ended by itself with status 0.
    Finished,
    /// A rank has failed.
    RankFailed {
        /// Which.
        rank: usize,
        /// How.
        status: ExitStatus,
        /// When, in simulated time.
        at: Time,
    },
    /// A rank's program cannot run on this machine.
    BadProgram {
        /// Which.
        rank: usize,
        /// Why.
        message: String,
    },
    /// Every rank waits, in the library or polling its memory, and nothing is left that could happen.
    Deadlock {
        /// When.
        at: Time,
        /// What each rank waits for.
        waits: Vec<String>,
    },
    /// The user or the system asked the run to end.
    Interrupted {
        /// Signal.
        signal: i32,
        /// The rank whose own code ran then: all others stand still meanwhile.
        running: usize,
        /// When, in simulated time.
        at: Time,
    },
    /// Simulated time would go beyond [`Time::LIMIT`].
    OutOfTime {
        /// The rank that has something to do then.
        rank: usize,
    },
    /// The time limit was reached.
    TimedOut {
        /// The rank whose own code ran then.
        running: usize,
        /// When, in simulated time.
        at: Time,
    },
}

struct Rank {
    status: Option<ExitStatus>,
    /// When it ended, or now.
    end: Time,
    /// What its threads inside the library wait for.
    waits: BTreeMap<u32, Wait>,
    /// Tells waits with a time limit apart.
    epoch: u64,
    /// The queue that the next poll looks at first.
    next_queue: usize,
    /// Whether its CPU works on a completion (rdma).
    progressing: bool,
    /// Whether `PtlAbort` has ended all waits until `PtlFini` (Portals 4.3 §3.3.3).
    aborted: bool,
}

/// A job on a machine.
pub struct World {
    machine: Rc<Machine>,
    interconnect: Interconnect,
    queue: EventQueue<Event>,
    cards: Vec<Card>,
    ranks: Vec<Rank>,
    job: Job,
    notices: Vec<Notice>,
    /// Threads that may be able to go on, in the order in which they are looked at.
    wakes: VecDeque<Caller>,
    /// Whether that queue is being served.
    waking: bool,
    timeline: Timeline,
    warnings: Warnings,
    /// Ranks that have come to each kind of barrier.
    barriers: [Barrier; 2],
    now: Time,
    reached: Arc<Reached>,
    end: Option<End>,
    idleness: Idleness,
    /// How many events there had been when ranks that poll were last looked at anew.
    looked_again_after: Option<u64>,
}

/// How far a world has come, for another thread that tells it.
#[derive(Debug, Default)]
pub struct Reached {
    now_ps: AtomicU64,
    events: AtomicU64,
}

impl Reached {
    /// The simulated time.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now_ps.load(Relaxed))
    }

    /// Number of events handled or waiting.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }
}

/// Takes a message for the user.
pub type Tell = Box<dyn FnMut(&str)>;

/// Messages for the user. Those that differ only in addresses are told once and then counted.
#[derive(Default)]
struct Warnings {
    /// By the message without addresses: the first such message, and how many there were.
    told: BTreeMap<String, (String, u64)>,
    tell: Option<Tell>,
}

impl Warnings {
    fn add(&mut self, message: String) {
        let (_, count) = self.told.entry(without_addresses(&message)).or_insert_with(|| {
            if let Some(tell) = &mut self.tell {
                tell(&message);
            }
            (message, 0)
        });
        *count += 1;
    }
}

/// A message with its hexadecimal numbers taken out.
fn without_addresses(message: &str) -> String {
    let mut parts = message.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("0x");
        text.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()));
    }
    text
}

impl World {
    /// A world for `job` on `machine`. `warn` gets messages for the user as they come up.
    pub fn new(machine: Machine, job: Job, trace: Trace, warn: Tell) -> Result<World, net::NetError> {
        let ranks = job.ranks();
        let machine = Rc::new(machine);
        let interconnect = Interconnect::new(&machine.network, ranks)?;
        // SAFETY: no precondition.
        let uid = unsafe { libc::geteuid() };
        let cards = (0..ranks).map(|node| Card::new(machine.clone(), node as u32, ranks as u32, uid)).collect();
        let timeline = Timeline::new(trace, ranks, &machine);
        let fresh = || Rank {
            status: None,
            end: Time::ZERO,
            waits: BTreeMap::new(),
            epoch: 0,
            next_queue: 0,
            progressing: false,
            aborted: false,
        };
        Ok(World {
            machine,
            interconnect,
            queue: EventQueue::default(),
            cards,
            ranks: (0..ranks).map(|_| fresh()).collect(),
            job,
            notices: Vec::new(),
            wakes: VecDeque::new(),
            waking: false,
            timeline,
            warnings: Warnings { told: BTreeMap::new(), tell: Some(warn) },
            barriers: std::array::from_fn(|_| Barrier::new(ranks)),
            now: Time::ZERO,
            reached: Arc::default(),
            end: None,
            idleness: Idleness::default(),
            looked_again_after: None,
        })
    }

    /// Runs the job to its end. Ranks that still run then are ended.
    pub fn run(&mut self) -> Result<End, JobError> {
        for rank in 0..self.ranks.len() {
            let pause = self.job.start(rank)?;
            self.paused(rank, pause);
            if self.end.is_some() {
                break;
            }
        }
        while self.end.is_none() {
            if let Some((rank, pause)) = self.job.poll() {
                self.paused(rank, pause);
                continue;
            }
            if let Some((rank, message)) = self.job.refusal() {
                self.end = Some(End::BadProgram { rank, message });
                continue;
            }
            if self.sleepers() {
                continue;
            }
            let Some((at, event)) = self.queue.pop() else {
                if !self.last_chances() && !self.second_looks() {
                    self.end = Some(self.nothing_left());
                }
                continue;
            };
            if at > Time::LIMIT {
                let rank = event.rank();
                // What a rank that has ended left behind may never happen.
                if self.ranks[rank].status.is_none() {
                    self.end = Some(End::OutOfTime { rank });
                }
                continue;
            }
            self.now = at;
            self.reached.now_ps.store(at.as_ps(), Relaxed);
            self.reached.events.store(self.queue.inserted(), Relaxed);
            self.dispatch(event);
            self.notify_pollers();
        }
        self.job.kill();
        Ok(self.end.clone().unwrap_or(End::Finished))
    }

    /// Follows [`World::run`] while that goes on.
    pub fn reached(&self) -> Arc<Reached> {
        self.reached.clone()
    }

    /// The simulated time that has been reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Number of events handled or waiting.
    pub fn events(&self) -> u64 {
        self.queue.inserted()
    }

    /// Whether any rank has called the library or spoken PMI.
    pub fn has_heard_ranks(&self) -> bool {
        self.job.has_spoken()
    }

    /// When each rank ended.
    pub fn rank_ends(&self) -> impl Iterator<Item = Time> {
        self.ranks.iter().map(|rank| rank.end)
    }

    /// Counts from now on which source lines handlers run; [`World::card_stats`] then has them.
    pub fn set_profiling(&mut self) {
        self.cards.iter_mut().for_each(Card::set_profiling);
    }

    /// What each card did.
    pub fn card_stats(&self) -> impl Iterator<Item = Stats> {
        self.cards.iter().map(Card::stats)
    }

    /// How long each card's sending port was occupied.
    pub fn sending_ports_busy(&self) -> impl Iterator<Item = Time> {
        (0..self.cards.len()).map(|node| self.interconnect.port_busy(node))
    }

    /// Messages that came up more than once, with their counts.
    pub fn repeated_warnings(&self) -> impl Iterator<Item = (&str, u64)> {
        self.warnings.told.values().filter(|(_, count)| *count > 1).map(|(text, count)| (text.as_str(), *count))
    }

    /// Writes the timeline, if one was asked for.
    pub fn finish_trace(self) -> std::io::Result<()> {
        self.timeline.finish()
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::Card(node, event) => {
                self.idleness.end();
                self.on_card(node as usize, |card, ports| card.handle(event, ports));
            }
            Event::Resume(caller, reply) => self.resume(caller, *reply),
            Event::Call(call) => self.call(*call),
            Event::Progress(rank) => self.progressed(rank as usize),
            Event::Notice(rank) => self.notice(rank as usize),
            Event::Timeout(caller, epoch) => self.timed_out(caller, epoch),
        }
    }

    /// Lets a card act, and then looks whether a thread of its rank can go on.
    fn on_card<R>(&mut self, node: usize, act: impl FnOnce(&mut Card, &mut WorldPorts<'_>) -> R) -> R {
        let World { cards, queue, interconnect, job, notices, timeline, warnings, ranks, now, .. } = self;
        let dead = ranks[node].status.is_some();
        let mut ports = WorldPorts { now: *now, node, dead, queue, interconnect, job, notices, timeline, warnings };
        let result = act(&mut cards[node], &mut ports);
        self.heed_notices(node);
        result
    }

    fn heed_notices(&mut self, rank: usize) {
        if self.notices.is_empty() {
            return;
        }
        let mut notices = std::mem::take(&mut self.notices);
        self.wake_if(rank, |wait| notices.iter().any(|notice| wait.is_for(*notice)));
        notices.clear();
        self.notices = notices; // its room is used again
        self.progress(rank);
    }

    /// Answers threads until their rank has nothing to do at this time.
    fn resume(&mut self, caller: Caller, reply: Reply) {
        let pause = self.job.resume(caller, self.now, &reply);
        self.paused(caller.rank as usize, pause);
    }

    /// `running`, which has run until now, has paused, or something else has happened meanwhile.
    fn paused(&mut self, running: usize, pause: Pause) {
        match pause {
            Pause::Call(call) if call.elapsed_ns > 0 => {
                let scale = self.job.compute_scale_milli();
                let charged = u128::from(call.elapsed_ns) * u128::from(scale) / 1000;
                let span = Time::from_ps(charged.try_into().unwrap_or(u64::MAX));
                self.timeline.cpu(call.caller.rank as usize, self.now, self.now + span, "compute");
                self.queue.push(self.now + span, Event::Call(Box::new(call)));
            }
            Pause::Call(call) => self.call(call),
            // Its threads go on when events answer them.
            Pause::Asleep { .. } => {}
            Pause::Polls { rank } => self.polls(rank),
            Pause::Unseen { rank } => self.unseen(rank),
            Pause::Exited { rank, status } => {
                self.exited(rank, status);
                if rank != running && self.end.is_none() {
                    let pause = self.job.wait(running);
                    self.paused(running, pause);
                }
            }
            Pause::Refused { rank, message } => self.end = Some(End::BadProgram { rank, message }),
            Pause::Interrupted { signal } => self.end = Some(End::Interrupted { signal, running, at: self.now }),
            Pause::TimedOut => self.end = Some(End::TimedOut { running, at: self.now }),
        }
    }

    fn exited(&mut self, rank: usize, status: ExitStatus) {
        let state = &mut self.ranks[rank];
        state.status = Some(status);
        state.end = self.now;
        state.waits.clear();
        if status.success() {
            self.on_card(rank, |card, ports| card.reset(ports));
        } else {
            // Nothing comes after this, so what is under way to its card is not lost for another reason.
            self.end = Some(End::RankFailed { rank, status, at: self.now });
        }
    }

    /// No event is left: either everybody is done, or nobody ever will be.
    fn nothing_left(&self) -> End {
        if self.ranks.iter().all(|rank| rank.status.is_some()) {
            return End::Finished;
        }
        let arrived = |meeting: Meeting| self.barriers[meeting as usize].arrived();
        let waits = self
            .ranks
            .iter()
            .enumerate()
            .map(|(number, rank)| match (&rank.status, rank.waits.values().next()) {
                (Some(_), _) => format!("rank {number} has ended"),
                (None, _) if self.job.polling(number).is_some() => self.describe_polling(number),
                (None, Some(Wait::Barrier(meeting))) => {
                    let (name, arrived, ranks) = (meeting.name(), arrived(*meeting), self.ranks.len());
                    format!("rank {number} waits in {name}, where {arrived} of {ranks} ranks have come")
                }
                (None, Some(wait)) => format!("rank {number} waits in {}", wait.describe()),
                (None, None) => format!("rank {number} waits outside of the library"),
            })
            .collect();
        End::Deadlock { at: self.now, waits }
    }

    /// On rdma cards the CPU completes messages, one after the other, whenever it is inside the library: it finds the
    /// completion entry, matches the message, and starts what it triggers (sPIN §4.4.1).
    fn progress(&mut self, rank: usize) {
        let here = !self.ranks[rank].waits.is_empty() || self.job.polling(rank).is_some();
        if self.machine.nic.matches_on_card() || self.ranks[rank].progressing || !here {
            return;
        }
        let host = &self.machine.host;
        let work: &[(&str, Time)] = match self.cards[rank].next_completion() {
            None => return,
            Some(Completion::Arrived(_)) => &[("poll", host.poll), ("match", host.matching)],
            Some(Completion::Operation(..)) => &[("poll", host.poll)],
            Some(Completion::Triggered(..)) => &[("post", host.overhead)],
        };
        let mut at = self.now;
        for (name, span) in work {
            self.timeline.cpu(rank, at, at + *span, name);
            at += *span;
        }
        self.ranks[rank].progressing = true;
        self.queue.push(at, Event::Progress(rank as u32));
    }

    fn progressed(&mut self, rank: usize) {
        self.ranks[rank].progressing = false;
        self.on_card(rank, |card, ports| card.process_completion(ports));
        self.wake(rank);
        self.progress(rank);
    }
}
