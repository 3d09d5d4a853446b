//! HPU memory of the program, and the initial state of handlers in it.

use std::rc::Rc;

use abi::portals::{Handle, INVALID_HANDLE, ReturnCode};
use accel::{AllocationError, Handler, HandlerSet, HpuMemory};

use super::Spin;
use crate::handlers::Handlers;
use crate::portals::slab::{Kind, Slab, interface_of};
use crate::region::Region;

/// What an interface may have of HPU memory, in pieces.
const MAX_PIECES: i32 = u16::MAX as i32;

impl Spin {
    /// Forgets the device program and everything that runs or waits.
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

    /// Takes a handle back; the bytes are free when nobody has them any more.
    pub(crate) fn free(&mut self, memory: Handle) -> Result<(), ReturnCode> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(ReturnCode::ArgInvalid)?;
        let pieces = self.hpu_memory[usize::from(interface)].as_mut().ok_or(ReturnCode::ArgInvalid)?;
        pieces.remove(memory).map(|_| ())
    }

    /// Takes all handles of an interface back.
    pub(crate) fn free_all(&mut self, interface: u8) {
        if let Some(pieces) = &mut self.hpu_memory[usize::from(interface & 3)] {
            pieces.clear();
        }
    }

    /// The HPU memory that a handle names.
    pub(crate) fn memory_range(&self, memory: Handle) -> Result<Rc<HpuMemory>, ReturnCode> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(ReturnCode::ArgInvalid)?;
        let pieces = self.hpu_memory[usize::from(interface)].as_ref().ok_or(ReturnCode::ArgInvalid)?;
        pieces.get(memory).cloned()
    }

    /// Bytes of HPU memory that programs have allocated.
    pub(crate) fn allocated(&self) -> u64 {
        let pieces = self.hpu_memory.iter().flatten().flat_map(|pieces| pieces.iter());
        pieces.map(|(_, memory)| u64::from(memory.length)).sum()
    }

    /// Prepares the handlers of an entry, header, payload and completion, and writes the initial state of the memory
    /// that they share.
    ///
    /// # Errors
    /// When the handle names no memory, or when the state is larger than the memory or a limit.
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
