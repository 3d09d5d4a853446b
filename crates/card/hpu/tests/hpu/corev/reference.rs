// SPDX-License-Identifier: Apache-2.0
//! Reference semantics of CV32E40P's user manual, computed bit by bit or with wide numbers.

/// Text of an instruction: mnemonic without "cv.", and its immediates.
pub struct Text {
    pub name: String,
    pub immediates: Vec<i64>,
}

impl Text {
    pub fn of(assembly: &str) -> Text {
        let (name, operands) = assembly.split_once(' ').unwrap_or((assembly, ""));
        let immediates = operands.split(',').filter_map(|operand| operand.trim().parse().ok()).collect();
        Text { name: name.trim_start_matches("cv.").into(), immediates }
    }
}

fn bits(value: u32, low: u32, count: u32) -> i64 {
    (0..count).filter(|bit| low + bit < 32 && value >> (low + bit) & 1 == 1).map(|bit| 1_i64 << bit).sum()
}

/// Returns the low `count` bits as a signed number.
fn signed(value: i64, count: u32) -> i64 {
    let value = value & ((1 << count) - 1);
    if value >> (count - 1) & 1 == 1 { value - (1 << count) } else { value }
}

fn word(value: i64) -> i64 {
    signed(value, 32)
}

/// Shifts a 32-bit number right, signed or unsigned.
fn right(value: i64, shift: i64, with_sign: bool) -> i64 {
    let value = if with_sign { word(value) } else { value & 0xffff_ffff };
    value.div_euclid(1 << shift)
}

/// Returns the instruction's result; `d` is the old value of the result register, and `a` and `b` are the first and
/// second source.
pub fn result(text: &Text, a: u32, b: u32, d: u32) -> u32 {
    let name = text.name.as_str();
    let (sa, sb, sd) = (i64::from(a as i32), i64::from(b as i32), i64::from(d as i32));
    let immediate = |index: usize| text.immediates[index];
    let value = match name {
        "abs" => sa.abs(),
        "exths" => signed(sa, 16),
        "exthz" => bits(a, 0, 16),
        "extbs" => signed(sa, 8),
        "extbz" => bits(a, 0, 8),
        "sle" => i64::from(sa <= sb),
        "sleu" => i64::from(a <= b),
        "min" => sa.min(sb),
        "max" => sa.max(sb),
        "minu" => i64::from(a.min(b)),
        "maxu" => i64::from(a.max(b)),
        "clip" | "clipu" => {
            let size = immediate(0);
            let (least, most) = if size == 0 { (-1, 0) } else { (-(1 << (size - 1)), (1 << (size - 1)) - 1) };
            let least = if name == "clip" { least } else { 0 };
            if sa <= least { least } else { sa.min(most) }
        }
        "clipr" => {
            let least = word(-(sb + 1));
            if sa <= least {
                least
            } else if sa >= sb {
                sb
            } else {
                sa
            }
        }
        "clipur" => {
            if sa <= 0 {
                0
            } else if sa >= sb {
                sb
            } else {
                sa
            }
        }
        "mac" => sd + sa * sb % (1 << 32),
        "msu" => sd - sa * sb % (1 << 32),
        "ff1" => (0..32).find(|bit| a >> bit & 1 == 1).unwrap_or(32),
        "fl1" => (0..32).rev().find(|bit| a >> bit & 1 == 1).unwrap_or(32),
        "clb" if a == 0 => 0,
        "clb" => (0..32).rev().take_while(|bit| a >> bit & 1 == a >> 31).count() as i64 - 1,
        "cnt" => (0..32).filter(|bit| a >> bit & 1 == 1).count() as i64,
        "ror" => {
            let by = b % 32;
            (0..32_u32).map(|bit| bits(a, (bit + by) % 32, 1) << bit).sum()
        }
        "bitrev" => {
            let (radix, points) = (immediate(0), immediate(1) as u32);
            let group = if radix == 3 { 1 } else { radix as u32 + 1 };
            let input = ((u64::from(a) << points) & 0xffff_ffff) as u32;
            let count = 32 / group;
            // Group 0 is the most significant one; it becomes the least significant.
            (0..count).map(|index| bits(input, 32 - group * (index + 1), group) << (group * index)).sum()
        }
        "extract" | "extractu" | "insert" | "bclr" | "bset" | "extractr" | "extractur" | "insertr" | "bclrr"
        | "bsetr" => {
            let (size, position) = if let [size, position] = text.immediates[..] {
                (size as u32, position as u32)
            } else {
                (b >> 5 & 31, b & 31)
            };
            let count = (size + position).min(31) - position + 1;
            let ones = ((1_i64 << count) - 1) << position;
            match name.trim_end_matches('r') {
                "extract" => signed(bits(a, position, count), count),
                "extractu" => bits(a, position, count),
                "insert" => (i64::from(d) & !ones) | (bits(a, 0, count) << position),
                "bclr" | "bcl" => i64::from(a) & !ones,
                _ => i64::from(a) | ones,
            }
        }
        "pack" => bits(a, 0, 16) << 16 | bits(b, 0, 16),
        "pack.h" => bits(a, 16, 16) << 16 | bits(b, 16, 16),
        "packhi.b" => bits(a, 0, 8) << 24 | bits(b, 0, 8) << 16 | bits(d, 0, 16),
        "packlo.b" => bits(d, 16, 16) << 16 | bits(a, 0, 8) << 8 | bits(b, 0, 8),
        _ => {
            return normalized(text, a, b, d)
                .or_else(|| lanes(text, a, b, d))
                .or_else(|| complex(text, a, b, d))
                .unwrap();
        }
    };
    value as u32
}

/// Computes sums, differences and products with a right shift.
fn normalized(text: &Text, a: u32, b: u32, d: u32) -> Option<u32> {
    let name = text.name.as_str();
    let (sa, sb, sd) = (i64::from(a as i32), i64::from(b as i32), i64::from(d as i32));
    let by_register = name.ends_with("nr");
    let stem = name.strip_suffix('r').filter(|_| by_register).unwrap_or(name).strip_suffix('n')?;
    let (stem, rounds) = stem.strip_suffix('r').map_or((stem, false), |stem| (stem, true));
    let products = ["mul", "mac"].iter().any(|start| stem.starts_with(start));
    let (with_sign, stem) = match stem.strip_suffix('u') {
        Some(stem) => (false, stem),
        None if products => (true, stem.strip_suffix('s')?),
        None => (true, stem),
    };
    let half = |value: u32, at| if with_sign { signed(bits(value, at, 16), 16) } else { bits(value, at, 16) };
    let value = match stem {
        "add" if by_register => sd + sa,
        "sub" if by_register => sd - sa,
        "add" => sa + sb,
        "sub" => sa - sb,
        "mul" => half(a, 0) * half(b, 0),
        "mulhh" => half(a, 16) * half(b, 16),
        "mac" => half(a, 0) * half(b, 0) + sd,
        "machh" => half(a, 16) * half(b, 16) + sd,
        _ => return None,
    };
    let shift = if by_register { i64::from(b % 32) } else { text.immediates[0] };
    let rounded = if rounds && shift > 0 { value + (1 << (shift - 1)) } else { value };
    Some(right(rounded, shift, with_sign) as u32)
}

fn lanes(text: &Text, a: u32, b: u32, d: u32) -> Option<u32> {
    let mut parts = text.name.split('.');
    let (operation, last) = (parts.next()?, text.name.split('.').next_back()?);
    let form = parts.next()?;
    let width = match last {
        "h" => 16,
        "b" => 8,
        _ => return None,
    };
    let count = 32 / width;
    let lane = |value: u32, index: u32| bits(value, width * index, width);
    let immediate = text.immediates.first().copied();
    let second = |index: u32| match form {
        "sc" => lane(b, 0),
        "sci" => immediate.unwrap() & ((1 << width) - 1),
        _ => lane(b, index),
    };
    let all = |f: &dyn Fn(u32) -> i64| {
        Some((0..count).map(|index| (f(index) & ((1 << width) - 1)) << (width * index)).sum::<i64>() as u32)
    };
    let s = |value: i64| signed(value, width);
    let truth = |is: bool| if is { -1 } else { 0 };
    let (x, y) = (|index| lane(a, index), second);
    let (sx, sy) = (|index| s(lane(a, index)), |index| s(second(index)));
    let sum = |start: u32, f: &dyn Fn(u32) -> i64| {
        Some((i64::from(start) + (0..count).map(f).sum::<i64>()).rem_euclid(1 << 32) as u32)
    };
    // Selector bits of an immediate shuffle: `width`/8 bits for each lane.
    let chosen = |index: u32| immediate.unwrap() >> (index * if width == 16 { 1 } else { 2 }) & (count as i64 - 1);
    match operation {
        "add" => all(&|i| x(i) + y(i)),
        "sub" => all(&|i| x(i) - y(i)),
        "avg" => all(&|i| s(x(i) + y(i)).div_euclid(2)),
        "avgu" => all(&|i| ((x(i) + y(i)) & ((1 << width) - 1)) / 2),
        "min" => all(&|i| sx(i).min(sy(i))),
        "max" => all(&|i| sx(i).max(sy(i))),
        "minu" => all(&|i| x(i).min(y(i))),
        "maxu" => all(&|i| x(i).max(y(i))),
        "srl" => all(&|i| x(i) >> (y(i) % i64::from(width))),
        "sra" => all(&|i| sx(i) >> (y(i) % i64::from(width))),
        "sll" => all(&|i| x(i) << (y(i) % i64::from(width))),
        "or" => all(&|i| x(i) | y(i)),
        "xor" => all(&|i| x(i) ^ y(i)),
        "and" => all(&|i| x(i) & y(i)),
        "abs" => all(&|i| sx(i).abs()),
        "cmpeq" => all(&|i| truth(x(i) == y(i))),
        "cmpne" => all(&|i| truth(x(i) != y(i))),
        "cmpgt" => all(&|i| truth(sx(i) > sy(i))),
        "cmpge" => all(&|i| truth(sx(i) >= sy(i))),
        "cmplt" => all(&|i| truth(sx(i) < sy(i))),
        "cmple" => all(&|i| truth(sx(i) <= sy(i))),
        "cmpgtu" => all(&|i| truth(x(i) > y(i))),
        "cmpgeu" => all(&|i| truth(x(i) >= y(i))),
        "cmpltu" => all(&|i| truth(x(i) < y(i))),
        "cmpleu" => all(&|i| truth(x(i) <= y(i))),
        "dotup" => sum(0, &|i| x(i) * y(i)),
        "dotusp" => sum(0, &|i| x(i) * sy(i)),
        "dotsp" => sum(0, &|i| sx(i) * sy(i)),
        "sdotup" => sum(d, &|i| x(i) * y(i)),
        "sdotusp" => sum(d, &|i| x(i) * sy(i)),
        "sdotsp" => sum(d, &|i| sx(i) * sy(i)),
        "extract" => Some(sx(immediate? as u32 % count) as u32),
        "extractu" => Some(x(immediate? as u32 % count) as u32),
        "insert" => all(&|i| if i == immediate.unwrap() as u32 % count { lane(a, 0) } else { lane(d, i) }),
        "shuffle" if form == "sci" => all(&|i| x(chosen(i) as u32)),
        "shuffle" => all(&|i| x(lane(b, i) as u32 % count)),
        "shuffle2" => all(&|i| {
            let from = if lane(b, i) as u32 & count != 0 { a } else { d };
            lane(from, lane(b, i) as u32 % count)
        }),
        _ => {
            let last = operation.strip_prefix("shufflei")?.parse().ok()?;
            all(&|i| x(if i == 3 { last } else { chosen(i) as u32 }))
        }
    }
}

/// Computes complex products; the real part is the lower half-word.
fn complex(text: &Text, a: u32, b: u32, d: u32) -> Option<u32> {
    let name = text.name.as_str();
    let (stem, shift) = match name.split_once(".div") {
        Some((stem, by)) => (stem, by.parse::<u32>().ok()?.ilog2()),
        None => (name, 0),
    };
    let part = |value: u32, at: u32| signed(bits(value, 16 * at, 16), 16);
    let half = |value: i64| signed(value, 16) >> shift & 0xffff;
    let (imaginary, real) = match stem {
        "cplxmul.r" => {
            let product = word(part(a, 0) * part(b, 0) - part(a, 1) * part(b, 1));
            (bits(d, 16, 16), product >> (15 + shift) & 0xffff)
        }
        "cplxmul.i" => {
            let product = word(part(a, 0) * part(b, 1) + part(a, 1) * part(b, 0));
            (product >> (15 + shift) & 0xffff, bits(d, 0, 16))
        }
        "cplxconj" => (-part(a, 1) & 0xffff, bits(a, 0, 16)),
        "subrotmj" => (half(part(b, 0) - part(a, 0)), half(part(a, 1) - part(b, 1))),
        "add" => (half(part(a, 1) + part(b, 1)), half(part(a, 0) + part(b, 0))),
        "sub" => (half(part(a, 1) - part(b, 1)), half(part(a, 0) - part(b, 0))),
        _ => return None,
    };
    Some((imaginary << 16 | real) as u32)
}
