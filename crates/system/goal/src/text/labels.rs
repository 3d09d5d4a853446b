// SPDX-License-Identifier: Apache-2.0
//! Labels of operations in GOAL text.

use std::collections::HashMap;

/// Labels of one rank at a time.
///
/// Generators write `l1`, `l2`, …: such labels are indices of a table. All others are in a map.
#[derive(Default)]
pub(super) struct Labels<'a> {
    /// For each numbered label, its operation plus one. Values of earlier ranks are smaller than all of this rank.
    numbered: Vec<u32>,
    named: HashMap<&'a [u8], u32>,
    /// First operation of the rank.
    first: u32,
}

/// Returns the number of a label `l123`.
#[inline]
fn number(label: &[u8]) -> Option<usize> {
    let [b'l', digits @ ..] = label else { return None };
    if digits.is_empty() || digits.len() > 9 || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + usize::from(digit - b'0')))
}

impl<'a> Labels<'a> {
    /// Creates the labels of ranks that follow others, reusing their table.
    pub fn new(numbered: Vec<u32>) -> Labels<'a> {
        Labels { numbered, ..Labels::default() }
    }

    /// Returns the table, for reuse by the following ranks.
    pub fn into_table(self) -> Vec<u32> {
        self.numbered
    }

    /// Discards all labels, for a rank whose operations start at `first`.
    pub fn begin_rank(&mut self, first: u32) {
        self.first = first;
        self.named.clear();
    }

    /// Labels `op`; returns false if another operation has the label.
    #[inline]
    pub fn define(&mut self, label: &'a [u8], op: u32) -> bool {
        // The table grows with the operations, so that an outlying label cannot make it huge.
        let most = 4 * (op - self.first) as usize + 64;
        match number(label) {
            Some(number) if number < most => {
                if number >= self.numbered.len() {
                    self.numbered.resize(2 * most, 0);
                }
                let free =
                    self.numbered[number] <= self.first && (self.named.is_empty() || !self.named.contains_key(label));
                if free {
                    self.numbered[number] = op + 1;
                }
                free
            }
            _ => self.find(label).is_none() && self.named.insert(label, op).is_none(),
        }
    }

    /// Returns the operation with this label.
    #[inline]
    pub fn find(&self, label: &[u8]) -> Option<u32> {
        if let Some(&op) = number(label).and_then(|number| self.numbered.get(number))
            && op > self.first
        {
            return Some(op - 1);
        }
        if self.named.is_empty() { None } else { self.named.get(label).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_both_kinds_belong_to_their_rank() {
        let mut labels = Labels::default();
        for rank in 0..3 {
            let first = rank * 100;
            labels.begin_rank(first);
            let all: [&[u8]; 7] = [b"l1", b"l01", b"l", b"l999999999", b"x", b"l70", b"l2"];
            for (index, label) in (0..).zip(&all) {
                assert_eq!(labels.find(label), None);
                assert!(labels.define(label, first + index));
                assert!(!labels.define(label, first + 50), "{label:?}");
            }
            for (index, label) in (0..).zip(&all) {
                assert_eq!(labels.find(label), Some(first + index));
            }
        }
    }
}
