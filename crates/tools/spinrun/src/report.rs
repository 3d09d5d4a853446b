// SPDX-License-Identifier: Apache-2.0
//! Report of a run as JSON. Equal runs give equal bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use abi::portals::ReturnCode;
use net::fabric::Counts;
use nic::{HandlerStats, Profile, SourcePlace, Stats, merge_drops};
use ranks::FreeRunReport;
use serde::Serialize;
use serde_json::Value;
use sim::Time;
use sim::noise::Noise;
use world::{End, Failures, HostTraffic, Refused, Tenant, World};

use command::drops::{self, DropReport};
use command::failures;
use command::noise::describe;
use command::transport::{self, Transport};

use super::plan::{Application, Plan};

#[derive(Serialize)]
struct Report<'a> {
    /// Version of the layout of this report.
    version: u32,
    machine: &'a str,
    nic: &'static str,
    ranks: usize,
    /// Programs of the ranks; only if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramReport>,
    /// Jobs; only with `--jobs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<JobReport<'a>>,
    end: EndReport,
    /// Simulated time at the end of the run.
    end_ps: u64,
    rank_end_ps: Vec<u64>,
    /// Node of each entry of the lists of ranks and cards; only if a node has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<usize>,
    parameters: BTreeMap<&'static str, Parameter>,
    /// Noise; only with `--noise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseReport>,
    /// Injected failures; only with `--fail`, `--kill-card` or `--drop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<Value>,
    /// Threads that exceeded their CPU time, so that simulated time did not wait for them: another run may differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_awaited: Vec<ThreadReport<'a>>,
    /// Refused calls, by function, return code and argument.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused_calls: Vec<RefusedReport<'a>>,
    cards: Vec<CardReport>,
    /// Accelerators of switches; only if switches have handlers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switches: Vec<SwitchReport>,
    /// Undelivered messages of all cards together, by reason.
    drops: BTreeMap<&'static str, DropReport>,
    /// Statistics of the handlers of all cards together, by name.
    handlers: BTreeMap<String, HandlerReport>,
    /// Statistics of the links; only if the network model is a fabric.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkReport>,
    /// Source lines of each handler, those with the most instructions first; only with `--profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<BTreeMap<String, Vec<LineReport>>>,
}

/// Program of some ranks of a run with several programs.
#[derive(Serialize)]
struct ProgramReport {
    program: String,
    arguments: Vec<String>,
    /// Name of its job; only with `--jobs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    /// Its ranks in the job, and their places in the lists of ranks and cards of this report.
    ranks: Vec<usize>,
    nodes: Vec<usize>,
    /// Statistics of the handlers of its cards together, by name.
    handlers: BTreeMap<String, HandlerReport>,
    /// Source lines of each of these handlers; only with `--profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<BTreeMap<String, Vec<LineReport>>>,
}

/// A job of `--jobs`.
#[derive(Serialize)]
struct JobReport<'a> {
    name: &'a str,
    user: u32,
    weight: u32,
    priority: u8,
    start_ps: u64,
    /// Simulated time at which its last rank ended.
    end_ps: u64,
    /// End; null if a limit of the whole run has ended it.
    end: Option<EndReport>,
    /// Exit status that the job has alone.
    status: u8,
    /// Places of its ranks in the lists of ranks and cards of this report.
    nodes: Vec<usize>,
    /// Bytes that its cards sent, and those that they transferred to and from host memory.
    bytes_sent: u64,
    dma_bytes: u64,
    /// Time for which its handlers occupied HPUs, and the peak bytes of HPU memory that its ranks had allocated.
    hpu_busy_ps: u64,
    hpu_memory_peak_bytes: u64,
    /// Undelivered messages of its cards, by reason.
    drops: BTreeMap<&'static str, DropReport>,
}

/// Programs and jobs of a run.
pub struct Jobs<'a> {
    /// Programs and jobs.
    pub plan: &'a Plan,
    /// End of each job.
    pub ends: &'a [Option<End>],
    /// Exit status of each job.
    pub statuses: &'a [u8],
}

/// Thread that no longer held simulated time back: its number in the order of creation, and its location.
#[derive(Serialize)]
struct ThreadReport<'a> {
    rank: usize,
    thread: usize,
    place: &'a str,
    cpu_ms: u64,
}

/// Refused calls of a function with the same return code and argument; the argument is null if the reason is none of
/// them.
#[derive(Serialize)]
struct RefusedReport<'a> {
    function: &'a str,
    code: &'a str,
    argument: Option<&'a str>,
    /// Reason, rank and time of the first one.
    why: Option<&'a str>,
    rank: usize,
    at_ps: u64,
    count: u64,
}

/// Number of instructions of one source line. File and line are null without `-g`.
#[derive(Serialize)]
struct LineReport {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    instructions: u64,
}

#[derive(Serialize)]
struct NoiseReport {
    detours: Value,
    /// Time that noise added to the work of each rank's CPU.
    delay_ps: Vec<u64>,
}

#[derive(Serialize)]
struct Parameter {
    value: String,
    unit: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
enum EndReport {
    Finished,
    Aborted { rank: usize },
    RankFailed { rank: usize, code: Option<i32>, signal: Option<i32> },
    BadProgram { rank: usize, message: String },
    Deadlock { waits: Vec<String> },
    Interrupted { signal: i32 },
    OutOfTime { rank: usize },
    TimedOut,
}

/// Switch with handlers: name, and activity of its accelerator. Host memory and CPU are always 0.
#[derive(Serialize)]
struct SwitchReport {
    name: String,
    #[serde(flatten)]
    card: CardReport,
}

#[derive(Serialize)]
struct CardReport {
    messages_sent: u64,
    packets_sent: u64,
    bytes_sent: u64,
    messages_received: u64,
    packets_received: u64,
    bytes_received: u64,
    /// Bytes that the card transferred to and from host memory.
    dma_bytes: u64,
    /// Bytes of host memory read and written by the rank's CPU: sums over `spin_host_memory` and `spin_host_copy`.
    host_read_bytes: u64,
    host_written_bytes: u64,
    /// Traffic of host memory: the sum of the three.
    memory_bytes: u64,
    undeliverable: u64,
    packets_lost: u64,
    packets_resent: u64,
    packets_held: u64,
    flow_control: u64,
    packets_dropped: u64,
    packet_buffer_peak_bytes: u64,
    triggered_peak: u64,
    drops: BTreeMap<&'static str, DropReport>,
    tx_busy_ps: u64,
    rx_busy_ps: u64,
    dma_busy_ps: u64,
    hpu_busy_ps: u64,
}

#[derive(Serialize)]
struct NetworkReport {
    topology: String,
    hosts: u32,
    switches: u32,
    links: usize,
    packets: u64,
    packet_hops: u64,
    drops: u64,
    resent: u64,
    mean_utilization: f64,
    /// Events other than packets of the cards, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<Transport>,
    longest_queue: Option<LinkUse>,
    busiest_links: Vec<LinkUse>,
    /// Sum of the bytes carried by each link.
    link_bytes: u64,
    /// Each link that carried a packet.
    traffic: Vec<TrafficReport>,
}

#[derive(Serialize)]
struct TrafficReport {
    from: String,
    to: String,
    packets: u64,
    /// Bytes of data: packets without data, such as acknowledgements, count as 0.
    bytes: u64,
}

#[derive(Serialize)]
struct LinkUse {
    from: String,
    to: String,
    utilization: f64,
    packets: u64,
    bytes: u64,
    drops: u64,
    longest_queue_bytes: u64,
    mean_queue_bytes: f64,
}

/// Number of links in the report.
pub const BUSIEST: usize = 10;

#[derive(Serialize)]
struct HandlerReport {
    calls: u64,
    instructions: u64,
    min_instructions: u64,
    max_instructions: u64,
    cycles: u64,
    min_cycles: u64,
    max_cycles: u64,
    occupancy_ps: u64,
    bytes: u64,
    full_packets: u64,
    full_packet_cycles: u64,
    full_packet_occupancy_ps: u64,
    puts: u64,
    dmas: u64,
    errors: u64,
}

/// Returns the report, with instructions by source line if the cards counted them.
pub fn json(
    world: &World,
    end: &End,
    noise: Option<&Noise>,
    failures: Option<(&Failures, &[u64])>,
    profiled: bool,
    jobs: &Jobs<'_>,
) -> String {
    let machine = world.machine();
    let stats: Vec<Stats> = world.card_stats().collect();
    let traffic = world.host_traffic().iter().copied().chain(std::iter::repeat(HostTraffic::default()));
    let parts = stats.iter().zip(world.sending_ports_busy()).zip(traffic);
    let mut reports = parts.map(|((card, busy), traffic)| card_report(card, busy, traffic));
    let cards = reports.by_ref().take(world.ranks()).collect();
    let switches =
        world.switches().iter().cloned().zip(reports).map(|(name, card)| SwitchReport { name, card }).collect();
    let report = Report {
        version: 1,
        machine: &machine.name,
        nic: machine.nic.kind.name(),
        ranks: world.ranks(),
        programs: program_reports(world, jobs.plan, &stats, profiled),
        jobs: job_reports(world, jobs, &stats),
        end: end_report(end, |node| node),
        end_ps: world.now().as_ps(),
        rank_end_ps: world.rank_ends().map(|end| end.as_ps()).collect(),
        nodes: if world.seating().shares_cards() { world.seating().nodes().to_vec() } else { Vec::new() },
        parameters: machine.describe().into_iter().map(|(key, value, unit)| (key, Parameter { value, unit })).collect(),
        noise: noise.map(|noise| NoiseReport {
            detours: describe(Some(noise)),
            delay_ps: world.noise_delays().map(Time::as_ps).collect(),
        }),
        failures: failures.map(|(failures, lost)| failures::describe(failures, lost)),
        not_awaited: world.free_runs().iter().map(thread_report).collect(),
        refused_calls: world.refusals().kinds().map(refused_report).collect(),
        cards,
        switches,
        drops: drops::report(&merge_drops(stats.iter().map(|card| &card.counts.drops))),
        handlers: handlers(stats.iter()),
        network: world
            .links(BUSIEST)
            .zip(world.traffic_of_links())
            .map(|(report, links)| network_report(report, links)),
        profile: profiled.then(|| profile(stats.iter())),
    };
    let mut text = serde_json::to_string_pretty(&report).expect("maps have text keys");
    text.push('\n');
    text
}

fn thread_report(FreeRunReport { rank, thread, place, used_ms }: &FreeRunReport) -> ThreadReport<'_> {
    ThreadReport { rank: *rank, thread: *thread, place, cpu_ms: *used_ms }
}

fn refused_report<'a>((function, code, refused): (&'static str, ReturnCode, &'a Refused)) -> RefusedReport<'a> {
    let reason = refused.reason.as_ref();
    RefusedReport {
        function,
        code: code.c_name(),
        argument: reason.map(|reason| &*reason.argument).filter(|argument| !argument.is_empty()),
        why: reason.map(|reason| &*reason.why),
        rank: refused.rank,
        at_ps: refused.at.as_ps(),
        count: refused.count,
    }
}

fn handlers<'a>(cards: impl Iterator<Item = &'a Stats>) -> BTreeMap<String, HandlerReport> {
    let mut handlers: BTreeMap<String, HandlerStats> = BTreeMap::new();
    for (name, handler) in cards.flat_map(|card| &card.handlers) {
        handlers.entry(name.clone()).or_default().merge(handler);
    }
    handlers.iter().map(|(name, handler)| (name.clone(), handler_report(handler))).collect()
}

fn program_reports(world: &World, plan: &Plan, stats: &[Stats], profiled: bool) -> Vec<ProgramReport> {
    if plan.is_simple() {
        return Vec::new();
    }
    let report = |(number, application): (usize, &Application)| {
        let seats = (0..world.ranks()).filter_map(|node| Some((node, world.seating().at(node)?)));
        let mut seats: Vec<_> = seats.filter(|(_, seat)| seat.application == number).collect();
        seats.sort_by_key(|(_, seat)| seat.rank);
        let nodes: Vec<usize> = seats.iter().map(|(node, _)| *node).collect();
        let cards = || nodes.iter().map(|node| &stats[*node]);
        ProgramReport {
            program: application.name(),
            arguments: application.words[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            job: plan.jobs.get(application.job).map(|job| job.name.clone()),
            ranks: seats.iter().map(|(_, seat)| seat.rank).collect(),
            handlers: handlers(cards()),
            profile: profiled.then(|| profile(cards())),
            nodes,
        }
    };
    plan.applications.iter().enumerate().map(report).collect()
}

fn job_reports<'a>(world: &World, jobs: &Jobs<'a>, stats: &[Stats]) -> Vec<JobReport<'a>> {
    let rank_ends: Vec<Time> = world.rank_ends().collect();
    let report = |(number, job): (usize, &'a Tenant)| {
        let nodes = world.seating().members(number).to_vec();
        let cards = || nodes.iter().map(|node| &stats[*node]);
        let rank_in_job = |node: usize| world.seating().at(node).map_or(node, |seat| seat.rank);
        JobReport {
            name: &job.name,
            user: job.user,
            weight: job.weight,
            priority: job.priority,
            start_ps: job.start.as_ps(),
            end_ps: nodes.iter().map(|node| rank_ends[*node].as_ps()).max().unwrap_or_default(),
            end: jobs.ends[number].as_ref().map(|end| end_report(end, rank_in_job)),
            status: jobs.statuses[number],
            bytes_sent: cards().map(|card| card.counts.bytes_sent).sum(),
            dma_bytes: cards().map(|card| card.dma_bytes).sum(),
            hpu_busy_ps: cards().map(|card| card.hpu_busy.as_ps()).sum(),
            hpu_memory_peak_bytes: cards().map(|card| card.hpu_memory_peak).sum(),
            drops: drops::report(&merge_drops(cards().map(|card| &card.counts.drops))),
            nodes,
        }
    };
    jobs.plan.jobs.iter().enumerate().map(report).collect()
}

fn profile<'a>(cards: impl Iterator<Item = &'a Stats>) -> BTreeMap<String, Vec<LineReport>> {
    let mut sums = Profile::new();
    for (handler, places) in cards.flat_map(|card| &card.profile) {
        let sum = sums.entry(handler.clone()).or_default();
        for (place, instructions) in places {
            *sum.entry(place.clone()).or_default() += instructions;
        }
    }
    let lines = |places: BTreeMap<SourcePlace, u64>| {
        let mut lines: Vec<_> = places.into_iter().collect();
        // The sort is stable: lines with equal counts keep their order.
        lines.sort_by_key(|(_, instructions)| Reverse(*instructions));
        lines
            .into_iter()
            .map(|(SourcePlace { function, line }, instructions)| {
                let (file, line) = line.unzip();
                LineReport { function, file, line, instructions }
            })
            .collect()
    };
    sums.into_iter().map(|(handler, places)| (handler, lines(places))).collect()
}

/// Returns the end of a run or job; `number` is the number of a node's rank in it.
fn end_report(end: &End, number: impl Fn(usize) -> usize) -> EndReport {
    match end {
        End::Finished => EndReport::Finished,
        End::Aborted { rank } => EndReport::Aborted { rank: number(*rank) },
        End::RankFailed { rank, status, .. } => {
            EndReport::RankFailed { rank: number(*rank), code: status.code(), signal: status.signal() }
        }
        End::BadProgram { rank, message } => EndReport::BadProgram { rank: number(*rank), message: message.clone() },
        End::Deadlock { waits, .. } => EndReport::Deadlock { waits: waits.clone() },
        End::Interrupted { signal, .. } => EndReport::Interrupted { signal: *signal },
        End::OutOfTime { rank } => EndReport::OutOfTime { rank: number(*rank) },
        End::TimedOut { .. } => EndReport::TimedOut,
    }
}

fn card_report(card: &Stats, tx_busy: Time, host: HostTraffic) -> CardReport {
    CardReport {
        messages_sent: card.counts.messages_sent,
        packets_sent: card.counts.packets_sent,
        bytes_sent: card.counts.bytes_sent,
        messages_received: card.counts.messages_received,
        packets_received: card.counts.packets_received,
        bytes_received: card.counts.bytes_received,
        dma_bytes: card.dma_bytes,
        host_read_bytes: host.read,
        host_written_bytes: host.written,
        memory_bytes: card.dma_bytes + host.read + host.written,
        undeliverable: card.counts.undeliverable,
        packets_lost: card.counts.packets_lost,
        packets_resent: card.counts.packets_resent,
        packets_held: card.counts.packets_held,
        flow_control: card.flow_control,
        packets_dropped: card.counts.packets_dropped,
        packet_buffer_peak_bytes: card.packet_buffer_peak,
        triggered_peak: card.triggered_peak,
        drops: drops::report(&card.counts.drops),
        tx_busy_ps: tx_busy.as_ps(),
        rx_busy_ps: card.rx_busy.as_ps(),
        dma_busy_ps: card.dma_busy.as_ps(),
        hpu_busy_ps: card.hpu_busy.as_ps(),
    }
}

/// Prints the utilization of a fabric's links on standard error.
pub fn tell_links(report: &net::fabric::Report) {
    let ends = |link: &net::fabric::LinkReport| format!("{} to {}", link.from, link.to);
    let mean = 100.0 * report.mean_utilization;
    eprintln!("spinrun: network: {}, {} hosts, links {mean:.1} % busy on average", report.description, report.hosts);
    for link in report.busiest.iter().take(3) {
        eprintln!("spinrun: network: {:.1} % busy: {}", 100.0 * link.utilization, ends(link));
    }
    if let Some(queue) = &report.longest_queue {
        let (longest, mean) = (queue.longest_queue, queue.mean_queue.round());
        eprintln!("spinrun: network: longest queue {longest} bytes, {mean} on average: {}", ends(queue));
    }
    if report.drops > 0 {
        eprintln!("spinrun: network: {} packets lost in full buffers, {} sent again", report.drops, report.resent);
    }
    if report.answers != Counts::default() {
        eprintln!("spinrun: network: {}", transport::line(&report.answers));
    }
}

fn network_report(report: net::fabric::Report, links: Vec<net::fabric::Traffic>) -> NetworkReport {
    let traffic = links.into_iter().map(|link| TrafficReport {
        from: link.from,
        to: link.to,
        packets: link.packets,
        bytes: link.bytes,
    });
    let traffic: Vec<TrafficReport> = traffic.collect();
    NetworkReport {
        topology: report.description,
        hosts: report.hosts,
        switches: report.switches,
        links: report.links,
        packets: report.packets,
        packet_hops: report.packet_hops,
        drops: report.drops,
        resent: report.resent,
        mean_utilization: report.mean_utilization,
        transport: (report.answers != Counts::default()).then(|| Transport::new(&report.answers)),
        longest_queue: report.longest_queue.map(link_use),
        busiest_links: report.busiest.into_iter().map(link_use).collect(),
        link_bytes: traffic.iter().map(|link| link.bytes).sum(),
        traffic,
    }
}

fn link_use(link: net::fabric::LinkReport) -> LinkUse {
    LinkUse {
        from: link.from,
        to: link.to,
        utilization: link.utilization,
        packets: link.packets,
        bytes: link.bytes,
        drops: link.drops,
        longest_queue_bytes: link.longest_queue,
        mean_queue_bytes: link.mean_queue,
    }
}

fn handler_report(handler: &HandlerStats) -> HandlerReport {
    HandlerReport {
        calls: handler.calls,
        instructions: handler.instructions,
        min_instructions: handler.min_instructions,
        max_instructions: handler.max_instructions,
        cycles: handler.cycles,
        min_cycles: handler.min_cycles,
        max_cycles: handler.max_cycles,
        occupancy_ps: handler.occupancy.as_ps(),
        bytes: handler.bytes,
        full_packets: handler.full_packets,
        full_packet_cycles: handler.full_packet_cycles,
        full_packet_occupancy_ps: handler.full_packet_occupancy.as_ps(),
        puts: handler.puts,
        dmas: handler.dmas,
        errors: handler.errors,
    }
}
