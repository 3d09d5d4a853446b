// SPDX-License-Identifier: Apache-2.0
//! IPv4 networks and Ethernet addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Returns a locally administered address for an IPv4 address, so that each run has the same.
    pub fn of(address: Ipv4Addr) -> Mac {
        let [a, b, c, d] = address.octets();
        Mac([0x02, 0x50, a, b, c, d])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// IPv4 address with the length of its network's prefix, such as 10.0.0.1/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Address.
    pub address: Ipv4Addr,
    /// Bits of the prefix, 1 to 30: the network has room for two hosts.
    pub prefix: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let parts =
            text.split_once('/').and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)));
        let (address, prefix) = parts.ok_or("an IPv4 address and the bits of its network, as 10.0.0.1/24")?;
        if !(1..=30).contains(&prefix) {
            return Err("the network has 1 to 30 bits, as 10.0.0.1/24".to_owned());
        }
        let network = Network { address, prefix };
        let host = address.to_bits() & !network.mask().to_bits();
        if host == 0 || host == !network.mask().to_bits() {
            return Err(format!("{address} is the network's or its broadcast address, as 10.0.0.0 and 10.0.0.255"));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.prefix)
    }
}

impl Network {
    /// Returns the mask of the network.
    pub fn mask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX << (32 - self.prefix))
    }

    /// Returns the next address of the network, or the one before the last.
    pub fn neighbour(&self) -> Network {
        let bits = self.address.to_bits();
        let is_last = (bits + 1) & !self.mask().to_bits() == !self.mask().to_bits();
        let address = Ipv4Addr::from_bits(if is_last { bits - 1 } else { bits + 1 });
        Network { address, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_in_the_network() {
        let neighbour = |text: &str| text.parse::<Network>().unwrap().neighbour().to_string();
        assert_eq!(neighbour("10.0.0.1/24"), "10.0.0.2/24");
        assert_eq!(neighbour("10.0.0.254/24"), "10.0.0.253/24");
        assert_eq!(neighbour("192.168.7.9/30"), "192.168.7.10/30");
        assert_eq!(neighbour("192.168.7.10/30"), "192.168.7.9/30");
    }

    #[test]
    fn a_wrong_network_is_refused() {
        for text in ["10.0.0.1", "10.0.0/24", "10.0.0.1/31", "10.0.0.1/0", "10.0.0.0/24", "10.0.0.255/24", "x/24"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!(Mac::of(Ipv4Addr::new(10, 0, 0, 1)).to_string(), "02:50:0a:00:00:01");
    }
}
