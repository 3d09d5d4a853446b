// SPDX-License-Identifier: Apache-2.0
//! Environment variables of the ranks.

use std::ffi::OsString;

/// Returns the value of a variable for the ranks, which have those of this process and of `env`.
pub fn variable(env: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    let given = env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
    given.or_else(|| std::env::var_os(name))
}
