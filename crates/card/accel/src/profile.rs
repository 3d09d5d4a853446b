use std::collections::BTreeMap;

/// Number of executions of instructions, by handler name and place in the source.
pub type Profile = BTreeMap<String, BTreeMap<SourcePlace, u64>>;

/// The place in the source from which an instruction was compiled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The function of the device program that contains the instruction.
    pub function: Option<String>,
    /// The file, as the compiler recorded it, and the line, which counts from 1; `None` without `-g`.
    pub line: Option<(String, u32)>,
}
