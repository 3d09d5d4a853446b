use machine::Dma;
use sim::{SerialResource, Time, Train};

use crate::ports::{PacketId, Ports, Slice, Track};

/// The DMA engine of a card: one transfer at a time between card and host memory, each followed by a latency during which
/// the next one proceeds.
pub struct DmaEngine {
    config: Dma,
    pipe: SerialResource,
    bytes: u64,
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

    /// Reserves the engine for `bytes`; returns when the last byte has crossed in one direction.
    pub fn write(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> Time {
        let (start, end) = self.pipe.reserve(ports.now(), bytes, self.config.gap_per_byte, Time::ZERO);
        if bytes > 0 && ports.tracing() {
            ports.slice(Slice { track: Track::Dma, start, end, name, packet, bytes: Some(bytes) });
        }
        self.bytes += bytes;
        end + self.config.latency
    }

    /// As [`write`](DmaEngine::write) for a read: the request crosses first (sPIN App. C.3.2: "we pay two DMA latencies
    /// to read the data").
    pub fn read(&mut self, bytes: u64, name: &str, packet: Option<PacketId>, ports: &mut impl Ports) -> Time {
        self.write(bytes, name, packet, ports) + self.config.latency
    }

    /// Reserves the engine for the bytes of a message, which are read back to back.
    pub fn fetch(&mut self, now: Time, bytes: u64) -> Train {
        if bytes == 0 {
            return Train::default();
        }
        self.bytes += bytes;
        self.pipe.reserve_train(now, bytes, self.config.gap_per_byte)
    }
}
