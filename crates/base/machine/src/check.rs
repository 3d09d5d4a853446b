// SPDX-License-Identifier: Apache-2.0
//! Checks the values of a machine, alone and in combination.

use abi::device::{HeaderArgs, map};
use sim::{Clock, Time, TimePerByte};

use crate::Machine;
use crate::accelerator::{Accelerator, Hpu, Sc17, TimingKind};
use crate::network::{Fabric, Network, NetworkModel, Reception, Shape, SwitchCards, Topology};
use crate::problem::Problem;
use crate::pspin::Pspin;
use crate::sharing::Sharing;
use crate::transport::Transport;
use crate::value::Parameter;

/// Bytes of a request's header in the argument block.
#[expect(clippy::cast_possible_truncation, reason = "a few words")]
const HEADER_BYTES: u32 = size_of::<HeaderArgs>() as u32;

/// Maximum of a single latency, so that sums of latencies stay far below the maximum simulated time.
const LONGEST: Time = Time::from_ns(1_000_000_000);
/// 1 kB/s.
const SLOWEST: TimePerByte = TimePerByte::from_fs_per_byte(1_000_000_000_000);
/// 1,000 GHz.
const FASTEST: Clock = Clock::from_khz(1_000_000_000);
/// Maximum run time of a handler: 1,000 s.
const LONGEST_HANDLER: Time = Time::from_ns(1_000_000_000_000);
/// Maximum latency of a load, so that the cycles of a block of loads fit into the counters of the timing models.
const SLOWEST_SCRATCHPAD: u32 = 10_000;
/// Maximum number of ports of a switch, so that the number of ports of a tree stays far below 2^64.
const MAX_RADIX: u32 = 1 << 16;
/// Maximum size of a fabric's buffer, so that time-outs stay within simulated time even if a slow link drains it.
const MAX_BUFFER: u64 = 1 << 40;
/// Maximum number of dimensions of a torus.
const MAX_DIMENSIONS: usize = 5;
/// Maximum number of retries, so that a card without an answer gives up within simulated time.
const MAX_RETRIES: u32 = 1000;
/// Maximum number of contexts of a card, so that a set of contexts fits into a machine word.
const MAX_CONTEXTS: u32 = 64;
/// Maximum speedup of the port of a switch's accelerator, in links.
const MAX_SPEEDUP: u32 = 64;

impl Machine {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.network.check()?;
        self.check_switch_cards()?;
        at_least("host.cores", self.host.cores, 1)?;
        at_least("host.core_lines", self.host.core_lines, 1)?;
        at_least("host.copy_lines", self.host.copy_lines, 1)?;
        self.hpu.check()?;
        match &self.accelerator {
            Accelerator::Sc17(unit) => unit.check(&self.hpu, self.network.mtu)?,
            Accelerator::Pspin(unit) => unit.check(&self.hpu, self.network.mtu)?,
        }
        for (key, time) in [
            ("network.switch_ns", self.network.switch),
            ("network.retransmit_ns", self.network.retransmit),
            ("network.wire_ns", self.network.wire),
            ("network.g_ns", self.network.gap),
            ("host.o_ns", self.host.overhead),
            ("host.poll_ns", self.host.poll),
            ("host.match_ns", self.host.matching),
            ("host.dram_latency_ns", self.host.dram_latency),
            ("nic.match_header_ns", self.nic.match_header),
            ("nic.match_cam_ns", self.nic.match_cam),
            ("nic.match_reply_ns", self.nic.match_reply),
            ("dma.L_ns", self.dma.latency),
        ] {
            at_most(key, time, LONGEST)?;
        }
        for (key, rate) in [
            ("network.G_ps_per_byte", self.network.gap_per_byte),
            ("host.dram_G_ps_per_byte", self.host.dram_gap_per_byte),
            ("dma.G_ps_per_byte", self.dma.gap_per_byte),
        ] {
            at_most(key, rate, SLOWEST)?;
        }
        Ok(())
    }
}

impl Machine {
    fn check_switch_cards(&self) -> Result<(), Problem> {
        let SwitchCards { handlers, hpus, speedup } = &self.network.switch_cards;
        for (key, number, most) in
            [("network.switch.hpus", hpus, MAX_CONTEXTS), ("network.switch.speedup", speedup, MAX_SPEEDUP)]
        {
            let Some(number) = *number else { continue };
            if handlers.is_empty() {
                return problem(key, "decides nothing without network.switch.handlers".to_owned());
            }
            at_least(key, number, 1)?;
            at_most(key, number, most)?;
        }
        if hpus.is_some() && matches!(self.accelerator, Accelerator::Pspin(_)) {
            let what =
                "needs accelerator.kind = \"sc17\"; a switch's PsPIN has the clusters and HPUs of the hosts' cards";
            return problem("network.switch.hpus", what.to_owned());
        }
        if handlers.is_empty() {
            return Ok(());
        }
        let needs = |what: &str| problem("network.switch.handlers", what.to_owned());
        if self.network.model != NetworkModel::Fabric {
            return needs("needs network.model = \"fabric\": the model \"latency\" has no switches that packets visit");
        }
        if matches!(self.network.topology, Topology::File(_)) {
            return needs(
                "needs a topology that spinkit builds (fat-tree, single-switch, dragonfly, torus), not a file",
            );
        }
        if !self.nic.runs_handlers() {
            return needs("needs nic.kind = \"spin\": accelerators on switches are those of the hosts' cards");
        }
        Ok(())
    }
}

impl Network {
    fn check(&self) -> Result<(), Problem> {
        at_least("network.radix", self.radix, 2)?;
        at_most("network.radix", self.radix, MAX_RADIX)?;
        multiple_of("network.radix", self.radix, 2)?;
        at_least("network.mtu_bytes", self.mtu, 64)?;
        multiple_of("network.mtu_bytes", self.mtu, 8)?;
        at_least("network.retransmit_ns", self.retransmit, Time::from_ps(1))?;
        at_most("network.retries", self.retries, MAX_RETRIES)?;
        let has_paths = matches!(self.topology, Topology::FatTree | Topology::SingleSwitch);
        if self.model == NetworkModel::Latency && !has_paths {
            return problem(
                "network.topology",
                format!(
                    "\"{}\" needs network.model = \"fabric\"; the model \"latency\" has fat-tree and single-switch",
                    self.topology.name()
                ),
            );
        }
        if self.model == NetworkModel::Fabric && self.reception == Reception::StoreAndForward {
            let what = "\"store-and-forward\" needs network.model = \"latency\"; the switches of a fabric cut through";
            return problem("network.reception", what.to_owned());
        }
        self.fabric.as_ref().map_or(Ok(()), |fabric| fabric.check(self))
    }
}

impl Fabric {
    fn check(&self, network: &Network) -> Result<(), Problem> {
        let Shape { taper, dims, concentration, dragonfly } = &self.shape;
        if self.buffer < u64::from(network.mtu) {
            let (mtu, buffer) = (network.mtu, self.buffer);
            return problem(
                "network.fabric.buffer_bytes",
                format!("must hold a packet of network.mtu_bytes ({mtu}), is {buffer}"),
            );
        }
        at_most("network.fabric.buffer_bytes", self.buffer, MAX_BUFFER)?;
        for (key, is_given, owner) in [
            ("network.fabric.taper", taper.is_some(), Topology::FatTree),
            ("network.fabric.dims", dims.is_some(), Topology::Torus),
            ("network.fabric.concentration", concentration.is_some(), Topology::Torus),
            ("network.fabric.dragonfly", dragonfly.is_some(), Topology::Dragonfly),
        ] {
            if is_given && network.topology != owner {
                let what = format!("is for the topology \"{}\", not \"{}\"", owner.name(), network.topology.name());
                return problem(key, what);
            }
        }
        if let Some(taper) = *taper {
            at_least("network.fabric.taper", taper, 1)?;
            at_most("network.fabric.taper", taper, network.radix - 1)?;
        }
        if let Some(hosts) = *concentration {
            at_least("network.fabric.concentration", hosts, 1)?;
        }
        if let Some(dims) = dims {
            if dims.is_empty() || dims.len() > MAX_DIMENSIONS {
                return problem(
                    "network.fabric.dims",
                    format!("must have 1 to {MAX_DIMENSIONS} numbers, has {}", dims.len()),
                );
            }
            dims.iter().try_for_each(|side| at_least("network.fabric.dims", *side, 1))?;
        }
        if let Some(shape) = dragonfly
            && !matches!(shape.len(), 3 | 4)
        {
            return problem("network.fabric.dragonfly", format!("must have 3 or 4 numbers, has {}", shape.len()));
        }
        self.transport.check()
    }
}

impl Transport {
    /// The crate `net` compares sizes with the largest packet, as its users may change both.
    fn check(&self) -> Result<(), Problem> {
        let Transport { pfc, trim, dcqcn, .. } = self;
        if let Some(pause) = pfc.pause {
            at_least("network.fabric.pfc.pause_bytes", pause, 1)?;
            if let Some(resume) = pfc.resume
                && resume >= pause
            {
                let what = format!("must be less than network.fabric.pfc.pause_bytes ({pause}), is {resume}");
                return problem("network.fabric.pfc.resume_bytes", what);
            }
        }
        at_least("network.fabric.trim.header_bytes", trim.header, 1)?;
        at_least("network.fabric.trim.window_packets", trim.window, 1)?;
        at_most("network.fabric.dcqcn.mark_from_bytes", dcqcn.mark_from, dcqcn.mark_all)?;
        at_most("network.fabric.dcqcn.mark_all_bytes", dcqcn.mark_all, MAX_BUFFER)?;
        at_most("network.fabric.dcqcn.mark_percent", dcqcn.mark_percent, 100)?;
        at_least("network.fabric.dcqcn.notify_bytes", dcqcn.notify, 1)?;
        for (key, number) in [
            ("network.fabric.dcqcn.gain_inverse", dcqcn.gain_inverse),
            ("network.fabric.dcqcn.recovery_steps", dcqcn.recovery),
            ("network.fabric.dcqcn.additive_mbit_per_s", dcqcn.additive_mbit),
            ("network.fabric.dcqcn.hyper_mbit_per_s", dcqcn.hyper_mbit),
            ("network.fabric.dcqcn.least_mbit_per_s", dcqcn.least_mbit),
        ] {
            at_least(key, number, 1)?;
        }
        at_least("network.fabric.dcqcn.counter_bytes", dcqcn.counter, 1)?;
        for (key, time) in
            [("network.fabric.dcqcn.alpha_ns", dcqcn.alpha_timer), ("network.fabric.dcqcn.timer_ns", dcqcn.timer)]
        {
            at_least(key, time, Time::from_ns(1))?;
            at_most(key, time, LONGEST)?;
        }
        at_most("network.fabric.dcqcn.notify_ns", dcqcn.notify_gap, LONGEST)
    }
}

impl Hpu {
    fn check(&self) -> Result<(), Problem> {
        if self.kind.is_empty() || !self.kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return problem(
                "hpu.kind",
                format!("must name an instruction set such as \"rv32imac\", is \"{}\"", self.kind),
            );
        }
        at_most("hpu.clock_ghz", self.clock, FASTEST)
    }
}

impl Sc17 {
    /// Checks the accelerator, for these cores and packets of at most `mtu` bytes.
    fn check(&self, core: &Hpu, mtu: u32) -> Result<(), Problem> {
        at_least("accelerator.hpus", self.hpus, 1)?;
        if self.contexts < self.hpus {
            return problem(
                "accelerator.contexts",
                format!("must be at least accelerator.hpus ({}), is {}", self.hpus, self.contexts),
            );
        }
        at_most("accelerator.contexts", self.contexts, MAX_CONTEXTS)?;
        at_least("accelerator.scratchpad_cycles", self.scratchpad_cycles, 1)?;
        at_most("accelerator.scratchpad_cycles", self.scratchpad_cycles, SLOWEST_SCRATCHPAD)?;
        check_threshold("accelerator.watchdog_cycles", self.watchdog_cycles, core)?;
        at_least("accelerator.stack_bytes", self.stack, 256)?;
        // The address map limits each memory. 16 bytes is the alignment of a stack and the widest alignment of any
        // memory.
        for (key, size, room) in [
            ("accelerator.memory_bytes", self.memory, map::CONTEXTS - map::HPU_MEMORY),
            ("accelerator.program_bytes", self.program, map::RETURN - map::PROGRAM),
            ("accelerator.data_bytes", self.data, map::PACKETS - map::DATA),
            ("accelerator.stack_bytes", self.stack, map::CONTEXT_STRIDE - map::ARGS_BYTES),
            ("accelerator.packet_buffer_bytes", self.packet_buffer, map::PROGRAM - map::PACKETS),
        ] {
            at_most(key, size, room)?;
            multiple_of(key, size, 16)?;
        }
        at_least("accelerator.program_bytes", self.program, 16)?;
        if self.max_initial_state > self.memory {
            let (state, memory) = (self.max_initial_state, self.memory);
            return problem(
                "accelerator.max_initial_state_bytes",
                format!("must be at most accelerator.memory_bytes ({memory}), is {state}"),
            );
        }
        // The user header follows the header in the argument block.
        let room = map::ARGS_BYTES - HEADER_BYTES;
        at_most("accelerator.max_user_hdr_bytes", self.max_user_hdr, room)?;
        self.sharing.check(core)?;
        self.check_packet_buffer(mtu)
    }

    fn check_packet_buffer(&self, mtu: u32) -> Result<(), Problem> {
        let wrong = |what| problem("accelerator.packet_buffer_bytes", what);
        if mtu > self.packet_buffer {
            return wrong(format!("must hold a packet of network.mtu_bytes ({mtu}), is {}", self.packet_buffer));
        }
        let most = ((map::PROGRAM - map::PACKETS) / Sc17::slot_bytes(mtu)).min(u32::from(u16::MAX));
        if self.slots(mtu) > most {
            let bytes = most * mtu;
            return wrong(format!(
                "has addresses for {most} packets of network.mtu_bytes, {bytes} bytes; is {}",
                self.packet_buffer
            ));
        }
        Ok(())
    }
}

impl Sharing {
    fn check(&self, core: &Hpu) -> Result<(), Problem> {
        let [_, fragment, hold] = Sharing::KEYS;
        if let Some(bytes) = self.fragment {
            at_least(fragment, bytes, LEAST_FRAGMENT)?;
            multiple_of(fragment, bytes, LEAST_FRAGMENT)?;
        }
        self.hold_cycles.map_or(Ok(()), |cycles| check_threshold(hold, cycles, core))
    }
}

/// Smallest part of a transfer: a beat of PsPIN's wide paths (PsPIN §III-C).
const LEAST_FRAGMENT: u32 = 64;

/// Maximum number of cycles of one step of the PsPIN unit.
const SLOWEST_STEP: u32 = 10_000;

impl Pspin {
    /// Checks the accelerator, for these cores and packets of at most `mtu` bytes.
    fn check(&self, core: &Hpu, mtu: u32) -> Result<(), Problem> {
        if core.timing != TimingKind::InOrder {
            let what = format!("an HPU of PsPIN is an in-order core, \"inorder\"; is \"{}\"", core.timing.name());
            return problem("hpu.timing", what);
        }
        if !core.kind.starts_with("rv32") {
            let what =
                format!("an HPU of PsPIN is a RISC-V core, such as \"rv32imac\" (PsPIN §III); is \"{}\"", core.kind);
            return problem("hpu.kind", what);
        }
        self.check_counts()?;
        self.check_memories()?;
        self.check_cycles()?;
        check_threshold("accelerator.default_watchdog_cycles", self.units.watchdog_cycles, core)?;
        check_threshold("accelerator.mpq.idle_cycles", self.mpq.idle_cycles, core)?;
        for (key, rate) in [
            ("accelerator.inbound.G_ps_per_byte", self.inbound.gap_per_byte),
            ("accelerator.outbound.G_ps_per_byte", self.outbound.gap_per_byte),
            ("accelerator.host.G_ps_per_byte", self.host.gap_per_byte),
            ("accelerator.host.read_G_ps_per_byte", self.host.read_gap_per_byte),
        ] {
            at_most(key, rate, SLOWEST)?;
        }
        at_least("accelerator.limits.max_packet_bytes", self.limits.max_packet, mtu)?;
        self.sharing.check(core)?;
        self.check_packets()
    }

    /// Checks the number of instances of each unit. A set of HPUs of a cluster fits into 32 bits, a set of tasks into
    /// 64.
    fn check_counts(&self) -> Result<(), Problem> {
        for (key, value, least, most) in [
            ("accelerator.clusters", self.units.clusters, 1, Pspin::MAX_CLUSTERS),
            ("accelerator.hpus_per_cluster", self.units.hpus, 1, 32),
            ("accelerator.mpq.queues", self.mpq.queues, 1, 4_096),
            ("accelerator.mpq.shared_cells", self.mpq.shared_cells, 0, 65_536),
            ("accelerator.mpq.cells_per_queue", self.mpq.cells_per_queue, 1, 64),
            ("accelerator.cluster.tasks", self.cluster.tasks, 1, 64),
            ("accelerator.cluster.commands_in_flight", self.cluster.commands_in_flight, 1, 32),
            ("accelerator.cluster.buffered_completions", self.cluster.buffered_completions, 1, 8),
            ("accelerator.l2_packet.ports", self.l2_packet.ports, 1, 2),
            ("accelerator.l2_handler.ports", self.l2_handler.ports, 1, 2),
            ("accelerator.icache.ports", self.icache.ports, 1, 32),
            ("accelerator.dma.queue", self.dma.queue, 1, 64),
            ("accelerator.pe.in_flight", self.pe.in_flight, 1, 64),
            ("accelerator.commands.in_flight_per_target", self.commands.in_flight_per_target, 1, 64),
            ("accelerator.commands.host_direct_bytes", self.commands.host_direct_bytes, 8, 64),
            ("accelerator.outbound.queue", self.outbound.queue, 1, 65_536),
            ("accelerator.inbound.reorder_packets", self.inbound.reorder_packets, 0, 65_536),
            ("accelerator.limits.contexts", self.limits.contexts, 1, 256),
        ] {
            at_least(key, value, least)?;
            at_most(key, value, most)?;
        }
        if self.mpq.queues > self.inbound.message_ids {
            let (queues, ids) = (self.mpq.queues, self.inbound.message_ids);
            let what = format!("must be at least accelerator.mpq.queues ({queues}), is {ids}");
            return problem("accelerator.inbound.message_ids", what);
        }
        Ok(())
    }

    /// Checks sizes, banks and widths.
    fn check_memories(&self) -> Result<(), Problem> {
        for (key, value, most) in [
            ("accelerator.l1.bytes", self.l1.bytes, Pspin::L1_SPAN),
            ("accelerator.l2_packet.bytes", self.l2_packet.bytes, map::PROGRAM - map::PACKETS),
            ("accelerator.l2_handler.bytes", self.l2_handler.bytes, map::PACKETS - map::DATA),
            ("accelerator.program.bytes", self.program.bytes, map::RETURN - map::PROGRAM),
        ] {
            at_least(key, value, 64)?;
            at_most(key, value, most)?;
            multiple_of(key, value, 64)?;
        }
        for (key, value, least, most) in [
            ("accelerator.l1.banks", self.l1.banks, 1, 4_096),
            ("accelerator.l1.bank_bits", self.l1.bank_bits, 32, 2_048),
            ("accelerator.l2_packet.banks", self.l2_packet.banks, 1, 4_096),
            ("accelerator.l2_packet.bank_bits", self.l2_packet.bank_bits, 32, 2_048),
            ("accelerator.l2_handler.banks", self.l2_handler.banks, 1, 4_096),
            ("accelerator.l2_handler.bank_bits", self.l2_handler.bank_bits, 32, 2_048),
            ("accelerator.program.port_bits", self.program.port_bits, 32, 2_048),
            ("accelerator.dma.width_bits", self.dma.width_bits, 32, 2_048),
            ("accelerator.pe.width_bits", self.pe.width_bits, 32, 2_048),
            ("accelerator.nhi.width_bits", self.nhi.width_bits, 32, 2_048),
            ("accelerator.icache.line_bytes", self.icache.line, 4, 4_096),
            ("accelerator.icache.ways", self.icache.ways, 1, 64),
            ("accelerator.cluster.slot_bytes", self.cluster.slot, 4, 4_096),
        ] {
            at_least(key, value, least)?;
            at_most(key, value, most)?;
            power_of_two(key, value)?;
        }
        let l1_bits = self.l1.banks * self.l1.bank_bits;
        if self.dma.width_bits > l1_bits {
            let width = self.dma.width_bits;
            let what = format!("must be at most accelerator.l1.banks x bank_bits ({l1_bits}), is {width}");
            return problem("accelerator.dma.width_bits", what);
        }
        let set = self.icache.ways * self.icache.line;
        at_least("accelerator.icache.bytes", self.icache.bytes, set)?;
        power_of_two("accelerator.icache.bytes", self.icache.bytes)?;
        at_most("accelerator.icache.bytes", self.icache.bytes, 1 << 20)?;
        at_least("accelerator.stack_bytes", self.units.stack, 256)?;
        multiple_of("accelerator.stack_bytes", self.units.stack, 16)?;
        if self.units.max_initial_state > self.l2_handler.bytes {
            let (state, memory) = (self.units.max_initial_state, self.l2_handler.bytes);
            let what = format!("must be at most accelerator.l2_handler.bytes ({memory}), is {state}");
            return problem("accelerator.max_initial_state_bytes", what);
        }
        let room = map::ARGS_BYTES - HEADER_BYTES;
        at_most("accelerator.max_user_hdr_bytes", self.units.max_user_hdr, room)?;
        self.check_l1()
    }

    /// Checks the partition of L1.
    fn check_l1(&self) -> Result<(), Problem> {
        let (runtime, packets) = (self.cluster.runtime, self.cluster.packet_buffer);
        multiple_of("accelerator.cluster.runtime_bytes", runtime, 64)?;
        multiple_of("accelerator.cluster.packet_buffer_bytes", packets, self.cluster.slot)?;
        let stacks = u64::from(self.units.hpus) * u64::from(self.units.stack);
        if u64::from(runtime) < stacks {
            let what = format!("must hold the stacks of accelerator.hpus_per_cluster HPUs ({stacks}), is {runtime}");
            return problem("accelerator.cluster.runtime_bytes", what);
        }
        if u64::from(runtime) + u64::from(packets) >= u64::from(self.l1.bytes) {
            let room = self.l1.bytes.saturating_sub(runtime);
            let what = format!("must leave room for scratchpads: less than {room}, is {packets}");
            return problem("accelerator.cluster.packet_buffer_bytes", what);
        }
        Ok(())
    }

    /// Checks that the packet buffers hold the longest packet.
    fn check_packets(&self) -> Result<(), Problem> {
        let longest = self.limits.max_packet;
        for (key, size) in [
            ("accelerator.cluster.packet_buffer_bytes", self.cluster.packet_buffer),
            ("accelerator.l2_packet.bytes", self.l2_packet.bytes),
        ] {
            if longest > size {
                let what = format!("must hold a packet of accelerator.limits.max_packet_bytes ({longest}), is {size}");
                return problem(key, what);
            }
        }
        Ok(())
    }

    /// Checks the durations in cycles.
    fn check_cycles(&self) -> Result<(), Problem> {
        let Pspin { cluster, commands, dma, pe, .. } = self;
        for (key, value, least) in [
            ("accelerator.mpq.select_cycles", self.mpq.select_cycles, 1),
            ("accelerator.dispatch.cycles", self.dispatch.cycles, 1),
            ("accelerator.cluster.assign_cycles", cluster.assign_cycles, 1),
            ("accelerator.cluster.driver_cycles", cluster.driver_cycles, 1),
            ("accelerator.cluster.feedback_cycles", cluster.feedback_cycles, 1),
            ("accelerator.cluster.trap_cycles", cluster.trap_cycles, 16),
            ("accelerator.l1.load_cycles", self.l1.load_cycles, 1),
            ("accelerator.l1.atomic_bank_cycles", self.l1.atomic_bank_cycles, 1),
            ("accelerator.icache.miss_cycles", self.icache.miss_cycles, 1),
            ("accelerator.dma.latency_cycles", dma.latency_cycles, 1),
            ("accelerator.dma.least_beats", dma.least_beats, 1),
            ("accelerator.pe.remote_l1_cycles", pe.remote_l1_cycles, 2),
            ("accelerator.pe.l2_cycles", pe.l2_cycles, 2),
            ("accelerator.commands.path_cycles", commands.path_cycles, 1),
            ("accelerator.commands.read_cycles", commands.read_cycles, 1),
            ("accelerator.commands.response_cycles", commands.response_cycles, 1),
            ("accelerator.commands.issue_cycles", commands.issue_cycles, 1),
            ("accelerator.inbound.write_cycles", self.inbound.write_cycles, 1),
            ("accelerator.outbound.l1_gap_cycles", self.outbound.l1_gap_cycles, 0),
            ("accelerator.outbound.l2_gap_cycles", self.outbound.l2_gap_cycles, 0),
            ("accelerator.off_cluster.start_cycles", self.off_cluster.start_cycles, 0),
            ("accelerator.off_cluster.l1_gap_cycles", self.off_cluster.l1_gap_cycles, 0),
            ("accelerator.off_cluster.l2_gap_cycles", self.off_cluster.l2_gap_cycles, 0),
            ("accelerator.off_cluster.write_credit_cycles", self.off_cluster.write_credit_cycles, 0),
            ("accelerator.off_cluster.read_credit_cycles", self.off_cluster.read_credit_cycles, 0),
            ("accelerator.host.write_cycles", self.host.write_cycles, 0),
            ("accelerator.host.read_cycles", self.host.read_cycles, 0),
            ("accelerator.host.iommu_cycles", self.host.iommu_cycles, 0),
        ] {
            at_least(key, value, least)?;
            at_most(key, value, SLOWEST_STEP)?;
        }
        Ok(())
    }
}

/// Checks a time-out in cycles.
fn check_threshold(key: &str, cycles: u64, core: &Hpu) -> Result<(), Problem> {
    at_least(key, cycles, 1)?;
    if core.clock.time(cycles) > LONGEST_HANDLER {
        let most = core.clock.cycles(LONGEST_HANDLER);
        let what = format!("must be at most {most}, 1000 s at hpu.clock_ghz ({}), is {cycles}", core.clock.show());
        return problem(key, what);
    }
    Ok(())
}

fn power_of_two(key: &str, value: u32) -> Result<(), Problem> {
    if !value.is_power_of_two() { problem(key, format!("must be a power of two, is {value}")) } else { Ok(()) }
}

fn problem(key: &str, what: String) -> Result<(), Problem> {
    Err(Problem::new(key, what))
}

fn at_least<T: PartialOrd + Parameter>(key: &str, value: T, least: T) -> Result<(), Problem> {
    if value < least { problem(key, format!("must be at least {}, is {}", least.show(), value.show())) } else { Ok(()) }
}

fn at_most<T: PartialOrd + Parameter>(key: &str, value: T, most: T) -> Result<(), Problem> {
    if value > most { problem(key, format!("must be at most {}, is {}", most.show(), value.show())) } else { Ok(()) }
}

fn multiple_of(key: &str, value: u32, unit: u32) -> Result<(), Problem> {
    if !value.is_multiple_of(unit) { problem(key, format!("must be a multiple of {unit}, is {value}")) } else { Ok(()) }
}
