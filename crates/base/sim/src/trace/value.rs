//! What a slice can show besides its name and times.

/// The value of an argument of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number, shown in decimal.
    Uint(u64),
    /// A text; equal texts are stored once.
    Text(&'a str),
}

/// The arrows and arguments of a slice. An arrow points from the slice that starts earlier to the one that starts later.
/// If both start at the same time, it points from the one whose track was made first.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceExtras<'a> {
    /// The arrow of this number ends here.
    pub flow_in: Option<u64>,
    /// The arrow of this number starts here. If it is the same as `flow_in`, the arrow goes through this slice.
    pub flow_out: Option<u64>,
    /// Names and values of its arguments, in the order of display.
    pub args: &'a [(&'static str, Value<'a>)],
}
