// SPDX-License-Identifier: Apache-2.0
//! TAP interface: the kernel's end of a cable whose other end is this process. It vanishes with the process.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::address::{Mac, Network};
use crate::port::{Port, PortError};
use crate::syscall::{control, ioctl, opened, read, request, write};

/// Device that creates TAP interfaces.
const DEVICE: &str = "/dev/net/tun";

/// TAP interface.
pub struct Tap {
    name: String,
    fd: OwnedFd,
}

impl Tap {
    /// Creates the interface `name`, or attaches to a persistent one of the user (`ip tuntap add`).
    ///
    /// # Errors
    /// [`PortError`] without rights, without the device, or when another process has the interface.
    pub fn create(name: &str) -> Result<Tap, PortError> {
        let path = std::ffi::CString::new(DEVICE).expect("no zero byte");
        // SAFETY: the path ends with a zero byte.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC) };
        let fd = opened(fd).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV) => {
                let remedy = "load the kernel's module (modprobe tun), or use --socket, which needs no interface";
                PortError::new(DEVICE, format!("cannot open it: {error}"), remedy)
            }
            _ => PortError::of(DEVICE, "open it", &error),
        })?;
        let mut wanted = request(name).map_err(|error| PortError::new(name, error, ""))?;
        wanted.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        ioctl(fd.as_fd(), libc::TUNSETIFF as libc::c_ulong, &mut wanted).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EBUSY) => {
                    let remedy = format!("end that process, or choose another name (ip link show {name})");
                    PortError::new(name, "another process has this interface, or it is no TAP", remedy)
                }
                Some(libc::EINVAL) => {
                    PortError::new(name, "an interface of this name exists and is no TAP", "choose another name")
                }
                _ => PortError::of(name, "create the TAP interface", &error),
            }
        })?;
        Ok(Tap { name: name.to_owned(), fd })
    }

    /// Gives the kernel's end of the cable an IPv4 address, and an Ethernet address if given.
    ///
    /// # Errors
    /// [`PortError`] without rights, or for an address in use.
    pub fn set_address(&self, network: Network, mac: Option<Mac>) -> Result<(), PortError> {
        let error = |step: &'static str| move |error| PortError::of(&self.name, step, &error);
        let socket = control().map_err(error("open a socket"))?;
        if let Some(Mac(bytes)) = mac {
            let mut wanted = request(&self.name).map_err(error("name it"))?;
            // SAFETY: an all-zero address is valid.
            let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
            address.sa_family = libc::ARPHRD_ETHER;
            address.sa_data.iter_mut().zip(bytes).for_each(|(to, from)| *to = from.cast_signed());
            wanted.ifr_ifru.ifru_hwaddr = address;
            ioctl(socket.as_fd(), libc::SIOCSIFHWADDR as libc::c_ulong, &mut wanted)
                .map_err(error("set its Ethernet address"))?;
        }
        for (code, address, step) in [
            (libc::SIOCSIFADDR, network.address, "set its address"),
            (libc::SIOCSIFNETMASK, network.mask(), "set the mask of its network"),
        ] {
            let mut wanted = request(&self.name).map_err(error("name it"))?;
            wanted.ifr_ifru.ifru_addr = ipv4(address);
            ioctl(socket.as_fd(), code as libc::c_ulong, &mut wanted).map_err(error(step))?;
        }
        Ok(())
    }

    /// Sets the interface up.
    ///
    /// # Errors
    /// [`PortError`] without rights.
    pub fn set_up(&self) -> Result<(), PortError> {
        let error = |error| PortError::of(&self.name, "set it up", &error);
        let socket = control().map_err(error)?;
        let mut flags = request(&self.name).map_err(error)?;
        ioctl(socket.as_fd(), libc::SIOCGIFFLAGS as libc::c_ulong, &mut flags).map_err(error)?;
        // SAFETY: the request for flags has filled this field.
        let known = unsafe { flags.ifr_ifru.ifru_flags };
        flags.ifr_ifru.ifru_flags = known | libc::IFF_UP as libc::c_short;
        ioctl(socket.as_fd(), libc::SIOCSIFFLAGS as libc::c_ulong, &mut flags).map_err(error)
    }
}

/// Returns an IPv4 address as the kernel's structure.
fn ipv4(address: Ipv4Addr) -> libc::sockaddr {
    let mut bytes = [0_u8; 14];
    // `sockaddr_in` has the port before the address.
    bytes[2..6].copy_from_slice(&address.octets());
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: bytes.map(u8::cast_signed) }
}

impl Port for Tap {
    fn name(&self) -> &str {
        &self.name
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        read(self.fd.as_fd(), buffer)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        write(self.fd.as_fd(), frame)
    }

    fn mac(&self) -> Option<Mac> {
        None
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}
