// SPDX-License-Identifier: Apache-2.0
//! The ranks in the event loop, and [`World`], the crate's public interface.

use super::refusals::Refusals;
use std::sync::Arc;

use abi::portals::ReturnCode;
use cluster::{Death, Failures, HostTraffic, InternalError, Listener, Places, Ranks, RunProgress};
use machine::Machine;
use nic::{CardModel, Stats};
use sim::Time;
use sim::noise::Noise;
use sim::trace::Trace;

use super::computation::Computation;
use super::end::End;
use super::error::RunError;
use super::event::{Cluster, Event};
use super::failures::FailureError;
use super::poll_state::Change;
use super::processes::Processes;
use super::tenants::Tenant;
use ranks::{FreeRunReport, Job, Reply, Seating};

/// A job on a simulated machine.
pub struct World {
    cluster: Cluster,
    processes: Processes,
}

impl World {
    /// Creates a world for `job` on the machine of a card model. `listener` receives messages for the user as they occur.
    ///
    /// # Errors
    /// If the machine's network cannot have a node for each rank.
    pub fn new(model: CardModel, job: Job, trace: Trace, listener: Listener) -> Result<World, cluster::NetError> {
        World::with_rows(model, job, (trace, &[]), listener)
    }

    /// Creates a world like [`World::new`] whose ranks have these names in the timeline; none for "rank N".
    ///
    /// # Errors
    /// If the machine's network cannot have a node for each rank.
    pub fn with_rows(
        model: CardModel,
        job: Job,
        trace: (Trace, &[String]),
        listener: Listener,
    ) -> Result<World, cluster::NetError> {
        let uid = rustix::process::geteuid().as_raw();
        let places = Places::new(job.seating().nodes());
        let shares_nodes = places.are_shared();
        let mut cluster = Cluster::with_rows(model, places, uid, trace, listener)?;
        if let Some(since) = job.live_since() {
            cluster.set_live(since);
        }
        let mut world = World { cluster, processes: Processes::new(job) };
        if shares_nodes && world.seating().jobs() == 1 {
            world.processes.share_nodes(&mut world.cluster, uid);
        }
        Ok(world)
    }

    /// Separates the jobs of the run, given in the order of [`ranks::Seating`]. Each ends alone.
    pub fn separate(&mut self, tenants: Vec<Tenant>) {
        self.processes.separate(&mut self.cluster, tenants);
    }

    /// Returns the end of each job after [`World::separate`]; `None` for one that a limit of the whole run has ended.
    pub fn job_ends(&mut self) -> Vec<Option<End>> {
        self.processes.job_ends(&mut self.cluster)
    }

    /// Returns the program, the job and the rank in it of each place.
    pub fn seating(&self) -> &Seating {
        self.processes.job.seating()
    }

    /// Returns the name of a rank for the user, such as "rank 3".
    pub fn name(&self, rank: usize) -> String {
        self.cluster.name(rank)
    }

    /// Runs the job to its end, and kills the ranks that still run then.
    ///
    /// # Errors
    /// If a rank cannot be started, or a card reaches an impossible state.
    pub fn run(&mut self) -> Result<End, RunError> {
        let end = self.cluster.run(&mut self.processes);
        self.processes.job.kill();
        end
    }

    /// Returns the progress of [`World::run`], to be read by another thread.
    pub fn progress(&self) -> Arc<RunProgress> {
        self.cluster.progress()
    }

    /// Returns the present simulated time, or the time of a live run.
    pub fn now(&self) -> Time {
        self.cluster.now()
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        self.cluster.machine()
    }

    /// Returns true if the ranks live in real time.
    pub fn is_live(&self) -> bool {
        self.processes.job.live_since().is_some()
    }

    /// Returns the number of handled and pending events.
    pub fn events(&self) -> u64 {
        self.cluster.events()
    }

    /// Returns true if any rank has called the library or spoken PMI.
    pub fn has_heard_ranks(&self) -> bool {
        self.processes.job.has_spoken()
    }

    /// Returns the exit time of each rank; zero for a rank that did not exit by itself.
    pub fn rank_ends(&self) -> impl Iterator<Item = Time> {
        self.processes.ranks.iter().map(|rank| rank.end)
    }

    /// Adds noise to the CPUs, which delays their work.
    pub fn set_noise(&mut self, noise: &Noise) {
        self.cluster.set_noise(noise);
    }

    /// Returns the time by which noise lengthened the work of each rank's CPU.
    pub fn noise_delays(&self) -> impl Iterator<Item = Time> {
        self.cluster.noise_delays()
    }

    /// Sets the source of the CPU time between the calls of the ranks.
    pub fn set_computation(&mut self, computation: Computation) {
        self.processes.computation = computation;
    }

    /// Returns the source of the CPU time between the calls of the ranks.
    pub fn computation(&self) -> &Computation {
        &self.processes.computation
    }

    /// Schedules failures of ranks and cards, and losses of packets.
    ///
    /// # Errors
    /// If a rank or a link does not exist.
    pub fn set_failures(&mut self, failures: &Failures) -> Result<(), FailureError> {
        self.processes.set_failures(&mut self.cluster, failures)
    }

    /// Returns the failures that did not happen because the run ended earlier.
    pub fn survivors(&self) -> impl Iterator<Item = &Death> {
        self.processes.deaths.iter()
    }

    /// Returns the number of packets lost through each of the `losses` loss rules.
    pub fn lost_packets(&self, losses: usize) -> Vec<u64> {
        self.cluster.lost(losses)
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.processes.ranks.len()
    }

    /// Returns the names of the switches with handlers.
    pub fn switches(&self) -> &[String] {
        self.cluster.switches()
    }

    /// Returns packets and bytes of each link that carried a packet; `None` for a network model without links.
    pub fn traffic_of_links(&self) -> Option<Vec<cluster::LinkTraffic>> {
        self.cluster.traffic_of_links()
    }

    /// Returns the statistics of the cards: first those of the ranks, then those of switches.
    pub fn card_stats(&self) -> impl Iterator<Item = Stats> {
        self.cluster.stats()
    }

    /// Returns statistics of the network's links so far, with the `busiest` links of highest utilization at most;
    /// `None` for a network model without links.
    pub fn links(&self, busiest: usize) -> Option<cluster::LinkStatistics> {
        self.cluster.links(busiest)
    }

    /// Returns the time for which the sending port of each card was busy.
    pub fn sending_ports_busy(&self) -> impl Iterator<Item = Time> {
        self.cluster.sending_ports_busy()
    }

    /// Returns the memory traffic of each rank's CPU.
    pub fn host_traffic(&self) -> &[HostTraffic] {
        self.cluster.traffic()
    }

    /// Returns the warnings that occurred more than once, with their counts.
    pub fn repeated_warnings(&self) -> impl Iterator<Item = (&str, u64)> {
        self.cluster.messages().repeated_warnings()
    }

    /// Returns the threads that did not hold back simulated time, one per code position.
    pub fn free_runs(&self) -> &[FreeRunReport] {
        self.processes.job.free_runs()
    }

    /// Returns the refused calls.
    pub fn refusals(&self) -> &Refusals {
        &self.processes.refusals
    }

    /// Writes the timeline, if enabled.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_trace(self) -> std::io::Result<()> {
        self.cluster.finish_trace()
    }
}

impl Ranks for Processes {
    type Event = Event;
    type Memory = Job;
    type End = End;
    type Error = RunError;

    fn memory(&mut self) -> &mut Job {
        &mut self.job
    }

    fn rank_of(&self, event: &Event) -> usize {
        event.rank()
    }

    fn is_void(&self, event: &Event) -> bool {
        self.left_behind(event)
    }

    fn start(&mut self, cluster: &mut Cluster) -> Result<(), RunError> {
        Ok(self.start_ranks(cluster)?)
    }

    fn end(&mut self) -> Option<End> {
        self.end.clone()
    }

    fn act_between_events(&mut self, cluster: &mut Cluster) -> Result<bool, RunError> {
        if self.job.live_since().is_some() {
            return Ok(self.act_live(cluster));
        }
        self.release_long_parked(cluster);
        if cluster.next_event().is_some() {
            self.report_free_runs(cluster);
        }
        if let Some((rank, pause)) = self.job.poll() {
            self.paused(cluster, rank, pause);
        } else if let Some((rank, message)) = self.job.refusal() {
            self.end_job(cluster, rank, End::BadProgram { rank, message });
        } else if let Some((rank, pause)) = self.await_sleepers(cluster) {
            self.paused(cluster, rank, pause);
        } else {
            return Ok(self.die_when_due(cluster));
        }
        Ok(true)
    }

    fn handle(&mut self, event: Event, cluster: &mut Cluster) -> Result<(), RunError> {
        match event {
            Event::Resume(caller, reply) => self.resume(cluster, caller, *reply),
            Event::Accessed(caller, access) => match cluster.time_left(*access) {
                Some(delay) => cluster.schedule(delay, Event::Accessed(caller, access)),
                None => self.resume(cluster, caller, Reply::new(ReturnCode::Ok)),
            },
            Event::Call(call) => self.call(cluster, *call),
            Event::Start(rank) => self.start_rank(cluster, rank as usize)?,
            Event::Completed(rank) => self.completed(cluster, rank as usize),
            Event::Notice(rank) => {
                if let Some(pause) = self.notice(cluster.now(), rank as usize) {
                    self.note_change(cluster, rank as usize, Change::Other);
                    self.paused(cluster, rank as usize, pause);
                }
            }
            Event::Timeout(caller, _) => self.time_out(cluster, caller),
        }
        Ok(())
    }

    fn card_has_acted(&mut self, node: usize, cluster: &mut Cluster) -> Result<(), RunError> {
        self.sleep_monitor.end();
        self.take_notices(cluster, node);
        Ok(())
    }

    fn card_has_failed(&mut self, error: InternalError) -> RunError {
        error.into()
    }

    fn event_is_over(&mut self, cluster: &mut Cluster) -> Result<(), RunError> {
        self.notify_pollers(cluster);
        Ok(())
    }

    fn is_out_of_time(&mut self, rank: usize, cluster: &mut Cluster) -> Result<(), RunError> {
        // Events left behind by an ended rank may never happen.
        if self.ranks.get(rank).is_some_and(|rank| rank.status.is_none()) {
            self.end_job(cluster, rank, End::OutOfTime { rank });
        }
        Ok(())
    }

    fn no_event_is_left(&mut self, cluster: &mut Cluster) -> Result<Option<End>, RunError> {
        if self.release_parked(cluster) {
            return Ok(None);
        }
        if self.poll_to_the_limit(cluster) {
            return Ok(None);
        }
        if self.job.has_free_running() {
            self.report_free_runs(cluster);
            return Ok(None);
        }
        let again = self.ranks_to_reinspect(cluster);
        if again.is_empty() {
            if let Some((rank, pause)) = self.job.recheck_before_deadlock() {
                self.paused(cluster, rank, pause);
                return Ok(None);
            }
            return Ok(Some(self.final_end(cluster)));
        }
        for rank in again {
            // A previous rank's pause may have changed its state.
            if self.end.is_none() && self.job.polling(rank).is_some() {
                let pause = self.job.reinspect(rank);
                self.paused(cluster, rank, pause);
            }
        }
        Ok(None)
    }
}

impl Processes {
    /// Starts the ranks, each at the time of its job.
    ///
    /// # Errors
    /// If a program cannot be started.
    pub(super) fn start_ranks(&mut self, cluster: &mut Cluster) -> Result<(), ranks::JobError> {
        for rank in 0..self.ranks.len() {
            if self.ranks[rank].status.is_some() {
                continue; // a node without a process, or a job that a sibling has ended
            }
            match self.start_time(rank) {
                Time::ZERO => self.start_rank(cluster, rank)?,
                start => cluster.schedule(start, Event::Start(rank as u32)),
            }
            if self.end.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the end of each job; `None` for one that a limit of the whole run has ended.
    pub(super) fn job_ends(&self, cluster: &mut Cluster) -> Vec<Option<End>> {
        let end = |(job, early): (usize, &Option<End>)| {
            let members = self.job.seating().members(job);
            match early {
                Some(end) => Some(end.clone()),
                None if members.iter().all(|member| self.ranks[*member].status.is_some()) => Some(End::Finished),
                None if self.end.is_some() => None,
                None => Some(self.deadlock(cluster, members)),
            }
        };
        self.tenants.ends.iter().enumerate().map(end).collect()
    }

    /// Returns the end of a run without further events: all ranks ended, or a deadlock.
    fn final_end(&self, cluster: &mut Cluster) -> End {
        if self.ranks.iter().all(|rank| rank.status.is_some()) {
            return End::Finished;
        }
        if !self.tenants.list.is_empty() {
            return End::Finished; // the jobs' ends differ
        }
        self.deadlock(cluster, &(0..self.ranks.len()).collect::<Vec<_>>())
    }
}
