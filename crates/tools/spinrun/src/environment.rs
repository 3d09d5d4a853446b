//! Variables of the ranks' environment.

use std::ffi::OsString;

/// Returns the value that a variable of the ranks has if `env` is added to those of this process.
pub fn variable(env: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    let given = env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
    given.or_else(|| std::env::var_os(name))
}
