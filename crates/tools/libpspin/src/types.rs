// SPDX-License-Identifier: Apache-2.0
//! Structures of `pspinsim.h` and `spin.h`, and sizes of `spin_hw_conf.h`.

use std::ffi::c_char;

/// `NUM_CLUSTERS`: the number of clusters in `spin_ec_t`.
pub const CLUSTERS: usize = 4;
/// Size that `spin_find_handler_by_name` returns for each handler.
pub const HANDLER_BYTES: u32 = 4_096;
/// Bytes of the header of an RDMA packet.
pub const RDMA_HEADER: usize = 32;
/// Alignment of callbacks: accesses to host memory are split so that no part crosses a multiple of this.
pub const BEAT: usize = 64;

/// `spin_ec_t`: execution context of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, packed)]
pub struct Context {
    pub handler_mem_addr: u32,
    pub handler_mem_size: u32,
    pub host_mem_addr: u64,
    pub host_mem_size: u32,
    pub hh_addr: u32,
    pub hh_size: u32,
    pub ph_addr: u32,
    pub ph_size: u32,
    pub th_addr: u32,
    pub th_size: u32,
    pub scratchpad_addr: [u32; CLUSTERS],
    pub scratchpad_size: [u32; CLUSTERS],
}

/// `ni_conf_t`
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct InboundConf {
    pub axi_aw_buffer: u32,
    pub axi_w_buffer: u32,
    pub axi_b_buffer: u32,
}

/// `no_conf_t`
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct OutboundConf {
    pub axi_ar_buffer: u32,
    pub axi_r_buffer: u32,
    pub network_g: f64,
    pub max_pkt_size: u32,
    pub max_network_queue_len: u32,
}

/// `pcie_slv_conf_t`
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct HostConf {
    pub axi_aw_buffer: u32,
    pub axi_w_buffer: u32,
    pub axi_ar_buffer: u32,
    pub axi_b_buffer: u32,
    pub axi_r_buffer: u32,
    pub pcie_l: u32,
    pub pcie_g: f64,
}

/// `pspin_conf_t`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Conf {
    pub slm_files_path: *const c_char,
    pub ni_conf: InboundConf,
    pub no_conf: OutboundConf,
    pub pcie_slv_conf: HostConf,
}

impl Default for Conf {
    fn default() -> Conf {
        Conf {
            slm_files_path: std::ptr::null(),
            ni_conf: InboundConf { axi_aw_buffer: 32, axi_w_buffer: 32, axi_b_buffer: 32 },
            no_conf: OutboundConf {
                axi_ar_buffer: 32,
                axi_r_buffer: 32,
                network_g: 0.0,
                max_pkt_size: 2_048,
                max_network_queue_len: 32,
            },
            pcie_slv_conf: HostConf {
                axi_aw_buffer: 32,
                axi_w_buffer: 32,
                axi_ar_buffer: 32,
                axi_b_buffer: 32,
                axi_r_buffer: 32,
                pcie_l: 2,
                pcie_g: 0.014_782,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_large_as_those_of_the_headers() {
        assert_eq!((size_of::<Context>(), align_of::<Context>()), (76, 1));
        assert_eq!((size_of::<InboundConf>(), size_of::<OutboundConf>(), size_of::<HostConf>()), (12, 24, 32));
        assert_eq!(size_of::<Conf>(), 80);
    }
}
