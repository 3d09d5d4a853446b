// SPDX-License-Identifier: Apache-2.0
//! Parameters of a fabric.

use sim::{Time, TimePerByte};

use crate::NetError;

pub use machine::{Flow, RateControl, Routing, Transport};

/// Parameters of links and switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Inverse bandwidth of a link (G).
    pub gap_per_byte: TimePerByte,
    /// Latency of a link.
    pub wire: Time,
    /// Latency of a packet's head through a switch.
    pub switch: Time,
    /// Maximum packet size in bytes.
    pub mtu: u32,
    /// Minimum time between the starts of two messages of a host, in addition to the bytes after the first (g).
    pub gap: Time,
    /// Size of a buffer in bytes: one for each virtual channel of a link with credits and pause frames, otherwise one
    /// for each output port of a switch.
    pub buffer: u64,
    /// Flow control of full buffers.
    pub flow: Flow,
    /// Choice among equally short paths.
    pub routing: Routing,
    /// Seed of the path hash.
    pub seed: u64,
    /// Acknowledgements and rate control.
    pub transport: Transport,
}

impl Parameters {
    /// Returns the links and switches of a machine. A machine without a fabric gets [the usual](machine::Fabric::USUAL)
    /// buffers.
    pub fn of_machine(network: &machine::Network) -> Parameters {
        let fabric = network.fabric.as_ref().unwrap_or(&machine::Fabric::USUAL);
        Parameters {
            gap_per_byte: network.gap_per_byte,
            wire: network.wire,
            switch: network.switch,
            mtu: network.mtu,
            gap: network.gap,
            buffer: fabric.buffer,
            flow: fabric.flow,
            routing: fabric.routing,
            seed: fabric.seed,
            transport: fabric.transport.clone(),
        }
    }

    /// Maximum latency.
    pub(crate) const LONGEST: Time = Time::from_ns(1_000_000_000);

    /// Checks the parameters.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub(crate) fn check(&self) -> Result<(), NetError> {
        let wrong = |parameter, what: String| Err(NetError::Parameter { parameter, what });
        if self.mtu == 0 || self.mtu > 1 << 30 {
            return wrong("mtu", format!("must be 1 to 2^30 bytes, is {}", self.mtu));
        }
        if self.buffer < u64::from(self.mtu) {
            return wrong("buffer", format!("must hold a packet of {} bytes (mtu), is {}", self.mtu, self.buffer));
        }
        for (parameter, time) in [("link-latency", self.wire), ("switch-latency", self.switch), ("g", self.gap)] {
            if time > Self::LONGEST {
                return wrong(parameter, format!("must be at most a second, is {time}"));
            }
        }
        if self.gap_per_byte > TimePerByte::from_fs_per_byte(1_000_000_000_000) {
            return wrong("G", "must be at most 1000000 ns a byte (1 kB/s)".into());
        }
        self.check_transport()
    }

    fn check_transport(&self) -> Result<(), NetError> {
        let wrong = |parameter, what: String| Err(NetError::Parameter { parameter, what });
        let Transport { ack, rate_control, pfc, trim, dcqcn } = &self.transport;
        let usual = Transport::USUAL;
        let tables = [
            ("network.fabric.pfc", *pfc != usual.pfc && self.flow != Flow::Pfc, "network.fabric.flow = \"pfc\""),
            ("network.fabric.trim", *trim != usual.trim && self.flow != Flow::Trim, "network.fabric.flow = \"trim\""),
            (
                "network.fabric.dcqcn",
                *dcqcn != usual.dcqcn && *rate_control != RateControl::Dcqcn,
                "network.fabric.rate_control = \"dcqcn\"",
            ),
        ];
        if let Some((table, _, owner)) = tables.into_iter().find(|(_, decides_nothing, _)| *decides_nothing) {
            return wrong(table, format!("decides nothing without {owner}"));
        }
        let sizes = [
            ("network.fabric.ack_bytes", *ack, true),
            ("network.fabric.trim.header_bytes", trim.header, self.flow == Flow::Trim),
            ("network.fabric.dcqcn.notify_bytes", dcqcn.notify, *rate_control == RateControl::Dcqcn),
        ];
        for (parameter, bytes, is_used) in sizes {
            if is_used && bytes > self.mtu {
                return wrong(parameter, format!("must be at most a packet of {} bytes (mtu), is {bytes}", self.mtu));
            }
        }
        if *rate_control == RateControl::Dcqcn {
            if self.flow == Flow::Trim {
                let what = "\"dcqcn\" is not for network.fabric.flow = \"trim\", in which receivers set the pace";
                return wrong("network.fabric.rate_control", what.into());
            }
            if self.gap_per_byte == TimePerByte::INFINITE {
                return wrong(
                    "G",
                    "must be more than 0 for the rates of network.fabric.rate_control = \"dcqcn\"".into(),
                );
            }
        }
        Ok(())
    }

    /// Returns true if packets wait in queues until their link is free, as pause frames and trimming require; otherwise
    /// their times are assigned at arrival.
    pub(crate) fn has_queues(&self) -> bool {
        matches!(self.flow, Flow::Pfc | Flow::Trim)
    }

    /// Returns true if the arrival of a packet's last byte is an event.
    pub(crate) fn has_answers(&self) -> bool {
        let Transport { ack, rate_control, .. } = &self.transport;
        *ack > 0 || *rate_control == RateControl::Dcqcn || self.flow == Flow::Trim
    }
}
