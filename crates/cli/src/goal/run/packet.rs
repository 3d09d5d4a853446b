//! `--model packet`

use std::fs;
use std::path::Path;

use clap::ValueEnum;
use goal::packet::{Outcome, PacketError, Parameters, RunError, hosts, record, run as execute};
use goal::{RunProgress, Schedule};
use net::packet::{Flow, LinkReport, Routing};
use net::{Dragonfly, NetError, Topology};
use serde_json::{Map, Value, json};
use sim::trace::Trace;
use sim::{Rate, Time};

use super::super::GoalError;
use super::super::units::{Dims, json_ns, parse_dims, parse_gbit_per_s, parse_ns};
use super::report::{Report, Took};
use super::{Common, first_given, loggops, noise};

/// The sPIN paper's.
const MACHINE: &str = "sc17-int";
/// Bytes of a buffer: some hundred nanoseconds at the paper's rate, several times a link's round trip.
const BUFFER: u64 = 65_536;

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
    /// Hosts of a leaf switch of a fat tree for each of its ways up [default: 1, full bisection]
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
    /// Bytes of a buffer: of a link with credits, of a switch's output port with drop [default: 65536]
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u64>,
    /// What happens when a buffer is full [default: credits]
    #[arg(long, value_enum)]
    flow: Option<FlowName>,
    /// How packets choose among equally short ways [default: ecmp]
    #[arg(long, value_enum)]
    routing: Option<RoutingName>,
    /// Seed of the choices by hash [default: 0]
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

    fn build(&self, network: &machine::Network, hosts: usize) -> Result<Topology, GoalError> {
        let name = self.topology.as_deref().unwrap_or(match network.topology {
            // A shape names its topology.
            _ if self.sides.is_some() => "torus",
            _ if self.dragonfly.is_some() => "dragonfly",
            machine::Topology::FatTree => "fat-tree",
            machine::Topology::SingleSwitch => "single-switch",
        });
        Ok(match name {
            "fat-tree" => {
                self.only(name, &["--radix", "--taper"])?;
                Topology::fat_tree(self.radix.unwrap_or(network.radix), self.taper.unwrap_or(1), hosts)?
            }
            "single-switch" => {
                self.only(name, &[])?;
                Topology::single_switch(hosts)?
            }
            "torus" => {
                self.only(name, &["--dims", "--concentration"])?;
                let concentration = self.concentration.unwrap_or(1);
                let sides = match &self.sides {
                    Some(sides) => sides.0.clone(),
                    None => cube(hosts.div_ceil(concentration.max(1) as usize)),
                };
                Topology::torus(&sides, concentration)?
            }
            "dragonfly" => {
                self.only(name, &["--dragonfly"])?;
                Topology::dragonfly(match self.dragonfly.as_ref().map(|shape| &shape.0[..]) {
                    None => Dragonfly::for_hosts(hosts),
                    Some(&[hosts, routers, global]) => {
                        let groups = routers.saturating_mul(global).saturating_add(1);
                        Dragonfly { hosts, routers, global, groups }
                    }
                    Some(&[hosts, routers, global, groups]) => Dragonfly { hosts, routers, global, groups },
                    Some(_) => return Err(GoalError::Usage("--dragonfly has three or four numbers".into())),
                })?
            }
            file => {
                self.only(file, &[])?;
                from_file(file)?
            }
        })
    }
}

fn from_file(file: &str) -> Result<Topology, GoalError> {
    if Path::new(file).extension().is_none() && !file.contains('/') {
        let known = "fat-tree, dragonfly, torus, single-switch, or a DOT file";
        return Err(GoalError::Usage(format!("--topology {file}: known are {known}")));
    }
    let text = fs::read_to_string(file).map_err(|error| GoalError::Usage(format!("cannot read {file}: {error}")))?;
    Topology::from_dot(&text).map_err(|error| {
        // A place follows the name without a blank.
        let blank = if matches!(error, NetError::Dot { .. }) { "" } else { " " };
        GoalError::Usage(format!("{file}:{blank}{error}"))
    })
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
    let network = &machine.network;
    let hosts = hosts(schedule).map_err(|error| GoalError::run(&common.file, error))?;
    let topology = arguments.build(network, hosts)?;
    let parameters = Parameters {
        overhead: cpu.overhead.unwrap_or(machine.host.overhead),
        overhead_per_byte: cpu.overhead_per_byte.unwrap_or(Rate::INFINITE),
        eager: cpu.eager(),
        noise: cpu.noise.noise(),
        progress: RunProgress::default(),
        network: net::packet::Parameters {
            gap_per_byte: arguments.link_bandwidth.or(cpu.gap_per_byte).unwrap_or(network.gap_per_byte),
            wire: arguments.link_latency.unwrap_or(network.wire),
            switch: arguments.switch_latency.unwrap_or(network.switch),
            mtu: arguments.mtu.unwrap_or(network.mtu),
            gap: cpu.gap.unwrap_or(network.gap),
            buffer: arguments.buffer.unwrap_or(BUFFER),
            flow: match arguments.flow {
                Some(FlowName::Drop) => Flow::Drop,
                _ => Flow::Credits,
            },
            routing: match arguments.routing {
                Some(RoutingName::Adaptive) => Routing::Adaptive,
                _ => Routing::Ecmp,
            },
            seed: arguments.seed.unwrap_or(0),
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
    let net::packet::Parameters { gap_per_byte, wire, switch, mtu, gap, buffer, flow, routing, seed } =
        parameters.network;
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
