// SPDX-License-Identifier: Apache-2.0
//! Lines of a liballprof trace.

use crate::error::Damage;

/// A line of a trace, one call: `MPI_Send:start:…:end`.
pub struct Line<'a> {
    number: u64,
    text: &'a [u8],
    /// Starts of all fields but the name, and one past the end of the line.
    starts: Vec<usize>,
}

impl<'a> Line<'a> {
    pub fn new() -> Line<'a> {
        Line { number: 0, text: &[], starts: Vec::new() }
    }

    /// Takes the next line with a call from `rest`. Returns false at the end.
    pub fn next(&mut self, rest: &mut &'a [u8]) -> Result<bool, Damage> {
        loop {
            if rest.is_empty() {
                return Ok(false);
            }
            self.number += 1;
            self.starts.clear();
            let mut end = None;
            for (place, &byte) in rest.iter().enumerate() {
                match byte {
                    b':' => self.starts.push(place + 1),
                    b'\n' => {
                        end = Some(place);
                        break;
                    }
                    _ => {}
                }
            }
            let (line, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (*rest, &rest[rest.len()..]),
            };
            *rest = after;
            self.text = line.strip_suffix(b"\r").unwrap_or(line);
            if self.text.is_empty() || self.text[0] == b'#' {
                continue;
            }
            if end.is_none() {
                return Err(self.damage(self.text.len(), "the file is cut off within this line".into()));
            }
            self.starts.push(self.text.len() + 1);
            return Ok(true);
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    fn damage(&self, place: usize, what: String) -> Damage {
        Damage::at_line(self.number, place as u64 + 1, what)
    }

    /// Returns a damage error in a field, or in the name for `None`.
    pub fn damage_in(&self, field: Option<usize>, what: String) -> Damage {
        self.damage(field.map_or(0, |field| self.starts[field.min(self.starts.len() - 1)].min(self.text.len())), what)
    }

    /// Returns the name of the function as written.
    pub fn name(&self) -> Result<&'a str, Damage> {
        let name = std::str::from_utf8(&self.text[..self.starts[0] - 1]).ok();
        let starts_right = |name: &&str| name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mpi_"));
        match name.filter(starts_right) {
            Some(name) if self.fields() >= 2 => Ok(name),
            Some(_) => Err(self.damage(self.text.len(), "the line ends before the times of the call".into())),
            None => Err(self.damage(0, "a call starts with MPI_ (or mpi_) and the name of a function".into())),
        }
    }

    /// Returns the number of fields, including the times.
    pub fn fields(&self) -> usize {
        self.starts.len() - 1
    }

    fn field(&self, field: usize) -> &'a [u8] {
        &self.text[self.starts[field]..self.starts[field + 1] - 1]
    }

    /// Reads microseconds, possibly with decimals, as nanoseconds. Returns `None` for `-`.
    pub fn time(&self, field: usize) -> Result<Option<u64>, Damage> {
        let text = self.field(field);
        if text == b"-" {
            return Ok(None);
        }
        let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
        let (whole, decimals) = (&text[..point], text.get(point + 1..).unwrap_or(&[]));
        let wrong = || self.damage(self.starts[field], "no time in microseconds".into());
        let mut ns = digits(whole).and_then(|us| us.checked_mul(1000)).ok_or_else(wrong)?;
        if !decimals.is_empty() {
            digits(decimals).ok_or_else(wrong)?;
            for (digit, weight) in decimals.iter().zip([100, 10, 1]) {
                ns = ns.checked_add(u64::from(digit - b'0') * weight).ok_or_else(wrong)?;
            }
        }
        Ok(Some(ns))
    }

    /// Reads comma-separated integers.
    pub fn numbers(&self, field: usize, into: &mut Vec<i64>) -> Result<(), Damage> {
        into.clear();
        let mut place = self.starts[field];
        for part in self.field(field).split(|&byte| byte == b',') {
            let (negative, text) = match part.strip_prefix(b"-") {
                Some(text) => (true, text),
                None => (false, part),
            };
            let number = match text.strip_prefix(b"0x") {
                Some(hex) => std::str::from_utf8(hex).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                None => digits(text),
            };
            let Some(number) = number else {
                let found = String::from_utf8_lossy(part).into_owned();
                return Err(self.damage(place, format!("`{found}` is no number")));
            };
            // Handles use all 64 bits.
            into.push(if negative { (number as i64).wrapping_neg() } else { number as i64 });
            place += part.len() + 1;
        }
        Ok(())
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
