// SPDX-License-Identifier: Apache-2.0
//! Charges the CPU time that threads use between their calls (`--compute`).

use cluster::Work;
use sim::Time;

use super::end::End;
use super::event::{Cluster, Event};
use super::processes::Processes;
use ranks::Call;

impl Processes {
    /// Returns a call that arrived with the last pause of a rank and is to be made now.
    pub fn pending(&mut self, cluster: &mut Cluster, rank: usize) -> Option<Call> {
        while self.end.is_none() {
            let call = self.job.pending(rank)?;
            if let Some(call) = self.charge_computation(cluster, call) {
                return Some(call);
            }
        }
        None
    }

    /// Charges the CPU time that a thread used since its last call (`--compute`), and schedules its call after that
    /// time. Returns the call if it is to be made now.
    pub fn charge_computation(&mut self, cluster: &mut Cluster, mut call: Call) -> Option<Call> {
        match self.computation.next(call.caller.rank as usize, call.elapsed_ns) {
            Ok(elapsed) => call.elapsed_ns = elapsed,
            Err(message) => {
                self.end = Some(End::BadProgram { rank: call.caller.rank as usize, message });
                return None;
            }
        }
        if call.elapsed_ns == 0 || self.is_loop_of_polls(&call) {
            return Some(call);
        }
        let scale = self.computation.scale(self.job.compute_scale_milli());
        let charged = u128::from(call.elapsed_ns) * u128::from(scale) / 1000;
        let span = Time::from_ps(charged.try_into().unwrap_or(u64::MAX));
        let rank = call.caller.rank as usize;
        self.ranks[rank].poll_state.call(call.caller.slot, false);
        let delay = cluster.charge(rank, [Work::compute(span)]);
        cluster.schedule(delay, Event::Call(Box::new(call)));
        None
    }
}
