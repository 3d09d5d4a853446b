// SPDX-License-Identifier: Apache-2.0
//! Interfaces with equal options, pid and map on several cards.

use std::rc::Rc;

use abi::portals::{self as ptl, Handle, Process, ReturnCode};

use super::process::Portals;

/// Options, pid and map of an interface, to open an equal one on another card.
#[derive(Clone, Debug)]
pub struct InterfaceProperties {
    options: u32,
    pid: u32,
    map: Option<Rc<[Process]>>,
}

impl Portals {
    /// Returns the options, pid and map of an interface.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if it is not open, or is logically addressed without a map.
    pub fn interface_properties(&mut self, ni: Handle) -> Result<InterfaceProperties, ReturnCode> {
        use ptl::ni::{LOGICAL, MATCHING, NO_MATCHING, PHYSICAL};
        let pid = self.pid;
        let interface = self.ni(ni)?;
        if interface.logical() && interface.map.is_none() {
            return Err(ReturnCode::ArgInvalid);
        }
        let matching = if interface.matching() { MATCHING } else { NO_MATCHING };
        let options = matching | if interface.logical() { LOGICAL } else { PHYSICAL };
        Ok(InterfaceProperties { options, pid, map: interface.map.clone() })
    }

    /// Opens an interface with the properties `like`, unless it is open. Returns its handle.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if this node is not in the map; [`ReturnCode::PidInUse`] if this card uses another
    /// pid.
    pub fn open_with(&mut self, like: &InterfaceProperties) -> Result<Handle, ReturnCode> {
        let (ni, _) = self.ni_init(ptl::IFACE_DEFAULT, like.options, like.pid, None)?;
        let Some(map) = &like.map else { return Ok(ni) };
        match self.set_map(ni, map.clone()) {
            Ok(()) | Err(ReturnCode::Ignored) => Ok(ni),
            Err(code) => {
                let index = self.ni(ni)?.index;
                self.close(index);
                Err(code)
            }
        }
    }
}
