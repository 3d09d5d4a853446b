// SPDX-License-Identifier: Apache-2.0
//! Test environment for a unit: the test executes the commands, and records the end of each handler. The root module of
//! each test defines the unit's machine.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;
use std::rc::Rc;

use abi::portals::Process;
use accel::testing::code::program;
use accel::{
    Accelerator, Env, Event, Finished, HandlerSet, HandlerSlice, HpuMemory, Input, Issued, MessageHeader, MessageId,
    MessageKind, Outcome, Packet, Printed, Reply, Task,
};
use machine::Machine;
use sim::{EventQueue, Time};

/// Environment of the unit.
#[derive(Default)]
pub struct World {
    pub now: Time,
    pub queue: EventQueue<Event>,
    /// True if the unit may not simulate ahead.
    pub is_close: bool,
    /// Commands that the test has not yet taken.
    pub issued: Vec<Issued>,
    finished: Vec<Finished>,
    /// Printed texts.
    pub printed: Vec<Printed>,
    /// HPU, start and end in ps, and handler of each slice.
    pub slices: Vec<(u32, u64, u64, String)>,
}

impl Env for World {
    fn now(&self) -> Time {
        self.now
    }

    fn horizon(&self) -> Time {
        if self.is_close { self.now } else { self.queue.peek_time().unwrap_or(Time::MAX) }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.queue.push(at, event);
    }

    fn issue(&mut self, issued: Issued) {
        self.issued.push(issued);
    }

    fn finished(&mut self, finished: Finished) {
        self.finished.push(finished);
    }

    fn found(&mut self, _: u32, _: String) {}

    fn print(&mut self, printed: Printed) {
        self.printed.push(printed);
    }

    fn tracing(&self) -> bool {
        true
    }

    fn slice(&mut self, HandlerSlice { hpu, start, end, name, .. }: HandlerSlice<'_>) {
        self.slices.push((hpu, start.as_ps(), end.as_ps(), name.to_owned()));
    }
}

/// A handler that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// Time of its end in ps.
    pub at: u64,
    pub message: MessageId,
    pub outcome: Outcome,
    pub cycles: u64,
    /// Time from its start in ps.
    pub occupancy: u64,
}

/// A unit with handlers "header", "payload" and "completion", and its environment.
pub struct Rig {
    pub unit: Box<dyn Accelerator>,
    pub world: World,
    pub handlers: Rc<HandlerSet>,
    /// Handlers that ended.
    pub ends: Vec<End>,
}

/// Loads a machine of the repository with these settings.
pub fn load(name: &str, settings: &[&str]) -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    Machine::load(name, &[folder], &settings).unwrap()
}

impl Rig {
    /// Creates a unit with this payload handler, and HPU memory that starts with `state`.
    pub fn payload(settings: &[&str], code: Vec<u32>, state: &[u8]) -> Rig {
        Rig::new(settings, [vec![], code, vec![]], state)
    }

    /// Creates a unit with header, payload and completion handlers; empty code means no handler.
    pub fn new(settings: &[&str], codes: [Vec<u32>; 3], state: &[u8]) -> Rig {
        let machine = crate::machine(settings);
        let mut unit = crate::accelerator(&machine);
        let named = ["header", "payload", "completion"].into_iter().zip(codes);
        let given: Vec<_> = named.filter(|(_, code)| !code.is_empty()).collect();
        let program = program(&machine, &given);
        unit.load(program.clone()).unwrap();
        let memory: Rc<HpuMemory> = unit.allocate(1024).unwrap();
        unit.initialise(&memory, state).unwrap();
        let named = |name| program.named(name).cloned();
        let (header, payload, completion) = (named("header"), named("payload"), named("completion"));
        let handlers = Rc::new(HandlerSet { header, payload, completion, state: Some(memory), user_hdr: 0 });
        Rig { unit, world: World::default(), handlers, ends: Vec::new() }
    }

    /// Creates a task of a message.
    pub fn task(&self, message: MessageId, input: Input, packet: Option<Packet>) -> Task {
        let role = match input {
            Input::Header(_) => accel::Role::Header,
            Input::Payload => accel::Role::Payload,
            Input::Completion { .. } => accel::Role::Completion,
        };
        let handler = self.handlers.get(role).unwrap().clone();
        Task {
            message,
            process: 0,
            handlers: self.handlers.clone(),
            handler,
            input,
            packet,
            end_of_message: true,
            tenant: 0,
            share: accel::Share::default(),
        }
    }

    /// Stores a packet in a buffer of the unit.
    pub fn store(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
    ) -> Result<Option<Packet>, accel::InternalError> {
        self.unit.store(offset, data, user_header, &mut self.world)
    }

    /// Offers a payload handler for a packet with this data.
    pub fn offer(&mut self, message: MessageId, data: &[u8]) {
        let packet = self.store(0, data, 0).unwrap().unwrap();
        let task = self.task(message, Input::Payload, Some(packet));
        self.unit.offer(task, &mut self.world).unwrap();
        self.settle();
    }

    /// Replies to a command.
    pub fn reply(&mut self, issued: &Issued, reply: Reply) {
        self.unit.complete(issued.id, reply, &mut self.world).unwrap();
        self.settle();
    }

    /// Acts on the handlers that ended, as a card does. Each handler is the last one of its message.
    pub fn settle(&mut self) {
        for Finished { task, outcome, usage } in std::mem::take(&mut self.world.finished) {
            let at = self.world.now.as_ps();
            let occupancy = usage.occupancy.as_ps();
            self.ends.push(End { at, message: task.message, outcome, cycles: usage.cycles, occupancy });
            if let Some(packet) = task.packet {
                self.unit.free(packet);
            }
            self.unit.message_ended(task.message, &mut self.world).unwrap();
            self.unit.resume(&mut self.world).unwrap();
        }
    }

    /// Handles events until a handler issues a command, and takes the command; `None` if no events remain.
    pub fn next_command(&mut self) -> Option<Issued> {
        while self.world.issued.is_empty() {
            let (at, event) = self.world.queue.pop()?;
            self.world.now = at;
            self.unit.handle(event, &mut self.world).unwrap();
            self.settle();
        }
        Some(self.world.issued.remove(0))
    }

    /// Handles all events; no handler may issue a command.
    pub fn run(&mut self) {
        let issued = self.next_command();
        assert!(issued.is_none(), "{issued:?}");
    }

    /// Returns the HPUs on which handlers ran, in the order of their ends.
    pub fn hpus(&self) -> Vec<u32> {
        self.world.slices.iter().map(|slice| slice.0).collect()
    }

    /// Returns message and end time in ps of each handler that ended.
    pub fn times(&self) -> Vec<(MessageId, u64)> {
        self.ends.iter().map(|end| (end.message, end.at)).collect()
    }

    /// Reads memory of the handler that issued a command.
    pub fn read(&mut self, issued: &Issued, address: u32, length: u32) -> Option<Vec<u8>> {
        self.unit.read(issued.id, address, length).unwrap()
    }
}

/// Returns the header of a put of 100 bytes.
pub fn header() -> MessageHeader {
    let (target, source) = (Process { nid: 1, pid: 2 }, Process { nid: 3, pid: 4 });
    MessageHeader { kind: MessageKind::Put, length: 100, target, source, match_bits: 5, offset: 6, hdr_data: 7 }
}

/// Outcome of a payload handler that succeeded.
pub const SUCCESS: Outcome = Outcome::Payload { dropped: false };
