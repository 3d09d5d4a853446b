// SPDX-License-Identifier: Apache-2.0
//! Assumptions: machine values without a source, and their plausible alternatives.

use std::fmt;

use toml::{Table, Value};

use crate::problem::Problem;

/// `[assumed."KEY"]` of a machine file: documents a value that its sources omit or contradict. It applies to the value
/// in that file: a derived file that sets the key itself withdraws it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// `range` or `values`: plausible alternatives.
    pub plausible: Plausible,
    /// `reason`: justification of the value and its bounds.
    pub reason: String,
    /// `anchor`: sentence or number of a source that the value should reproduce, if any.
    pub anchor: Option<String>,
}

/// Plausible values of a parameter, as in a machine file but without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plausible {
    /// `range = [least, most]`
    Range(String, String),
    /// `values = [one, another, …]`
    Values(Vec<String>),
}

impl Plausible {
    /// Returns true if `value` is plausible.
    fn has(&self, value: &str) -> bool {
        match self {
            Plausible::Range(least, most) => {
                let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
                (number(least)..=number(most)).contains(&number(value))
            }
            Plausible::Values(values) => values.iter().any(|other| other == value),
        }
    }
}

/// Prints "12 to 102", or "max, sum".
impl fmt::Display for Plausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plausible::Range(least, most) => write!(f, "{least} to {most}"),
            Plausible::Values(values) => f.write_str(&values.join(", ")),
        }
    }
}

impl Assumption {
    /// Reads the table of a key.
    pub(crate) fn read(key: &str, value: &Value) -> Result<Assumption, Problem> {
        let place = place(key);
        let wrong = |name: &str, what: &str| Problem::new(format!("{place}{name}"), what);
        let table = value.as_table().ok_or_else(|| wrong("", "must be a table"))?;
        let known = ["range", "values", "reason", "anchor"];
        if let Some(name) = table.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(wrong(
                &format!(".{name}"),
                "unknown key: an assumption has range or values, reason and anchor",
            ));
        }
        let text = |name: &str| match table.get(name).map(Value::as_str) {
            Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            Some(_) => Err(wrong(&format!(".{name}"), "must be a sentence")),
            None => Ok(None),
        };
        let values = |name: &str| {
            let list = |value: &Value| value.as_array()?.iter().map(plain).collect::<Option<Vec<_>>>();
            let must_be = || wrong(&format!(".{name}"), "must be a list of values");
            table.get(name).map(|value| list(value).ok_or_else(must_be)).transpose()
        };
        let plausible = match (values("range")?, values("values")?) {
            (Some(ends), None) => match &ends[..] {
                [least, most] if least.parse::<f64>().is_ok_and(|low| most.parse().is_ok_and(|high| low < high)) => {
                    Plausible::Range(least.clone(), most.clone())
                }
                _ => return Err(wrong(".range", "must be two numbers, the smaller one first")),
            },
            (None, Some(values)) if !values.is_empty() => Plausible::Values(values),
            _ => return Err(wrong("", "must have either range = [least, most] or values = [one, another]")),
        };
        let reason = text("reason")?.ok_or_else(|| wrong(".reason", "missing"))?;
        Ok(Assumption { plausible, reason, anchor: text("anchor")? })
    }

    /// Checks that the value of the key in `table` is plausible.
    pub(crate) fn check(&self, key: &str, table: &Table) -> Result<(), Problem> {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let section = section.split('.').try_fold(table, |table, name| table.get(name)?.as_table());
        let value = section.and_then(|section| section.get(name)).and_then(plain);
        match value {
            Some(value) if self.plausible.has(&value) => Ok(()),
            Some(value) => Err(Problem::new(place(key), format!("{key} is {value}, not one of {}", self.plausible))),
            None => Err(Problem::new(place(key), format!("{key} has no value"))),
        }
    }
}

/// Returns the name of the key's table, as files write it.
fn place(key: &str) -> String {
    format!("assumed.\"{key}\"")
}

/// Returns the text of a number, a string or a boolean.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) if number.is_finite() => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}
