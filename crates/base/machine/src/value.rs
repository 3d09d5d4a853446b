// SPDX-License-Identifier: Apache-2.0
//! Converts TOML values to parameters and back.

use sim::{Clock, Time, TimePerByte};
use toml::Value;

use crate::accelerator::TimingKind;
use crate::host::{DmaEngines, DmaHandlers, DmaMessages, DmaNews};
use crate::network::{Injection, Reception, Routing, Topology};
use crate::nic::{MatchOverlaps, NicKind};
use crate::pspin::{DispatchPolicy, Lru, Overload};
use crate::sharing::Scheduler;
use crate::transport::{Flow, RateControl};

/// A parameter type. Errors describe the value; the caller adds the location.
pub(crate) trait Parameter: Sized {
    /// Names of the possible values; empty for numbers and free text.
    const NAMES: &[&str] = &[];

    fn read(value: &Value) -> Result<Self, String>;
    /// Returns the text of the value in a machine file, without quotes.
    fn show(&self) -> String;
}

impl Parameter for u64 {
    fn read(value: &Value) -> Result<u64, String> {
        let number = value.as_integer().ok_or_else(|| must_be("an integer", value))?;
        number.try_into().map_err(|_| format!("must not be negative, is {number}"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Parameter for u32 {
    fn read(value: &Value) -> Result<u32, String> {
        let number = u64::read(value)?;
        number.try_into().map_err(|_| format!("must be at most {}, is {number}", u32::MAX))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Parameter for bool {
    fn read(value: &Value) -> Result<bool, String> {
        value.as_bool().ok_or_else(|| must_be("true or false", value))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Parameter for String {
    fn read(value: &Value) -> Result<String, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| must_be("a string", value))
    }

    fn show(&self) -> String {
        self.clone()
    }
}

/// Nanoseconds, to the picosecond.
impl Parameter for Time {
    fn read(value: &Value) -> Result<Time, String> {
        scaled(value, 3, "a picosecond").map(Time::from_ps)
    }

    fn show(&self) -> String {
        decimal(self.as_ps(), 3)
    }
}

/// Picoseconds per byte, to the femtosecond.
impl Parameter for TimePerByte {
    fn read(value: &Value) -> Result<TimePerByte, String> {
        scaled(value, 3, "a femtosecond a byte").map(TimePerByte::from_fs_per_byte)
    }

    fn show(&self) -> String {
        decimal(self.as_fs_per_byte(), 3)
    }
}

/// Gigahertz, to the kilohertz.
impl Parameter for Clock {
    fn read(value: &Value) -> Result<Clock, String> {
        match scaled(value, 6, "a kilohertz")? {
            0 => Err("must be more than 0, is 0".to_owned()),
            khz => Ok(Clock::from_khz(khz)),
        }
    }

    fn show(&self) -> String {
        decimal(self.as_khz(), 6)
    }
}

macro_rules! choice {
    ($type:ident { $($name:literal => $variant:ident),+ }) => {
        impl $type {
            /// Returns the name in machine files.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl Parameter for $type {
            const NAMES: &[&str] = &[$($name),+];

            fn read(value: &Value) -> Result<$type, String> {
                match value.as_str().ok_or_else(|| must_be("a string", value))? {
                    $($name => Ok($type::$variant),)+
                    other => Err(must_be_one_of($type::NAMES, other)),
                }
            }

            fn show(&self) -> String {
                self.name().to_owned()
            }
        }
    };
}
choice!(Flow { "credits" => Credits, "drop" => Drop, "pfc" => Pfc, "trim" => Trim });
choice!(RateControl { "none" => None, "dcqcn" => Dcqcn });
choice!(Routing { "ecmp" => Ecmp, "adaptive" => Adaptive });
choice!(Injection { "max" => Max, "sum" => Sum });
choice!(Reception { "cut-through" => CutThrough, "store-and-forward" => StoreAndForward });
choice!(MatchOverlaps { "reception" => Reception, "gap" => Gap });
choice!(DmaEngines { "shared" => Shared, "per-direction" => PerDirection });
choice!(DmaMessages { "transfers" => Transfers, "latency" => Latency });
choice!(DmaHandlers { "transfers" => Transfers, "requests" => Requests });
choice!(DmaNews { "after-writes" => AfterWrites, "behind-writes" => BehindWrites });
choice!(NicKind { "rdma" => Rdma, "portals4" => Portals4, "spin" => Spin });
choice!(Overload { "block" => Block, "drop" => Drop, "ecn" => Ecn });
choice!(Lru { "tree" => Tree, "exact" => Exact });
choice!(DispatchPolicy { "home" => Home, "least-loaded" => LeastLoaded, "pinned" => Pinned });
choice!(Scheduler { "fifo" => Fifo, "round-robin" => RoundRobin, "weighted" => Weighted, "strict" => Strict });
choice!(TimingKind { "inorder" => InOrder, "ooo-a15" => OooA15 });

impl Topology {
    const NAMES: [(&str, Topology); 4] = [
        ("fat-tree", Topology::FatTree),
        ("single-switch", Topology::SingleSwitch),
        ("dragonfly", Topology::Dragonfly),
        ("torus", Topology::Torus),
    ];

    /// Returns the topology that machine files call `name`: one of the names above or, with a `/` or a `.`, the path of
    /// a file.
    ///
    /// # Errors
    /// If no topology has this name; the message lists the existing ones.
    pub fn named(name: &str) -> Result<Topology, String> {
        match Topology::NAMES.into_iter().find(|(known, _)| *known == name) {
            Some((_, topology)) => Ok(topology),
            None if name.contains(['/', '.']) => Ok(Topology::File(name.to_owned())),
            None => Err(format!(
                "{}, or the path of a DOT file",
                must_be_one_of(&Topology::NAMES.map(|(known, _)| known), name)
            )),
        }
    }

    /// Returns the name in machine files.
    pub fn name(&self) -> &str {
        match self {
            Topology::File(path) => path,
            named => Topology::NAMES.iter().find(|(_, topology)| topology == named).map_or("", |(name, _)| name),
        }
    }
}

impl Parameter for Topology {
    fn read(value: &Value) -> Result<Topology, String> {
        Topology::named(value.as_str().ok_or_else(|| must_be("a string", value))?)
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

/// Lengths, such as those of a torus: a list of numbers, or `4x4x2`.
impl Parameter for Vec<u32> {
    fn read(value: &Value) -> Result<Vec<u32>, String> {
        match value {
            Value::Array(numbers) => numbers.iter().map(u32::read).collect(),
            Value::String(text) => {
                let wrong = |_| format!("must be numbers with x between, such as \"4x4x2\", is \"{text}\"");
                text.split('x').map(|number| number.parse().map_err(wrong)).collect()
            }
            Value::Integer(_) => Ok(vec![u32::read(value)?]),
            other => Err(must_be("a list of numbers", other)),
        }
    }

    fn show(&self) -> String {
        self.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
    }
}

/// Names: a list of strings, or one string with semicolons between them.
impl Parameter for Vec<String> {
    fn read(value: &Value) -> Result<Vec<String>, String> {
        match value {
            Value::Array(names) => names.iter().map(String::read).collect(),
            Value::String(text) => {
                let names = text.split(';').map(str::trim).filter(|name| !name.is_empty());
                Ok(names.map(str::to_owned).collect())
            }
            other => Err(must_be("a list of strings", other)),
        }
    }

    fn show(&self) -> String {
        self.join("; ")
    }
}

pub(crate) fn must_be_one_of(names: &[&str], found: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("must be one of {}, is \"{found}\"", names.join(", "))
}

pub(crate) fn must_be(what: &str, value: &Value) -> String {
    format!("must be {what}, is {} {}", article(value.type_str()), value.type_str())
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'i']) { "an" } else { "a" }
}

/// Returns the number times `10^digits`, exactly.
fn scaled(value: &Value, digits: usize, finest: &str) -> Result<u64, String> {
    // The shortest decimal that parses to the same float is the number in the file.
    let text = match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) if number.is_finite() => (number + 0.0).to_string(), // -0 is 0
        Value::Float(number) => return Err(format!("must be finite, is {number}")),
        other => return Err(must_be("a number", other)),
    };
    if text.starts_with('-') {
        return Err(format!("must not be negative, is {text}"));
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    if fraction.len() > digits {
        return Err(format!("{text} is finer than {finest}"));
    }
    format!("{whole}{fraction:0<digits$}").parse().map_err(|_| format!("{text} is too large"))
}

/// Formats `value / 10^digits` without trailing zeros.
fn decimal(value: u64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let text = format!("{}.{:0width$}", value / unit, value % unit, width = digits as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_both_ways() {
        for (text, ps) in [("33.4", 33_400), ("6.7", 6_700), ("0.001", 1), ("65", 65_000), ("2.0", 2_000), ("-0.0", 0)]
        {
            let time = Time::read(&text.parse().unwrap()).unwrap();
            assert_eq!(time, Time::from_ps(ps), "{text}");
            assert_eq!(Time::read(&time.show().parse().unwrap()), Ok(time));
        }
        assert_eq!(Time::from_ps(33_400).show(), "33.4");
        assert_eq!(Clock::from_khz(2_500_000).show(), "2.5");
        assert_eq!(Time::from_ns(120).show(), "120");
        assert_eq!(Time::ZERO.show(), "0");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let time = |text: &str| Time::read(&text.parse().unwrap()).unwrap_err();
        assert_eq!(time("0.0001"), "0.0001 is finer than a picosecond");
        assert_eq!(time("1e-9"), "0.000000001 is finer than a picosecond");
        assert_eq!(time("-1.5"), "must not be negative, is -1.5");
        assert_eq!(time("1e30"), "1000000000000000000000000000000 is too large");
        assert_eq!(time("inf"), "must be finite, is inf");
        assert_eq!(time("true"), "must be a number, is a boolean");
        assert_eq!(Clock::read(&Value::Float(0.0)), Err("must be more than 0, is 0".to_owned()));
        assert_eq!(u32::read(&Value::Integer(1 << 32)), Err("must be at most 4294967295, is 4294967296".to_owned()));
        assert_eq!(u32::read(&Value::Float(1.0)), Err("must be an integer, is a float".to_owned()));
        assert_eq!(bool::read(&Value::Integer(1)), Err("must be true or false, is an integer".to_owned()));
    }
}
