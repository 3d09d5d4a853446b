// SPDX-License-Identifier: Apache-2.0
//! BPF program on the ingress of an interface that drops all frames after AF_PACKET sockets have received them. The
//! kernel's stack then sees none of them; the card passes on those of the host.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::port::PortError;
use crate::syscall::opened;

/// `BPF_PROG_LOAD` and `BPF_LINK_CREATE` of bpf(2).
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
/// `BPF_PROG_TYPE_SCHED_CLS`, and the attachment `BPF_TCX_INGRESS` (Linux 6.6).
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;

/// `union bpf_attr` for the load of a program, up to its flags.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel: u32,
    flags: u32,
}

/// `union bpf_attr` for a link; the rest is for other attachments.
#[repr(C)]
#[derive(Default)]
struct Link {
    program: u32,
    interface: u32,
    attachment: u32,
    flags: u32,
    rest: [u64; 4],
}

/// Program in place; dropping it removes the program.
pub struct DropProgram {
    _link: OwnedFd,
}

impl DropProgram {
    /// Attaches the program to the interface with this number.
    ///
    /// # Errors
    /// [`PortError`] without rights, or on a kernel before Linux 6.6.
    pub fn attach(name: &str, index: libc::c_int) -> Result<DropProgram, PortError> {
        let attach = || {
            // r0 = TC_ACT_SHOT (2); exit
            let code: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];
            let license = c"Apache-2.0";
            let load = Load {
                kind: SCHED_CLS,
                instructions: code.len() as u32,
                code: code.as_ptr() as u64,
                license: license.as_ptr() as u64,
                ..Load::default()
            };
            let program = bpf(PROG_LOAD, &load)?;
            let interface = index.cast_unsigned();
            bpf(
                LINK_CREATE,
                &Link { program: program.as_raw_fd() as u32, interface, attachment: TCX_INGRESS, ..Link::default() },
            )
        };
        let link = attach().map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOSYS) => {
                let remedy = "use Linux 6.6 or later, or leave out --host: the interface's stack then sees all frames";
                PortError::new(name, format!("cannot hide frames from the kernel's stack: {error}"), remedy)
            }
            _ => PortError::of(name, "hide frames from the kernel's stack (BPF)", &error),
        })?;
        Ok(DropProgram { _link: link })
    }
}

/// Calls bpf(2), whose result is a file.
fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    let (attributes, size) = (std::ptr::from_ref(attributes), size_of::<T>());
    // SAFETY: the attributes have this size, and the pointers in them are valid during the call.
    opened(unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) } as libc::c_int)
}
