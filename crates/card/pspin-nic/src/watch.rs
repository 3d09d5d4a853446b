// SPDX-License-Identifier: Apache-2.0
//! Observer of the unit that measures the numbers of a report and draws the timeline.

use machine::Pspin as Config;
use pspin_unit::Cycle;
use pspin_unit::command::Command;
use pspin_unit::core::CoreCounters;
use pspin_unit::her::{HpuId, Role, TaskOutcome};
use pspin_unit::observe::{Noted, Observer};

use crate::energy::Activity;
use crate::report::{Commands, Handlers, HpuUse, Stages, Tally};
use crate::tenants::Accounts;
use crate::timeline::Timeline;

/// Task in a cluster, before an HPU has its function pointer.
#[derive(Clone, Copy, Default)]
struct Placed {
    /// NIC number of its packet.
    packet: u64,
    sent: Cycle,
    copied: Cycle,
    assigned: Cycle,
}

/// Packet in the unit.
#[derive(Clone, Copy, Default)]
struct Packet {
    /// Cycle of its request, and of the end of its last handler.
    accepted: Cycle,
    ended: Cycle,
    tenant: u32,
    bytes: u32,
}

/// HPU running a handler.
#[derive(Clone, Copy, Default)]
struct Running {
    start: Cycle,
    is_busy: bool,
    has_run: bool,
    tenant: u32,
}

/// Measures stages, handlers, and the number of busy HPUs.
pub struct Watch {
    /// Tasks of each cluster by slot.
    placed: Vec<Vec<Placed>>,
    /// Slot of each HPU's task.
    given: Vec<u8>,
    running: Vec<Running>,
    per_cluster: usize,
    /// Packets by NIC number.
    packets: Vec<Packet>,
    accounts: Accounts,
    stages: [Tally; 6],
    roles: [Tally; 3],
    busy: u32,
    peak: u32,
    /// First instruction of each HPU's latest handler.
    entries: Vec<u32>,
    /// Number of handlers that failed, and that the watchdog killed.
    failed: u64,
    killed: u64,
    commands: Commands,
    activity: Activity,
    icache_line: u32,
    timeline: Option<Timeline>,
}

impl Watch {
    /// Creates an observer of a unit, which also draws `timeline` if given.
    pub fn new(config: &Config, timeline: Option<Timeline>) -> Watch {
        let (clusters, hpus) = (config.units.clusters as usize, config.units.hpus as usize);
        Watch {
            placed: vec![Vec::new(); clusters],
            given: vec![0; clusters * hpus],
            running: vec![Running::default(); clusters * hpus],
            per_cluster: hpus,
            packets: Vec::new(),
            accounts: Accounts::default(),
            stages: [Tally::default(); 6],
            roles: [Tally::default(); 3],
            busy: 0,
            peak: 0,
            entries: vec![0; clusters * hpus],
            failed: 0,
            killed: 0,
            commands: Commands::default(),
            activity: Activity::default(),
            icache_line: config.icache.line,
            timeline,
        }
    }

    /// Returns the timeline, for events around the unit.
    pub fn timeline(&mut self) -> Option<&mut Timeline> {
        self.timeline.as_mut()
    }

    /// Takes the timeline, to write it.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.timeline.take()
    }

    /// Returns the cycles of packet stages.
    pub fn stages(&self) -> Stages {
        let [schedule, copy, assign, pointer, handler, feedback] = self.stages.map(|stage| stage.spread());
        Stages { schedule, copy, assign, pointer, handler, feedback }
    }

    /// Returns the cycles of handlers.
    pub fn handlers(&self) -> Handlers {
        let [header, payload, completion] = self.roles.map(|role| role.spread());
        Handlers { header, payload, completion }
    }

    /// Returns the commands issued by HPUs.
    pub fn commands(&self) -> Commands {
        self.commands
    }

    /// Returns the activity of the unit, whose HPUs executed `instructions` and have these counters.
    pub fn activity(&self, instructions: u64, cores: &CoreCounters) -> Activity {
        let mut activity = Activity { busy_cycles: self.cycles(), instructions, ..self.activity };
        activity.hpus(cores, self.icache_line);
        activity
    }

    /// Returns the cycles of all handlers together.
    pub fn cycles(&self) -> u64 {
        self.roles.iter().map(Tally::sum).sum()
    }

    /// Returns the utilization of the HPUs over `cycles` cycles.
    pub fn hpus(&self, cycles: u64) -> HpuUse {
        HpuUse {
            total: self.running.len() as u32,
            used: self.running.iter().filter(|hpu| hpu.has_run).count() as u32,
            mean_busy: self.cycles() as f64 / cycles.max(1) as f64,
            peak_busy: self.peak,
        }
    }

    /// Returns the accounts of tenants.
    pub fn accounts(&mut self) -> &mut Accounts {
        &mut self.accounts
    }

    /// Returns the first instruction of an HPU's latest handler.
    pub fn entry(&self, hpu: HpuId) -> u32 {
        self.entries[self.index(hpu)]
    }

    /// Returns the number of handlers that failed.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Returns the number of handlers that the watchdog killed.
    pub fn killed(&self) -> u64 {
        self.killed
    }

    fn index(&self, hpu: HpuId) -> usize {
        usize::from(hpu.cluster) * self.per_cluster + usize::from(hpu.hpu)
    }

    fn place(&mut self, cluster: u16, place: u8) -> &mut Placed {
        let all = &mut self.placed[usize::from(cluster)];
        if all.len() <= usize::from(place) {
            all.resize(usize::from(place) + 1, Placed::default());
        }
        &mut all[usize::from(place)]
    }

    fn packet(&mut self, number: u64) -> &mut Packet {
        let index = number as usize;
        if self.packets.len() <= index {
            self.packets.resize(index + 1, Default::default());
        }
        &mut self.packets[index]
    }

    /// Records that an HPU has the function pointer of a task.
    fn start(&mut self, at: Cycle, hpu: HpuId, role: Role, tenant: u32) {
        let (index, place) = (self.index(hpu), self.given[self.index(hpu)]);
        let Placed { packet, sent, copied, assigned } = *self.place(hpu.cluster, place);
        if role == Role::Payload {
            let accepted = self.packet(packet).accepted;
            let stages = [sent - accepted, copied - sent, assigned - copied, at - assigned];
            self.stages.iter_mut().zip(stages).for_each(|(stage, cycles)| stage.add(cycles));
        }
        self.running[index] = Running { start: at, is_busy: true, has_run: true, tenant };
        self.busy += 1;
        self.peak = self.peak.max(self.busy);
    }

    fn end(&mut self, at: Cycle, hpu: HpuId, role: Role, packet: u64, has_failed: bool) {
        let index = self.index(hpu);
        let running = &mut self.running[index];
        if !std::mem::take(&mut running.is_busy) {
            return; // killed before it had its function pointer
        }
        let (cycles, tenant) = (at - running.start, running.tenant);
        self.accounts.handler(tenant, cycles, has_failed);
        self.roles[role as usize].add(cycles);
        if role == Role::Payload {
            self.stages[4].add(cycles);
        }
        self.packet(packet).ended = at;
        self.busy -= 1;
    }
}

impl Observer for Watch {
    fn note(&mut self, at: Cycle, what: Noted<'_>) {
        match what {
            Noted::HerAccepted(her) => {
                self.activity.packet(her.packet.size, her.transfer);
                let (tenant, bytes) = (her.context.tenant, her.packet.size);
                *self.packet(her.user) = Packet { accepted: at, ended: Cycle::NEVER, tenant, bytes };
                self.accounts.accept(&her.context, bytes);
            }
            Noted::TaskSent { cluster, place, task } => {
                self.activity.tasks += 1;
                let packet = task.her.user;
                self.accounts.copy(task.her.context.tenant, task.her.transfer);
                *self.place(cluster, place) = Placed { packet, sent: at, copied: at, assigned: at };
            }
            Noted::DmaDone { cluster, place } => self.place(cluster, place).copied = at,
            Noted::Assigned { hpu, place } => {
                let index = self.index(hpu);
                self.given[index] = place;
                self.place(hpu.cluster, place).assigned = at;
            }
            Noted::Start { hpu, task } => {
                let index = self.index(hpu);
                self.entries[index] = task.her.context.handlers[task.role as usize].address;
                self.start(at, hpu, task.role, task.her.context.tenant);
            }
            Noted::End { hpu, task, outcome } => {
                self.failed += u64::from(matches!(outcome, TaskOutcome::Faulted(_)));
                self.killed += u64::from(outcome == TaskOutcome::TimedOut);
                let has_failed = matches!(outcome, TaskOutcome::Faulted(_) | TaskOutcome::TimedOut);
                self.end(at, hpu, task.role, task.her.user, has_failed);
            }
            Noted::Feedback(feedback) => {
                let Packet { ended, tenant, bytes, .. } = *self.packet(feedback.user);
                let busy = self.running.iter().filter(|hpu| hpu.is_busy);
                let running = busy.map(|hpu| (hpu.tenant, at.0.saturating_sub(hpu.start.0)));
                self.accounts.feed_back(tenant, bytes, running);
                if feedback.outcome == TaskOutcome::Done && ended <= at {
                    self.stages[5].add(at - ended);
                }
            }
            Noted::Command { command, hpu, tenant, .. } => {
                let index = self.index(hpu);
                self.accounts.command(tenant.unwrap_or(self.running[index].tenant), command);
                if let Some(data) = command.data() {
                    self.activity.command(data);
                }
                match command {
                    Command::Send { .. } => self.commands.send += 1,
                    Command::ToHost { .. } => self.commands.to_host += 1,
                    Command::FromHost { .. } => self.commands.from_host += 1,
                    Command::HostDirect { .. } | Command::HostDirectRead { .. } => self.commands.host_direct += 1,
                    // Only cards inside a cluster issue these.
                    Command::Card { .. } => (),
                }
            }
            _ => {}
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.note(at, &what);
        }
    }
}
