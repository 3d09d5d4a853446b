// SPDX-License-Identifier: Apache-2.0
//! Surroundings of the hardware as streams at its ports: packets written, packets sent, host memory.

use std::collections::VecDeque;

use machine::Pspin as Config;
use pspin_unit::{Cycle, Rate, Stored};
use sim::Clock;

use crate::RtlError;
use crate::simulation::{Port, Simulation};

/// Bytes in a beat.
pub const BEAT: usize = 64;

macro_rules! ports {
    ($(#[doc = $doc:literal])+ $name:ident: $($port:ident),+) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy)]
        pub struct $name {
            $(pub $port: Port),+
        }

        impl $name {
            /// Finds the ports.
            ///
            /// # Errors
            /// When one is missing.
            pub fn new(simulation: &Simulation) -> Result<$name, RtlError> {
                Ok($name { $($port: simulation.port(stringify!($port))?),+ })
            }
        }
    };
}

ports! {
    /// Ports of `rtl/tests/harness/pspin_harness.sv`.
    Ports: rst_ni, her_valid_i, her_ready_o, her_message_i, her_flow_i, her_eom_i, her_address_i, her_size_i, her_transfer_i,
    her_context_i, her_user_i, feedback_valid_o, feedback_ready_i, feedback_message_o, feedback_address_o, feedback_size_o,
    feedback_transfer_o, feedback_user_o, feedback_kind_o, feedback_last_o, write_valid_i, write_ready_o, write_address_i,
    write_strobe_i, write_data_i, send_valid_o, send_ready_i, send_cluster_o, send_hpu_o, send_node_o, send_flow_o, send_user_o,
    send_data_o, send_bytes_o, send_last_o, host_write_valid_o, host_write_ready_i, host_write_address_o, host_write_data_o,
    host_write_bytes_o,  host_write_last_o, host_write_id_o, host_write_context_o, host_write_own_o,
    host_written_valid_i, host_written_id_i, host_written_refused_i, host_read_valid_o, host_read_ready_i, host_read_address_o,
    host_read_size_o, host_read_id_o, host_read_context_o, host_data_valid_i, host_data_ready_o, host_data_i, host_data_last_i,
    host_data_id_i, host_data_refused_i, ctrl_valid_i, ctrl_we_i, ctrl_address_i, ctrl_wdata_i, idle_o
}

/// Beat to be written.
struct Beat {
    /// Earliest cycle.
    at: Cycle,
    address: u32,
    strobe: u64,
    data: [u8; BEAT],
    /// Set for the last beat of its packet.
    ends: bool,
}

/// NIC port for packets: one beat per cycle.
pub struct Writer {
    beats: VecDeque<Beat>,
    stored: Stored,
    /// First cycle without a beat.
    free: Cycle,
}

impl Writer {
    /// Creates a port without packets.
    pub fn new(config: &Config) -> Writer {
        Writer { beats: VecDeque::new(), stored: Stored::new(config), free: Cycle::ZERO }
    }

    /// Writes bytes from cycle `at` on. Returns the cycle after the last beat.
    pub fn write(&mut self, at: Cycle, address: u32, bytes: &[u8]) -> Cycle {
        let mut at = at.max(self.free);
        let mut done = 0;
        while done < bytes.len() {
            let from = (address as usize + done) % BEAT;
            let count = (BEAT - from).min(bytes.len() - done);
            let mut data = [0; BEAT];
            data[from..from + count].copy_from_slice(&bytes[done..done + count]);
            let strobe = (u64::MAX >> (BEAT - count)) << from;
            let beat = address + done as u32 - from as u32;
            done += count;
            self.beats.push_back(Beat { at, address: beat, strobe, data, ends: done == bytes.len() });
            at += 1_u64;
        }
        if done > 0 {
            self.stored.begin(address);
        }
        self.free = at;
        at
    }

    /// Returns true if no beat is pending.
    pub fn is_empty(&self) -> bool {
        self.beats.is_empty()
    }

    /// Drives the beat of cycle `now`.
    pub fn drive(&self, now: Cycle, simulation: &mut Simulation, ports: &Ports) {
        let beat = self.beats.front().filter(|beat| beat.at <= now);
        simulation.set(ports.write_valid_i, beat.is_some().into());
        if let Some(beat) = beat {
            simulation.set(ports.write_address_i, beat.address.into());
            simulation.set(ports.write_strobe_i, beat.strobe);
            simulation.set_bytes(ports.write_data_i, &beat.data);
        }
    }

    /// Samples whether the beat of cycle `now` is accepted.
    pub fn sample(&mut self, now: Cycle, simulation: &Simulation, ports: &Ports) {
        let is_offered = self.beats.front().is_some_and(|beat| beat.at <= now);
        if is_offered
            && simulation.get(ports.write_ready_o) != 0
            && self.beats.pop_front().is_some_and(|beat| beat.ends)
        {
            self.stored.end(now + 1_u64);
        }
    }

    /// Returns true if a request for the packet at `address` may be submitted in cycle `now`.
    pub fn is_stored(&mut self, now: Cycle, address: u32) -> bool {
        self.stored.is_there(now, address)
    }
}

/// Link to the network, which accepts packets at its rate.
pub struct Link {
    rate: Rate,
    /// First cycle of the departing packet.
    begun: Option<Cycle>,
}

impl Link {
    /// Creates an idle link.
    pub fn new(config: &Config, clock: Clock) -> Link {
        Link { rate: Rate::new(config.outbound.gap_per_byte, clock), begun: None }
    }

    /// Returns true if a beat may leave in cycle `now`.
    pub fn is_free(&self, now: Cycle) -> bool {
        self.begun.is_some() || self.rate.free() <= now
    }

    /// Accepts a beat: the last one of a packet of `bytes`, or an earlier one.
    pub fn leaves(&mut self, now: Cycle, is_last: bool, bytes: usize) {
        let begun = *self.begun.get_or_insert(now);
        if is_last {
            self.begun = None;
            self.rate.take(begun, bytes as u32);
        }
    }
}

/// Response of the host.
struct Answer {
    at: Cycle,
    id: u64,
    /// Beats, and bytes of each.
    data: VecDeque<([u8; BEAT], u32)>,
    is_refused: bool,
}

/// Moves the earliest response to the front. Returns true if it is due.
fn next(answers: &mut VecDeque<Answer>, now: Cycle) -> bool {
    let Some((first, _)) = answers.iter().enumerate().min_by_key(|(_, answer)| answer.at) else { return false };
    if let Some(answer) = (first > 0).then(|| answers.remove(first)).flatten() {
        answers.push_front(answer);
    }
    answers.front().is_some_and(|answer| answer.at <= now)
}

/// Write to host memory with all its beats.
pub struct HostWrite {
    /// Requester: 0 the off-cluster DMA engine, 1 a host-direct command, 2 the unit itself.
    pub id: u64,
    /// Destination address.
    pub address: u64,
    /// Number of the context.
    pub context: usize,
    /// Set if the unit itself writes.
    pub is_own: bool,
    /// Data to write.
    pub bytes: Vec<u8>,
}

/// Host memory at the ports of the unit.
pub struct HostPort {
    /// Write whose beats are arriving.
    coming: Option<HostWrite>,
    written: VecDeque<Answer>,
    read: VecDeque<Answer>,
    /// Set while the first response of `read` is in progress and one of its beats is driven in this cycle.
    is_reading: bool,
    is_offered: bool,
    /// Beats on the link in each direction, at its rate.
    to_host: Rate,
    from_host: Rate,
    /// Cycles from a request to its response.
    write_cycles: u32,
    read_cycles: u32,
}

impl HostPort {
    /// Creates a host with nothing outstanding.
    pub fn new(config: &Config, clock: Clock) -> HostPort {
        let host = &config.host;
        HostPort {
            coming: None,
            written: VecDeque::new(),
            read: VecDeque::new(),
            is_reading: false,
            is_offered: false,
            to_host: Rate::new(host.gap_per_byte, clock),
            from_host: Rate::new(host.gap_per_byte.max(host.read_gap_per_byte), clock),
            write_cycles: host.write_cycles + host.iommu_cycles,
            read_cycles: host.read_cycles + host.iommu_cycles,
        }
    }

    /// Returns the response cycle of a write whose last beat arrived in cycle `now`.
    pub fn written(&self, now: Cycle) -> Cycle {
        now + self.write_cycles
    }

    /// Returns the cycle of the first data of a read requested in cycle `now`.
    pub fn comes(&self, now: Cycle) -> Cycle {
        now + self.read_cycles
    }

    /// Returns true if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.coming.is_none() && self.written.is_empty() && self.read.is_empty()
    }

    /// Accepts the beat of a write, if writes may pass in cycle `now`. Returns the write with its last beat.
    pub fn take_beat(
        &mut self,
        now: Cycle,
        is_ready: bool,
        simulation: &mut Simulation,
        ports: &Ports,
    ) -> Option<HostWrite> {
        if simulation.get(ports.host_write_valid_o) == 0 {
            return None;
        }
        let is_free = is_ready && self.to_host.free() <= now;
        simulation.set(ports.host_write_ready_i, is_free.into());
        if !is_free {
            return None;
        }
        let write = self.coming.get_or_insert_with(|| HostWrite {
            id: simulation.get(ports.host_write_id_o),
            address: simulation.get(ports.host_write_address_o),
            context: simulation.get(ports.host_write_context_o) as usize,
            is_own: simulation.get(ports.host_write_own_o) != 0,
            bytes: Vec::new(),
        });
        let mut data = [0; BEAT];
        simulation.get_bytes(ports.host_write_data_o, &mut data);
        let count = (simulation.get(ports.host_write_bytes_o) as usize).min(BEAT);
        self.to_host.take(now, count as u32);
        write.bytes.extend_from_slice(&data[..count]);
        if simulation.get(ports.host_write_last_o) != 0 { self.coming.take() } else { None }
    }

    /// Responds to a write in cycle `at`.
    pub fn answer_write(&mut self, at: Cycle, id: u64, is_refused: bool) {
        self.written.push_back(Answer { at, id, data: VecDeque::new(), is_refused });
    }

    /// Sends the data of a read from cycle `at` on.
    pub fn answer_read(&mut self, at: Cycle, id: u64, data: &[u8], is_refused: bool) {
        let beat = |part: &[u8]| {
            let mut beat = [0; BEAT];
            beat[..part.len()].copy_from_slice(part);
            (beat, part.len() as u32)
        };
        let mut data: VecDeque<_> = data.chunks(BEAT).map(beat).collect();
        if data.is_empty() {
            data.push_back(([0; BEAT], 0));
        }
        self.read.push_back(Answer { at, id, data, is_refused });
    }

    /// Drives the responses due in cycle `now`; data only if `is_ready`.
    pub fn drive(&mut self, now: Cycle, is_ready: bool, simulation: &mut Simulation, ports: &Ports) {
        let is_written = next(&mut self.written, now);
        let written = self.written.front().filter(|_| is_written);
        simulation.set(ports.host_written_valid_i, is_written.into());
        if let Some(Answer { id, is_refused, .. }) = written {
            simulation.set(ports.host_written_id_i, *id);
            simulation.set(ports.host_written_refused_i, (*is_refused).into());
            self.written.pop_front();
        }
        self.is_reading = self.is_reading || next(&mut self.read, now);
        self.is_offered = is_ready && self.is_reading && self.from_host.free() <= now;
        let read = self.read.front().filter(|_| self.is_offered);
        simulation.set(ports.host_data_valid_i, read.is_some().into());
        if let Some(Answer { id, is_refused, data, .. }) = read {
            simulation.set(ports.host_data_id_i, *id);
            simulation.set(ports.host_data_refused_i, (*is_refused).into());
            simulation.set(ports.host_data_last_i, (data.len() == 1).into());
            simulation.set_bytes(ports.host_data_i, &data[0].0);
        }
    }

    /// Samples whether the beat of cycle `now` is accepted.
    pub fn sample(&mut self, now: Cycle, simulation: &Simulation, ports: &Ports) {
        let Some(answer) = self.read.front_mut().filter(|_| self.is_offered) else { return };
        if simulation.get(ports.host_data_ready_o) == 0 {
            return;
        }
        if let Some((_, bytes)) = answer.data.pop_front() {
            self.from_host.take(now, bytes);
        }
        if answer.data.is_empty() {
            self.is_reading = false;
            self.read.pop_front();
        }
    }
}
