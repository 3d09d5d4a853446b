//! Checks the values of a machine, individually and in combination.

use abi::device::{HeaderArgs, map};
use sim::{Clock, Time, TimePerByte};

use crate::Machine;
use crate::accelerator::{Accelerator, Hpu, Sc17};
use crate::network::{Fabric, Network, NetworkModel, Reception, Shape, Topology};
use crate::problem::Problem;
use crate::value::Parameter;

/// The maximum of a single latency: sums of latencies stay far below the maximum simulated time.
const LONGEST: Time = Time::from_ns(1_000_000_000);
/// 1 kB/s.
const SLOWEST: TimePerByte = TimePerByte::from_fs_per_byte(1_000_000_000_000);
/// 1,000 GHz.
const FASTEST: Clock = Clock::from_khz(1_000_000_000);
/// 1,000 s: no handler runs longer.
const LONGEST_HANDLER: Time = Time::from_ns(1_000_000_000_000);
/// The maximum latency of a load: the cycles of a block of loads stay far below what the timing models can count.
const SLOWEST_SCRATCHPAD: u32 = 10_000;
/// The maximum number of ports of a switch: the number of ports of a tree stays far below 2^64.
const MAX_RADIX: u32 = 1 << 16;
/// The maximum size of a fabric's buffer: with all of its bytes on a slow link, time-outs stay within simulated time.
const MAX_BUFFER: u64 = 1 << 40;
/// The maximum number of dimensions of a torus.
const MAX_DIMENSIONS: usize = 5;
/// The maximum number of contexts of a card: a set of contexts fits into a machine word.
const MAX_CONTEXTS: u32 = 64;

impl Machine {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        self.network.check()?;
        at_least("host.cores", self.host.cores, 1)?;
        at_least("host.core_lines", self.host.core_lines, 1)?;
        at_least("host.copy_lines", self.host.copy_lines, 1)?;
        self.hpu.check()?;
        let Accelerator::Sc17(unit) = &self.accelerator;
        unit.check(&self.hpu, self.network.mtu)?;
        for (key, time) in [
            ("network.switch_ns", self.network.switch),
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

impl Network {
    fn check(&self) -> Result<(), Problem> {
        at_least("network.radix", self.radix, 2)?;
        at_most("network.radix", self.radix, MAX_RADIX)?;
        multiple_of("network.radix", self.radix, 2)?;
        at_least("network.mtu_bytes", self.mtu, 64)?;
        multiple_of("network.mtu_bytes", self.mtu, 8)?;
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
        match dragonfly {
            Some(shape) if !matches!(shape.len(), 3 | 4) => {
                problem("network.fabric.dragonfly", format!("must have 3 or 4 numbers, has {}", shape.len()))
            }
            _ => Ok(()),
        }
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
        at_least("accelerator.watchdog_cycles", self.watchdog_cycles, 1)?;
        if core.clock.time(self.watchdog_cycles) > LONGEST_HANDLER {
            let (most, cycles) = (core.clock.cycles(LONGEST_HANDLER), self.watchdog_cycles);
            return problem(
                "accelerator.watchdog_cycles",
                format!("must be at most {most}, 1000 s at hpu.clock_ghz ({}), is {cycles}", core.clock.show()),
            );
        }
        at_least("accelerator.stack_bytes", self.stack, 256)?;
        // The address map limits each memory; 16 bytes is the alignment of a stack and the widest that a memory needs.
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
        let room = map::ARGS_BYTES - size_of::<HeaderArgs>() as u32;
        at_most("accelerator.max_user_hdr_bytes", self.max_user_hdr, room)?;
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
