//! The path between a card and its host's memory, and the rules by which it costs time (`dma.messages`, `dma.handlers`).

use machine::{Dma, DmaHandlers, DmaMessages};
use sim::{SerialResource, Time, Train};

use crate::event::Initiator;
use crate::ports::{PacketId, Ports, Slice, Track};

/// The DMA engine of a card: one transfer at a time between card and host memory, each followed by a latency during which
/// the next one proceeds.
pub struct DmaEngine {
    config: Dma,
    pipe: SerialResource,
    bytes: u64,
}

/// A write of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerWrite {
    /// When its handler may go on.
    pub posted: Time,
    /// When the data is in host memory.
    pub done: Time,
}

/// A read at the target of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// When host memory is read.
    pub read: Time,
    /// When the data is on the card.
    pub there: Time,
}

impl DmaEngine {
    /// An idle engine.
    pub fn new(config: Dma) -> DmaEngine {
        DmaEngine { config, pipe: SerialResource::default(), bytes: 0 }
    }

    /// The latency of a transfer in one direction.
    pub fn latency(&self) -> Time {
        self.config.latency
    }

    /// Bytes moved so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long the engine was occupied.
    pub fn busy(&self) -> Time {
        self.pipe.busy()
    }

    /// Moves `bytes` of a message to host memory. Returns when they are there.
    pub fn deposit(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> Time {
        self.bytes += bytes;
        let left = match self.config.messages {
            DmaMessages::Transfers => self.occupy(bytes, name, packet, ports).1,
            DmaMessages::Latency => ports.now(),
        };
        left + self.config.latency
    }

    /// Tells the host that something is over, behind all data. Returns when the host can see it.
    pub fn tell(&mut self, ports: &mut impl Ports) -> Time {
        self.deposit(0, "", None, ports)
    }

    /// Reads `bytes` at the target of a message, for the card to work on. The request crosses first (sPIN App. C.3.2: "we
    /// pay two DMA latencies to read the data").
    pub fn operands(&mut self, bytes: u64, packet: PacketId, ports: &mut impl Ports) -> Operands {
        let crossed = self.deposit(bytes, "operands", Some(packet), ports);
        Operands {
            read: if self.writes_at_once() { ports.now() } else { crossed },
            there: crossed + self.config.latency,
        }
    }

    /// Reserves the engine for the bytes of a message that is sent, which are read back to back; `None` when the engine
    /// is not needed.
    pub fn fetch(&mut self, now: Time, bytes: u64) -> Option<Train> {
        self.bytes += bytes;
        match self.config.messages {
            DmaMessages::Transfers if bytes == 0 => Some(Train::default()),
            DmaMessages::Transfers => Some(self.pipe.reserve_train(now, bytes, self.config.gap_per_byte)),
            DmaMessages::Latency => None,
        }
    }

    /// How long a message is under way from host memory to the port, when that depends only on who sends it.
    pub fn way_to_port(&self, initiator: Initiator) -> Option<Time> {
        let crossings = match initiator {
            Initiator::Host => 1,
            Initiator::Handler => 2,
            Initiator::Card => 0,
        };
        (self.config.messages == DmaMessages::Latency).then(|| self.config.latency * crossings)
    }

    /// Whether messages read and write host memory when they are matched. With `dma.messages = "latency"` a get is answered at
    /// once, and what it reads must be what the message before it has written (Portals 4.3 §3.3); the program is told a
    /// latency later. So handlers do not wait for deposits.
    pub fn writes_at_once(&self) -> bool {
        self.config.messages == DmaMessages::Latency
    }

    /// Moves data of a handler to host memory.
    pub fn handler_write(&mut self, bytes: u64, ports: &mut impl Ports) -> HandlerWrite {
        self.bytes += bytes;
        match self.config.handlers {
            DmaHandlers::Transfers => {
                let (_, posted) = self.occupy(bytes, "to host", None, ports);
                HandlerWrite { posted, done: posted + self.config.latency }
            }
            // The data is there when the program is told, which takes a latency: nobody can see that it comes early.
            DmaHandlers::Requests => {
                let (start, _) = self.occupy(bytes.saturating_sub(1), "to host", None, ports);
                HandlerWrite { posted: start, done: start }
            }
        }
    }

    /// Moves data from host memory to a handler. Returns when it is on the card; the request crosses first.
    pub fn handler_read(&mut self, bytes: u64, name: &str, ports: &mut impl Ports) -> Time {
        self.bytes += bytes;
        let passed = match self.config.handlers {
            DmaHandlers::Transfers => self.occupy(bytes, name, None, ports).1,
            DmaHandlers::Requests => {
                let (start, _) = self.occupy(0, name, None, ports);
                start + self.config.gap_per_byte.time(bytes.saturating_sub(1))
            }
        };
        passed + self.config.latency * 2
    }

    /// Reserves the engine. Returns when the transfer begins, and when its last byte has crossed.
    fn occupy(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> (Time, Time) {
        let (start, end) = self.pipe.reserve(ports.now(), bytes, self.config.gap_per_byte, Time::ZERO);
        if bytes > 0 && ports.tracing() {
            ports.slice(Slice { track: Track::Dma, start, end, name, packet, bytes: Some(bytes) });
        }
        (start, end)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;

    use machine::Machine;

    use super::*;
    use crate::testing::{Bench, Recorder};

    /// What `act` does with an idle engine at time 0, on sc17-int (L = 50 ns, 6.7 ps a byte) with these rules.
    fn at_once<R>(
        rules: [&str; 2],
        act: impl Fn(&mut DmaEngine, &mut dyn FnMut(&mut DmaEngine, &str, u64) -> Time) -> R,
    ) -> R {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let machine = Rc::new(Machine::load("sc17-int", &[folder], &rules.map(str::to_owned)).unwrap());
        let mut engine = DmaEngine::new(machine.dma.clone());
        let mut bench = Bench::new(&machine, 1, 0, Recorder::default());
        act(&mut engine, &mut |engine, what, bytes| {
            bench.act(0, |_, ports| match what {
                "read" => engine.handler_read(bytes, "read", ports),
                "write" => engine.handler_write(bytes, ports).posted,
                "deposit" => engine.deposit(bytes, "deposit", None, ports),
                _ => engine.operands(bytes, PacketId { message: 0, offset: 0 }, ports).there,
            })
        })
    }

    #[test]
    fn transfers_of_handlers_queue_for_the_engine() {
        let rules = ["dma.handlers=transfers", "dma.messages=transfers"];
        let ends =
            at_once(rules, |engine, act| ["read", "read", "write", "deposit"].map(|what| act(engine, what, 4096)));
        // Each takes 27,443.2 ps; reads have 2 L after that, a write lets its handler go on, a deposit has L.
        assert_eq!(ends, [127_444, 154_887, 82_330, 159_773].map(Time::from_ps));
    }

    /// LogGOPSim2: a read holds nothing up and a write (s - 1) G, 27,436.5 ps; both begin when the writes before are over.
    #[test]
    fn requests_of_handlers_wait_for_writes_only() {
        let rules = ["dma.handlers=requests", "dma.messages=transfers"];
        let what = ["read", "read", "write", "write", "read"];
        let ends = at_once(rules, |engine, act| what.map(|what| act(engine, what, 4096)));
        assert_eq!(ends, [127_437, 127_437, 0, 27_437, 54_873 + 127_437].map(Time::from_ps));
    }

    /// LogGOPSim2: messages cross in latencies of 50 ns, whatever their size, and the engine stays free.
    #[test]
    fn messages_may_need_latencies_only() {
        let rules = ["dma.handlers=transfers", "dma.messages=latency"];
        at_once(rules, |engine, act| {
            let ends = ["deposit", "deposit", "operands", "read"].map(|what| act(engine, what, 4096));
            assert_eq!(ends, [50_000, 50_000, 100_000, 127_444].map(Time::from_ps));
            assert!(engine.fetch(Time::ZERO, 4096).is_none());
            assert_eq!(engine.bytes(), 5 * 4096);
            let ways = [Initiator::Host, Initiator::Handler, Initiator::Card].map(|who| engine.way_to_port(who));
            assert_eq!(ways, [50, 100, 0].map(|ns| Some(Time::from_ns(ns))));
        });
    }
}
