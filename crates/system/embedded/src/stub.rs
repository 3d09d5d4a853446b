// SPDX-License-Identifier: Apache-2.0
//! Replacement on processors other than x86-64, where ranks are always processes.

use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::hash::Hasher;
use std::io;
use std::rc::Rc;

use super::{Job, Stop, Style, Unfit};

/// A program that can be embedded. No value of this type exists.
#[derive(Debug)]
pub struct Program(Infallible);

/// The ranks of a job. No value of this type exists.
pub struct Host(Infallible);

/// An interrupted rank. No value of this type exists.
pub struct Suspended(Infallible);

impl Suspended {
    /// Never called.
    pub fn never(&self) -> ! {
        match self.0 {}
    }
}

impl Program {
    /// Refuses every program.
    ///
    /// # Errors
    /// Always [`Unfit::Processor`].
    pub fn open(_path: &OsStr) -> Result<Program, Unfit> {
        Err(Unfit::Processor)
    }
}

impl Host {
    /// Never called.
    ///
    /// # Safety
    /// No requirement.
    ///
    /// # Errors
    /// None.
    pub unsafe fn new(program: Rc<Program>, _style: Style, _job: Job) -> io::Result<Host> {
        match program.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    /// None.
    pub fn start(&mut self, _rank: usize, _variables: &[CString]) -> io::Result<()> {
        match self.0 {}
    }

    /// Never called.
    pub fn run(&mut self, _rank: usize) -> Stop {
        match self.0 {}
    }

    /// Never called.
    pub fn suspended(&self, _rank: usize) -> Option<Suspended> {
        match self.0 {}
    }

    /// Never called.
    pub fn hash(&self, _rank: usize, _most: u64, _hasher: &mut impl Hasher) -> Option<u64> {
        match self.0 {}
    }

    /// Never called.
    pub fn take_output(&mut self, _rank: usize) -> [Vec<u8>; 2] {
        match self.0 {}
    }

    /// Never called.
    pub fn end(&mut self, _rank: usize) {
        match self.0 {}
    }

    /// Never called.
    pub fn flush(&mut self, _rank: usize) {
        match self.0 {}
    }

    /// Never called.
    pub fn read(&self, _rank: usize, _address: u64, _out: &mut [u8]) -> bool {
        match self.0 {}
    }

    /// Never called.
    pub fn write(&mut self, _rank: usize, _address: u64, _bytes: &[u8]) -> bool {
        match self.0 {}
    }
}
