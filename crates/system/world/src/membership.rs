// SPDX-License-Identifier: Apache-2.0
//! Partitions of the jobs, and the division of cards that several processes share.
//!
//! On a shared card, jobs divide the HPU memory and the time of the HPUs by their weights, and the processes of a job divide
//! its part of the memory equally (sPIN §2: "resources are accounted for on a per-application basis"). In a run without
//! jobs, the ranks of a node are tenants of equal weight.

use std::collections::BTreeMap;
use std::rc::Rc;

use cluster::{Member, Partition, Quota, Share};
use ranks::Seating;

use super::tenants::Tenant;

/// Place and job of a process, and its membership in the partition of the job.
pub struct Membership {
    pub place: usize,
    pub job: usize,
    pub member: Member,
}

/// Returns the membership of each process; `tenants` are the jobs, if the run has several.
pub fn memberships(seating: &Seating, tenants: &[Tenant]) -> Vec<Membership> {
    let nodes = seating.nodes();
    let mut beside: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for place in (0..seating.places()).filter(|place| seating.at(*place).is_some()) {
        beside.entry(nodes[place]).or_default().push(place);
    }
    let network = nodes.iter().max().map_or(0, |last| *last as u32 + 1);
    let mut all = Vec::new();
    for job in 0..seating.jobs() {
        let (places, nids) = (seating.members(job), seating.nodes_of_job(job));
        let mut processes = vec![Vec::new(); nids.iter().max().map_or(0, |last| *last as usize + 1)];
        for (place, nid) in places.iter().zip(&nids) {
            processes[*nid as usize].push(*place as u32);
        }
        let partition = Rc::new(Partition::new(processes, network));
        for (&place, nid) in places.iter().zip(nids) {
            let mut member = Member::alone(&partition, nid);
            let others = &beside[&nodes[place]];
            if others.len() > 1 {
                member.index = others.iter().position(|other| *other == place).unwrap_or_default() as u32;
                (member.tenant, member.quota) = match tenants {
                    [] => {
                        let share = Share { weight: 1, priority: 0 };
                        (Some((member.index, share)), Quota { share: 1, of: others.len() as u64 })
                    }
                    _ => {
                        let jobs = others.iter().map(|other| seating.job_of(*other));
                        division(job, tenants, &jobs.collect::<Vec<_>>())
                    }
                };
            }
            all.push(Membership { place, job, member });
        }
    }
    all
}

/// Returns tenant and quota of a process on a card with processes of these jobs.
fn division(job: usize, tenants: &[Tenant], jobs: &[usize]) -> (Option<(u32, Share)>, Quota) {
    let Tenant { weight, priority, .. } = tenants[job];
    let mut distinct = jobs.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let sum = distinct.into_iter().map(|job| u64::from(tenants[job].weight)).sum::<u64>();
    let own = jobs.iter().filter(|other| **other == job).count() as u64;
    (Some((job as u32, Share { weight, priority })), Quota { share: weight.into(), of: sum * own })
}

#[cfg(test)]
mod tests {
    use sim::Time;

    use super::*;

    #[test]
    fn jobs_divide_a_card_by_weight_and_their_processes_equally() {
        let tenant = |weight| Tenant { name: String::new(), user: 0, start: Time::ZERO, weight, priority: 2 };
        let tenants = [tenant(3), tenant(1), tenant(9)];
        let of = |job| division(job, &tenants, &[0, 1, 0]);
        assert_eq!(of(0), (Some((0, Share { weight: 3, priority: 2 })), Quota { share: 3, of: 8 }));
        assert_eq!(of(1), (Some((1, Share { weight: 1, priority: 2 })), Quota { share: 1, of: 4 }));
    }
}
