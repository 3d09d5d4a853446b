// SPDX-License-Identifier: Apache-2.0
//! Library calls of the host that need the card: they read host memory, start operations or have effects. The others
//! are methods of [`Portals`](crate::Portals), to which a card dereferences. The caller accounts for the CPU time of a
//! call.

mod programs;
mod reasons;

use abi::portals::{self as ptl, CtEvent, Handle, Iovec, ReturnCode, md, me};
use sim::Time;

use crate::card::Nic;
use crate::handlers::Handlers;
use crate::message::PacketId;
use crate::portals::slab::{self, Kind};
pub use reasons::{Examination, Object, Reason};

pub use crate::portals::{DEFAULT_PID, MAX_VOLATILE_SIZE, NewEntry, check_increment};
use crate::portals::{RmaOp, TriggeredOp};
use crate::ports::Ports;
use crate::region::Region;

type Result<T> = std::result::Result<T, ReturnCode>;

impl Nic {
    /// Discards the process with its interfaces and device program. Messages to it are dropped from now on.
    pub fn reset(&mut self, ports: &mut impl Ports) {
        (0..4).for_each(|interface| self.close_interface(interface, ports));
        self.spin.unload();
    }

    /// Resets the card after the process is killed. Messages already handed over for sending are lost unless their data
    /// was read.
    pub fn process_dies(&mut self, ports: &mut impl Ports) {
        self.pipeline.process_is_dead = true;
        self.reset(ports);
    }

    /// `PtlNIFini`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn ni_fini(&mut self, ni: Handle, ports: &mut impl Ports) -> Result<()> {
        if let Some(index) = self.pipeline.portals.ni_release(ni)? {
            self.close_interface(index, ports);
        }
        Ok(())
    }

    /// `PtlNIHandle`: returns the interface of any object.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn ni_handle(&mut self, object: Handle) -> Result<Handle> {
        let Some(index) = slab::interface_of(Kind::Hpu, object) else { return self.pipeline.portals.ni_handle(object) };
        self.spin.memory_range(object)?;
        Ok(self.pipeline.portals.interface(index).ok_or(ReturnCode::ArgInvalid)?.handle())
    }

    /// `PtlMDBind`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn md_bind(&mut self, ni: Handle, description: ptl::Md, ports: &mut impl Ports) -> Result<Handle> {
        let iovec = description.options & md::IOVEC != 0;
        let region = self.region(ni, description.start, description.length, iovec, ports)?;
        self.pipeline.portals.md_bind(ni, description, region)
    }

    /// `PtlLEAppend`, `PtlMEAppend` and `PtlMEAppendHandlers`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn append(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        handlers: Option<Handlers>,
        ports: &mut impl Ports,
    ) -> Result<Handle> {
        let region = self.entry_region(ni, &new, ports)?;
        let appended = self.pipeline.portals.append(ni, new, list, region, handlers);
        self.apply(ports);
        appended
    }

    /// `PtlTriggeredMEAppend`: creates the entry, which joins its list once the counter reaches the threshold.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn append_triggered(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        handlers: Option<Handlers>,
        trigger: (Handle, u64),
        ports: &mut impl Ports,
    ) -> Result<Handle> {
        let region = self.entry_region(ni, &new, ports)?;
        let appended = self.pipeline.portals.append_triggered(ni, new, list, region, handlers, trigger);
        self.apply(ports);
        appended
    }

    /// `PtlLESearch` and `PtlMESearch`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn search(&mut self, ni: Handle, new: NewEntry, op: u64, ports: &mut impl Ports) -> Result<()> {
        let region = self.entry_region(ni, &new, ports)?;
        let found = self.pipeline.portals.search(ni, new, op, region);
        self.apply(ports);
        found
    }

    /// Returns true if a search (`PtlMESearch`) is known to find nothing now, and to change no counter.
    pub fn finds_nothing(&mut self, ni: Handle, new: NewEntry) -> bool {
        let le = new.me.le;
        le.options & (me::IOVEC | me::EVENT_CT_OVERFLOW) == 0
            && self.pipeline.portals.finds_nothing(ni, new, Region::range(le.start, le.length))
    }

    /// `PtlCTSet`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn ct_set(&mut self, ct: Handle, value: CtEvent, ports: &mut impl Ports) -> Result<()> {
        let set = self.pipeline.portals.ct_set(ct, value);
        self.apply(ports);
        set
    }

    /// `PtlCTInc`.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn ct_inc(&mut self, ct: Handle, amount: CtEvent, ports: &mut impl Ports) -> Result<()> {
        let added = self.pipeline.portals.ct_inc(ct, amount);
        self.apply(ports);
        added
    }

    /// Adds a triggered operation of interface `ni_index` to `ct`; it may fire immediately.
    ///
    /// # Errors
    /// Returns the error code of the library call.
    pub fn trigger(
        &mut self,
        ni_index: u8,
        ct: Handle,
        threshold: u64,
        op: TriggeredOp,
        ports: &mut impl Ports,
    ) -> Result<()> {
        let added = self.pipeline.portals.trigger(ni_index, ct, threshold, op);
        self.apply(ports);
        added
    }

    /// Returns the first packet of the message that the next started operation sends.
    pub fn upcoming_packet(&self) -> PacketId {
        PacketId { message: self.pipeline.upcoming_message_id(), offset: 0 }
    }

    /// Starts an operation whose descriptor the CPU hands over at `at`.
    pub fn start(&mut self, transfer: RmaOp, at: Time, ports: &mut impl Ports) {
        self.pipeline.start(transfer, at, ports);
    }

    fn entry_region(&mut self, ni: Handle, new: &NewEntry, ports: &mut impl Ports) -> Result<Region> {
        let le = new.me.le;
        self.region(ni, le.start, le.length, le.options & me::IOVEC != 0, ports)
    }

    /// Returns the memory that a program describes, within the limits of an interface.
    fn region(&mut self, ni: Handle, start: u64, length: u64, iovec: bool, ports: &mut impl Ports) -> Result<Region> {
        let limit = self.pipeline.portals.ni(ni)?.limits.max_iovecs;
        if !iovec {
            return Ok(Region::range(start, length));
        }
        if length > limit as u64 {
            return Err(ReturnCode::ArgInvalid);
        }
        let mut elements = vec![Iovec::default(); length as usize];
        ports.read_host(start, bytemuck::cast_slice_mut(&mut elements)).map_err(|_| ReturnCode::ArgInvalid)?;
        Ok(Region::iovec(elements))
    }
}
