// SPDX-License-Identifier: Apache-2.0
//! Transport of a fabric: acknowledgements, pause frames, trimmed packets, and rate control by marked packets. All of
//! it is off by default, and every key is optional.

use sim::Time;

/// Keys of `[network.fabric]` for acknowledgements and rate control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// `ack_bytes`: size of the packet that acknowledges each data packet; 0 for acknowledgements that occupy no link.
    pub ack: u32,
    /// `rate_control`: rate control of senders whose packets meet long queues.
    pub rate_control: RateControl,
    /// `[network.fabric.pfc]`, with the flow control "pfc".
    pub pfc: Pfc,
    /// `[network.fabric.trim]`, with the flow control "trim".
    pub trim: Trim,
    /// `[network.fabric.dcqcn]`, with the rate control "dcqcn".
    pub dcqcn: Dcqcn,
}

impl Transport {
    /// Default values of optional keys.
    pub const USUAL: Transport = Transport {
        ack: 0,
        rate_control: RateControl::None,
        pfc: Pfc { pause: None, resume: None },
        trim: Trim { header: 64, window: 30 },
        dcqcn: Dcqcn::PAPER,
    };

    /// Returns true if a key of one of the tables matters with these kinds of flow and rate control.
    pub(crate) fn uses(&self, flow: Flow, key: &str) -> bool {
        match key.split('.').nth(2) {
            Some("ack_bytes") => self.ack > 0,
            Some("pfc") => flow == Flow::Pfc,
            Some("trim") => flow == Flow::Trim,
            _ => self.rate_control == RateControl::Dcqcn,
        }
    }
}

/// Flow control of full buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// "credits": packets wait for credit, and congestion spreads back to the senders.
    Credits,
    /// "drop": packets are lost, and their hosts retransmit them.
    Drop,
    /// "pfc": a switch whose buffer fills pauses the sender of the link (IEEE 802.1Qbb); no packet is lost.
    Pfc,
    /// "trim": packets lose their data; their headers overtake other packets to the receiver, which pulls the data
    /// again (NDP).
    Trim,
}

/// Rate control of senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// "none": a sender uses the full rate of its link.
    None,
    /// "dcqcn": switches mark packets (ECN), receivers notify the senders, and senders adapt the rate of each flow.
    Dcqcn,
}

/// Pause frames (IEEE 802.1Qbb). The standard leaves both thresholds to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// `pause_bytes`: bytes from one virtual channel of a link in a switch beyond which the switch pauses that channel.
    /// An assumption: the maximum that the buffer allows without loss; any smaller value is possible.
    pub pause: Option<u64>,
    /// `resume_bytes`: bytes at which the channel resumes. An assumption: two packets less than `pause_bytes`; from 0
    /// to `pause_bytes` − 1.
    pub resume: Option<u64>,
}

/// Trimmed packets (Handley et al.: Re-architecting datacenter networks and stacks for low latency and high
/// performance, SIGCOMM 2017: NDP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// `header_bytes`: size of a packet without its data, and of NACK and pull packets. NDP §3.1: headers of 64 bytes.
    pub header: u32,
    /// `window_packets`: packets that a sender may send to a receiver before it is pulled. NDP derives it from the
    /// network's bandwidth and round trip; an assumption: 30, from 1 to 1,000.
    pub window: u32,
}

/// DCQCN (Zhu et al.: Congestion control for large-scale RDMA deployments, SIGCOMM 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dcqcn {
    /// `mark_from_bytes` (K_min): minimum queue length at which packets are marked.
    pub mark_from: u64,
    /// `mark_all_bytes` (K_max): queue length from which all packets are marked.
    pub mark_all: u64,
    /// `mark_percent` (P_max): share of packets marked just below K_max; it grows linearly from K_min.
    pub mark_percent: u32,
    /// `notify_bytes`: size of a notification (CNP). The paper gives none; an assumption: 64, from 1 to 4,096.
    pub notify: u32,
    /// `notify_ns` (N): minimum time between two notifications of a flow.
    pub notify_gap: Time,
    /// `gain_inverse` (1/g): time constant of the congestion estimate α, in updates.
    pub gain_inverse: u32,
    /// `alpha_ns` (K): time without notifications after which α decreases.
    pub alpha_timer: Time,
    /// `timer_ns` (T): time between two increases of the rate.
    pub timer: Time,
    /// `counter_bytes` (B): bytes between two increases of the rate.
    pub counter: u64,
    /// `recovery_steps` (F): number of increases, by timer or by bytes, that only recover the former rate.
    pub recovery: u32,
    /// `additive_mbit_per_s` (R_AI): rate increment after recovery.
    pub additive_mbit: u32,
    /// `hyper_mbit_per_s` (R_HAI): rate increment once both timer and bytes exceed F. The paper names the phase and no
    /// number; an assumption: ten times R_AI, as in QCN (IEEE 802.1Qau), from R_AI to a hundred times R_AI.
    pub hyper_mbit: u32,
    /// `least_mbit_per_s`: minimum rate. The paper gives none; an assumption: R_AI, from 1 to 1,000.
    pub least_mbit: u32,
}

impl Dcqcn {
    /// The paper's parameters (§3.1, §3.3 and §5.2, Fig. 14), for links of 40 Gbit/s.
    pub const PAPER: Dcqcn = Dcqcn {
        mark_from: 5_000,
        mark_all: 200_000,
        mark_percent: 1,
        notify: 64,
        notify_gap: Time::from_ns(50_000),
        gain_inverse: 256,
        alpha_timer: Time::from_ns(55_000),
        timer: Time::from_ns(55_000),
        counter: 10_000_000,
        recovery: 5,
        additive_mbit: 40,
        hyper_mbit: 400,
        least_mbit: 40,
    };
}
