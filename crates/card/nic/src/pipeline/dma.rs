// SPDX-License-Identifier: Apache-2.0
//! DMA path between a card and its host's memory, with its timing rules (`dma.engines`, `dma.messages`, `dma.handlers`,
//! `dma.news`).

use machine::{Dma, DmaEngines, DmaHandlers, DmaMessages, DmaNews};
use sim::{SerialResource, Time, TimePerByte, Train};

use crate::event::{Fetching, Initiator};
use crate::ports::{PacketId, Ports, Slice, Track};

/// DMA engine of a card: one transfer at a time between card and host memory. Each transfer is followed by a latency
/// that overlaps with the next one. With `dma.engines = "per-direction"` reads have a separate engine.
#[repr(C)] // see `Nic`
pub struct DmaEngine {
    /// Engine for writes, and for reads unless these have a separate engine.
    pipe: SerialResource,
    config: Dma,
    bytes: u64,
    /// Separate engine for reads.
    reads: SerialResource,
}

/// A write of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerWrite {
    /// Time at which its handler may continue.
    pub posted: Time,
    /// Time at which the data is in host memory.
    pub done: Time,
}

/// A read at the target of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// Time of the read in host memory.
    pub read: Time,
    /// Time at which the data is on the card.
    pub there: Time,
}

impl DmaEngine {
    /// Creates an idle engine.
    pub fn new(config: Dma) -> DmaEngine {
        DmaEngine { config, pipe: SerialResource::default(), reads: SerialResource::default(), bytes: 0 }
    }

    /// Takes over the reservations of the engine by another process of the node.
    pub fn follow(&mut self, other: &DmaEngine) {
        self.pipe.follow(&other.pipe);
        self.reads.follow(&other.reads);
    }

    /// Returns the latency of a transfer in one direction.
    pub fn latency(&self) -> Time {
        self.config.latency
    }

    /// Returns the total of moved bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the time for which the engine was occupied; both engines together if reads have a separate one.
    pub fn busy(&self) -> Time {
        self.pipe.busy() + self.reads.busy()
    }

    /// Moves `bytes` of a message to host memory. Returns their arrival time.
    pub fn deposit(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> Time {
        self.bytes += bytes;
        let left = match self.config.messages {
            DmaMessages::Transfers => self.write(bytes, name, packet, ports).1,
            DmaMessages::Latency => ports.now(),
        };
        left + self.config.latency
    }

    /// Sends a notification to the host, behind all data of messages. Returns the time at which the host can see it.
    pub fn tell(&mut self, ports: &mut impl Ports) -> Time {
        self.deposit(0, "", None, ports)
    }

    /// Sends the notification of a message with handlers to the host, behind all writes of handlers. Returns the time
    /// at which the host can see it.
    pub fn tell_behind_handlers(&mut self, ports: &mut impl Ports) -> Time {
        self.write(0, "", None, ports).1 + self.config.latency
    }

    /// Returns true if a message's completion is reported only once its handlers' writes are in host memory.
    pub fn news_waits_for_writes(&self) -> bool {
        match self.config.news {
            DmaNews::AfterWrites => true,
            DmaNews::BehindWrites => false,
        }
    }

    /// Reads `bytes` at the target of a message, for use on the card. The request crosses first (sPIN App. C.3.2: "we
    /// pay two DMA latencies to read the data").
    pub fn operands(&mut self, bytes: u64, packet: PacketId, ports: &mut impl Ports) -> Operands {
        self.bytes += bytes;
        let latency = self.config.latency;
        match self.config.messages {
            DmaMessages::Transfers => {
                let requested = self.requested(ports.now());
                let (_, passed) = self.read(bytes, "operands", Some(packet), ports);
                Operands { read: requested.unwrap_or(passed + latency), there: passed + latency * 2 }
            }
            DmaMessages::Latency => Operands { read: ports.now(), there: ports.now() + latency * 2 },
        }
    }

    /// Reserves the engine for the bytes of a sent message, which are read back to back; `None` if the engine is not
    /// needed.
    pub fn fetch(&mut self, bytes: u64, ports: &mut impl Ports) -> Option<Fetching> {
        self.bytes += bytes;
        match self.config.messages {
            DmaMessages::Transfers if bytes == 0 => Some(Fetching { train: Train::default(), requested: None }),
            DmaMessages::Transfers => {
                let (now, alone) = (ports.now(), self.config.gap_per_byte);
                let requested = self.requested(now);
                let engine = self.reads(now);
                let rate = next_rate(engine, alone, bytes, ports);
                let train = engine.reserve_train(now, bytes, rate);
                Some(Fetching { train, requested })
            }
            DmaMessages::Latency => None,
        }
    }

    /// Returns the time of a message from host memory to the port, if it depends only on the initiator.
    pub fn way_to_port(&self, initiator: Initiator) -> Option<Time> {
        let crossings = match initiator {
            Initiator::Host => 1,
            Initiator::Handler => 2,
            Initiator::Card => 0,
        };
        (self.config.messages == DmaMessages::Latency).then(|| self.config.latency * crossings)
    }

    /// Returns true if messages access host memory at the time of their match. With `dma.messages = "latency"` a get is
    /// answered immediately, and must read the data of the previous message (Portals 4.3 §3.3); the program is notified
    /// a latency later. So handlers do not wait for deposits.
    pub fn writes_at_once(&self) -> bool {
        self.config.messages == DmaMessages::Latency
    }

    /// Moves data of a handler to host memory.
    pub fn handler_write(&mut self, bytes: u64, ports: &mut impl Ports) -> HandlerWrite {
        self.bytes += bytes;
        match self.config.handlers {
            DmaHandlers::Transfers => {
                let (_, posted) = self.write(bytes, "to host", None, ports);
                HandlerWrite { posted, done: posted + self.config.latency }
            }
            DmaHandlers::Requests => {
                let (posted, left) = self.write(bytes.saturating_sub(1), "to host", None, ports);
                HandlerWrite { posted, done: left + self.config.latency }
            }
        }
    }

    /// Moves data from host memory to a handler. Returns its arrival time on the card; the request crosses first.
    pub fn handler_read(&mut self, bytes: u64, name: &str, ports: &mut impl Ports) -> Time {
        self.bytes += bytes;
        let passed = match self.config.handlers {
            DmaHandlers::Transfers => self.read(bytes, name, None, ports).1,
            DmaHandlers::Requests => {
                let (now, alone) = (ports.now(), self.config.gap_per_byte);
                let rate = next_rate(self.reads(now), alone, bytes.saturating_sub(1), ports);
                let (start, _) = self.read(0, name, None, ports);
                start + rate.time(bytes.saturating_sub(1))
            }
        };
        passed + self.config.latency * 2
    }

    /// Reserves the engine for a write. Returns its start, and the time at which its last byte has crossed.
    fn write(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> (Time, Time) {
        let rate = next_rate(&self.pipe, self.config.gap_per_byte, bytes, ports);
        let span = self.pipe.reserve(ports.now(), bytes, rate, Time::ZERO);
        show(span, bytes, name, packet, ports);
        span
    }

    /// Reserves the engine for a read. Returns the times at which its data starts and ends crossing, without the
    /// latencies of request and data.
    fn read(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> (Time, Time) {
        let (now, alone) = (ports.now(), self.config.gap_per_byte);
        let engine = self.reads(now);
        let rate = next_rate(engine, alone, bytes, ports);
        let span = engine.reserve(now, bytes, rate, Time::ZERO);
        show(span, bytes, name, packet, ports);
        span
    }

    /// Returns the engine for a read. A separate one is not free before the request leaves.
    fn reads(&mut self, now: Time) -> &mut SerialResource {
        match self.config.engines {
            DmaEngines::Shared => &mut self.pipe,
            DmaEngines::PerDirection => {
                let behind_writes = self.writes_end(now);
                self.reads.reserve(behind_writes, 0, self.config.gap_per_byte, Time::ZERO);
                &mut self.reads
            }
        }
    }

    /// Returns the time at which a request for data reaches host memory, if reads have a separate engine.
    fn requested(&mut self, now: Time) -> Option<Time> {
        match self.config.engines {
            DmaEngines::Shared => None,
            DmaEngines::PerDirection => Some(self.writes_end(now) + self.config.latency),
        }
    }

    /// Returns the departure time of a request issued now: behind all writes, so that a read sees their data.
    fn writes_end(&mut self, now: Time) -> Time {
        self.pipe.reserve(now, 0, self.config.gap_per_byte, Time::ZERO).0
    }
}

/// Returns the time per byte of the engine's next transfer, of `bytes` bytes: `alone`, unless others use host memory as
/// well.
fn next_rate(engine: &SerialResource, alone: TimePerByte, bytes: u64, ports: &mut impl Ports) -> TimePerByte {
    let now = ports.now();
    ports.memory_rate(alone, bytes, || engine.next_start(now))
}

/// Adds a transfer to the timeline.
fn show((start, end): (Time, Time), bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) {
    if bytes > 0 && ports.tracing() {
        ports.slice(Slice { track: Track::Dma, start, end, name, packet, bytes: Some(bytes) });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;

    use machine::Machine;

    use super::*;
    use crate::accelerator::CardModel;
    use crate::testing::{Bench, Recorder};

    /// Returns the result of `act` on an idle engine at time 0, on sc17-int (L = 50 ns, 6.7 ps per byte) with these
    /// rules.
    fn at_once<R>(
        rules: &[&str],
        act: impl Fn(&mut DmaEngine, &mut dyn FnMut(&mut DmaEngine, &str, u64) -> Time) -> R,
    ) -> R {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let machine = Machine::load("sc17-int", &[folder], &rules).unwrap();
        let machine = Rc::new(CardModel::new(machine).unwrap());
        let mut engine = DmaEngine::new(machine.dma.clone());
        let mut bench = Bench::new(&machine, 1, 0, Recorder::default());
        act(&mut engine, &mut |engine, what, bytes| {
            bench.act(0, |_, ports| match what {
                "read" => engine.handler_read(bytes, "read", ports),
                "write" => engine.handler_write(bytes, ports).posted,
                "written" => engine.handler_write(bytes, ports).done,
                "news" => engine.tell_behind_handlers(ports),
                "deposit" => engine.deposit(bytes, "deposit", None, ports),
                "fetch" => engine.fetch(bytes, ports).map_or(Time::ZERO, |fetching| fetching.train.passed(bytes)),
                _ => engine.operands(bytes, PacketId { message: 0, offset: 0 }, ports).there,
            })
        })
    }

    #[test]
    fn transfers_of_handlers_queue_for_the_engine() {
        let rules = ["dma.handlers=transfers", "dma.messages=transfers"];
        let ends =
            at_once(&rules, |engine, act| ["read", "read", "write", "deposit"].map(|what| act(engine, what, 4096)));
        // Each takes 27,443.2 ps; a read adds 2 L, a deposit L, and a write releases its handler immediately.
        assert_eq!(ends, [127_444, 154_887, 82_330, 159_773].map(Time::from_ps));
    }

    /// LogGOPSim2: a read occupies no time and a write (s - 1) G, 27,436.5 ps; both start after the earlier writes.
    #[test]
    fn requests_of_handlers_wait_for_writes_only() {
        let rules = ["dma.handlers=requests", "dma.messages=transfers"];
        let what = ["read", "read", "write", "write", "read"];
        let ends = at_once(&rules, |engine, act| what.map(|what| act(engine, what, 4096)));
        assert_eq!(ends, [127_437, 127_437, 0, 27_437, 54_873 + 127_437].map(Time::from_ps));
    }

    /// The notification of a message follows its handlers' data, which arrives 50 ns after its last byte leaves.
    #[test]
    fn news_does_not_overtake_the_data() {
        for (handlers, there) in [("transfers", 77_444), ("requests", 77_437)] {
            for messages in ["transfers", "latency"] {
                let rules = [format!("dma.handlers={handlers}"), format!("dma.messages={messages}")];
                let ends = at_once(&rules.each_ref().map(String::as_str), |engine, act| {
                    ["written", "news"].map(|what| act(engine, what, 4096))
                });
                assert_eq!(ends, [Time::from_ps(there); 2], "{handlers} {messages}");
            }
        }
    }

    /// Reads of 27,443.2 ps queue behind reads, and are requested behind writes; writes do not wait for reads.
    #[test]
    fn each_direction_may_have_an_engine_of_its_own() {
        let rules = ["dma.engines=per-direction"];
        let what = ["read", "read", "deposit", "written", "read", "operands"];
        let ends = at_once(&rules, |engine, act| what.map(|what| act(engine, what, 4096)));
        // Writes end at 27,443.2 and 54,886.4 ps; requests leave at a whole picosecond, the last two at 54,887.
        assert_eq!(ends, [127_444, 154_887, 77_444, 104_887, 182_331, 209_774].map(Time::from_ps));
        // A read behind two writes is requested when they have left, and host memory is read L later.
        at_once(&rules, |engine, act| {
            let written = ["deposit", "deposit"].map(|what| act(engine, what, 4096));
            assert_eq!(written, [77_444, 104_887].map(Time::from_ps));
            assert_eq!(engine.requested(Time::ZERO), Some(Time::from_ps(104_887)));
            assert_eq!(act(engine, "fetch", 8192), Time::from_ps(109_774));
        });
    }

    /// LogGOPSim2: messages cross in latencies of 50 ns, regardless of size, and the engine stays free.
    #[test]
    fn messages_may_need_latencies_only() {
        let rules = ["dma.handlers=transfers", "dma.messages=latency"];
        at_once(&rules, |engine, act| {
            let ends = ["deposit", "deposit", "operands", "read"].map(|what| act(engine, what, 4096));
            assert_eq!(ends, [50_000, 50_000, 100_000, 127_444].map(Time::from_ps));
            assert_eq!(act(engine, "fetch", 4096), Time::ZERO, "no train");
            assert_eq!(engine.bytes(), 5 * 4096);
            let ways = [Initiator::Host, Initiator::Handler, Initiator::Card].map(|who| engine.way_to_port(who));
            assert_eq!(ways, [50, 100, 0].map(|ns| Some(Time::from_ns(ns))));
        });
    }
}
