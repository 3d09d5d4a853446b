// SPDX-License-Identifier: Apache-2.0
//! Properties and ends of the jobs of a run with several.

use sim::Time;

use super::end::End;

/// Properties of a job among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Name, for messages and reports.
    pub name: String,
    /// Portals user id of its processes.
    pub user: u32,
    /// Simulated time at which its ranks start.
    pub start: Time,
    /// Share of the cards' resources, relative to those of other jobs.
    pub weight: u32,
    /// Priority of its handlers on shared cards with a strict scheduler; higher first.
    pub priority: u8,
}

/// Jobs of a run with several.
#[derive(Default)]
pub(super) struct Tenants {
    pub(super) list: Vec<Tenant>,
    /// Ends of the jobs that have ended early.
    pub(super) ends: Vec<Option<End>>,
}
