// SPDX-License-Identifier: Apache-2.0
//! Values of options: exact decimal times, and grids.

use sim::{Time, TimePerByte};

/// Parses a decimal number in units of ten to the minus `decimals`.
fn decimal(text: &str, decimals: usize) -> Result<u64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return Err("not a number of nanoseconds".into());
    }
    if fraction.trim_end_matches('0').len() > decimals {
        return Err(format!("at most {decimals} decimals"));
    }
    let digits = format!("{whole}{fraction:0<decimals$.decimals$}");
    digits.parse().map_err(|_| "too large".into())
}

/// Parses nanoseconds, to the picosecond.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse_ns(text: &str) -> Result<Time, String> {
    decimal(text, 3).map(Time::from_ps)
}

/// Parses a time with a unit (ns, us, ms, s), or in nanoseconds, to the picosecond.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse_time(text: &str) -> Result<Time, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let decimals = match &text[digits.len()..] {
        "" | "ns" => 3,
        "us" => 6,
        "ms" => 9,
        "s" => 12,
        unit => return Err(format!("{unit} is no unit of time: ns, us, ms or s")),
    };
    decimal(digits, decimals).map(Time::from_ps)
}

/// Parses nanoseconds per byte, to the femtosecond.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse_ns_per_byte(text: &str) -> Result<TimePerByte, String> {
    decimal(text, 6).map(TimePerByte::from_fs_per_byte)
}

/// Parses Gbit/s. Returns the time per byte, to the femtosecond.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse_gbit_per_s(text: &str) -> Result<TimePerByte, String> {
    // 1 Gbit/s is 8 ns per byte.
    let milli = u128::from(decimal(text, 3).map_err(|error| error.replace("nanoseconds", "Gbit/s"))?);
    let fs = |milli: u128| u64::try_from((8_000_000_000 + milli / 2) / milli).map_err(|_| "too small".to_owned());
    if milli == 0 { Err("a link needs some bandwidth".into()) } else { fs(milli).map(TimePerByte::from_fs_per_byte) }
}

/// Returns a time in nanoseconds as JSON, an integer if possible.
pub fn json_ns(time: Time) -> serde_json::Value {
    let ps = time.as_ps();
    if ps.is_multiple_of(1000) { (ps / 1000).into() } else { time.as_ns_f64().into() }
}

/// Sides of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims(pub Vec<u32>);

/// Parses a grid such as `8x4x2`.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse_dims(text: &str) -> Result<Dims, String> {
    let sides: Result<Vec<u32>, _> = text.split('x').map(str::parse).collect();
    match sides {
        Ok(sides) if sides.iter().all(|&side| side > 0) => Ok(Dims(sides)),
        _ => Err("is like 8x4, each side at least 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse_ns("2500"), Ok(Time::from_ns(2500)));
        assert_eq!(parse_ns("6.70"), Ok(Time::from_ps(6700)));
        assert_eq!(parse_ns(".5"), Ok(Time::from_ps(500)));
        assert_eq!(parse_ns("1.5000"), Ok(Time::from_ps(1500)));
        assert_eq!(parse_ns_per_byte("0.0067"), Ok(TimePerByte::from_fs_per_byte(6_700)));
        for (text, error) in [
            ("", "not a number of nanoseconds"),
            (".", "not a number of nanoseconds"),
            ("-1", "not a number of nanoseconds"),
            ("1e3", "not a number of nanoseconds"),
            ("1.0001", "at most 3 decimals"),
            ("99999999999999999999", "too large"),
        ] {
            assert_eq!(parse_ns(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, ps) in
            [("7", 7000), ("0.25ns", 250), ("5us", 5_000_000), ("1.5ms", 1_500_000_000), ("2s", 2_000_000_000_000)]
        {
            assert_eq!(parse_time(text), Ok(Time::from_ps(ps)), "{text}");
        }
        assert_eq!(parse_time("5min"), Err("min is no unit of time: ns, us, ms or s".to_owned()));
        assert_eq!(parse_time("us"), Err("not a number of nanoseconds".to_owned()));
    }

    #[test]
    fn bandwidths_are_times_of_a_byte() {
        assert_eq!(parse_gbit_per_s("400"), Ok(TimePerByte::from_fs_per_byte(20_000)));
        assert_eq!(parse_gbit_per_s("0.8"), Ok(TimePerByte::from_fs_per_byte(10_000_000)));
        assert_eq!(parse_gbit_per_s("300"), Ok(TimePerByte::from_fs_per_byte(26_667)));
        assert_eq!(parse_gbit_per_s("0"), Err("a link needs some bandwidth".to_owned()));
        assert_eq!(parse_gbit_per_s("fast"), Err("not a number of Gbit/s".to_owned()));
    }

    #[test]
    fn whole_nanoseconds_are_whole_numbers() {
        assert_eq!(json_ns(Time::from_ns(7)).to_string(), "7");
        assert_eq!(json_ns(Time::from_ps(7_250)).to_string(), "7.25");
    }
}
