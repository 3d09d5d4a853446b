// SPDX-License-Identifier: Apache-2.0
//! Environment variables of the ranks.

use std::ffi::OsString;

/// Returns the value of a variable for the ranks, which have those of this process and of `env`.
pub fn variable(env: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    let given = env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
    given.or_else(|| std::env::var_os(name))
}

/// Parses `NAME=VALUE`, or `NAME` for the value that the variable has here.
///
/// # Errors
/// The reason why the text gives no variable.
pub fn parse_variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => match std::env::var_os(text) {
            Some(value) => Ok((text.into(), value)),
            None => Err("is no variable of spinrun's environment: set it, or give a value as NAME=VALUE".into()),
        },
    }
}
