// SPDX-License-Identifier: Apache-2.0
//! Optional contents of a slice besides its name and times.

/// Value of a slice's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number, shown in decimal.
    Uint(u64),
    /// A text; equal texts are stored once.
    Text(&'a str),
}

/// Arrows and arguments of a slice. An arrow points from the slice that starts earlier to the one that starts later. If
/// both start at the same time, it points from the one whose track was created first.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceExtras<'a> {
    /// Id of the arrow that ends here.
    pub flow_in: Option<u64>,
    /// Id of the arrow that starts here. If equal to `flow_in`, the arrow passes through this slice.
    pub flow_out: Option<u64>,
    /// Names and values of the arguments, in display order.
    pub args: &'a [(&'static str, Value<'a>)],
}
