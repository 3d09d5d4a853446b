// SPDX-License-Identifier: Apache-2.0
//! Frames of an interface that exists, by AF_PACKET (packet(7)).

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use packets::checksum;
use packets::frame::Link;

use crate::address::Mac;
use crate::port::{Port, PortError};
use crate::syscall::{check, ioctl, none_waits, opened, request, write};

/// AF_PACKET socket on one interface. The kernel's stack gets the same frames, unless [`crate::drop_program`] hides them.
pub struct PacketSocket {
    name: String,
    fd: OwnedFd,
    index: libc::c_int,
    mac: Mac,
    has_address: bool,
}

impl PacketSocket {
    /// Opens a socket for all frames that arrive at the interface.
    ///
    /// # Errors
    /// [`PortError`] without rights, without such an interface, or when it is down.
    pub fn open(name: &str) -> Result<PacketSocket, PortError> {
        let error = |step: &'static str| move |error| PortError::of(name, step, &error);
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: no frame of another interface arrives before the bind.
        // SAFETY: no pointers.
        let fd = opened(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }).map_err(error("open a packet socket"))?;
        let mut wanted = request(name).map_err(error("name it"))?;
        ioctl(fd.as_fd(), libc::SIOCGIFINDEX as libc::c_ulong, &mut wanted)
            .map_err(|error| PortError::new(name, format!("no such interface: {error}"), "ip link shows all"))?;
        // SAFETY: the request has filled this field.
        let index = unsafe { wanted.ifr_ifru.ifru_ifindex };
        ioctl(fd.as_fd(), libc::SIOCGIFFLAGS as libc::c_ulong, &mut wanted).map_err(error("read its flags"))?;
        // SAFETY: the request has filled this field.
        if unsafe { wanted.ifr_ifru.ifru_flags } & libc::IFF_UP as libc::c_short == 0 {
            return Err(PortError::new(name, "the interface is down", format!("ip link set {name} up")));
        }
        ioctl(fd.as_fd(), libc::SIOCGIFHWADDR as libc::c_ulong, &mut wanted).map_err(error("read its address"))?;
        // SAFETY: the request has filled this field.
        let hardware = unsafe { wanted.ifr_ifru.ifru_hwaddr };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            return Err(PortError::new(name, "the interface has no Ethernet frames", "choose an Ethernet interface"));
        }
        let mut mac = [0; 6];
        mac.iter_mut().zip(hardware.sa_data).for_each(|(to, from)| *to = from.cast_unsigned());
        let has_address = ioctl(
            crate::syscall::control().map_err(error("open a socket"))?.as_fd(),
            libc::SIOCGIFADDR as libc::c_ulong,
            &mut wanted,
        )
        .is_ok();
        let one: libc::c_int = 1;
        set(&fd, libc::PACKET_IGNORE_OUTGOING, &one).map_err(error("leave out the frames that it sends"))?;
        set(&fd, libc::PACKET_AUXDATA, &one).map_err(error("ask for the state of checksums"))?;
        // SAFETY: an all-zero address is valid.
        let mut place: libc::sockaddr_ll = unsafe { zeroed() };
        (place.sll_family, place.sll_protocol, place.sll_ifindex) = (libc::AF_PACKET as u16, protocol, index);
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address has this length.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const place).cast(), length) }).map_err(error("bind to it"))?;
        Ok(PacketSocket { name: name.to_owned(), fd, index, mac: Mac(mac), has_address })
    }

    /// Returns the number of the interface.
    pub fn index(&self) -> libc::c_int {
        self.index
    }

    /// Returns true if the kernel's stack has an IPv4 address on the interface, and so answers, too.
    pub fn has_address(&self) -> bool {
        self.has_address
    }
}

/// Type of a frame for another Ethernet address (packet(7)), which a shared network delivers, too.
const PACKET_OTHERHOST: u8 = 3;

/// Sets an option of a packet socket.
fn set<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the value has this length.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_PACKET, option, value, length) }).map(drop)
}

impl Port for PacketSocket {
    fn name(&self) -> &str {
        &self.name
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // The kernel aligns control messages to the size of a word.
        let mut control = [0_u64; 16];
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: an all-zero header and an all-zero address are valid.
        let (mut header, mut from): (libc::msghdr, libc::sockaddr_ll) = unsafe { (zeroed(), zeroed()) };
        (header.msg_name, header.msg_namelen) = ((&raw mut from).cast(), size_of_val(&from) as libc::socklen_t);
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
        // SAFETY: the header points to a buffer, an address and room for control messages, with their lengths.
        let count = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, 0) };
        let Ok(count) = usize::try_from(count) else { return none_waits(io::Error::last_os_error()) };
        if from.sll_pkttype == PACKET_OTHERHOST {
            return Ok(Some(0));
        }
        // SAFETY: the kernel has filled the header; its functions stay within the control messages.
        let status = unsafe {
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            loop {
                if message.is_null() {
                    break 0;
                }
                if (*message).cmsg_level == libc::SOL_PACKET && (*message).cmsg_type == libc::PACKET_AUXDATA {
                    break libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned().tp_status;
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        };
        // A local sender leaves the checksum to its hardware, which a virtual interface does not have.
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            // Frames that are not IP have none.
            _ = checksum::renew(Link::Ethernet, &mut buffer[..count]);
        }
        Ok(Some(count))
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        write(self.fd.as_fd(), frame)
    }

    fn mac(&self) -> Option<Mac> {
        Some(self.mac)
    }
}
