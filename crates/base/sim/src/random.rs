// SPDX-License-Identifier: Apache-2.0
//! Portable random numbers: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).

/// Advances the state and returns the next number.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// Advances the state and returns a number in [0, 1).
pub fn fraction(state: &mut u64) -> f64 {
    /// 2^-53: the distance of adjacent numbers.
    const STEP: f64 = 1.0 / (1u64 << 53) as f64;
    (next(state) >> 11) as f64 * STEP
}

/// Returns a hash of `value`: each bit of `value` affects all bits of the result.
pub fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    /// Compares with the output of the published program with seed 1234567.
    #[test]
    fn numbers_are_those_of_the_publication() {
        let mut state = 1_234_567;
        let numbers = [(); 3].map(|()| super::next(&mut state));
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
