// SPDX-License-Identifier: Apache-2.0
//! An invalid key, before its file or option is determined.

/// A key and the description of its error.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Dotted key.
    pub key: String,
    pub what: String,
}

impl Problem {
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { key: key.into(), what: what.into() }
    }
}
