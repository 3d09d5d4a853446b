//! The sPIN runtime of a card: handlers on HPUs (sPIN §3.2, App. B).
//!
//! * [`SpinUnit`] owns the card's memories, packet buffers, HPU contexts and the loaded device program
//! * `message`: what a message's handlers decide about its packets
//! * `run`: scheduling of handlers on HPUs, and their ends
//! * `command`: what handlers ask of the card

mod command;
mod memory;
mod message;
mod run;

use std::collections::VecDeque;
use std::rc::Rc;

use abi::device::map;
use abi::portals::{Handle, Me, Rc as Code};
use hpu::{Engine, Stop, Thread, Window};
use sim::Time;

use crate::handlers::{DeviceProgram, Handler, HandlerRequest, Handlers, ImageError};
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
    config: machine::Hpu,
    mtu: u32,
    memory: CardMemory,
    program: Option<Loaded>,
    /// Free packet buffers.
    buffers: Vec<u16>,
    contexts: Vec<Option<Context>>,
    hpus: Vec<Core>,
    /// Handlers that wait for a context.
    tasks: VecDeque<Task>,
    transfers: Vec<Option<Transfer>>,
    profiling: bool,
    /// Of programs that are no longer loaded.
    profile: Profile,
}

struct Loaded {
    device: DeviceProgram,
    engine: Engine,
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

/// A handler that is resident on an HPU.
struct Context {
    task: Task,
    thread: Thread,
    windows: Vec<Window>,
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
    pub(crate) fn new(config: &machine::Hpu, mtu: u32) -> SpinUnit {
        SpinUnit {
            config: config.clone(),
            mtu,
            memory: CardMemory::new(config, mtu),
            program: None,
            buffers: (0..config.slots(mtu) as u16).rev().collect(),
            contexts: (0..config.contexts).map(|_| None).collect(),
            hpus: vec![Core::default(); config.count as usize],
            tasks: VecDeque::new(),
            transfers: Vec::new(),
            profiling: false,
            profile: Profile::new(),
        }
    }

    /// Counts from now on which source lines handlers run.
    pub(crate) fn set_profiling(&mut self) {
        self.profiling = true;
        if let Some(loaded) = &mut self.program {
            loaded.engine.set_profiling();
        }
    }

    /// Instructions so far.
    pub(crate) fn profile(&self) -> Profile {
        let mut profile = self.profile.clone();
        if let Some(Loaded { device, engine }) = &self.program {
            for (entry, counts) in engine.profile() {
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
    pub(crate) fn load(&mut self, device: DeviceProgram) -> Result<(), ImageError> {
        let (code, data) = (device.program.program_segment(), device.program.data_segment());
        if code.len() > self.config.program as usize {
            return Err(ImageError::TooLarge { what: "code", bytes: code.len(), room: self.config.program });
        }
        if data.len() > self.config.data as usize {
            return Err(ImageError::TooLarge { what: "static data", bytes: data.len(), room: self.config.data });
        }
        self.memory.load(code, data);
        let mut engine = Engine::new(device.program.clone(), self.config.timing, self.config.scratchpad_cycles);
        if self.profiling {
            engine.set_profiling();
        }
        self.program = Some(Loaded { device, engine });
        Ok(())
    }

    /// Forgets the device program and everything that runs or waits.
    pub(crate) fn unload(&mut self) {
        if self.program.is_some() {
            *self = SpinUnit {
                hpus: std::mem::take(&mut self.hpus),
                profiling: self.profiling,
                profile: self.profile(),
                ..SpinUnit::new(&self.config, self.mtu)
            };
            for hpu in &mut self.hpus {
                *hpu = Core { busy: hpu.busy, ..Core::default() };
            }
        }
    }

    pub(crate) fn loaded(&self) -> bool {
        self.program.is_some()
    }

    pub(crate) fn allocate(&mut self, interface: u8, length: u64) -> Result<Handle, Code> {
        self.memory.allocate(interface, length)
    }

    pub(crate) fn free(&mut self, memory: Handle) -> Result<(), Code> {
        self.memory.free(memory)
    }

    /// Card address and bytes of HPU memory.
    pub(crate) fn memory_range(&self, memory: Handle) -> Result<(u32, u32), Code> {
        self.memory.find(memory)
    }

    /// Resolves the handlers of an ME and writes its initial state.
    pub(crate) fn install(
        &mut self,
        me: &Me,
        request: HandlerRequest,
        initial_state: &[u8],
        host_memory: Region,
    ) -> Result<Handlers, Code> {
        let device = &self.program.as_ref().ok_or(Code::ArgInvalid)?.device;
        let find = |address: u64| match address {
            0 => Ok(None),
            address => device.handler(address).cloned().map(Some).ok_or(Code::ArgInvalid),
        };
        let (header, payload, completion) = (find(request.header)?, find(request.payload)?, find(request.completion)?);
        if me.user_hdr_size > u64::from(self.config.max_user_hdr) {
            return Err(Code::ArgInvalid);
        }
        let state = match request.memory {
            0 | abi::portals::INVALID_HANDLE => None,
            memory => Some(self.memory.find(memory)?),
        };
        if initial_state.len() as u64 > state.map_or(0, |(_, length)| u64::from(length)) {
            return Err(Code::ArgInvalid);
        }
        if let Some((address, _)) = state {
            self.memory.write(address, initial_state);
        }
        Ok(Handlers {
            header,
            payload,
            completion,
            state,
            host_memory: Rc::new(host_memory),
            user_hdr: me.user_hdr_size as u32,
        })
    }

    /// The most bytes of initial state that an ME may bring.
    pub(crate) fn max_initial_state(&self) -> u64 {
        u64::from(self.config.max_initial_state)
    }

    /// Writes data of a get to where its handler waits for it.
    pub(crate) fn fill(&mut self, start: usize, data: &[u8]) {
        self.memory.arena()[start..start + data.len()].copy_from_slice(data);
    }

    /// Puts a packet into a buffer, if one is free.
    ///
    /// The data after the first `skip` bytes is aligned to `min_fragmentation_limit` (App. B.2.1).
    fn buffer(&mut self, offset: u64, data: &[u8], skip: u32) -> Option<Buffered> {
        let buffer = self.buffers.pop()?;
        let pad = skip.next_multiple_of(FRAGMENT) - skip;
        let start = map::PACKETS + u32::from(buffer) * machine::Hpu::slot_bytes(self.mtu) + pad;
        self.memory.write(start, data);
        Some(Buffered { buffer, start, offset, length: data.len() as u32 })
    }

    /// Takes a packet's data out of its buffer, which is free then.
    fn unbuffer(&mut self, packet: Buffered) -> Vec<u8> {
        let data = self.memory.read(packet.start, packet.length).to_vec();
        self.buffers.push(packet.buffer);
        data
    }
}
