// SPDX-License-Identifier: Apache-2.0
//! Ports of a live card: the wire, and the host behind it.

use std::io;

use frames::address::{Mac, Network};
use frames::drop_program::DropProgram;
use frames::packet::PacketSocket;
use frames::port::{Port, PortError};
use frames::signals::{EndSignals, wait};
use frames::socket::Listener;
use frames::tap::Tap;
use spincc::{Error, Result};

use super::options::{Arguments, NAME};

/// Ports of a card.
pub struct Ports {
    /// Port at which frames of the network arrive.
    pub wire: Box<dyn Port>,
    /// Host behind the card.
    pub host: Option<Tap>,
    /// Address for whose ARP requests the card answers.
    pub card: Option<(Network, Mac)>,
    _listener: Option<Listener>,
    _hidden: Option<DropProgram>,
}

impl Ports {
    /// Opens the ports, and prints their addresses. Returns `None` if the user ends the run before a client connects.
    ///
    /// # Errors
    /// When an interface cannot be used.
    pub fn open(arguments: &Arguments, signals: &EndSignals) -> Result<Option<Ports>> {
        let (mut listener, mut hidden) = (None, None);
        let wire: Box<dyn Port> = if let Some(name) = &arguments.tap {
            let tap = Tap::create(name).map_err(Error::other)?;
            if let Some(network) = arguments.address {
                let machine = network.neighbour();
                tap.set_address(machine, None).map_err(Error::other)?;
                eprintln!("{NAME}: note: {name}: the card is {}, this machine is {}", network.address, machine.address);
            }
            tap.set_up().map_err(Error::other)?;
            Box::new(tap)
        } else if let Some(name) = &arguments.interface {
            let socket = PacketSocket::open(name).map_err(Error::other)?;
            if arguments.host.is_some() {
                hidden = Some(DropProgram::attach(name, socket.index()).map_err(Error::other)?);
            } else if socket.has_address() {
                eprintln!(
                    "{NAME}: note: {name} has an address, so this machine's stack answers the same frames as the handlers: \
                     ip addr flush dev {name}, or --host NAME"
                );
            }
            Box::new(socket)
        } else if let Some(path) = &arguments.socket {
            let waiting = Listener::create(path).map_err(Error::other)?;
            eprintln!("{NAME}: note: waiting for a client at {}", path.display());
            let mut ready = [false; 2];
            while !ready[1] {
                wait(&[signals.fd(), waiting.fd()], -1, &mut ready).map_err(Error::other)?;
                if ready[0] {
                    return Ok(None);
                }
            }
            let connection = waiting.accept();
            listener = Some(waiting);
            Box::new(connection.map_err(|error: io::Error| {
                Error::other(PortError::of(&path.display().to_string(), "accept the client", &error))
            })?)
        } else {
            return Err(Error::Usage("one of --tap, --interface and --socket names the card's port".to_owned()));
        };
        let mac = wire.mac();
        let host = match &arguments.host {
            None => None,
            Some(name) => {
                let host = Tap::create(name).map_err(Error::other)?;
                if let Some(network) = arguments.address {
                    host.set_address(network, Some(mac.unwrap_or(Mac::of(network.address)))).map_err(Error::other)?;
                    eprintln!("{NAME}: note: {name}: the host behind the card is {}", network.address);
                }
                host.set_up().map_err(Error::other)?;
                Some(host)
            }
        };
        let card = arguments.address.map(|network| (network, mac.unwrap_or(Mac::of(network.address))));
        eprintln!("{NAME}: note: serving {}; Ctrl-C ends", wire.name());
        Ok(Some(Ports { wire, host, card, _listener: listener, _hidden: hidden }))
    }
}
