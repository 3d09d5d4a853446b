// SPDX-License-Identifier: Apache-2.0
//! Ethernet frames of real interfaces.
//!
//! * [`port`]: the trait of all sources and sinks of frames
//! * [`address`]: IPv4 networks and Ethernet addresses
//! * [`tap`]: an interface that this process creates; [`packet`]: an interface that exists (AF_PACKET);
//!   [`socket`]: a Unix socket, which needs no rights
//! * [`drop_program`]: a program of the kernel that hides arriving frames from its stack
//! * [`signals`]: SIGINT and SIGTERM as a file, for an event loop

#[cfg(not(target_os = "linux"))]
compile_error!("live interfaces need Linux");

pub mod address;
pub mod drop_program;
pub mod packet;
pub mod port;
pub mod signals;
pub mod socket;
mod syscall;
pub mod tap;
