// SPDX-License-Identifier: Apache-2.0
//! Kinds of C arguments, and their encoding in a call. [`abi::calls`] describes the convention.

use crate::call::{Answer, Call};
use abi::calls::Word;
use abi::portals::{CtEvent, INVALID_HANDLE, Me, Process, ReturnCode};
use bytemuck::Pod;
use std::ffi::c_void;
use std::mem::offset_of;

/// An argument of a library call.
pub trait Argument {
    /// Writes the argument into the call, if the simulator needs it.
    ///
    /// # Errors
    /// `PTL_ARG_INVALID` for a NULL pointer.
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode>;

    /// Stores the argument's result from the answer. Called only after calls that have results.
    fn take(&self, _answer: &mut Answer) {}

    /// Returns the destination of the result of a posted call; NULL if the argument has no result.
    fn place(&self) -> *mut u32 {
        std::ptr::null_mut()
    }
}

macro_rules! scalars {
    ($($type:ty),+) => { $(
        impl Argument for $type {
            fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
                call.word(self.to_word());
                Ok(())
            }
        }
    )+ };
}
scalars!(u8, u32, u64, Process);

/// A structure passed by value.
impl Argument for CtEvent {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        call.data(self);
        Ok(())
    }
}

/// An address that the simulator reads from, or returns later.
#[repr(transparent)]
pub struct Address(*const c_void);

impl Address {
    /// Makes the argument from a pointer.
    pub fn new(address: *const c_void) -> Address {
        Address(address)
    }
}

impl Argument for Address {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        call.word(self.0 as u64);
        Ok(())
    }
}

/// An input structure.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T: Pod> In<T> {
    /// Returns the structure, unless the pointer is NULL.
    pub fn get(&self) -> Option<T> {
        // SAFETY: the caller passes a valid structure, as the header requires.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl<T: Pod> Argument for In<T> {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        call.data(&self.get().ok_or(ReturnCode::ArgInvalid)?);
        Ok(())
    }
}

/// An optional input structure. It takes one word: 0 for NULL, else 1.
#[repr(transparent)]
pub struct OptionalIn<T>(*const T);

impl<T: Pod> Argument for OptionalIn<T> {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        call.word(u64::from(!self.0.is_null()));
        if self.0.is_null() { Ok(()) } else { In(self.0).give(call) }
    }
}

/// A `ptl_me_t` of a plain Portals program: its P4sPIN fields may be uninitialised and are not read.
#[repr(transparent)]
pub struct PlainMe(*const Me);

impl Argument for PlainMe {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        if self.0.is_null() {
            return Err(ReturnCode::ArgInvalid);
        }
        let mut me = Me { hpu_memory: INVALID_HANDLE, ..Me::default() };
        let target = std::ptr::from_mut(&mut me).cast::<u8>();
        // SAFETY: the caller passes a valid structure, and this is its start.
        unsafe { target.copy_from_nonoverlapping(self.0.cast(), offset_of!(Me, header_handler)) };
        call.data(&me);
        Ok(())
    }
}

/// An output scalar.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Makes an argument that writes to `place`.
    pub fn new(place: *mut T) -> Out<T> {
        Out(place)
    }
}

impl<T: Word> Out<T> {
    /// Returns the result after a call, unless the pointer is NULL.
    pub fn get(&self) -> Option<T> {
        // SAFETY: the caller passes a valid pointer, as the header requires, and the call has written to it.
        (!self.0.is_null()).then(|| unsafe { self.0.read_unaligned() })
    }
}

impl<T: Word> Argument for Out<T> {
    fn give(&self, _call: &mut Call) -> Result<(), ReturnCode> {
        if self.0.is_null() { Err(ReturnCode::ArgInvalid) } else { Ok(()) }
    }

    fn take(&self, answer: &mut Answer) {
        // SAFETY: not NULL (see `give`); the caller passes a valid pointer, as the header requires.
        unsafe { self.0.write_unaligned(T::from_word(answer.word())) };
    }

    fn place(&self) -> *mut u32 {
        if size_of::<T>() == size_of::<u32>() { self.0.cast() } else { std::ptr::null_mut() }
    }
}

/// An output structure.
#[repr(transparent)]
pub struct OutData<T>(*mut T);

impl<T: Pod> Argument for OutData<T> {
    fn give(&self, _call: &mut Call) -> Result<(), ReturnCode> {
        if self.0.is_null() { Err(ReturnCode::ArgInvalid) } else { Ok(()) }
    }

    fn take(&self, answer: &mut Answer) {
        // SAFETY: as for `Out`.
        unsafe { self.0.write_unaligned(answer.data()) };
    }
}

/// An optional output structure.
#[repr(transparent)]
pub struct OptionalOut<T>(*mut T);

impl<T: Pod> Argument for OptionalOut<T> {
    fn give(&self, _call: &mut Call) -> Result<(), ReturnCode> {
        Ok(())
    }

    fn take(&self, answer: &mut Answer) {
        if !self.0.is_null() {
            OutData(self.0).take(answer);
        }
    }
}

/// A handle that the call invalidates. It takes one word and is set to `PTL_INVALID_HANDLE`.
#[repr(transparent)]
pub struct Consumed(*mut u32);

impl Argument for Consumed {
    fn give(&self, call: &mut Call) -> Result<(), ReturnCode> {
        if self.0.is_null() {
            return Err(ReturnCode::ArgInvalid);
        }
        // SAFETY: the caller passes a valid pointer, as the header requires.
        call.word(u64::from(unsafe { self.0.read_unaligned() }));
        Ok(())
    }

    fn take(&self, _answer: &mut Answer) {
        // SAFETY: as in `give`.
        unsafe { self.0.write_unaligned(INVALID_HANDLE) };
    }
}
