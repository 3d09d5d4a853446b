//! A mistake in a key, before it is known which file or option set the key.

/// A key, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Dotted.
    pub key: String,
    pub what: String,
}

impl Problem {
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { key: key.into(), what: what.into() }
    }
}
