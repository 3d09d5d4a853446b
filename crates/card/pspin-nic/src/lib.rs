// SPDX-License-Identifier: Apache-2.0
//! The NIC around the PsPIN unit (PsPIN §III-A, §III-D, §III-E): inbound path, outbound path, and host.
//!
//! * [`network`]: the match-action table that sorts packets into messages
//! * [`inbound`]: the inbound engine with its ring in L2, and its behaviour when full
//! * [`host`]: host memory behind an IOMMU
//! * [`driver`]: the driver, which allocates the memories of execution contexts and isolates tenants
//! * [`system`]: the unit with all of these, in one loop
//! * [`energy`]: energy of a run by activity and the paper's power
//! * [`program`]: programs, and their loading into the unit
//! * [`watch`]: the measuring observer; [`timeline`]: the timeline that it draws; [`report`]: results of a run;
//!   [`tenants`]: resources of each tenant

pub mod driver;
pub mod energy;
pub mod host;
pub mod inbound;
pub mod network;
pub mod program;
pub mod report;
pub mod system;
pub mod tenants;
pub mod timeline;
pub mod watch;
