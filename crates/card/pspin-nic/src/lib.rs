//! The NIC around the PsPIN unit (PsPIN §III-A, §III-D, §III-E): what brings packets in, what takes packets out, and the host.
//!
//! * [`network`]: the match-action table that sorts packets into messages
//! * [`inbound`]: the inbound engine with its ring in L2, and what it does when there is no room
//! * [`host`]: host memory behind an IOMMU
//! * [`driver`]: the driver, which gives execution contexts their memories and keeps tenants apart
//! * [`system`]: the unit with all of these, in one loop
//! * [`program`]: programs, and how the unit gets them
//! * [`watch`]: the observer that measures; [`timeline`]: the timeline that it draws; [`report`]: what a run has shown

pub mod driver;
pub mod host;
pub mod inbound;
pub mod network;
pub mod program;
pub mod report;
pub mod system;
pub mod timeline;
pub mod watch;
