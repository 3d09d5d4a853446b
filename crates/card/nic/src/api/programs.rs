// SPDX-License-Identifier: Apache-2.0
//! Device programs, their handlers and their memory (sPIN App. B).

use std::rc::Rc;

use abi::portals::{self as ptl, Handle, ReturnCode};
use accel::{CardProgram, DeviceProgram, ImageError};

use super::Result;
use crate::card::Nic;
use crate::handlers::{HandlerRequest, Handlers};
use crate::portals::Entry;
use crate::ports::Ports;
use crate::region::Region;

impl Nic {
    /// Loads the device program of the process.
    ///
    /// # Errors
    /// Returns an error if it does not fit into the card's memories.
    pub fn load_program(&mut self, program: DeviceProgram) -> std::result::Result<(), ImageError> {
        self.share_program(CardProgram::new(program, &self.pipeline.machine)?)
    }

    /// Loads a device program that cards may share.
    ///
    /// # Errors
    /// Returns an error if it was prepared for cards with larger memories.
    pub fn share_program(&mut self, program: Rc<CardProgram>) -> std::result::Result<(), ImageError> {
        let data = program.device().program.data_segment().len() as u32;
        self.spin.accelerator.load(program)?;
        let most = crate::accelerator::most_memory(&self.pipeline.machine.accelerator, data);
        let most = self.pipeline.portals.quota().memory(most);
        let offered = &mut self.pipeline.portals.offered;
        if offered.max_handler_mem != u64::from(most) {
            Rc::make_mut(offered).max_handler_mem = most.into();
        }
        Ok(())
    }

    /// Returns true if a device program is loaded.
    pub fn has_program(&self) -> bool {
        self.spin.accelerator.program().is_some()
    }

    /// Releases memory that an idle card does not need.
    pub fn trim(&mut self) {
        self.spin.trim();
    }

    /// Prepares the handlers of an ME: reads its initial state and writes it to HPU memory (App. B.2). Returns `None`
    /// if the ME has no handlers.
    ///
    /// # Errors
    /// [`ReturnCode::Fail`] if the card runs no handlers; [`ReturnCode::ArgInvalid`] if a handler is not in the
    /// program, or if the initial state or its memory is out of range.
    pub fn handlers(&mut self, ni: Handle, me: &ptl::Me, ports: &mut impl Ports) -> Result<Option<Handlers>> {
        let Some(request) = HandlerRequest::of(me) else { return Ok(None) };
        self.pipeline.portals.ni(ni)?;
        if !self.pipeline.machine.nic.runs_handlers() {
            return Err(ReturnCode::Fail);
        }
        let program = self.spin.accelerator.program().ok_or(ReturnCode::ArgInvalid)?;
        let find = |address: u64| match address {
            0 => Ok(None),
            address => program.device().handler(address).cloned().map(Some).ok_or(ReturnCode::ArgInvalid),
        };
        let handlers = [find(request.header)?, find(request.payload)?, find(request.completion)?];
        let length = if me.hpu_initial_state == 0 { 0 } else { me.hpu_initial_state_length };
        if length > u64::from(self.pipeline.machine.accelerator.max_initial_state()) {
            return Err(ReturnCode::ArgInvalid);
        }
        let mut state = vec![0; length as usize];
        ports.read_host(me.hpu_initial_state, &mut state).map_err(|_| ReturnCode::ArgInvalid)?;
        let iovec = me.le.options & ptl::ME_HANDLER_IOVEC != 0;
        let host = self.region(ni, me.handler_host_mem_start, me.handler_host_mem_length, iovec, ports)?;
        self.spin
            .install(&self.pipeline.machine.accelerator, handlers, request.memory, &state, host, me.user_hdr_size)
            .map(Some)
    }

    /// Returns the device program, for other cards to share.
    pub fn program(&self) -> Option<Rc<CardProgram>> {
        self.spin.accelerator.program().cloned()
    }

    /// Returns the names of an ME's header, payload and completion handler.
    ///
    /// # Errors
    /// [`ReturnCode::Fail`] if the card runs no handlers; [`ReturnCode::ArgInvalid`] if a handler is not in the
    /// program, or if the ME has no handlers.
    pub fn handler_names(&self, me: &ptl::Me) -> Result<[Option<Rc<str>>; 3]> {
        let request = HandlerRequest::of(me).ok_or(ReturnCode::ArgInvalid)?;
        if !self.pipeline.machine.nic.runs_handlers() {
            return Err(ReturnCode::Fail);
        }
        let program = self.spin.accelerator.program().ok_or(ReturnCode::ArgInvalid)?;
        let name = |address: u64| match address {
            0 => Ok(None),
            address => program
                .device()
                .handler(address)
                .map(|handler| Some(handler.name.clone()))
                .ok_or(ReturnCode::ArgInvalid),
        };
        Ok([name(request.header)?, name(request.payload)?, name(request.completion)?])
    }

    /// Prepares header, payload and completion handler by name, for a program without a host part. `state` is their
    /// initial state, `host` their `PTL_HANDLER_HOST_MEM`, and `user_hdr` the size of user headers.
    ///
    /// # Errors
    /// [`ReturnCode::Fail`] if the card runs no handlers; [`ReturnCode::ArgInvalid`] if the program lacks a named
    /// handler, or if the initial state or its memory is out of range.
    pub fn handlers_by_name(
        &mut self,
        names: [Option<&str>; 3],
        memory: Handle,
        state: &[u8],
        host: Region,
        user_hdr: u64,
    ) -> Result<Handlers> {
        if !self.pipeline.machine.nic.runs_handlers() {
            return Err(ReturnCode::Fail);
        }
        let program = self.spin.accelerator.program().ok_or(ReturnCode::ArgInvalid)?;
        let mut handlers = [const { None }; 3];
        for (handler, name) in handlers.iter_mut().zip(names) {
            *handler = name.map(|name| program.named(name).cloned().ok_or(ReturnCode::ArgInvalid)).transpose()?;
        }
        self.spin.install(&self.pipeline.machine.accelerator, handlers, memory, state, host, user_hdr)
    }

    /// `PtlHPUAllocMem` (sPIN App. B.2).
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open or `length` is 0; [`ReturnCode::Fail`] if the card runs
    /// no handlers; [`ReturnCode::NoSpace`] if no gap of HPU memory is large enough.
    pub fn hpu_alloc(&mut self, length: u64, ni: Handle) -> Result<Handle> {
        let index = self.pipeline.portals.ni(ni)?.index;
        if !self.pipeline.machine.nic.runs_handlers() {
            return Err(ReturnCode::Fail);
        }
        self.spin.allocate(index, length)
    }

    /// `PtlHPUFreeMem` (sPIN App. B.2).
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the handle names no HPU memory; [`ReturnCode::InUse`] if handlers of an entry
    /// share it.
    pub fn hpu_free(&mut self, memory: Handle) -> Result<()> {
        let state = self.spin.memory_range(memory)?;
        let uses =
            |entry: &Entry| entry.handlers.as_ref().is_some_and(|handlers| handlers.set.state.as_ref() == Some(&state));
        if self.pipeline.portals.interfaces.iter().flatten().any(|ni| ni.entries.iter().any(|(_, entry)| uses(entry))) {
            return Err(ReturnCode::InUse);
        }
        self.spin.free(memory)
    }
}
