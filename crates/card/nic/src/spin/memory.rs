// SPDX-License-Identifier: Apache-2.0
//! HPU memory of the program, and the initial state of its handlers.

use std::rc::Rc;

use abi::portals::{Handle, INVALID_HANDLE, ReturnCode};
use accel::{AllocationError, Handler, HandlerSet, HpuMemory};

use super::Spin;
use crate::handlers::Handlers;
use crate::portals::slab::{Kind, Slab, interface_of};
use crate::region::Region;

/// Maximum number of HPU memory pieces of an interface.
const MAX_PIECES: i32 = u16::MAX as i32;

impl Spin {
    /// Discards the device program, and all running and waiting handlers.
    pub(crate) fn unload(&mut self) {
        if self.accelerator.made().is_some_and(|made| made.program().is_some()) {
            self.accelerator.unload();
            (0..4).for_each(|interface| self.free_all(interface));
        }
    }

    /// Allocates HPU memory.
    pub(crate) fn allocate(&mut self, interface: u8, length: u64) -> Result<Handle, ReturnCode> {
        let memory = self.accelerator.allocate(length).map_err(|error| match error {
            AllocationError::Empty => ReturnCode::ArgInvalid,
            AllocationError::Full(_) => ReturnCode::NoSpace,
            AllocationError::Outside(_) => ReturnCode::Fail,
        })?;
        let fresh = || Box::new(Slab::new(Kind::Hpu, interface));
        self.hpu_memory[usize::from(interface & 3)].get_or_insert_with(fresh).insert(MAX_PIECES, memory)
    }

    /// Releases a handle; the memory is freed once its last owner drops it.
    pub(crate) fn free(&mut self, memory: Handle) -> Result<(), ReturnCode> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(ReturnCode::ArgInvalid)?;
        let pieces = self.hpu_memory[usize::from(interface)].as_mut().ok_or(ReturnCode::ArgInvalid)?;
        pieces.remove(memory).map(|_| ())
    }

    /// Releases all handles of an interface.
    pub(crate) fn free_all(&mut self, interface: u8) {
        if let Some(pieces) = &mut self.hpu_memory[usize::from(interface & 3)] {
            pieces.clear();
        }
    }

    /// Returns the HPU memory of a handle.
    pub(crate) fn memory_range(&self, memory: Handle) -> Result<Rc<HpuMemory>, ReturnCode> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(ReturnCode::ArgInvalid)?;
        let pieces = self.hpu_memory[usize::from(interface)].as_ref().ok_or(ReturnCode::ArgInvalid)?;
        pieces.get(memory).cloned()
    }

    /// Returns the bytes of HPU memory that programs allocated.
    pub(crate) fn allocated(&self) -> u64 {
        let pieces = self.hpu_memory.iter().flatten().flat_map(|pieces| pieces.iter());
        pieces.map(|(_, memory)| u64::from(memory.length)).sum()
    }

    /// Prepares header, payload and completion handler of an entry, and writes the initial state of their shared
    /// memory.
    ///
    /// # Errors
    /// Returns an error if the handle names no memory, or if the state exceeds the memory or a limit.
    pub(crate) fn install(
        &mut self,
        config: &machine::Accelerator,
        [header, payload, completion]: [Option<Handler>; 3],
        memory: Handle,
        initial_state: &[u8],
        host_memory: Region,
        user_hdr: u64,
    ) -> Result<Handlers, ReturnCode> {
        let max_state = u64::from(config.max_initial_state());
        if user_hdr > u64::from(config.max_user_hdr()) || initial_state.len() as u64 > max_state {
            return Err(ReturnCode::ArgInvalid);
        }
        let state = match memory {
            0 | INVALID_HANDLE => None,
            memory => Some(self.memory_range(memory)?),
        };
        if initial_state.len() as u64 > state.as_ref().map_or(0, |state| u64::from(state.length)) {
            return Err(ReturnCode::ArgInvalid);
        }
        if let Some(state) = &state {
            self.accelerator.initialise(state, initial_state).map_err(|_| ReturnCode::Fail)?;
        }
        let set = HandlerSet { header, payload, completion, state, user_hdr: user_hdr as u32 };
        Ok(Handlers { set: Rc::new(set), host_memory })
    }
}
