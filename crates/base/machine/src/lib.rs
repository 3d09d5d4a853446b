// SPDX-License-Identifier: Apache-2.0
//! A machine as data: every parameter of the network, the cards and the hosts, read from one TOML file.
//!
//! A key carries its unit (`switch_ns`); decimals become exact integers. A file may start from another machine (`base =
//! "sc17-int"`) and state only the differences; `--set key=value` overrides files. No key has a default: a key that is
//! unknown, missing, out of range or contradicts another is a [`MachineError`] that names file and key. Keys renamed
//! since earlier versions still work, with a notice. Only `accelerator.contexts` follows another key: a change of
//! `accelerator.hpus` alone changes both.
//!
//! The comment beside a value names its source. A value without a source is an [`Assumption`] instead: a table
//! `[assumed."host.poll_ns"]` has its plausible range and the reason.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod accelerator;
mod assumed;
mod check;
mod comments;
mod host;
mod keys;
mod load;
mod network;
mod nic;
mod old;
mod problem;
pub mod pspin;
mod sharing;
mod switch;
mod systemverilog;
mod transport;
mod value;

pub use accelerator::{Accelerator, Hpu, Sc17, TimingKind};
pub use assumed::{Assumption, Plausible};
pub use host::{Dma, DmaEngines, DmaHandlers, DmaMessages, DmaNews, Host};
pub use load::{MachineError, Sourced};
pub use network::{Fabric, Injection, Network, NetworkModel, Reception, Routing, Shape, SwitchCards, Topology};
pub use nic::{MatchOverlaps, Nic, NicKind};
pub use pspin::Pspin;
pub use sharing::{Scheduler, Sharing};
pub use transport::{Dcqcn, Flow, Pfc, RateControl, Transport, Trim};

/// A whole machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name, as in `--machine NAME`: the file name without `.toml`.
    pub name: String,
    /// `description`: a one-line description.
    pub description: String,
    /// `[network]`
    pub network: Network,
    /// `[host]`
    pub host: Host,
    /// `[nic]`
    pub nic: Nic,
    /// `[dma]`
    pub dma: Dma,
    /// `[hpu]`
    pub hpu: Hpu,
    /// `[accelerator]`
    pub accelerator: Accelerator,
    /// Notices about renamed keys with their present names: one line for each file or option, for standard error.
    pub notices: Vec<String>,
    /// Keys of `[network.fabric]` that the user set although `network.model` is another model: one line with their
    /// locations and the remedy, for standard error. Keys of the file that sets `network.model` do not count: a machine
    /// may have a fabric ready for `--set network.model=fabric`.
    pub unused: Option<String>,
}
