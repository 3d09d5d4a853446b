// SPDX-License-Identifier: Apache-2.0
//! Atomic operations on items of memory (Portals 4.3 §3.15.4–3.15.6).

mod extended;

use abi::portals::{AtomicOp, Datatype};

use self::extended::Extended;

/// Maximum operand of a conditional swap in bytes: one `PTL_LONG_DOUBLE_COMPLEX`.
pub const MAX_OPERAND: usize = 32;

/// Operation of an atomic on each item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicSpec {
    /// Operation.
    pub op: AtomicOp,
    /// Type of an item.
    pub datatype: Datatype,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Integer,
    Real,
    Complex,
}

fn class(datatype: Datatype) -> Class {
    match datatype {
        Datatype::Float | Datatype::Double | Datatype::LongDouble => Class::Real,
        Datatype::FloatComplex | Datatype::DoubleComplex | Datatype::LongDoubleComplex => Class::Complex,
        _ => Class::Integer,
    }
}

/// Returns the size of an item in bytes.
pub fn size(datatype: Datatype) -> usize {
    match datatype {
        Datatype::Int8 | Datatype::Uint8 => 1,
        Datatype::Int16 | Datatype::Uint16 => 2,
        Datatype::Int32 | Datatype::Uint32 | Datatype::Float => 4,
        Datatype::Int64 | Datatype::Uint64 | Datatype::Double | Datatype::FloatComplex => 8,
        Datatype::DoubleComplex | Datatype::LongDouble => 16,
        Datatype::LongDoubleComplex => 32,
    }
}

impl AtomicSpec {
    /// Returns true if the operation belongs to `PtlAtomic` and `PtlFetchAtomic`, not to `PtlSwap`.
    pub fn is_plain(self) -> bool {
        self.op < AtomicOp::Swap
    }

    /// Returns true if the operation takes an operand, and so exactly one item.
    pub fn is_conditional(self) -> bool {
        self.op > AtomicOp::Swap
    }

    /// Returns true if the operation is defined for the type. `long double` arithmetic is that of x86-64 machines.
    pub fn is_defined(self) -> bool {
        use AtomicOp::*;
        let class = class(self.datatype);
        let known = cfg!(target_arch = "x86_64")
            || !matches!(self.datatype, Datatype::LongDouble | Datatype::LongDoubleComplex);
        known
            && match self.op {
                Min | Max | CswapLe | CswapLt | CswapGe | CswapGt => class != Class::Complex,
                Sum | Prod | Swap | Cswap | CswapNe => true,
                Lor | Land | Bor | Band | Lxor | Bxor | Mswap => class == Class::Integer,
            }
    }

    /// Combines `data` into `target` item by item, ignoring a partial last item. `operand` is that of a conditional
    /// swap.
    pub fn apply(self, target: &mut [u8], data: &[u8], operand: &[u8]) {
        let size = size(self.datatype);
        for (target, data) in target.chunks_exact_mut(size).zip(data.chunks_exact(size)) {
            let operand = operand.get(..size).unwrap_or(data);
            match self.datatype {
                Datatype::Int8 => integer::<i8, 1>(self.op, target, data, operand),
                Datatype::Uint8 => integer::<u8, 1>(self.op, target, data, operand),
                Datatype::Int16 => integer::<i16, 2>(self.op, target, data, operand),
                Datatype::Uint16 => integer::<u16, 2>(self.op, target, data, operand),
                Datatype::Int32 => integer::<i32, 4>(self.op, target, data, operand),
                Datatype::Uint32 => integer::<u32, 4>(self.op, target, data, operand),
                Datatype::Int64 => integer::<i64, 8>(self.op, target, data, operand),
                Datatype::Uint64 => integer::<u64, 8>(self.op, target, data, operand),
                Datatype::Float => real::<f32, 4>(self.op, target, data, operand),
                Datatype::Double => real::<f64, 8>(self.op, target, data, operand),
                Datatype::LongDouble => real::<Extended, 16>(self.op, target, data, operand),
                Datatype::FloatComplex => complex::<f32, 4>(self.op, target, data, operand),
                Datatype::DoubleComplex => complex::<f64, 8>(self.op, target, data, operand),
                Datatype::LongDoubleComplex => complex::<Extended, 16>(self.op, target, data, operand),
            }
        }
    }
}

/// An item in the host's byte representation.
trait Item<const N: usize>: Copy + PartialEq + PartialOrd {
    fn load(bytes: &[u8]) -> Self;
    fn bytes(self) -> [u8; N];
    fn sum(self, other: Self) -> Self;
    fn difference(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
}

macro_rules! items {
    ($($t:ty, $n:literal: $sum:ident $difference:ident $product:ident),+ $(,)?) => { $(
        impl Item<$n> for $t {
            fn load(bytes: &[u8]) -> $t {
                <$t>::from_ne_bytes(bytes.try_into().unwrap_or([0; $n]))
            }
            fn bytes(self) -> [u8; $n] {
                self.to_ne_bytes()
            }
            fn sum(self, other: $t) -> $t {
                self.$sum(other)
            }
            fn difference(self, other: $t) -> $t {
                self.$difference(other)
            }
            fn product(self, other: $t) -> $t {
                self.$product(other)
            }
        }
    )+ };
}

use std::ops::{Add, Mul, Sub};
items! {
    i8, 1: wrapping_add wrapping_sub wrapping_mul, u8, 1: wrapping_add wrapping_sub wrapping_mul,
    i16, 2: wrapping_add wrapping_sub wrapping_mul, u16, 2: wrapping_add wrapping_sub wrapping_mul,
    i32, 4: wrapping_add wrapping_sub wrapping_mul, u32, 4: wrapping_add wrapping_sub wrapping_mul,
    i64, 8: wrapping_add wrapping_sub wrapping_mul, u64, 8: wrapping_add wrapping_sub wrapping_mul,
    f32, 4: add sub mul, f64, 8: add sub mul,
}

fn integer<T: Item<N>, const N: usize>(op: AtomicOp, target: &mut [u8], data: &[u8], operand: &[u8]) {
    let truth = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    let set_truth = |target: &mut [u8], value: bool| {
        let mut one = [0; N];
        // 1 as an item in the host's byte order.
        one[if cfg!(target_endian = "little") { 0 } else { N - 1 }] = u8::from(value);
        target.copy_from_slice(&one);
    };
    let mut bitwise = |combine: fn(u8, u8) -> u8| {
        target.iter_mut().zip(data).for_each(|(target, data)| *target = combine(*target, *data));
    };
    match op {
        AtomicOp::Bor => bitwise(|a, b| a | b),
        AtomicOp::Band => bitwise(|a, b| a & b),
        AtomicOp::Bxor => bitwise(|a, b| a ^ b),
        AtomicOp::Lor => set_truth(target, truth(target) | truth(data)),
        AtomicOp::Land => set_truth(target, truth(target) & truth(data)),
        AtomicOp::Lxor => set_truth(target, truth(target) ^ truth(data)),
        AtomicOp::Mswap => {
            for ((target, data), mask) in target.iter_mut().zip(data).zip(operand) {
                *target = *target & !mask | data & mask;
            }
        }
        _ => real::<T, N>(op, target, data, operand),
    }
}

fn real<T: Item<N>, const N: usize>(op: AtomicOp, target: &mut [u8], data: &[u8], operand: &[u8]) {
    let (old, new, operand) = (T::load(target), T::load(data), T::load(operand));
    let result = match op {
        AtomicOp::Min => (new < old).then_some(new),
        AtomicOp::Max => (new > old).then_some(new),
        AtomicOp::Sum => Some(old.sum(new)),
        AtomicOp::Prod => Some(old.product(new)),
        AtomicOp::Swap => Some(new),
        AtomicOp::Cswap => (operand == old).then_some(new),
        AtomicOp::CswapNe => (operand != old).then_some(new),
        AtomicOp::CswapLe => (operand <= old).then_some(new),
        AtomicOp::CswapLt => (operand < old).then_some(new),
        AtomicOp::CswapGe => (operand >= old).then_some(new),
        AtomicOp::CswapGt => (operand > old).then_some(new),
        _ => None,
    };
    if let Some(result) = result {
        target.copy_from_slice(&result.bytes());
    }
}

fn complex<T: Item<N>, const N: usize>(op: AtomicOp, target: &mut [u8], data: &[u8], operand: &[u8]) {
    let parts = |bytes: &[u8]| (T::load(&bytes[..N]), T::load(&bytes[N..]));
    let ((a, b), (c, d), operand) = (parts(target), parts(data), parts(operand));
    let result = match op {
        AtomicOp::Sum => Some((a.sum(c), b.sum(d))),
        AtomicOp::Prod => Some((a.product(c).difference(b.product(d)), a.product(d).sum(b.product(c)))),
        AtomicOp::Swap => Some((c, d)),
        AtomicOp::Cswap => (operand == (a, b)).then_some((c, d)),
        AtomicOp::CswapNe => (operand != (a, b)).then_some((c, d)),
        _ => None,
    };
    if let Some((re, im)) = result {
        target[..N].copy_from_slice(&re.bytes());
        target[N..].copy_from_slice(&im.bytes());
    }
}

impl Item<16> for Extended {
    fn load(bytes: &[u8]) -> Extended {
        Extended(bytes.try_into().unwrap_or([0; 16]))
    }
    fn bytes(self) -> [u8; 16] {
        self.0
    }
    fn sum(self, other: Extended) -> Extended {
        extended::sum(&self, &other)
    }
    fn difference(self, other: Extended) -> Extended {
        extended::difference(&self, &other)
    }
    fn product(self, other: Extended) -> Extended {
        extended::product(&self, &other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<const N: usize>(
        op: AtomicOp,
        datatype: Datatype,
        target: [u8; N],
        data: [u8; N],
        operand: &[u8],
    ) -> [u8; N] {
        let mut result = target;
        AtomicSpec { op, datatype }.apply(&mut result, &data, operand);
        result
    }

    fn i32s(op: AtomicOp, target: i32, data: i32, operand: i32) -> i32 {
        let operand = operand.to_ne_bytes();
        i32::from_ne_bytes(run(op, Datatype::Int32, target.to_ne_bytes(), data.to_ne_bytes(), &operand))
    }

    #[test]
    fn integers() {
        use AtomicOp::*;
        let results = [Min, Max, Sum, Prod, Lor, Land, Bor, Band, Lxor, Bxor, Swap].map(|op| i32s(op, -6, 5, 0));
        assert_eq!(results, [-6, 5, -1, -30, 1, 1, -1, 0, 0, -1, 5]);
        assert_eq!(i32s(Sum, i32::MAX, 1, 0), i32::MIN);
        let unsigned = run(Max, Datatype::Uint32, (-6i32).to_ne_bytes(), 5u32.to_ne_bytes(), &[]);
        assert_eq!(i32::from_ne_bytes(unsigned), -6, "unsigned comparison");
        assert_eq!(i32s(Mswap, 0x1234_5678, 0x0fed_cba9, 0x00ff_00ff), 0x12ed_56a9);
    }

    #[test]
    fn conditional_swaps_compare_the_operand_with_the_target() {
        use AtomicOp::*;
        let swapped =
            |operand| [Cswap, CswapNe, CswapLe, CswapLt, CswapGe, CswapGt].map(|op| i32s(op, 7, 9, operand) == 9);
        assert_eq!(swapped(7), [true, false, true, false, true, false]);
        assert_eq!(swapped(6), [false, true, true, true, false, false]);
        assert_eq!(swapped(8), [false, true, false, false, true, true]);
    }

    #[test]
    fn floating_point_and_complex() {
        let f = |op| f64::from_ne_bytes(run(op, Datatype::Double, 2.5f64.to_ne_bytes(), (-4.0f64).to_ne_bytes(), &[]));
        assert_eq!([AtomicOp::Sum, AtomicOp::Prod, AtomicOp::Min, AtomicOp::Max].map(f), [-1.5, -10.0, -4.0, 2.5]);
        let pair = |re: f32, im: f32| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&re.to_ne_bytes());
            bytes[4..].copy_from_slice(&im.to_ne_bytes());
            bytes
        };
        // (1 + 2i)(3 - i) = 5 + 5i
        let product = run(AtomicOp::Prod, Datatype::FloatComplex, pair(1.0, 2.0), pair(3.0, -1.0), &[]);
        assert_eq!(product, pair(5.0, 5.0));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn long_doubles_keep_64_bits_of_precision() {
        // 1 as an 80-bit number: mantissa 1 << 63, exponent 16383; 2^-63 has exponent 16383 - 63.
        let number = |exponent: u16, mantissa: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&mantissa.to_ne_bytes());
            bytes[8..10].copy_from_slice(&exponent.to_ne_bytes());
            bytes
        };
        let (one, tiny) = (number(16383, 1 << 63), number(16383 - 63, 1 << 63));
        let sum = run(AtomicOp::Sum, Datatype::LongDouble, one, tiny, &[]);
        assert_eq!(sum, number(16383, 1 << 63 | 1), "a double would have lost it");
        assert_eq!(run(AtomicOp::Min, Datatype::LongDouble, one, tiny, &[]), tiny);
        assert_eq!(run(AtomicOp::Max, Datatype::LongDouble, one, tiny, &[]), one);
        assert_eq!(run(AtomicOp::Cswap, Datatype::LongDouble, one, tiny, &one), tiny);
    }

    #[test]
    fn several_items_and_a_trailing_part() {
        let mut target = [1u8, 0, 2, 0, 9];
        AtomicSpec { op: AtomicOp::Sum, datatype: Datatype::Int16 }.apply(&mut target, &[1, 1, 1, 1, 1], &[]);
        assert_eq!(target, [2, 1, 3, 1, 9]);
    }

    #[test]
    fn which_operations_a_type_has() {
        let counts: Vec<usize> = Datatype::ALL
            .iter()
            .map(|(datatype, _)| {
                AtomicOp::ALL.iter().filter(|(op, _)| AtomicSpec { op: *op, datatype: *datatype }.is_defined()).count()
            })
            .collect();
        let (integer, real, complex) = (18, 11, 5);
        let mut expected = [integer; 14];
        for datatype in [Datatype::Float, Datatype::Double, Datatype::LongDouble] {
            expected[datatype as usize] = real;
        }
        for datatype in [Datatype::FloatComplex, Datatype::DoubleComplex, Datatype::LongDoubleComplex] {
            expected[datatype as usize] = complex;
        }
        assert_eq!(counts, expected);
    }
}
