// SPDX-License-Identifier: Apache-2.0
//! The keys of all fields: one list shared by reading, describing and the check for unknown keys.

use toml::Table;

use crate::Machine;
use crate::accelerator::{Accelerator, Hpu, Sc17};
use crate::host::{Dma, Host};
use crate::network::{Fabric, Network, NetworkModel, Shape, SwitchCards};
use crate::nic::Nic;
use crate::old;
use crate::problem::Problem;
use crate::pspin::{
    ClusterDma, Commands, Dispatch, HostPort, HpuCluster, Icache, Inbound, L1, L2Handler, L2Packet, Limits, Mpq, Nhi,
    OffCluster, Outbound, Pe, ProgramMemory, Pspin, Units,
};
use crate::sharing::Sharing;
use crate::transport::{Flow, Transport};
use crate::value::{Parameter, must_be, must_be_one_of};

/// Lists the fields of a section and their keys. A bracketed field has a key that determines other keys; its type
/// implements `read` itself.
macro_rules! section {
    ($section:literal $type:ident $([$kind:ident: $kind_type:ident])* { $($field:ident = $key:literal),+ $(,)? }) => {
        impl $type {
            const KEYS: &[&str] = &[$(concat!($section, ".", $key)),+];

            fn read(table: &Table) -> Result<$type, Problem> {
                Ok($type {
                    $($kind: $kind_type::read(table)?,)*
                    $($field: read(table, concat!($section, ".", $key))?),+
                })
            }

            fn describe(&self, rows: &mut Vec<Row>) {
                $(rows.push(Row::new(concat!($section, ".", $key), &self.$field));)+
            }
        }
    };
}

/// A key and its value.
pub(crate) struct Row {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    pub(crate) unit: &'static str,
    /// Names of the possible values; empty for numbers and free text.
    pub(crate) names: &'static [&'static str],
}

impl Row {
    fn new<T: Parameter>(key: &'static str, value: &T) -> Row {
        Row { key, value: value.show(), unit: unit(key), names: T::NAMES }
    }
}

section!("network" Network [model: NetworkModel] [fabric: Fabric] [switch_cards: SwitchCards] {
    topology = "topology",
    radix = "radix",
    switch = "switch_ns",
    wire = "wire_ns",
    gap_per_byte = "G_ps_per_byte",
    gap = "g_ns",
    injection = "injection",
    reception = "reception",
    mtu = "mtu_bytes",
    retransmit = "retransmit_ns",
    retries = "retries",
});

section!("host" Host {
    cores = "cores",
    overhead = "o_ns",
    poll = "poll_ns",
    matching = "match_ns",
    dram_latency = "dram_latency_ns",
    dram_gap_per_byte = "dram_G_ps_per_byte",
    core_lines = "core_lines",
    copy_lines = "copy_lines",
    shared_memory = "shared_memory",
});

section!("nic" Nic {
    kind = "kind",
    match_header = "match_header_ns",
    match_cam = "match_cam_ns",
    match_reply = "match_reply_ns",
    match_overlaps = "match_overlaps",
});

section!("dma" Dma {
    latency = "L_ns",
    gap_per_byte = "G_ps_per_byte",
    engines = "engines",
    messages = "messages",
    handlers = "handlers",
    news = "news",
});

section!("hpu" Hpu {
    kind = "kind",
    timing = "timing",
    clock = "clock_ghz",
});

section!("accelerator" Sc17 [sharing: Sharing] {
    hpus = "hpus",
    contexts = "contexts",
    scratchpad_cycles = "scratchpad_cycles",
    memory = "memory_bytes",
    program = "program_bytes",
    data = "data_bytes",
    stack = "stack_bytes",
    packet_buffer = "packet_buffer_bytes",
    max_initial_state = "max_initial_state_bytes",
    max_user_hdr = "max_user_hdr_bytes",
    watchdog_cycles = "watchdog_cycles",
    watchdog_flow_control = "watchdog_flow_control",
    put_blocks = "put_blocks",
});

section!("accelerator" Units {
    clusters = "clusters",
    hpus = "hpus_per_cluster",
    stack = "stack_bytes",
    overload = "overload",
    watchdog_cycles = "default_watchdog_cycles",
    max_initial_state = "max_initial_state_bytes",
    max_user_hdr = "max_user_hdr_bytes",
});

section!("accelerator.mpq" Mpq {
    queues = "queues",
    shared_cells = "shared_cells",
    cells_per_queue = "cells_per_queue",
    select_cycles = "select_cycles",
    idle_cycles = "idle_cycles",
    lru = "lru",
});

section!("accelerator.dispatch" Dispatch {
    cycles = "cycles",
    policy = "policy",
});

section!("accelerator.cluster" HpuCluster {
    tasks = "tasks",
    packet_buffer = "packet_buffer_bytes",
    runtime = "runtime_bytes",
    slot = "slot_bytes",
    assign_cycles = "assign_cycles",
    driver_cycles = "driver_cycles",
    feedback_cycles = "feedback_cycles",
    trap_cycles = "trap_cycles",
    commands_in_flight = "commands_in_flight",
    buffered_completions = "buffered_completions",
});

section!("accelerator.l1" L1 {
    bytes = "bytes",
    banks = "banks",
    bank_bits = "bank_bits",
    load_cycles = "load_cycles",
    dma_wins = "dma_wins",
    atomic_bank_cycles = "atomic_bank_cycles",
});

section!("accelerator.l2_packet" L2Packet {
    bytes = "bytes",
    banks = "banks",
    bank_bits = "bank_bits",
    ports = "ports",
});

section!("accelerator.l2_handler" L2Handler {
    bytes = "bytes",
    banks = "banks",
    bank_bits = "bank_bits",
    ports = "ports",
});

section!("accelerator.program" ProgramMemory {
    bytes = "bytes",
    port_bits = "port_bits",
});

section!("accelerator.icache" Icache {
    bytes = "bytes",
    ways = "ways",
    ports = "ports",
    line = "line_bytes",
    miss_cycles = "miss_cycles",
});

section!("accelerator.dma" ClusterDma {
    width_bits = "width_bits",
    latency_cycles = "latency_cycles",
    least_beats = "least_beats",
    queue = "queue",
});

section!("accelerator.pe" Pe {
    width_bits = "width_bits",
    remote_l1_cycles = "remote_l1_cycles",
    l2_cycles = "l2_cycles",
    in_flight = "in_flight",
});

section!("accelerator.nhi" Nhi {
    width_bits = "width_bits",
});

section!("accelerator.commands" Commands {
    path_cycles = "path_cycles",
    read_cycles = "read_cycles",
    response_cycles = "response_cycles",
    in_flight_per_target = "in_flight_per_target",
    issue_cycles = "issue_cycles",
    host_direct_bytes = "host_direct_bytes",
});

section!("accelerator.inbound" Inbound {
    write_cycles = "write_cycles",
    gap_per_byte = "G_ps_per_byte",
    reorder_packets = "reorder_packets",
    message_ids = "message_ids",
});

section!("accelerator.outbound" Outbound {
    gap_per_byte = "G_ps_per_byte",
    queue = "queue",
    l1_gap_cycles = "l1_gap_cycles",
    l2_gap_cycles = "l2_gap_cycles",
});

section!("accelerator.off_cluster" OffCluster {
    start_cycles = "start_cycles",
    l1_gap_cycles = "l1_gap_cycles",
    l2_gap_cycles = "l2_gap_cycles",
    write_credit_cycles = "write_credit_cycles",
    read_credit_cycles = "read_credit_cycles",
});

section!("accelerator.host" HostPort {
    write_cycles = "write_cycles",
    read_cycles = "read_cycles",
    gap_per_byte = "G_ps_per_byte",
    read_gap_per_byte = "read_G_ps_per_byte",
    iommu_cycles = "iommu_cycles",
});

section!("accelerator.limits" Limits {
    max_packet = "max_packet_bytes",
    contexts = "contexts",
});

/// Lists the tables of a kind of accelerator and their types.
macro_rules! tables {
    ($type:ident { $($field:ident: $table:ident),+ $(,)? }) => {
        impl $type {
            const TABLES: &[&[&str]] = &[$(&$table::KEYS),+];

            fn read(table: &Table) -> Result<$type, Problem> {
                Ok($type { $($field: $table::read(table)?),+ })
            }

            pub(crate) fn describe(&self, rows: &mut Vec<Row>) {
                $(self.$field.describe(rows);)+
            }
        }
    };
}

tables!(Pspin {
    units: Units,
    mpq: Mpq,
    dispatch: Dispatch,
    cluster: HpuCluster,
    l1: L1,
    l2_packet: L2Packet,
    l2_handler: L2Handler,
    program: ProgramMemory,
    icache: Icache,
    dma: ClusterDma,
    pe: Pe,
    nhi: Nhi,
    commands: Commands,
    inbound: Inbound,
    outbound: Outbound,
    off_cluster: OffCluster,
    host: HostPort,
    limits: Limits,
    sharing: Sharing,
});

const DESCRIPTION: &str = "description";
pub(crate) const MODEL: &str = "network.model";
pub(crate) const HPUS: &str = "accelerator.hpus";
pub(crate) const CONTEXTS: &str = "accelerator.contexts";
const ACCELERATOR: &str = "accelerator.kind";

/// Kinds of accelerator, with the keys of each, table by table.
const ACCELERATORS: [(&str, &[&[&str]]); 2] = [("sc17", &[Sc17::KEYS, &Sharing::KEYS]), ("pspin", Pspin::TABLES)];

impl NetworkModel {
    /// Returns the name in machine files.
    pub fn name(self) -> &'static str {
        match self {
            NetworkModel::Latency => "latency",
            NetworkModel::Fabric => "fabric",
        }
    }

    fn read(table: &Table) -> Result<NetworkModel, Problem> {
        match read::<String>(table, MODEL)?.as_str() {
            "latency" => Ok(NetworkModel::Latency),
            "fabric" => Ok(NetworkModel::Fabric),
            other => Err(Problem::new(MODEL, must_be_one_of(&["latency", "fabric"], other))),
        }
    }
}

impl Fabric {
    pub(crate) const KEYS: [&'static str; 8] = [
        "network.fabric.buffer_bytes",
        "network.fabric.flow",
        "network.fabric.routing",
        "network.fabric.seed",
        "network.fabric.taper",
        "network.fabric.dims",
        "network.fabric.concentration",
        "network.fabric.dragonfly",
    ];

    /// Reads the table, which is absent in machines of other network models.
    fn read(table: &Table) -> Result<Option<Fabric>, Problem> {
        let has_table = table.get("network").and_then(|network| network.get("fabric")).is_some();
        if !has_table && NetworkModel::read(table)? != NetworkModel::Fabric {
            return Ok(None);
        }
        Ok(Some(Fabric {
            buffer: read(table, "network.fabric.buffer_bytes")?,
            flow: read(table, "network.fabric.flow")?,
            routing: read(table, "network.fabric.routing")?,
            seed: read(table, "network.fabric.seed")?,
            shape: Shape {
                taper: read_if_there(table, "network.fabric.taper")?,
                dims: read_if_there(table, "network.fabric.dims")?,
                concentration: read_if_there(table, "network.fabric.concentration")?,
                dragonfly: read_if_there(table, "network.fabric.dragonfly")?,
            },
            transport: Transport::read(table)?,
        }))
    }

    fn describe(&self, rows: &mut Vec<Row>) {
        let Shape { taper, dims, concentration, dragonfly } = &self.shape;
        let [buffer, flow, routing, seed, taper_key, dims_key, concentration_key, dragonfly_key] = Fabric::KEYS;
        let always = [
            Row::new(buffer, &self.buffer),
            Row::new(flow, &self.flow),
            Row::new(routing, &self.routing),
            Row::new(seed, &self.seed),
        ];
        rows.extend(always);
        rows.extend(taper.as_ref().map(|taper| Row::new(taper_key, taper)));
        rows.extend(dims.as_ref().map(|dims| Row::new(dims_key, dims)));
        rows.extend(concentration.as_ref().map(|hosts| Row::new(concentration_key, hosts)));
        rows.extend(dragonfly.as_ref().map(|dragonfly| Row::new(dragonfly_key, dragonfly)));
        self.transport.describe(self.flow, rows);
    }
}

/// Lists the fields of [`Transport`], all of them optional, and their keys.
macro_rules! transport {
    ($($($field:ident).+ = $key:literal),+ $(,)?) => {
        impl Transport {
            pub(crate) const KEYS: &[&str] =
                &[Transport::PAUSE, Transport::RESUME, $(concat!("network.fabric.", $key)),+];
            const PAUSE: &str = "network.fabric.pfc.pause_bytes";
            const RESUME: &str = "network.fabric.pfc.resume_bytes";

            fn read(table: &Table) -> Result<Transport, Problem> {
                let mut transport = Transport::USUAL;
                transport.pfc.pause = read_if_there(table, Transport::PAUSE)?;
                transport.pfc.resume = read_if_there(table, Transport::RESUME)?;
                $(if let Some(value) = read_if_there(table, concat!("network.fabric.", $key))? {
                    transport.$($field).+ = value;
                })+
                Ok(transport)
            }

            /// Appends the rows of the keys in use.
            fn describe(&self, flow: Flow, rows: &mut Vec<Row>) {
                let mut all: Vec<Row> = Vec::new();
                all.extend(self.pfc.pause.map(|bytes| Row::new(Transport::PAUSE, &bytes)));
                all.extend(self.pfc.resume.map(|bytes| Row::new(Transport::RESUME, &bytes)));
                $(all.push(Row::new(concat!("network.fabric.", $key), &self.$($field).+));)+
                rows.extend(all.into_iter().filter(|row| self.uses(flow, row.key)));
            }
        }
    };
}

transport! {
    ack = "ack_bytes",
    rate_control = "rate_control",
    trim.header = "trim.header_bytes",
    trim.window = "trim.window_packets",
    dcqcn.mark_from = "dcqcn.mark_from_bytes",
    dcqcn.mark_all = "dcqcn.mark_all_bytes",
    dcqcn.mark_percent = "dcqcn.mark_percent",
    dcqcn.notify = "dcqcn.notify_bytes",
    dcqcn.notify_gap = "dcqcn.notify_ns",
    dcqcn.gain_inverse = "dcqcn.gain_inverse",
    dcqcn.alpha_timer = "dcqcn.alpha_ns",
    dcqcn.timer = "dcqcn.timer_ns",
    dcqcn.counter = "dcqcn.counter_bytes",
    dcqcn.recovery = "dcqcn.recovery_steps",
    dcqcn.additive_mbit = "dcqcn.additive_mbit_per_s",
    dcqcn.hyper_mbit = "dcqcn.hyper_mbit_per_s",
    dcqcn.least_mbit = "dcqcn.least_mbit_per_s",
}

impl SwitchCards {
    const KEYS: [&'static str; 3] = ["network.switch.handlers", "network.switch.hpus", "network.switch.speedup"];

    fn read(table: &Table) -> Result<SwitchCards, Problem> {
        let [handlers, hpus, speedup] = SwitchCards::KEYS;
        Ok(SwitchCards {
            handlers: read_if_there(table, handlers)?.unwrap_or_default(),
            hpus: read_if_there(table, hpus)?,
            speedup: read_if_there(table, speedup)?,
        })
    }

    fn describe(&self, rows: &mut Vec<Row>) {
        let SwitchCards { handlers, hpus, speedup } = self;
        let [handlers_key, hpus_key, speedup_key] = SwitchCards::KEYS;
        rows.extend((!handlers.is_empty()).then(|| Row::new(handlers_key, handlers)));
        rows.extend(hpus.as_ref().map(|hpus| Row::new(hpus_key, hpus)));
        rows.extend(speedup.as_ref().map(|speedup| Row::new(speedup_key, speedup)));
    }
}

impl Sharing {
    pub(crate) const KEYS: [&'static str; 3] =
        ["accelerator.sharing.scheduler", "accelerator.sharing.fragment_bytes", "accelerator.sharing.hold_cycles"];

    fn read(table: &Table) -> Result<Sharing, Problem> {
        let [scheduler, fragment, hold] = Sharing::KEYS;
        Ok(Sharing {
            scheduler: read_if_there(table, scheduler)?,
            fragment: read_if_there(table, fragment)?,
            hold_cycles: read_if_there(table, hold)?,
        })
    }

    /// Appends the rows of the keys that are set.
    pub(crate) fn describe(&self, rows: &mut Vec<Row>) {
        let Sharing { scheduler, fragment, hold_cycles } = self;
        let [scheduler_key, fragment_key, hold_key] = Sharing::KEYS;
        rows.extend(scheduler.as_ref().map(|scheduler| Row::new(scheduler_key, scheduler)));
        rows.extend(fragment.as_ref().map(|bytes| Row::new(fragment_key, bytes)));
        rows.extend(hold_cycles.as_ref().map(|cycles| Row::new(hold_key, cycles)));
    }
}

impl Accelerator {
    /// Returns the name of the kind in machine files.
    pub fn kind(&self) -> &'static str {
        match self {
            Accelerator::Sc17(_) => "sc17",
            Accelerator::Pspin(_) => "pspin",
        }
    }

    fn read(table: &Table) -> Result<Accelerator, Problem> {
        match read::<String>(table, ACCELERATOR)?.as_str() {
            "sc17" => Ok(Accelerator::Sc17(Sc17::read(table)?)),
            "pspin" => Ok(Accelerator::Pspin(Box::new(Pspin::read(table)?))),
            other => Err(Problem::new(ACCELERATOR, must_be_one_of(&ACCELERATORS.map(|(kind, _)| kind), other))),
        }
    }
}

impl Machine {
    /// Returns every parameter as (key, value, unit), in the order of the sections; the unit of a count or a name is
    /// empty.
    pub fn describe(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut rows = Vec::new();
        self.network.describe(&mut rows);
        // The parameters of an unused model do not describe the machine.
        if let (NetworkModel::Fabric, Some(fabric)) = (self.network.model, &self.network.fabric) {
            fabric.describe(&mut rows);
        }
        self.network.switch_cards.describe(&mut rows);
        self.host.describe(&mut rows);
        self.nic.describe(&mut rows);
        self.dma.describe(&mut rows);
        self.hpu.describe(&mut rows);
        let accelerator = rows.len();
        match &self.accelerator {
            Accelerator::Sc17(unit) => unit.describe(&mut rows),
            Accelerator::Pspin(unit) => unit.describe(&mut rows),
        }
        if matches!(self.accelerator, Accelerator::Sc17(_)) {
            self.accelerator.sharing().describe(&mut rows);
        }
        let mut rows: Vec<_> = rows.into_iter().map(|Row { key, value, unit, .. }| (key, value, unit)).collect();
        rows.insert(accelerator, (ACCELERATOR, self.accelerator.kind().to_owned(), ""));
        rows.insert(0, (MODEL, self.network.model.name().to_owned(), ""));
        rows
    }

    pub(crate) fn read(name: &str, table: &Table) -> Result<Machine, Problem> {
        check_known(table, "", &known(table))?;
        Ok(Machine {
            name: name.to_owned(),
            description: read(table, DESCRIPTION)?,
            network: Network::read(table)?,
            host: Host::read(table)?,
            nic: Nic::read(table)?,
            dma: Dma::read(table)?,
            hpu: Hpu::read(table)?,
            accelerator: Accelerator::read(table)?,
            notices: Vec::new(),
            unused: None,
        })
    }
}

/// Checks that a key is valid with the accelerator of this table.
pub(crate) fn check_key(table: &Table, key: &str) -> Result<(), Problem> {
    let known = known(table);
    if known.contains(&key) { Ok(()) } else { Err(unknown(key.to_owned(), &known)) }
}

/// Returns the keys that are valid with the accelerator of this table, or those of all kinds if it names none.
fn known(table: &Table) -> Vec<&'static str> {
    let chosen = read::<String>(table, ACCELERATOR).ok();
    let chosen = ACCELERATORS.iter().find(|(kind, _)| chosen.as_deref() == Some(kind));
    let accelerators = chosen.map_or(&ACCELERATORS[..], std::slice::from_ref).iter().flat_map(|(_, tables)| *tables);
    let sections = [
        &[DESCRIPTION, MODEL],
        Network::KEYS,
        &Fabric::KEYS,
        Transport::KEYS,
        &SwitchCards::KEYS,
        Host::KEYS,
        Nic::KEYS,
        Dma::KEYS,
        Hpu::KEYS,
        &[ACCELERATOR],
    ];
    sections.into_iter().chain(accelerators.copied()).flatten().copied().collect()
}

fn read<T: Parameter>(table: &Table, key: &'static str) -> Result<T, Problem> {
    let (mut table, mut place, mut name) = (table, 0, key);
    while let Some(dot) = name.find('.') {
        let section = &key[..place + dot];
        let value = table.get(&name[..dot]).ok_or_else(|| Problem::new(key, "missing"))?;
        table = value.as_table().ok_or_else(|| Problem::new(section, must_be("a table", value)))?;
        place += dot + 1;
        name = &key[place..];
    }
    let value = table.get(name).ok_or_else(|| Problem::new(key, "missing"))?;
    T::read(value).map_err(|what| Problem::new(key, what))
}

/// Reads an optional value.
fn read_if_there<T: Parameter>(table: &Table, key: &'static str) -> Result<Option<T>, Problem> {
    let mut names = key.split('.');
    let first = names.next().and_then(|name| table.get(name));
    match names.try_fold(first, |value, name| value.map(|value| value.get(name))).flatten() {
        None => Ok(None),
        Some(_) => read(table, key).map(Some),
    }
}

/// Returns the unit at the end of a key.
fn unit(key: &str) -> &'static str {
    const UNITS: [(&str, &str); 6] =
        [("ps_per_byte", "ps/B"), ("ns", "ns"), ("ghz", "GHz"), ("bytes", "B"), ("bits", "bit"), ("cycles", "cycles")];
    let is_last_word = |rest: &str| rest.is_empty() || rest.ends_with(['_', '.']);
    UNITS.iter().find(|(suffix, _)| key.strip_suffix(suffix).is_some_and(is_last_word)).map_or("", |(_, unit)| unit)
}

fn check_known(table: &Table, prefix: &str, known: &[&str]) -> Result<(), Problem> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        let inside = format!("{key}.");
        match value.as_table() {
            Some(inner) if known.iter().any(|known| known.starts_with(&inside)) || !inner.is_empty() => {
                check_known(inner, &inside, known)?;
            }
            _ if known.iter().any(|known| *known == key || known.starts_with(&inside)) => (),
            _ => return Err(unknown(key, known)),
        }
    }
    Ok(())
}

fn unknown(key: String, known: &[&str]) -> Problem {
    if let Some(why) = old::removed(&key) {
        return Problem::new(key, why);
    }
    if let Some((kind, _)) = ACCELERATORS.iter().find(|(_, tables)| tables.concat().contains(&&*key)) {
        let hpus = "; the number of HPUs is accelerator.clusters x accelerator.hpus_per_cluster";
        let hint = if key == "accelerator.hpus" { hpus } else { "" };
        return Problem::new(key, format!("unknown key: only accelerator.kind = \"{kind}\" has it{hint}"));
    }
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned);
    // A correct name in the wrong section counts as closer than two wrong letters.
    let distance = |known: &str| {
        let letters = 2 * strsim::levenshtein(known, &key);
        if last(known) == last(&key) { letters.min(3) } else { letters }
    };
    let what = match known.iter().min_by_key(|known| distance(known)) {
        Some(near) if distance(near) <= 4 + key.len() / 2 => format!("unknown key, did you mean `{near}`?"),
        _ => "unknown key".to_owned(),
    };
    Problem::new(key, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_from_the_key() {
        assert_eq!(unit("dram_G_ps_per_byte"), "ps/B");
        assert_eq!(unit("L_ns"), "ns");
        assert_eq!(unit("mtu_bytes"), "B");
        assert_eq!(unit("count"), "");
        assert_eq!(unit("port_bits"), "bit");
        assert_eq!(unit("bytes"), "B");
        assert_eq!(unit("cycles"), "cycles");
    }
}
