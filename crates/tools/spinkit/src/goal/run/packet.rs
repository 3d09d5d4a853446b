// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run packet`

use clap::ValueEnum;
use std::sync::Arc;

use goal::packet::{
    Outcome, Parameters, WindowCounts, count, hosts, one_thread, packets, record, single_thread_reason,
};
use goal::{RunProgress, Schedule};
use machine::{Shape, Topology};
use net::fabric::{self, Flow, LinkReport, RateControl, Routing, Transport};
use serde_json::{Map, Value, json};
use sim::trace::Trace;
use sim::{Time, TimePerByte};

use super::super::error::GoalError;
use super::common::{Common, Costs, Eager, Took};
use super::report::Report;
use super::{common, timeline};
use command::units::{Dims, json_ns, parse_dims, parse_gbit_per_s, parse_ns};
use command::{noise, transport};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    threshold: Eager,
    /// Number of simulation threads, if the run is long and the processors are free (results are identical) [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    threads: Option<u8>,
    /// Report the events on the critical path of N threads: in each window, those of the thread with most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..), conflicts_with_all = ["threads", "trace"])]
    window_counts: Option<u8>,
    #[command(flatten)]
    noise: noise::Arguments,
    #[command(flatten)]
    pub timeline: timeline::Arguments,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
}

/// Options of the network.
#[derive(Debug, clap::Args)]
struct Network {
    /// Topology: fat-tree, dragonfly, torus, single-switch, a DOT file, or a .topo file of htsim [default: the machine's]
    #[arg(long, value_name = "NAME|FILE")]
    topology: Option<String>,
    /// Number of ports of a fat tree's switches [default: the machine's]
    #[arg(long, value_name = "PORTS")]
    radix: Option<u32>,
    /// Hosts of a leaf switch of a fat tree for each of its upward links [default: the machine's, or 1 for full bisection]
    #[arg(long, value_name = "N")]
    taper: Option<u32>,
    /// Sides of a torus [default: the machine's, or three sides of nearly equal length]
    #[arg(long = "dims", value_name = "AxBxC", value_parser = parse_dims)]
    sides: Option<Dims>,
    /// Hosts of each switch of a torus [default: the machine's, or 1]
    #[arg(long, value_name = "N")]
    concentration: Option<u32>,
    /// Shape of a dragonfly: hosts of a router, routers of a group, links of a router to other groups, and number of groups,
    /// without which there are as many as possible [default: the machine's, or the smallest balanced dragonfly]
    #[arg(long, value_name = "PxAxH[xG]", value_parser = parse_dims)]
    dragonfly: Option<Dims>,
    /// Largest packet in bytes [default: the machine's]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// Bandwidth of a link in Gbit/s, instead of -G [default: the machine's]
    #[arg(long, value_name = "GBIT/S", value_parser = parse_gbit_per_s, conflicts_with = "gap_per_byte")]
    link_bandwidth: Option<TimePerByte>,
    /// Latency of a link in ns [default: the machine's]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    link_latency: Option<Time>,
    /// Latency of a switch in ns [default: the machine's]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    switch_latency: Option<Time>,
    /// Size in bytes of each buffer: one for each link with credits and pfc, one for each output port with drop and trim
    /// [default: the machine's]
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u64>,
    /// Behaviour when a buffer is full [default: the machine's]
    #[arg(long, value_enum)]
    flow: Option<FlowName>,
    /// Size in bytes of the packet that acknowledges each packet of data; 0 for acknowledgements that occupy no link [default:
    /// the machine's]
    #[arg(long, value_name = "BYTES")]
    ack_bytes: Option<u32>,
    /// Congestion control of senders whose packets meet long queues [default: the machine's]
    #[arg(long, value_enum)]
    rate_control: Option<RateControlName>,
    /// Choice among equally short paths [default: the machine's]
    #[arg(long, value_enum)]
    routing: Option<RoutingName>,
    /// Seed of the hash that chooses paths [default: the machine's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FlowName {
    /// Packets wait until there is room
    Credits,
    /// Packets are lost and sent again
    Drop,
    /// Switches pause the senders of links (IEEE 802.1Qbb)
    Pfc,
    /// Packets lose their data, and receivers pull it again (NDP)
    Trim,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RateControlName {
    /// Nothing
    None,
    /// Switches mark packets, and each flow has a rate (DCQCN)
    Dcqcn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoutingName {
    /// A hash of sender and receiver chooses the path
    Ecmp,
    /// Each packet takes the shortest queue
    Adaptive,
}

impl FlowName {
    fn flow(self) -> Flow {
        match self {
            FlowName::Credits => Flow::Credits,
            FlowName::Drop => Flow::Drop,
            FlowName::Pfc => Flow::Pfc,
            FlowName::Trim => Flow::Trim,
        }
    }
}

impl RateControlName {
    fn rate_control(self) -> RateControl {
        match self {
            RateControlName::None => RateControl::None,
            RateControlName::Dcqcn => RateControl::Dcqcn,
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

impl Network {
    /// Returns the options that describe the shape of a topology, and whether they are given.
    fn shapes(&self) -> [(&'static str, bool); 5] {
        [
            ("--radix", self.radix.is_some()),
            ("--taper", self.taper.is_some()),
            ("--dims", self.sides.is_some()),
            ("--concentration", self.concentration.is_some()),
            ("--dragonfly", self.dragonfly.is_some()),
        ]
    }

    /// Refuses options that describe the shape of another topology.
    fn only(&self, topology: &str, allowed: &[&str]) -> Result<(), GoalError> {
        match self.shapes().into_iter().find(|(name, is_given)| *is_given && !allowed.contains(name)) {
            Some((name, _)) => Err(GoalError::Usage(format!("{name} is not for the topology {topology}"))),
            None => Ok(()),
        }
    }

    /// Returns the machine's network with the topology of the options.
    fn apply(&self, network: &machine::Network) -> Result<machine::Network, GoalError> {
        let mut network = network.clone();
        let fabric = network.fabric.get_or_insert(machine::Fabric::USUAL);
        let named = match self.topology.as_deref() {
            Some(name) => Some(Topology::named(name).map_err(|_| {
                let known = "fat-tree, dragonfly, torus, single-switch, or a DOT file";
                GoalError::Usage(format!("--topology {name}: known are {known}"))
            })?),
            // A shape option implies its topology.
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

/// Executes a schedule.
pub fn run(schedule: &Schedule, arguments: &Arguments, trace: Trace) -> Result<Report, GoalError> {
    let Arguments { common, costs, timeline, network: given, .. } = arguments;
    let machine = common.machine_or_default(common::Network::Fabric)?;
    let network = given.apply(&machine.network)?;
    let hosts = hosts(schedule).map_err(|error| GoalError::run(&common.file, error))?;
    let topology = Arc::new(net::Topology::of_machine(&network, hosts)?);
    let machines = fabric::Parameters::of_machine(&network);
    let mut parameters = Parameters {
        overhead: costs.overhead.unwrap_or(machine.host.overhead),
        overhead_per_byte: costs.overhead_per_byte.unwrap_or(TimePerByte::INFINITE),
        eager: arguments.threshold.eager,
        noise: arguments.noise.noise(),
        threads: arguments.threads.map_or(1, usize::from),
        progress: RunProgress::default(),
        network: fabric::Parameters {
            gap_per_byte: given.link_bandwidth.or(costs.gap_per_byte).unwrap_or(machines.gap_per_byte),
            wire: given.link_latency.unwrap_or(machines.wire),
            switch: given.switch_latency.unwrap_or(machines.switch),
            mtu: given.mtu.unwrap_or(machines.mtu),
            gap: costs.gap.unwrap_or(machines.gap),
            buffer: given.buffer.unwrap_or(machines.buffer),
            flow: given.flow.map_or(machines.flow, FlowName::flow),
            routing: given.routing.map_or(machines.routing, RoutingName::routing),
            seed: given.seed.unwrap_or(machines.seed),
            transport: Transport {
                ack: given.ack_bytes.unwrap_or(machines.transport.ack),
                rate_control: given.rate_control.map_or(machines.transport.rate_control, RateControlName::rate_control),
                ..machines.transport
            },
        },
    };
    let is_impossible = || one_thread(schedule, &topology, &parameters).map(|why| why.to_string());
    let is_wasteful = || {
        let packets = packets(schedule, parameters.network.mtu);
        single_thread_reason(packets, parameters.threads).map(|why| why.to_string())
    };
    if arguments.window_counts.is_none()
        && parameters.threads > 1
        && let Some(why) = is_impossible().or_else(is_wasteful)
    {
        eprintln!("spinkit goal: note: runs in one thread: {why}");
        parameters.threads = 1;
    }
    if let Some(parts) = arguments.window_counts {
        parameters.threads = parts.into();
        if let Some(why) = one_thread(schedule, &topology, &parameters) {
            return Err(GoalError::Usage(format!("--window-counts {parts}: {why}")));
        }
    }
    let (outcome, took) = common.timed(schedule, &parameters.progress, || match trace.is_on() {
        false => count(schedule, topology, &parameters),
        true => {
            let outcome = record(schedule, topology, &parameters, timeline.window(schedule))?;
            Ok((outcome, WindowCounts::default()))
        }
    });
    let (outcome, counts) = outcome.map_err(|error| GoalError::run(&common.file, error))?;
    if let Some(path) = timeline.file() {
        let write = || timeline.write_packets(trace, schedule, parameters.eager, &outcome.details.spans);
        common.writing(path, write).map_err(GoalError::write(path))?;
    }
    let mut report = outcome_report(schedule, &parameters, outcome, took)?;
    if arguments.window_counts.is_some() {
        let WindowCounts { parts, windows, events, critical, parcels } = counts;
        let gain = events as f64 / critical.max(1) as f64;
        report.more.insert(
            "window_counts".into(),
            json!({
                "parts": parts,
                "windows": windows,
                "events": events,
                "critical_events": critical,
                "parcels": parcels,
                "largest_gain": gain,
            }),
        );
        let line = format!(
            "{parts} parts, {windows} windows of {:.0} events, {critical} of {events} events on the critical path, \
             {parcels} parcels: {gain:.1} times as fast at best",
            events as f64 / windows.max(1) as f64
        );
        report.lines.push(("windows", line));
    }
    Ok(report)
}

fn outcome_report(
    schedule: &Schedule,
    parameters: &Parameters,
    outcome: Outcome,
    took: Took,
) -> Result<Report, GoalError> {
    super::report::warn_of_lost(schedule, &outcome.unreceived);
    let per_byte = |rate: TimePerByte| rate.as_fs_per_byte() as f64 / 1e6;
    let fabric::Parameters {
        gap_per_byte,
        wire,
        switch,
        mtu,
        gap,
        buffer,
        flow,
        routing,
        seed,
        transport: ref answers,
    } = parameters.network;
    let network = &outcome.details.network;
    let is_usual = *answers == Transport::USUAL && matches!(flow, Flow::Credits | Flow::Drop);
    let rate = network.packet_hops as f64 / took.cpu.as_secs_f64().max(1e-9);
    let more = [
        ("unreceived_messages", outcome.unreceived.len().into()),
        ("threads", parameters.threads.into()),
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
    let transport_counts = (!is_usual).then(|| ("transport", json!(transport::Transport::new(&network.answers))));
    let more = more.into_iter().chain(transport_counts);
    let mut lines = vec![
        ("network", format!("{}, {} hosts", network.description, network.hosts)),
        ("packets", format!("{}, {} hops, {:.1} million hops/s", network.packets, network.packet_hops, rate / 1e6)),
        ("lost", format!("{} packets, {} sent again", network.drops, network.resent)),
        ("links", format!("{:.1} % busy on average", 100.0 * network.mean_utilization)),
    ];
    if !is_usual {
        lines.push(("answers", transport::line(&network.answers)));
    }
    lines.extend(
        network.busiest.iter().take(3).map(|link| ("", format!("{:.1} %: {}", 100.0 * link.utilization, ends(link)))),
    );
    if let Some(queue) = &network.longest_queue {
        let mean = queue.mean_queue.round();
        lines.push(("queue", format!("{} bytes at most, {mean} on average: {}", queue.longest_queue, ends(queue))));
    }
    let mut parameters_json = json!({
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
        "flow": flow.name(),
        "routing": routing.name(),
        "seed": seed,
    });
    if !is_usual {
        parameters_json["ack_bytes"] = answers.ack.into();
        parameters_json["rate_control"] = answers.rate_control.name().into();
    }
    Ok(Report {
        model: "packet",
        parameters: parameters_json,
        events: outcome.events,
        ends: outcome.ends,
        took,
        more: more.map(|(name, value)| (name.to_owned(), value)).collect::<Map<String, Value>>(),
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
