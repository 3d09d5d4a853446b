// SPDX-License-Identifier: Apache-2.0
//! Tests of the HPU through its public interface: programs as words, run on real bytes.

mod arm;
mod atomic;
mod card;
mod control;
mod corev;
mod elf;
mod extensions;
mod float;
mod inorder;
mod integer;
mod interpreter;
mod ooo;
mod order;
mod profile;
mod stepper;
mod toy;
