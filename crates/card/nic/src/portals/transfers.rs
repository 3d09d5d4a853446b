// SPDX-License-Identifier: Apache-2.0
//! Puts, gets and atomic operations, immediate and triggered, with checked arguments.

use abi::portals::{self as ptl, AckReq, CtEvent, Handle, ReturnCode};

use super::process::Portals;
use super::slab::Kind;
use super::triggered::{Action, FetchAction, RmaOp, Target, TriggeredOp};
use crate::atomic::{AtomicSpec, MAX_OPERAND};

type Result<T> = std::result::Result<T, ReturnCode>;

impl Portals {
    /// `PtlPut`: checks the arguments. [`Nic::start`](crate::Nic::start) starts the operation.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if an argument is out of range, or if the acknowledgement has no destination.
    pub fn put(&mut self, md: Handle, local_offset: u64, length: u64, ack: u64, target: Target) -> Result<RmaOp> {
        let ack = AckReq::from_raw(ack).ok_or(ReturnCode::ArgInvalid)?;
        let transfer = self.transfer(Action::Put(ack), md, local_offset, length, target)?;
        check_ack(&transfer, ack)?;
        Ok(transfer)
    }

    /// `PtlGet`: checks the arguments, as [`put`](Portals::put) does.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if an argument is out of range.
    pub fn get(&mut self, md: Handle, local_offset: u64, length: u64, target: Target) -> Result<RmaOp> {
        self.transfer(Action::Get, md, local_offset, length, target)
    }

    /// `PtlAtomic`: checks the arguments, as [`put`](Portals::put) does.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if an argument is out of range, if the acknowledgement has no destination, or if the
    /// operation is not defined for the type.
    pub fn atomic(
        &mut self,
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: u64,
        target: Target,
        spec: AtomicSpec,
    ) -> Result<RmaOp> {
        let ack = AckReq::from_raw(ack).ok_or(ReturnCode::ArgInvalid)?;
        let transfer = self.transfer(Action::Atomic(ack, spec), md, local_offset, length, target)?;
        check_ack(&transfer, ack)?;
        let limit = self.owner(Kind::Md, md)?.limits.max_atomic_size;
        if !spec.is_plain() || !spec.is_defined() || length > limit {
            return Err(ReturnCode::ArgInvalid);
        }
        Ok(transfer)
    }

    /// `PtlFetchAtomic` and (with `operand`) `PtlSwap`: checks the arguments, as [`put`](Portals::put) does. `get` and
    /// `put` are memory descriptors with offsets.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if an argument is out of range, or if the operation is not defined for the type.
    pub fn fetch_atomic(
        &mut self,
        get: (Handle, u64),
        put: (Handle, u64),
        length: u64,
        target: Target,
        spec: AtomicSpec,
        operand: Option<[u8; MAX_OPERAND]>,
    ) -> Result<RmaOp> {
        let one_item = !spec.is_conditional() || length == crate::atomic::size(spec.datatype) as u64;
        if spec.is_plain() == operand.is_some() || !spec.is_defined() || !one_item {
            return Err(ReturnCode::ArgInvalid);
        }
        let source = self.transfer(Action::Get, put.0, put.1, length, target)?;
        let limit = self.owner(Kind::Md, put.0)?.limits.max_fetch_atomic_size;
        let operand = operand.unwrap_or([0; MAX_OPERAND]);
        let fetch = FetchAction { put_md: source.md, put_offset: put.1, spec, operand };
        let transfer = self.transfer(Action::Fetch(Box::new(fetch)), get.0, get.1, length, target)?;
        if transfer.interface != source.interface || length > limit {
            return Err(ReturnCode::ArgInvalid);
        }
        Ok(transfer)
    }

    fn transfer(
        &mut self,
        action: Action,
        md: Handle,
        local_offset: u64,
        length: u64,
        target: Target,
    ) -> Result<RmaOp> {
        let interface = self.owner(Kind::Md, md)?;
        let descriptor = interface.mds.get(md)?.clone();
        let fits = local_offset.checked_add(length).is_some_and(|end| end <= descriptor.region.length());
        let valid = fits
            && interface.locate(target.process).is_some()
            && length <= interface.limits.max_msg_size
            && i64::from(target.pt_index) <= i64::from(interface.limits.max_pt_index);
        if !valid {
            return Err(ReturnCode::ArgInvalid);
        }
        Ok(RmaOp { action, interface: interface.index, md: descriptor, local_offset, length, target })
    }

    /// Returns the number of waiting triggered operations.
    pub fn triggered_left(&self) -> usize {
        self.interfaces.iter().flatten().map(|interface| interface.triggered).sum()
    }

    /// Adds a triggered operation of interface `ni_index` to `ct`; it may fire immediately.
    pub(crate) fn trigger(&mut self, ni_index: u8, ct: Handle, threshold: u64, op: TriggeredOp) -> Result<()> {
        let interface = self.owner(Kind::Ct, ct)?;
        let counter = interface.counters.get_mut(ct)?;
        if interface.index != ni_index {
            return Err(ReturnCode::ArgInvalid);
        }
        if interface.triggered >= interface.limits.max_triggered_ops as usize {
            return Err(ReturnCode::NoSpace);
        }
        interface.triggered += 1;
        counter.add(threshold, op);
        self.count(ni_index, ct, CtEvent::default());
        self.triggered_peak = self.triggered_peak.max(self.triggered_left() as u64);
        Ok(())
    }
}

/// Checks that an acknowledgement has a destination.
fn check_ack(transfer: &RmaOp, ack: AckReq) -> Result<()> {
    match ack {
        AckReq::Ack if transfer.md.eq == ptl::EQ_NONE => Err(ReturnCode::ArgInvalid),
        AckReq::Ct | AckReq::Oc if transfer.md.ct == ptl::CT_NONE => Err(ReturnCode::ArgInvalid),
        _ => Ok(()),
    }
}
