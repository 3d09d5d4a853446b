// SPDX-License-Identifier: Apache-2.0
//! Attachment of this process to the simulator: `PtlInit` and `PtlFini`, and the images of device programs.

use crate::call::{self, Call};
use crate::library_state::{Attachment, Image, process};
use crate::posting;
use crate::session;
use abi::calls::Op;
use abi::mailbox;
use abi::portals::{CtEvent, ReturnCode};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// Returns true between `PtlInit` and the last `PtlFini`.
pub fn initialised() -> bool {
    process().inits.load(Ordering::Acquire) > 0
}

fn attachment() -> MutexGuard<'static, Attachment> {
    call::refuse_within_call(); // a signal handler would deadlock on a lock that its own thread holds
    process().attachment.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs `PtlInit`.
pub fn init() -> ReturnCode {
    let mut attachment = attachment();
    let rc = attachment.attach();
    if rc == ReturnCode::Ok {
        process().inits.fetch_add(1, Ordering::Release);
    }
    rc
}

/// Performs `PtlFini`. A call without a matching `PtlInit` does nothing.
pub fn fini() {
    let mut attachment = attachment();
    let fewer = process().inits.fetch_update(Ordering::AcqRel, Ordering::Acquire, |inits| inits.checked_sub(1));
    if fewer == Ok(1) && std::mem::take(&mut attachment.attached) {
        send(Op::SpinDetach, &[]);
        posting::learn(Op::SpinDetach, &[], CtEvent::default());
    }
}

/// Attaches the process to the simulator, unless it is attached. Returns `PTL_FAIL` without a simulator.
pub fn attach() -> ReturnCode {
    attachment().attach()
}

/// Registers an image with the simulator: now, or when the process attaches.
pub fn register(image: Image) {
    let mut attachment = attachment();
    attachment.images.push(image);
    if attachment.attached {
        image.send();
    }
}

impl Attachment {
    fn attach(&mut self) -> ReturnCode {
        if self.attached && !session::forked() {
            return ReturnCode::Ok;
        }
        if send(Op::SpinAttach, &[mailbox::MAGIC]) != ReturnCode::Ok as i32
            || self.images.iter().any(|image| image.send() != ReturnCode::Ok as i32)
        {
            return ReturnCode::Fail;
        }
        self.attached = true;
        ReturnCode::Ok
    }
}

impl Image {
    fn send(&self) -> i32 {
        send(Op::SpinRegisterImage, &[self.address, self.length, self.handlers_start])
    }
}

fn send(op: Op, words: &[u64]) -> i32 {
    match Call::begin(op) {
        Ok(mut call) => {
            words.iter().for_each(|&word| call.word(word));
            call.perform().rc()
        }
        Err(rc) => rc as i32,
    }
}
