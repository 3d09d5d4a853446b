// SPDX-License-Identifier: Apache-2.0
//! Source and sink of Ethernet frames.

use std::io;
use std::os::fd::BorrowedFd;

use thiserror::Error;

use crate::address::Mac;

/// Largest frame that a port passes on: an IP packet of 64 KiB (the kernel hands large segments to local interfaces
/// before it cuts them) with its Ethernet header.
pub const MOST: usize = 65_536 + 18;

/// Source and sink of Ethernet frames, without frame check sequences.
pub trait Port {
    /// Returns the name for messages, such as `spin0`.
    fn name(&self) -> &str;

    /// Returns the file that is readable while a frame waits.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Receives a frame of at most [`MOST`] bytes. Returns its length, 0 for a frame that is not for this port; `None`
    /// if none waits.
    ///
    /// # Errors
    /// When the interface is gone; [`io::ErrorKind::UnexpectedEof`] when the peer of a socket has closed it.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a frame.
    ///
    /// # Errors
    /// When the interface does not take it.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Returns the Ethernet address of the card on this port, if the interface defines it.
    fn mac(&self) -> Option<Mac>;
}

/// Error of a port that cannot be opened; the text has the remedy.
#[derive(Debug, Error)]
#[error("{place}: {reason}{}{remedy}", if remedy.is_empty() { "" } else { ": " })]
pub struct PortError {
    /// Interface or file.
    pub place: String,
    /// Reason.
    pub reason: String,
    /// Remedy.
    pub remedy: String,
}

impl PortError {
    /// Makes the error of a failed step.
    pub fn new(place: &str, reason: impl ToString, remedy: impl ToString) -> PortError {
        PortError { place: place.to_owned(), reason: reason.to_string(), remedy: remedy.to_string() }
    }

    /// Makes the error of a step that the system refused.
    pub fn of(place: &str, step: &str, error: &io::Error) -> PortError {
        let remedy = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "run as root or with CAP_NET_ADMIN and CAP_NET_RAW (sudo setcap cap_net_admin,cap_net_raw+ep \
                 spinkit-pspin), or use --socket, which needs no rights"
            }
            Some(libc::ENODEV | libc::ENXIO) => "ip link shows the interfaces",
            Some(libc::ENETDOWN) => "set it up: ip link set NAME up",
            _ => "",
        };
        PortError::new(place, format!("cannot {step}: {error}"), remedy)
    }
}
