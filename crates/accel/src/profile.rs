use std::collections::BTreeMap;

/// Number of times that instructions ran, by handler name and place in the source.
pub type Profile = BTreeMap<String, BTreeMap<SourcePlace, u64>>;

/// The place in the source that an instruction was compiled from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The function of the device program that contains the instruction.
    pub function: Option<String>,
    /// The file, as the compiler recorded it, and the line, which counts from 1; `None` without `-g`.
    pub line: Option<(String, u32)>,
}
