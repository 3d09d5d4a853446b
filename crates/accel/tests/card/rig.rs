//! A PsPIN card in an environment of its own, which records which handler ends when.

use std::path::Path;
use std::rc::Rc;

use accel::testing::code::program;
use accel::{
    Accelerator, Env, Event, Finished, HandlerSet, HandlerSlice, Input, Issued, MessageId, Outcome, Packet, Reply,
    Role, Task,
};
use machine::Machine;
use sim::{EventQueue, Time};

/// The environment of the card.
#[derive(Default)]
pub struct World {
    pub now: Time,
    pub queue: EventQueue<Event>,
    /// The card may not simulate ahead.
    pub is_close: bool,
    /// Commands that the test has not taken.
    pub issued: Vec<Issued>,
    finished: Vec<Finished>,
    /// The HPUs on which handlers ran.
    pub hpus: Vec<u32>,
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

    fn tracing(&self) -> bool {
        true
    }

    fn slice(&mut self, slice: HandlerSlice<'_>) {
        self.hpus.push(slice.hpu);
    }
}

/// A handler that has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct End {
    /// The time of its end, in ns.
    pub at: u64,
    pub message: MessageId,
    pub outcome: Outcome,
}

/// A card with a payload handler, and its environment.
pub struct Rig {
    pub card: Box<dyn Accelerator>,
    pub world: World,
    pub handlers: Rc<HandlerSet>,
    /// The handlers that have ended.
    pub ends: Vec<End>,
}

/// The published handler's return code.
pub const SUCCESS: Outcome = Outcome::Payload { dropped: false };

impl Rig {
    /// A card with this payload handler, and HPU memory of 1,024 bytes that starts with `state`.
    pub fn new(settings: &[&str], code: Vec<u32>, state: &[u8]) -> Rig {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let machine = Machine::load("pspin-400g", &[folder], &settings).unwrap();
        let mut card = accel::create(&machine);
        let program = program(&machine, &[("payload", code)]);
        card.load(program.clone()).unwrap();
        let memory = card.allocate(1024).unwrap();
        card.initialise(&memory, state).unwrap();
        let payload = program.named("payload").cloned();
        let handlers = HandlerSet { payload, state: Some(memory), ..HandlerSet::default() };
        Rig { card, world: World::default(), handlers: Rc::new(handlers), ends: Vec::new() }
    }

    /// Puts a packet into a buffer of the card.
    pub fn store(&mut self, data: &[u8]) -> Packet {
        self.card.store(0, data, 0, &mut self.world).unwrap().unwrap()
    }

    /// Offers a payload handler for a packet with this data.
    pub fn offer(&mut self, message: MessageId, data: &[u8]) {
        let packet = self.store(data);
        let handler = self.handlers.get(Role::Payload).unwrap().clone();
        let handlers = self.handlers.clone();
        let packet = Some(packet);
        let task = Task { message, handlers, handler, input: Input::Payload, packet, end_of_message: true };
        self.card.offer(task, &mut self.world).unwrap();
    }

    /// Replies to a command.
    pub fn reply(&mut self, issued: &Issued, reply: Reply) {
        self.card.complete(issued.id, reply, &mut self.world).unwrap();
    }

    /// Handles events until a handler has issued a command, which is taken; `None` when all events have been handled. Each
    /// message ends with its only handler.
    pub fn next_command(&mut self) -> Option<Issued> {
        while self.world.issued.is_empty() {
            let (at, event) = self.world.queue.pop()?;
            self.world.now = at;
            self.card.handle(event, &mut self.world).unwrap();
            for Finished { task, outcome, .. } in std::mem::take(&mut self.world.finished) {
                self.ends.push(End { at: at.as_ps() / 1000, message: task.message, outcome });
                if let Some(packet) = task.packet {
                    self.card.free(packet);
                }
                self.card.message_ended(task.message, &mut self.world).unwrap();
                self.card.resume(&mut self.world).unwrap();
            }
        }
        Some(self.world.issued.remove(0))
    }

    /// Handles all events; no handler may issue a command.
    pub fn run(&mut self) {
        let issued = self.next_command();
        assert!(issued.is_none(), "{issued:?}");
    }

    /// Runs the handler on a packet, alone. Returns the time from the packet to the feedback, in ns.
    pub fn time(&mut self, message: MessageId, data: &[u8]) -> u64 {
        self.world.now += Time::from_ns(100);
        let start = self.world.now.as_ps() / 1000;
        self.offer(message, data);
        self.run();
        self.ends.last().unwrap().at - start
    }
}
