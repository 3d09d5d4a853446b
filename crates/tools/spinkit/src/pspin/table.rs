// SPDX-License-Identifier: Apache-2.0
//! Results of a run as a table for the terminal.

use std::fmt::Write;

use pspin_nic::energy::Energy;
use pspin_nic::report::{HpuUse, Percentiles, Report, Spread, Summary, Tenant, Throughput};

use super::unit_machine::Unit;

/// Returns the table.
pub fn text(report: &Report, unit: &Unit) -> String {
    let mut out = String::new();
    let units = &unit.config.units;
    let ghz = unit.clock.as_khz() as f64 / 1e6;
    let is_native = report.engine == "native";
    let threads = report.hpus.total;
    match report.engine.as_str() {
        "" => {}
        "native" => line(
            &mut out,
            "engine",
            &format!("native: {threads} threads of this computer; a cycle is 1 ns of real time"),
        ),
        engine => line(&mut out, "engine", &format!("{engine}: times are those of the simulated card")),
    }
    let machine = match is_native {
        true => format!("{}: its memories", report.machine),
        false => format!("{}: {} clusters of {} HPUs at {ghz} GHz", report.machine, units.clusters, units.hpus),
    };
    line(&mut out, "machine", &machine);
    packets(&mut out, report);
    if let (Some(request), Some(packet)) = (report.request_ns, report.latency_ns) {
        line(
            &mut out,
            "latency",
            &format!("{} ns from request to feedback (least, mean, 99 %, most)", summary(request)),
        );
        line(&mut out, "", &format!("{} ns from first byte to feedback", summary(packet)));
    }
    line(&mut out, "throughput", &format!("{} over the run", rates(&report.run_throughput)));
    if report.throughput != Throughput::default() {
        line(&mut out, "", &format!("{} from the first to the last", rates(&report.throughput)));
    }
    let handlers = &report.handler_cycles;
    let mut name = "handlers";
    for (handler, what) in
        [(handlers.header, "header"), (handlers.payload, "payload"), (handlers.completion, "completion")]
    {
        if let Some(spread) = handler {
            line(
                &mut out,
                name,
                &format!("{} {what}, {} cycles (least, mean, most)", number(spread.count), cycles(spread)),
            );
            name = "";
        }
    }
    tenants(&mut out, report);
    let HpuUse { total, used, mean_busy, peak_busy } = report.hpus;
    line(&mut out, "HPUs", &format!("{used} of {total} used, {mean_busy:.1} busy on average, {peak_busy} at most"));
    if is_native {
        commands(&mut out, report);
        line(&mut out, "time", &format!("{} ns", number(report.cycles)));
        return out;
    }
    let instructions = format!("{}, {:.2} a cycle of a handler", number(report.instructions), report.ipc);
    line(&mut out, "instructions", &instructions);
    let memory = format!(
        "{} accesses to L1 with {} cycles of conflicts, {} to other memories, {} cache misses",
        number(report.l1_accesses),
        number(report.l1_conflicts),
        number(report.remote_accesses),
        number(report.icache_misses)
    );
    line(&mut out, "memory", &memory);
    commands(&mut out, report);
    let Energy { nj_per_packet, mean_w, .. } = report.energy;
    let energy =
        format!("{nj_per_packet:.1} nJ a packet, {mean_w:.2} W (upper bound for the paper's 22 nm, Table III)");
    // A live card mostly waits.
    if report.engine.is_empty() {
        line(&mut out, "energy", &energy);
    }
    line(&mut out, "time", &format!("{} cycles", number(report.cycles)));
    out
}

/// Adds the resources of each tenant.
fn tenants(out: &mut String, report: &Report) {
    let mut name = "tenants";
    for tenant in &report.tenants {
        let Tenant { tenant, packets, hpu_cycles, host_bytes, sent_bytes, latency_ns, .. } = tenant;
        let Percentiles { p50, p99, p999, .. } = latency_ns.unwrap_or_default();
        let text = format!(
            "{tenant}: {} packets, {} HPU cycles, {} B to and from the host, {} B sent, {p50} / {p99} / {p999} ns (50, 99, 99.9 %)",
            number(*packets),
            number(*hpu_cycles),
            number(*host_bytes),
            number(*sent_bytes)
        );
        line(out, std::mem::take(&mut name), &text);
    }
    if let Some(jain) = report.jain {
        line(out, "fairness", &format!("{jain:.3} (Jain's index of HPU cycles, until the first tenant is done)"));
    }
}

fn rates(rates: &Throughput) -> String {
    let mut text = format!("{:.1} Gbit/s in, {:.1} million packets/s", rates.in_gbit_s, rates.packets_per_us);
    for (value, place) in
        [(rates.out_gbit_s, "out"), (rates.host_write_gbit_s, "to the host"), (rates.host_read_gbit_s, "from the host")]
    {
        if value >= 0.05 {
            _ = write!(text, ", {value:.1} Gbit/s {place}");
        }
    }
    text
}

fn packets(out: &mut String, report: &Report) {
    let packets = &report.packets;
    let mut text = format!("{} arrived, {} done", number(packets.arrived), number(packets.done));
    let dropped = &packets.dropped;
    for (count, what) in [
        (packets.skipped, "without a handler"),
        (packets.faulted, "failed"),
        (packets.timed_out, "killed by the watchdog"),
        (packets.reset, "of messages that were given up"),
        (packets.to_host, "for the host"),
        (dropped.l2, "dropped because L2 was full"),
        (dropped.queues, "dropped because the message queues were full"),
        (dropped.messages, "dropped because too many messages were in progress"),
        (dropped.size, "dropped because of their size"),
        (dropped.malformed, "dropped because their headers are malformed"),
        (dropped.rule, "dropped by a rule"),
        (dropped.overtook, "dropped because they came before the header packet"),
        (packets.waited, "had to wait"),
        (packets.marked, "were marked"),
        (report.idle_resets, "messages given up"),
    ] {
        if count > 0 {
            _ = write!(text, ", {} {what}", number(count));
        }
    }
    line(out, "packets", &text);
}

fn commands(out: &mut String, report: &Report) {
    let commands = &report.commands;
    let all = [
        (commands.send, commands.sent_bytes, "sent"),
        (commands.to_host, commands.host_write_bytes, "copies to the host"),
        (commands.from_host, commands.host_read_bytes, "copies from the host"),
        (commands.host_direct, 0, "host direct"),
    ];
    let told = all.iter().filter(|(count, ..)| *count > 0).map(|(count, bytes, what)| match bytes {
        0 => format!("{} {what}", number(*count)),
        bytes => format!("{} {what} ({} B)", number(*count), number(*bytes)),
    });
    let told: Vec<_> = told.collect();
    if !told.is_empty() {
        line(out, "commands", &told.join(", "));
    }
}

fn line(out: &mut String, name: &str, text: &str) {
    _ = writeln!(out, "{name:12}  {text}");
}

fn summary(times: Summary) -> String {
    let Summary { min, mean, p99, max } = times;
    format!("{min} / {mean:.1} / {p99} / {max}")
}

fn cycles(spread: Spread) -> String {
    let Spread { min, mean, max, .. } = spread;
    format!("{min} / {mean:.1} / {max}")
}

/// Formats a number with thousands separators.
fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
