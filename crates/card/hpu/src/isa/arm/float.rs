// SPDX-License-Identifier: Apache-2.0
//! Floating-point arithmetic of ARM (A2.7) in two modes: IEEE 754 with propagated NaNs for VFP, and the standard mode of
//! Advanced SIMD, which flushes denormal numbers to zero and returns the default NaN. The host's arithmetic rounds to
//! nearest.

/// A floating-point format with its register bits.
pub trait Float: Copy + PartialOrd {
    /// Register bits.
    type Bits: Copy;
    const DEFAULT_NAN: Self::Bits;
    fn of(bits: Self::Bits) -> Self;
    fn bits(self) -> Self::Bits;
    fn is_a_nan(bits: Self::Bits) -> bool;
    fn is_signalling(bits: Self::Bits) -> bool;
    fn quiet(bits: Self::Bits) -> Self::Bits;
    fn negated(bits: Self::Bits) -> Self::Bits;
    fn absolute(bits: Self::Bits) -> Self::Bits;
    fn is_infinite(self) -> bool;
    fn is_zero(self) -> bool;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn sqrt(self) -> Self;
    fn fused(self, b: Self, c: Self) -> Self;
}

macro_rules! float {
    ($float:ty, $bits:ty, $nan:literal, $quiet:literal) => {
        impl Float for $float {
            type Bits = $bits;
            const DEFAULT_NAN: $bits = $nan;
            fn of(bits: $bits) -> Self {
                <$float>::from_bits(bits)
            }
            fn bits(self) -> $bits {
                self.to_bits()
            }
            fn is_a_nan(bits: $bits) -> bool {
                <$float>::from_bits(bits).is_nan()
            }
            fn is_signalling(bits: $bits) -> bool {
                Self::is_a_nan(bits) && bits & $quiet == 0
            }
            fn quiet(bits: $bits) -> $bits {
                bits | $quiet
            }
            fn negated(bits: $bits) -> $bits {
                bits ^ 1 << (<$bits>::BITS - 1)
            }
            fn absolute(bits: $bits) -> $bits {
                bits & <$bits>::MAX >> 1
            }
            fn is_infinite(self) -> bool {
                self.is_infinite()
            }
            fn is_zero(self) -> bool {
                self == 0.0
            }
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn sub(self, b: Self) -> Self {
                self - b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
        }
    };
}

float!(f32, u32, 0x7fc0_0000, 0x0040_0000);
float!(f64, u64, 0x7ff8_0000_0000_0000, 0x0008_0000_0000_0000);

/// Returns the NaN that an operation on these operands propagates (A2.7.4): the first signalling one, else the first.
fn propagated<F: Float>(operands: &[F::Bits]) -> Option<F::Bits> {
    let signalling = operands.iter().find(|bits| F::is_signalling(**bits));
    signalling.or_else(|| operands.iter().find(|bits| F::is_a_nan(**bits))).map(|bits| F::quiet(*bits))
}

/// Returns the bits of a computed value, with the default NaN of an invalid operation.
fn finished<F: Float>(value: F) -> F::Bits {
    let bits = value.bits();
    if F::is_a_nan(bits) { F::DEFAULT_NAN } else { bits }
}

/// Computes an operation of two operands.
#[inline(always)]
pub fn binary<F: Float>(a: F::Bits, b: F::Bits, f: impl FnOnce(F, F) -> F) -> F::Bits {
    let value = f(F::of(a), F::of(b));
    if !F::is_a_nan(value.bits()) {
        return value.bits();
    }
    propagated::<F>(&[a, b]).unwrap_or(F::DEFAULT_NAN)
}

/// Computes a square root.
pub fn root<F: Float>(a: F::Bits) -> F::Bits {
    propagated::<F>(&[a]).unwrap_or_else(|| finished(F::of(a).sqrt()))
}

/// Computes `c + a * b` with one rounding. The addend comes first in the order of NaNs, and a NaN addend of an invalid product
/// yields the default NaN (FPMulAdd).
pub fn fused<F: Float>(c: F::Bits, a: F::Bits, b: F::Bits) -> F::Bits {
    let value = F::of(a).fused(F::of(b), F::of(c));
    if !F::is_a_nan(value.bits()) {
        return value.bits();
    }
    let (x, y) = (F::of(a), F::of(b));
    let is_invalid = x.is_infinite() && y.is_zero() || x.is_zero() && y.is_infinite();
    if is_invalid && F::is_a_nan(c) && !F::is_signalling(c) {
        return F::DEFAULT_NAN;
    }
    propagated::<F>(&[c, a, b]).unwrap_or(F::DEFAULT_NAN)
}

/// Returns the flags NZCV of a comparison in bits 31 to 28 (A2.7.8).
pub fn compared<F: Float>(a: F, b: F) -> u32 {
    match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Less) => 0x8000_0000,
        Some(std::cmp::Ordering::Equal) => 0x6000_0000,
        Some(std::cmp::Ordering::Greater) => 0x2000_0000,
        None => 0x3000_0000,
    }
}

/// Converts a single to a double.
pub fn widened(a: u32) -> u64 {
    if f32::is_nan(f32::from_bits(a)) {
        let (sign, fraction) = (u64::from(a >> 31) << 63, u64::from(a & 0x7f_ffff) << 29);
        return sign | 0x7ff8_0000_0000_0000 | fraction;
    }
    f64::from(f32::from_bits(a)).to_bits()
}

/// Converts a double to a single.
pub fn narrowed(a: u64) -> u32 {
    if f64::is_nan(f64::from_bits(a)) {
        return ((a >> 63) as u32 * 0x8000_0000) | 0x7fc0_0000 | (a >> 29) as u32 & 0x3f_ffff;
    }
    (f64::from_bits(a) as f32).to_bits()
}

/// Returns an operand of Advanced SIMD: denormal numbers are zero.
#[inline(always)]
pub fn flushed(bits: u32) -> f32 {
    if bits & 0x7f80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { f32::from_bits(bits) }
}

/// Returns a result of Advanced SIMD: `value` is rounded from `exact`, whose size decides on a flush to zero.
#[inline(always)]
pub fn standard(value: f32, exact: f64) -> u32 {
    if value.is_nan() {
        return 0x7fc0_0000;
    }
    if exact.abs() < f64::from(f32::MIN_POSITIVE) {
        return value.to_bits() & 0x8000_0000;
    }
    value.to_bits()
}

/// Adds in the standard mode. A sum of singles near the smallest normal number is exact in double precision.
pub fn standard_add(a: u32, b: u32) -> u32 {
    let (a, b) = (flushed(a), flushed(b));
    standard(a + b, f64::from(a) + f64::from(b))
}

/// Subtracts in the standard mode.
pub fn standard_sub(a: u32, b: u32) -> u32 {
    let (a, b) = (flushed(a), flushed(b));
    standard(a - b, f64::from(a) - f64::from(b))
}

/// Multiplies in the standard mode; a product of singles is exact in double precision.
pub fn standard_mul(a: u32, b: u32) -> u32 {
    let (a, b) = (flushed(a), flushed(b));
    standard(a * b, f64::from(a) * f64::from(b))
}

/// Computes `c + a * b` with one rounding in the standard mode.
pub fn standard_fused(c: u32, a: u32, b: u32) -> u32 {
    let (c, a, b) = (flushed(c), flushed(a), flushed(b));
    let value = a.mul_add(b, c);
    // The product is exact, and so is the error of the sum (Knuth's TwoSum): a sum that is rounded up to the smallest normal
    // number is too small.
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let part = sum - product;
    let error = (product - (sum - part)) + (addend - part);
    let is_rounded_up = sum.abs() == f64::from(f32::MIN_POSITIVE) && error != 0.0 && (error < 0.0) == (sum > 0.0);
    standard(value, if is_rounded_up { 0.0 } else { sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_below_the_normal_numbers_are_zero() {
        let bits = f32::to_bits;
        let least = f32::MIN_POSITIVE;
        assert_eq!(standard_add(bits(least), bits(1.0e-40)), bits(least));
        assert_eq!(standard_sub(bits(1.5 * least), bits(least)), 0);
        assert_eq!(standard_mul(bits(-least), bits(0.5)), bits(-0.0));
        // The smallest normal number minus a number that vanishes in double precision
        assert_eq!(standard_fused(bits(least), bits(1.0e-30), bits(-1.0e-30)), 0);
        assert_eq!(standard_fused(bits(-least), bits(1.0e-30), bits(1.0e-30)), bits(-0.0));
        assert_eq!(standard_fused(bits(least), bits(1.0e-30), bits(1.0e-30)), bits(least));
    }
}
