//! `--model packet`

use clap::ValueEnum;
use goal::packet::{Outcome, PacketError, Parameters, RunError, hosts, record, run as execute};
use goal::{RunProgress, Schedule};
use machine::{Shape, Topology};
use net::fabric::{self, Flow, LinkReport, Routing};
use serde_json::{Map, Value, json};
use sim::trace::Trace;
use sim::{Rate, Time};

use super::super::GoalError;
use super::super::units::{Dims, json_ns, parse_dims, parse_gbit_per_s, parse_ns};
use super::report::{Report, Took};
use super::{Common, first_given, loggops, noise};

/// The sPIN paper's.
const MACHINE: &str = "sc17-int";

#[derive(Debug, clap::Args)]
#[group(id = "packet")]
#[command(
    next_help_heading = "Packets (--model packet; also -o, -g, -G, -O and -S; the machine is sc17-int by default)"
)]
pub struct Arguments {
    /// Network: fat-tree, dragonfly, torus, single-switch, or a DOT file [default: the machine's]
    #[arg(long, value_name = "NAME|FILE.dot")]
    topology: Option<String>,
    /// Ports of a switch of a fat tree [default: the machine's]
    #[arg(long, value_name = "PORTS")]
    radix: Option<u32>,
    /// Hosts of a leaf switch of a fat tree for each of its links up [default: the machine's, else 1, full bisection]
    #[arg(long, value_name = "N")]
    taper: Option<u32>,
    /// Sides of a torus [default: three, as even as can be]
    #[arg(long = "dims", value_name = "AxBxC", value_parser = parse_dims)]
    sides: Option<Dims>,
    /// Hosts of each switch of a torus [default: 1]
    #[arg(long, value_name = "N")]
    concentration: Option<u32>,
    /// Shape of a dragonfly: hosts of a router, routers of a group, links of a router to other groups, and, if not as many
    /// as can be, groups [default: the smallest balanced one]
    #[arg(long, value_name = "PxAxH[xG]", value_parser = parse_dims)]
    dragonfly: Option<Dims>,
    /// Largest packet in bytes [default: the machine's]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// Bandwidth of a link in Gbit/s, instead of -G [default: the machine's]
    #[arg(long, value_name = "GBIT/S", value_parser = parse_gbit_per_s, conflicts_with = "gap_per_byte")]
    link_bandwidth: Option<Rate>,
    /// Latency of a link in ns [default: the machine's]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    link_latency: Option<Time>,
    /// Latency of a switch in ns [default: the machine's]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    switch_latency: Option<Time>,
    /// Bytes of a buffer: of a link with credits, of an output port of a switch with drop [default: the machine's]
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u64>,
    /// What happens when a buffer is full [default: the machine's]
    #[arg(long, value_enum)]
    flow: Option<FlowName>,
    /// How packets choose among equally short ways [default: the machine's]
    #[arg(long, value_enum)]
    routing: Option<RoutingName>,
    /// Seed of the choices by hash [default: the machine's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FlowName {
    /// Packets wait until there is room
    Credits,
    /// Packets are lost and sent again
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoutingName {
    /// By a hash of sender and receiver
    Ecmp,
    /// Each packet takes the shortest queue
    Adaptive,
}

impl FlowName {
    fn flow(self) -> Flow {
        match self {
            FlowName::Credits => Flow::Credits,
            FlowName::Drop => Flow::Drop,
        }
    }
}

impl RoutingName {
    fn routing(self) -> Routing {
        match self {
            RoutingName::Ecmp => Routing::Ecmp,
            RoutingName::Adaptive => Routing::Adaptive,
        }
    }
}

impl Arguments {
    /// Options of the shapes of topologies, and whether they were given.
    fn shapes(&self) -> [(&'static str, bool); 5] {
        [
            ("--radix", self.radix.is_some()),
            ("--taper", self.taper.is_some()),
            ("--dims", self.sides.is_some()),
            ("--concentration", self.concentration.is_some()),
            ("--dragonfly", self.dragonfly.is_some()),
        ]
    }

    /// An option that was given: no other model has it.
    pub fn given(&self) -> Option<&'static str> {
        let others = [
            ("--topology", self.topology.is_some()),
            ("--mtu", self.mtu.is_some()),
            ("--link-bandwidth", self.link_bandwidth.is_some()),
            ("--link-latency", self.link_latency.is_some()),
            ("--switch-latency", self.switch_latency.is_some()),
            ("--buffer", self.buffer.is_some()),
            ("--flow", self.flow.is_some()),
            ("--routing", self.routing.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        first_given(others.into_iter().chain(self.shapes()))
    }

    /// A shape that belongs to another topology than the one asked for is an error.
    fn only(&self, topology: &str, allowed: &[&str]) -> Result<(), GoalError> {
        match self.shapes().into_iter().find(|(name, is_given)| *is_given && !allowed.contains(name)) {
            Some((name, _)) => Err(GoalError::Usage(format!("{name} is not for the topology {topology}"))),
            None => Ok(()),
        }
    }

    /// The machine's network with the topology that the options ask for.
    fn apply(&self, network: &machine::Network) -> Result<machine::Network, GoalError> {
        let mut network = network.clone();
        let fabric = network.fabric.get_or_insert(machine::Fabric::USUAL);
        let named = match self.topology.as_deref() {
            Some(name) => Some(Topology::named(name).map_err(|_| {
                let known = "fat-tree, dragonfly, torus, single-switch, or a DOT file";
                GoalError::Usage(format!("--topology {name}: known are {known}"))
            })?),
            // A shape names its topology.
            None if self.sides.is_some() => Some(Topology::Torus),
            None if self.dragonfly.is_some() => Some(Topology::Dragonfly),
            None => None,
        };
        if let Some(topology) = named
            && topology != network.topology
        {
            network.topology = topology;
            fabric.shape = Shape::default();
        }
        let allowed: &[&str] = match network.topology {
            Topology::FatTree => &["--radix", "--taper"],
            Topology::Torus => &["--dims", "--concentration"],
            Topology::Dragonfly => &["--dragonfly"],
            Topology::SingleSwitch | Topology::File(_) => &[],
        };
        self.only(network.topology.name(), allowed)?;
        network.radix = self.radix.unwrap_or(network.radix);
        let shape = &mut fabric.shape;
        shape.taper = self.taper.or(shape.taper);
        shape.concentration = self.concentration.or(shape.concentration);
        shape.dims = self.sides.as_ref().map(|sides| sides.0.clone()).or(shape.dims.take());
        shape.dragonfly = self.dragonfly.as_ref().map(|shape| shape.0.clone()).or(shape.dragonfly.take());
        Ok(network)
    }
}

pub fn run(
    schedule: &Schedule,
    common: &Common,
    cpu: &loggops::Arguments,
    arguments: &Arguments,
    trace: Trace,
) -> Result<Report, GoalError> {
    if let Some(name) = cpu.not_of_packets() {
        return Err(GoalError::Usage(format!("{name} is not for --model packet")));
    }
    let machine = common.machine_or(MACHINE)?;
    let network = arguments.apply(&machine.network)?;
    let hosts = hosts(schedule).map_err(|error| GoalError::run(&common.file, error))?;
    let topology = net::Topology::of_machine(&network, hosts)?;
    let machines = fabric::Parameters::of_machine(&network);
    let parameters = Parameters {
        overhead: cpu.overhead.unwrap_or(machine.host.overhead),
        overhead_per_byte: cpu.overhead_per_byte.unwrap_or(Rate::INFINITE),
        eager: cpu.eager(),
        noise: cpu.noise.noise(),
        progress: RunProgress::default(),
        network: fabric::Parameters {
            gap_per_byte: arguments.link_bandwidth.or(cpu.gap_per_byte).unwrap_or(machines.gap_per_byte),
            wire: arguments.link_latency.unwrap_or(machines.wire),
            switch: arguments.switch_latency.unwrap_or(machines.switch),
            mtu: arguments.mtu.unwrap_or(machines.mtu),
            gap: cpu.gap.unwrap_or(machines.gap),
            buffer: arguments.buffer.unwrap_or(machines.buffer),
            flow: arguments.flow.map_or(machines.flow, FlowName::flow),
            routing: arguments.routing.map_or(machines.routing, RoutingName::routing),
            seed: arguments.seed.unwrap_or(machines.seed),
        },
    };
    let (outcome, took) = common.timed(schedule, &parameters.progress, || match trace.is_on() {
        false => execute(schedule, topology, &parameters),
        true => record(schedule, topology, &parameters, cpu.timeline.window(schedule)),
    });
    let outcome = outcome.map_err(|error| match error {
        RunError::Model(PacketError::Network(error)) => error.into(),
        error => GoalError::run(&common.file, error),
    })?;
    if let Some(path) = cpu.timeline.file() {
        let write = || cpu.timeline.write_packets(trace, schedule, parameters.eager, &outcome.details.spans);
        common.writing(path, write).map_err(GoalError::write(path))?;
    }
    outcome_report(schedule, &parameters, outcome, took)
}

fn outcome_report(
    schedule: &Schedule,
    parameters: &Parameters,
    outcome: Outcome,
    took: Took,
) -> Result<Report, GoalError> {
    super::report::warn_of_lost(schedule, &outcome.unreceived);
    let per_byte = |rate: Rate| rate.as_fs_per_byte() as f64 / 1e6;
    let fabric::Parameters { gap_per_byte, wire, switch, mtu, gap, buffer, flow, routing, seed } = parameters.network;
    let network = &outcome.details.network;
    let rate = network.packet_hops as f64 / took.cpu.as_secs_f64().max(1e-9);
    let more = [
        ("unreceived_messages", outcome.unreceived.len().into()),
        (
            "network",
            json!({
                "topology": network.description,
                "hosts": network.hosts,
                "switches": network.switches,
                "links": network.links,
                "packets": network.packets,
                "packet_hops": network.packet_hops,
                "packet_hops_per_cpu_second": rate,
                "drops": network.drops,
                "resent": network.resent,
                "mean_utilization": network.mean_utilization,
                "longest_queue": network.longest_queue.as_ref().map(link),
                "busiest_links": network.busiest.iter().map(link).collect::<Vec<_>>(),
            }),
        ),
    ];
    let mut lines = vec![
        ("network", format!("{}, {} hosts", network.description, network.hosts)),
        ("packets", format!("{}, {} hops, {:.1} million hops/s", network.packets, network.packet_hops, rate / 1e6)),
        ("lost", format!("{} packets, {} sent again", network.drops, network.resent)),
        ("links", format!("{:.1} % busy on average", 100.0 * network.mean_utilization)),
    ];
    lines.extend(
        network.busiest.iter().take(3).map(|link| ("", format!("{:.1} %: {}", 100.0 * link.utilization, ends(link)))),
    );
    if let Some(queue) = &network.longest_queue {
        let mean = queue.mean_queue.round();
        lines.push(("queue", format!("{} bytes at most, {mean} on average: {}", queue.longest_queue, ends(queue))));
    }
    Ok(Report {
        model: "packet",
        parameters: json!({
            "o_ns": json_ns(parameters.overhead),
            "g_ns": json_ns(gap),
            "G_ns_per_byte": per_byte(gap_per_byte),
            "O_ns_per_byte": per_byte(parameters.overhead_per_byte),
            "S_bytes": parameters.eager,
            "noise": noise::describe(parameters.noise.as_ref()),
            "mtu_bytes": mtu,
            "link_latency_ns": json_ns(wire),
            "switch_latency_ns": json_ns(switch),
            "buffer_bytes": buffer,
            "flow": match flow { Flow::Credits => "credits", Flow::Drop => "drop" },
            "routing": match routing { Routing::Ecmp => "ecmp", Routing::Adaptive => "adaptive" },
            "seed": seed,
        }),
        events: outcome.events,
        ends: outcome.ends,
        took,
        more: more.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<String, Value>>(),
        lines,
    })
}

fn ends(link: &LinkReport) -> String {
    format!("{} to {}", link.from, link.to)
}

fn link(link: &LinkReport) -> Value {
    json!({
        "from": link.from,
        "to": link.to,
        "utilization": link.utilization,
        "packets": link.packets,
        "drops": link.drops,
        "longest_queue_bytes": link.longest_queue,
        "mean_queue_bytes": link.mean_queue,
    })
}
