// SPDX-License-Identifier: Apache-2.0
//! F and D: values, NaN boxing, canonical NaNs, conversions.

use hpu::Stop;

use crate::card::{Card, result};
use hpu::testing::*;

const SNAN32: u32 = 0x7f80_0001;
const QNAN32: u32 = 0x7fc0_0000;
const QNAN64: u64 = 0x7ff8_0000_0000_0000;
const SNAN64: u64 = 0x7ff0_0000_0000_0001;

fn boxed(bits: u32) -> u64 {
    0xffff_ffff_0000_0000 | u64::from(bits)
}

fn single(value: f32) -> u64 {
    boxed(value.to_bits())
}

fn double(value: f64) -> u64 {
    value.to_bits()
}

/// Runs `word` on f1, f2, f3 and a0; returns f4 and a0.
fn run(word: u32, f: [u64; 3], a0: u32) -> (u64, u32) {
    let fld = |rd, imm| i(0x07, 3, rd, A5, imm);
    let mut card = Card::new(&[DATA_A5, fld(1, 0), fld(2, 8), fld(3, 16), word, s(0x27, 3, A5, 4, 24), RET]);
    for (n, bits) in f.iter().enumerate() {
        card.set(8 * n, &bits.to_le_bytes());
    }
    match card.run([a0, 0, 0]).0 {
        Stop::Return(a0) => (card.double(24), a0),
        stop => panic!("{stop:?}"),
    }
}

/// Computes `f4 = f1 op f2`: `f7` has the format in its low bits, `f3` is a function or rounding mode.
fn arithmetic(f7: u32, f3: u32, a: u64, b: u64) -> u64 {
    run(r(0x53, f3, f7, 4, 1, 2), [a, b, 0], 0).0
}

#[test]
fn single_arithmetic_rounds_to_nearest_and_boxes() {
    let cases = [
        (0x00, 0.1, 0.2, 0.1_f32 + 0.2),
        (0x00, 16_777_216.0, 1.0, 16_777_216.0),
        (0x04, 1.0, 3.0, -2.0),
        (0x08, 1.0e30, 1.0e30, f32::INFINITY),
        (0x08, -1.0e-40, 1.0e-30, -0.0),
        (0x0c, 1.0, 3.0, 1.0 / 3.0),
        (0x0c, -1.0, 0.0, f32::NEG_INFINITY),
    ];
    for (f7, a, b, expected) in cases {
        // Static and dynamic rounding mode
        for mode in [0, 7] {
            assert_eq!(arithmetic(f7, mode, single(a), single(b)), single(expected), "{f7:#x} {a} {b}");
        }
    }
    assert_eq!(run(r(0x53, 7, 0x2c, 4, 1, 0), [single(2.0), 0, 0], 0).0, single(std::f32::consts::SQRT_2));
}

#[test]
fn double_arithmetic() {
    let cases = [
        (0x01, 0.1, 0.2, 0.1 + 0.2),
        (0x05, 1.0, 1e-17, 1.0),
        (0x09, 0.1, 3.0, 0.1 * 3.0),
        (0x0d, 2.0, 3.0, 2.0 / 3.0),
    ];
    for (f7, a, b, expected) in cases {
        assert_eq!(arithmetic(f7, 7, double(a), double(b)), double(expected), "{f7:#x} {a} {b}");
    }
    assert_eq!(run(r(0x53, 7, 0x2d, 4, 1, 0), [double(2.0), 0, 0], 0).0, double(std::f64::consts::SQRT_2));
}

#[test]
fn computed_nans_are_canonical() {
    let payload = boxed(0xffc1_2345);
    assert_eq!(arithmetic(0x00, 7, payload, single(1.0)), boxed(QNAN32));
    assert_eq!(arithmetic(0x0c, 7, single(0.0), single(0.0)), boxed(QNAN32));
    assert_eq!(arithmetic(0x04, 7, single(f32::INFINITY), single(f32::INFINITY)), boxed(QNAN32));
    assert_eq!(run(r(0x53, 7, 0x2d, 4, 1, 0), [double(-1.0), 0, 0], 0).0, QNAN64);
    assert_eq!(arithmetic(0x01, 7, SNAN64 | 1 << 63, double(1.0)), QNAN64);
    // fcvt.d.s, fcvt.s.d
    assert_eq!(run(r(0x53, 7, 0x21, 4, 1, 0), [boxed(0xff80_0001), 0, 0], 0).0, QNAN64);
    assert_eq!(run(r(0x53, 7, 0x20, 4, 1, 1), [SNAN64, 0, 0], 0).0, boxed(QNAN32));
}

#[test]
fn a_single_that_is_not_boxed_is_nan() {
    let unboxed = u64::from(1.0_f32.to_bits());
    assert_eq!(arithmetic(0x00, 7, unboxed, single(1.0)), boxed(QNAN32));
    // fsgnj.s copies the canonical NaN, fclass.s sees a quiet NaN; fmv.x.w and fsw move the bits.
    assert_eq!(arithmetic(0x10, 0, unboxed, unboxed), boxed(QNAN32));
    assert_eq!(run(r(0x53, 1, 0x70, A0, 1, 0), [unboxed, 0, 0], 0).1, 1 << 9);
    assert_eq!(run(r(0x53, 0, 0x70, A0, 1, 0), [unboxed, 0, 0], 0).1, unboxed as u32);
}

#[test]
fn fused_operations_round_once() {
    let e = f64::EPSILON;
    let (a, b, c) = (1.0 + e, 1.0 - e, -1.0);
    // (1 + e)(1 - e) - 1 = -e^2, which is lost if the product is rounded
    let fused = |opcode: u32, f: [u64; 3], format: u32| run(r(opcode, 7, 3 << 2 | format, 4, 1, 2), f, 0).0;
    let f = [double(a), double(b), double(c)];
    assert_eq!(fused(0x43, f, 1), double(-e * e));
    assert_eq!(fused(0x47, f, 1), double(2.0));
    assert_eq!(fused(0x4b, f, 1), double(-2.0));
    assert_eq!(fused(0x4f, f, 1), double(e * e));
    let f = [single(3.0), single(5.0), single(1.0)];
    let expected = [(0x43, 16.0), (0x47, 14.0), (0x4b, -14.0), (0x4f, -16.0)];
    for (opcode, value) in expected {
        assert_eq!(fused(opcode, f, 0), single(value), "{opcode:#x}");
    }
}

#[test]
fn sign_injection_moves_bits() {
    let (a, b) = (single(1.5), single(-2.0));
    assert_eq!([0, 1, 2].map(|f3| arithmetic(0x10, f3, a, b)), [single(-1.5), single(1.5), single(-1.5)]);
    let (a, b) = (SNAN64, double(-0.0));
    assert_eq!([0, 1, 2].map(|f3| arithmetic(0x11, f3, a, b)), [SNAN64 | 1 << 63, SNAN64, SNAN64 | 1 << 63]);
}

#[test]
fn minimum_and_maximum() {
    let nan = boxed(SNAN32);
    for (a, b, min, max) in [
        (single(1.0), single(-2.0), single(-2.0), single(1.0)),
        (single(0.0), single(-0.0), single(-0.0), single(0.0)),
        (single(-0.0), single(0.0), single(-0.0), single(0.0)),
        (nan, single(3.0), single(3.0), single(3.0)),
        (single(3.0), nan, single(3.0), single(3.0)),
        (nan, nan, boxed(QNAN32), boxed(QNAN32)),
    ] {
        assert_eq!((arithmetic(0x14, 0, a, b), arithmetic(0x14, 1, a, b)), (min, max), "{a:#x} {b:#x}");
    }
    assert_eq!(arithmetic(0x15, 0, double(1.0), double(f64::NEG_INFINITY)), double(f64::NEG_INFINITY));
}

#[test]
fn comparisons() {
    // fle, flt, feq
    let compare = |format: u32, a, b| [0, 1, 2].map(|f3| run(r(0x53, f3, 0x50 | format, A0, 1, 2), [a, b, 0], 9).1);
    assert_eq!(compare(0, single(1.0), single(2.0)), [1, 1, 0]);
    assert_eq!(compare(0, single(2.0), single(2.0)), [1, 0, 1]);
    assert_eq!(compare(0, single(0.0), single(-0.0)), [1, 0, 1]);
    assert_eq!(compare(0, boxed(QNAN32), single(2.0)), [0, 0, 0]);
    assert_eq!(compare(1, double(-1.0), double(-2.0)), [0, 0, 0]);
    assert_eq!(compare(1, QNAN64, QNAN64), [0, 0, 0]);
}

#[test]
fn classes() {
    let singles = [0xff80_0000, 0xbf80_0000, 0x8000_0001, 0x8000_0000, 0, 1, 0x3f80_0000, 0x7f80_0000, SNAN32, QNAN32];
    for (class, bits) in singles.into_iter().enumerate() {
        assert_eq!(run(r(0x53, 1, 0x70, A0, 1, 0), [boxed(bits), 0, 0], 0).1, 1 << class, "{bits:#x}");
    }
    let doubles = [
        f64::NEG_INFINITY.to_bits(),
        double(-1.0),
        1 << 63 | 1,
        1 << 63,
        0,
        1,
        double(1.0),
        f64::INFINITY.to_bits(),
        SNAN64,
        QNAN64,
    ];
    for (class, bits) in doubles.into_iter().enumerate() {
        assert_eq!(run(r(0x53, 1, 0x71, A0, 1, 0), [bits, 0, 0], 0).1, 1 << class, "{bits:#x}");
    }
}

#[test]
fn conversions_to_integers_round_by_mode_and_saturate() {
    let convert = |format: u32, unsigned: u32, mode: u32, bits: u64| {
        run(r(0x53, mode, 0x60 | format, A0, 1, unsigned), [bits, 0, 0], 0).1
    };
    // Modes: nearest even, towards zero, down, up, nearest away, and through frm
    let modes = [0, 1, 2, 3, 4, 7];
    for (value, rounded) in [
        (2.5, [2, 2, 2, 3, 3, 2]),
        (-2.5, [-2, -2, -3, -2, -3, -2]),
        (1.1, [1, 1, 1, 2, 1, 1]),
        (-0.5, [0, 0, -1, 0, -1, 0]),
        (3.0e9, [i32::MAX; 6]),
        (-3.0e9, [i32::MIN; 6]),
        (f64::INFINITY, [i32::MAX; 6]),
        (f64::NAN, [i32::MAX; 6]),
    ] {
        let expected = rounded.map(|v: i32| v as u32);
        assert_eq!(modes.map(|mode| convert(1, 0, mode, double(value))), expected, "{value}");
        assert_eq!(modes.map(|mode| convert(0, 0, mode, single(value as f32))), expected, "{value}");
    }
    for (value, expected) in
        [(3.0e9, 3_000_000_000), (-0.9, 0), (-1.0, 0), (5.0e9, u32::MAX), (f64::NEG_INFINITY, 0), (f64::NAN, u32::MAX)]
    {
        assert_eq!(convert(1, 1, 1, double(value)), expected, "{value}");
        assert_eq!(convert(0, 1, 1, single(value as f32)), expected, "{value}");
    }
    assert_eq!(convert(1, 1, 0, double(4_294_967_294.5)), 4_294_967_294);
}

#[test]
fn conversions_from_integers_and_between_formats() {
    let from = |f7: u32, unsigned: u32, mode: u32, a0: u32| run(r(0x53, mode, f7, 4, A0, unsigned), [0; 3], a0).0;
    assert_eq!(from(0x68, 0, 7, -3_i32 as u32), single(-3.0));
    assert_eq!(from(0x68, 0, 7, 16_777_217), single(16_777_216.0));
    assert_eq!(from(0x68, 1, 7, u32::MAX), single(4_294_967_296.0));
    assert_eq!(from(0x69, 0, 0, i32::MIN as u32), double(-2_147_483_648.0));
    assert_eq!(from(0x69, 1, 1, u32::MAX), double(4_294_967_295.0));
    // fcvt.s.d rounds, fcvt.d.s is exact
    assert_eq!(run(r(0x53, 7, 0x20, 4, 1, 1), [double(0.1), 0, 0], 0).0, single(0.1));
    assert_eq!(run(r(0x53, 0, 0x21, 4, 1, 0), [single(0.1), 0, 0], 0).0, double(f64::from(0.1_f32)));
}

#[test]
fn moves_loads_and_stores() {
    assert_eq!(run(r(0x53, 0, 0x78, 4, A0, 0), [0; 3], SNAN32).0, boxed(SNAN32));
    assert_eq!(run(r(0x53, 0, 0x70, A0, 1, 0), [0x1234_5678_9abc_def0, 0, 0], 0).1, 0x9abc_def0);
    // flw boxes; fsw stores the low word of any value
    let mut card = Card::new(&[DATA_A5, i(0x07, 2, 0, A5, 1), s(0x27, 2, A5, 0, 8), s(0x27, 3, A5, 0, 17), RET]);
    card.set(1, &1.5_f32.to_le_bytes());
    card.run([0; 3]);
    assert_eq!((card.word(8), card.double(17)), (1.5_f32.to_bits(), single(1.5)));
}

#[test]
fn rounding_modes_that_are_not_modelled_are_illegal() {
    let illegal = [
        r(0x53, 1, 0x00, 4, 1, 2),  // fadd.s rtz
        r(0x53, 2, 0x0d, 4, 1, 2),  // fdiv.d rdn
        r(0x43, 3, 0x01, 4, 1, 2),  // fmadd.d rup
        r(0x53, 1, 0x20, 4, 1, 1),  // fcvt.s.d rtz
        r(0x53, 1, 0x68, 4, 10, 0), // fcvt.s.w rtz
        r(0x53, 5, 0x60, 10, 1, 0), // fcvt.w.s with a reserved mode
    ];
    for word in illegal {
        let stop = Card::new(&[word]).run([0; 3]).0;
        assert_eq!(stop, Stop::Fault(hpu::Fault::Illegal { pc: abi::device::map::PROGRAM, word }));
    }
}

#[test]
fn integer_x0_as_a_destination_is_dropped() {
    // feq.s x0, f1, f1; add a0, x0, x0
    assert_eq!(result(&[r(0x53, 2, 0x50, 0, 1, 1), add(A0, 0, 0)], [1, 0, 0]), 0);
}
