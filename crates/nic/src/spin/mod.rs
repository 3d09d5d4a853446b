//! The sPIN runtime of a card: handlers on HPUs (sPIN §3.2, App. B).
//!
//! * [`SpinUnit`] owns the card's memories, packet buffers, HPU contexts and the loaded device program
//! * `message`: what a message's handlers decide about its packets
//! * `run`: scheduling of handlers on HPUs, and their ends
//! * `command`: what handlers ask of the card
//! * `close`: what is left of handlers when their interface is closed

mod close;
mod command;
mod memory;
mod message;
mod run;

use std::collections::VecDeque;
use std::rc::Rc;

use abi::device::map;
use abi::portals::{Handle, Rc as Code};
use hpu::{Predictor, Stop, Thread, Watched, Window};
use machine::Sc17;
use sim::{Clock, Time};

use crate::handlers::{CardProgram, Handler, Handlers, HpuMemory};
use crate::message::MessageId;
use crate::region::Region;
use crate::stats::Profile;
pub use command::HandlerDma;
pub use message::SpinMessage;

use command::Transfer;
use memory::CardMemory;

/// `min_fragmentation_limit`: alignment of the payload that handlers see, and the unit of packet sizes (App. B.2.1).
pub(crate) const FRAGMENT: u32 = 8;

/// The part of a card that runs handlers.
pub struct SpinUnit {
    config: Sc17,
    clock: Clock,
    mtu: u32,
    memory: CardMemory,
    /// Words of it on which handlers have waited.
    watched: Watched,
    program: Option<Loaded>,
    /// Free packet buffers that have been used; those from `fresh_buffer` on have not.
    free_buffers: Vec<u16>,
    fresh_buffer: u16,
    contexts: Vec<Option<Box<Context>>>,
    hpus: Vec<Core>,
    /// Handlers that wait for a context.
    tasks: VecDeque<Task>,
    transfers: Vec<Option<Transfer>>,
    /// Number of handlers that have been given a context.
    runs: Run,
    profiling: bool,
    /// Of programs that are no longer loaded.
    profile: Profile,
}

struct Loaded {
    program: Rc<CardProgram>,
    predictor: Predictor,
}

/// An HPU: contexts `index + k * hpus` are its own, for handlers may not migrate (sPIN §3.2.2).
#[derive(Clone, Debug, Default)]
struct Core {
    running: Option<u16>,
    ready: VecDeque<u16>,
    resident: u32,
    busy: Time,
}

/// Which of a message's handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Header,
    Payload,
    Completion,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Header => "header",
            Role::Payload => "payload",
            Role::Completion => "completion",
        }
    }
}

/// A packet in a packet buffer.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    buffer: u16,
    /// Card address of its data.
    start: u32,
    /// Offset of its data in the message.
    offset: u64,
    length: u32,
}

/// A handler to be run.
#[derive(Clone, Debug)]
struct Task {
    message: MessageId,
    role: Role,
    handler: Handler,
    packet: Option<Buffered>,
    /// Bytes that do not belong to the payload.
    skip: u32,
    args: [u32; 3],
}

/// Tells the handlers apart that have a context one after the other.
pub type Run = u32;

/// A handler that is resident on an HPU.
struct Context {
    run: Run,
    task: Task,
    thread: Thread,
    windows: Vec<Window>,
    /// The HPU memory in one of them, which stays reserved for as long.
    state: Option<Rc<HpuMemory>>,
    /// Of the card's memory, to which the windows' places belong.
    layout: Option<u32>,
    stop: Option<Stop>,
    /// When the thread last ran on, and its cycles then.
    resumed: (Time, u64),
    /// When it first ran.
    started: Time,
    /// Start of its present stay on the HPU.
    stay: Time,
    waits: Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    No,
    /// Until something that it has asked for is done.
    Event,
    /// Until an event of its own (a put that has left).
    Time,
}

impl SpinUnit {
    pub(crate) fn new(config: &Sc17, clock: Clock, mtu: u32) -> SpinUnit {
        SpinUnit {
            config: config.clone(),
            clock,
            mtu,
            memory: CardMemory::new(config, mtu),
            watched: Watched::default(),
            program: None,
            free_buffers: Vec::new(),
            fresh_buffer: 0,
            contexts: (0..config.contexts).map(|_| None).collect(),
            hpus: vec![Core::default(); config.hpus as usize],
            tasks: VecDeque::new(),
            transfers: Vec::new(),
            runs: 0,
            profiling: false,
            profile: Profile::new(),
        }
    }

    /// Counts from now on which source lines handlers run.
    pub(crate) fn set_profiling(&mut self) {
        self.profiling = true;
        if let Some(loaded) = &mut self.program {
            loaded.program.engine.borrow_mut().set_profiling();
        }
    }

    /// Instructions so far.
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = self.profile.clone();
        if let Some(Loaded { program, .. }) = &self.program {
            let device = &program.device;
            for (entry, counts) in program.engine.borrow().profile() {
                let Some((_, handler)) = device.handlers.iter().find(|(_, handler)| handler.entry == entry) else {
                    continue;
                };
                let places = profile.entry(handler.name.to_string()).or_default();
                for (pc, runs) in counts {
                    *places.entry(device.place(pc)).or_default() += runs;
                }
            }
        }
        profile
    }

    /// How long the HPUs were occupied.
    pub(crate) fn busy(&self) -> Time {
        self.hpus.iter().map(|hpu| hpu.busy).sum()
    }

    /// Loads a device program; a card holds one.
    pub(crate) fn load(&mut self, program: Rc<CardProgram>) {
        let device = &program.device.program;
        self.memory.load(device.program_segment(), device.data_segment());
        if self.profiling {
            program.engine.borrow_mut().set_profiling();
        }
        self.program = Some(Loaded { program, predictor: Predictor::default() });
    }

    /// Forgets the device program and everything that runs or waits.
    pub(crate) fn unload(&mut self) {
        if self.program.is_some() {
            (0..self.contexts.len()).for_each(|context| self.drop_transfers(context as u16));
            *self = SpinUnit {
                hpus: std::mem::take(&mut self.hpus),
                memory: self.memory.emptied(&self.config, self.mtu),
                transfers: std::mem::take(&mut self.transfers),
                runs: self.runs,
                profiling: self.profiling,
                profile: self.profile(),
                ..SpinUnit::new(&self.config, self.clock, self.mtu)
            };
            for hpu in &mut self.hpus {
                *hpu = Core { busy: hpu.busy, ..Core::default() };
            }
        }
    }

    /// The device program.
    pub(crate) fn loaded(&self) -> Option<&CardProgram> {
        self.program.as_ref().map(|loaded| &*loaded.program)
    }

    /// Gives the memory of stacks and packet buffers back if no handler runs and no packet waits.
    pub(crate) fn trim(&mut self) {
        let idle = self.free_buffers.len() == usize::from(self.fresh_buffer)
            && self.contexts.iter().all(Option::is_none)
            && self.tasks.is_empty();
        if idle {
            self.memory.trim();
        }
    }

    pub(crate) fn allocate(&mut self, interface: u8, length: u64) -> Result<Handle, Code> {
        self.memory.allocate(interface, length)
    }

    pub(crate) fn free(&mut self, memory: Handle) -> Result<(), Code> {
        self.memory.free(memory)
    }

    /// The HPU memory that a handle names.
    pub(crate) fn memory_range(&self, memory: Handle) -> Result<Rc<HpuMemory>, Code> {
        self.memory.find(memory)
    }

    /// The handlers of an entry, header, payload and completion; writes the initial state of what they share.
    pub(crate) fn install(
        &mut self,
        [header, payload, completion]: [Option<Handler>; 3],
        memory: Handle,
        initial_state: &[u8],
        host_memory: Region,
        user_hdr: u64,
    ) -> Result<Handlers, Code> {
        if user_hdr > u64::from(self.config.max_user_hdr) || initial_state.len() as u64 > self.max_initial_state() {
            return Err(Code::ArgInvalid);
        }
        let state = match memory {
            0 | abi::portals::INVALID_HANDLE => None,
            memory => Some(self.memory.find(memory)?),
        };
        if initial_state.len() as u64 > state.as_ref().map_or(0, |state| u64::from(state.length)) {
            return Err(Code::ArgInvalid);
        }
        if let Some(state) = &state {
            self.memory.write(state.address, initial_state);
        }
        Ok(Handlers {
            header,
            payload,
            completion,
            state,
            host_memory: Rc::new(host_memory),
            user_hdr: user_hdr as u32,
        })
    }

    /// The most bytes of initial state that an ME may bring.
    pub(crate) fn max_initial_state(&self) -> u64 {
        u64::from(self.config.max_initial_state)
    }

    /// Writes data of a get to where its handler waits for it.
    pub(crate) fn fill(&mut self, start: u32, data: &[u8]) {
        self.memory.write(start, data);
    }

    /// Puts a packet into a buffer, if one is free.
    ///
    /// The data after the first `skip` bytes is aligned to `min_fragmentation_limit` (App. B.2.1).
    fn buffer(&mut self, offset: u64, data: &[u8], skip: u32) -> Option<Buffered> {
        let buffer = match self.free_buffers.pop() {
            Some(buffer) => buffer,
            None if u32::from(self.fresh_buffer) < self.config.slots(self.mtu) => {
                self.fresh_buffer += 1;
                self.fresh_buffer - 1
            }
            None => return None,
        };
        let pad = skip.next_multiple_of(FRAGMENT) - skip;
        let start = map::PACKETS + u32::from(buffer) * Sc17::slot_bytes(self.mtu) + pad;
        self.memory.write(start, data);
        Some(Buffered { buffer, start, offset, length: data.len() as u32 })
    }

    /// Takes a packet's data out of its buffer, which is free then.
    fn unbuffer(&mut self, packet: Buffered) -> Vec<u8> {
        let data = self.memory.slice(packet.start, packet.length).to_vec();
        self.free_buffers.push(packet.buffer);
        data
    }
}
