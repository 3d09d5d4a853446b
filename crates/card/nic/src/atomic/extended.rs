// SPDX-License-Identifier: Apache-2.0
//! `long double` of x86-64, on the x87 unit. `AtomicSpec::is_defined` restricts the type to x86-64, so other machines
//! never reach this code.

use std::cmp::Ordering;

/// 80-bit extended precision in 16 bytes, copied with its padding.
#[derive(Clone, Copy)]
pub struct Extended(pub [u8; 16]);

macro_rules! arithmetic {
    ($name:ident, $instruction:literal) => {
        #[cfg(target_arch = "x86_64")]
        pub fn $name(a: &Extended, b: &Extended) -> Extended {
            let mut result = *a;
            // SAFETY: reads two and writes one of our 10-byte operands, and leaves the x87 stack unchanged.
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{a}]", "fld tbyte ptr [{b}]", $instruction, "fstp tbyte ptr [{r}]",
                    a = in(reg) a.0.as_ptr(), b = in(reg) b.0.as_ptr(), r = in(reg) result.0.as_mut_ptr(),
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }

        #[cfg(not(target_arch = "x86_64"))]
        pub fn $name(a: &Extended, _: &Extended) -> Extended {
            *a
        }
    };
}

arithmetic!(sum, "faddp st(1), st");
arithmetic!(difference, "fsubp st(1), st");
arithmetic!(product, "fmulp st(1), st");

#[cfg(target_arch = "x86_64")]
fn compare(a: &Extended, b: &Extended) -> Option<Ordering> {
    let (below, equal, unordered): (u8, u8, u8);
    // SAFETY: reads two of our 10-byte operands, and leaves the x87 stack unchanged.
    unsafe {
        std::arch::asm!(
            "fld tbyte ptr [{b}]", "fld tbyte ptr [{a}]", "fucomip st, st(1)",
            "setb {below}", "sete {equal}", "setp {unordered}", "fstp st(0)",
            a = in(reg) a.0.as_ptr(), b = in(reg) b.0.as_ptr(),
            below = out(reg_byte) below, equal = out(reg_byte) equal, unordered = out(reg_byte) unordered,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        );
    }
    match (unordered, below, equal) {
        (1, ..) => None,
        (_, 1, _) => Some(Ordering::Less),
        (_, _, 1) => Some(Ordering::Equal),
        _ => Some(Ordering::Greater),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn compare(_: &Extended, _: &Extended) -> Option<Ordering> {
    None
}

impl PartialEq for Extended {
    fn eq(&self, other: &Extended) -> bool {
        compare(self, other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Extended {
    fn partial_cmp(&self, other: &Extended) -> Option<Ordering> {
        compare(self, other)
    }
}
