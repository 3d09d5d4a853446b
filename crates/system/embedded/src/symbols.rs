// SPDX-License-Identifier: Apache-2.0
//! Functions and variables outside of a program that an embedded rank may use.

use crate::c_library;
use crate::program::Program;
use crate::types::{Symbol, Unfit};
use std::ffi::{CString, OsStr, c_void};

/// Functions of the C library without state, except `errno` and the streams that they receive.
#[rustfmt::skip]
const STATELESS: &[&str] = &[
    // <string.h>, <strings.h>
    "memcpy", "memmove", "memset", "memcmp", "memchr", "memrchr", "memmem", "mempcpy", "rawmemchr", "bcmp", "bzero",
    "bcopy", "strlen", "strnlen", "strcpy", "strncpy", "stpcpy", "stpncpy", "strcat", "strncat", "strcmp", "strncmp",
    "strcasecmp", "strncasecmp", "strchr", "strrchr", "strchrnul", "strspn", "strcspn", "strpbrk", "strstr",
    "strcasestr", "strtok_r", "strsep", "strerror", "ffs", "ffsl", "ffsll", "index", "rindex",
    "__memcpy_chk", "__memmove_chk", "__memset_chk", "__strcpy_chk", "__strncpy_chk", "__strcat_chk", "__strncat_chk",
    "__stpcpy_chk", "__mempcpy_chk",
    // <stdlib.h>
    "atoi", "atol", "atoll", "atof", "strtol", "strtoll", "strtoul", "strtoull", "strtod", "strtof", "strtold",
    "__isoc23_strtol", "__isoc23_strtoll", "__isoc23_strtoul", "__isoc23_strtoull", "abs", "labs", "llabs", "div",
    "ldiv", "lldiv", "qsort", "qsort_r", "bsearch", "rand_r",
    // <stdio.h>: the C library's variables `stdout` and `stderr` name the streams of the running rank
    "printf", "vprintf", "fprintf", "vfprintf", "sprintf", "vsprintf", "snprintf", "vsnprintf", "puts", "fputs",
    "putchar", "putc", "fputc", "fwrite", "fread", "fgets", "fgetc", "getc", "ungetc", "fseek", "ftell", "rewind",
    "feof", "ferror", "clearerr", "fscanf", "sscanf", "vsscanf", "vfscanf", "setvbuf", "setbuf", "perror", "_IO_putc",
    "__printf_chk", "__fprintf_chk", "__vprintf_chk", "__vfprintf_chk", "__sprintf_chk", "__snprintf_chk",
    "__vsprintf_chk", "__vsnprintf_chk", "__isoc99_sscanf", "__isoc99_fscanf", "__isoc23_sscanf", "__isoc23_fscanf",
    "__fgets_chk", "__fread_chk",
    // <ctype.h>, <errno.h>
    "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "isalnum", "isalpha", "isblank", "iscntrl",
    "isdigit", "isgraph", "islower", "isprint", "ispunct", "isspace", "isupper", "isxdigit", "tolower", "toupper",
    "__errno_location",
    // <math.h>
    "acos", "asin", "atan", "atan2", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acosh", "asinh", "atanh", "exp",
    "exp2", "expm1", "frexp", "ldexp", "log", "log10", "log1p", "log2", "logb", "ilogb", "modf", "scalbn", "cbrt",
    "fabs", "hypot", "pow", "sqrt", "ceil", "floor", "nearbyint", "rint", "lrint", "llrint", "round", "lround",
    "llround", "trunc", "fmod", "remainder", "fmax", "fmin", "fdim", "fma", "sincos", "acosf", "asinf", "atanf",
    "atan2f", "cosf", "sinf", "tanf", "expf", "exp2f", "logf", "log10f", "log2f", "powf", "sqrtf", "ceilf", "floorf",
    "rintf", "roundf", "truncf", "fmodf", "fmaxf", "fminf", "fabsf", "sincosf", "fmaf", "ldexpf", "lroundf", "hypotf",
];

/// Weak symbols of the compiler's start files that do not exist in ordinary programs.
const ABSENT: [&str; 3] = ["__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"];

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// [`Unfit`] with the reason why it cannot be embedded.
    pub fn open(path: &OsStr) -> Result<Program, Unfit> {
        Program::read(path, find)
    }
}

/// Returns a symbol by its name; `None` if an embedded rank may not use it.
fn find(name: &[u8], is_weak: bool) -> Option<Symbol> {
    let name = std::str::from_utf8(name).ok()?;
    match name {
        "stdin" => return Some(Symbol::Stream(0)),
        "stdout" => return Some(Symbol::Stream(1)),
        "stderr" => return Some(Symbol::Stream(2)),
        "environ" | "__environ" | "_environ" => return Some(Symbol::Environment),
        _ if is_weak && ABSENT.contains(&name) => return Some(Symbol::Function(0)),
        _ => {}
    }
    let replaced = c_library::function(name).or_else(|| portals::api::function(name));
    replaced.or_else(|| of_c_library(name)).map(|function| Symbol::Function(function as u64))
}

fn of_c_library(name: &str) -> Option<*const c_void> {
    let name = CString::new(*STATELESS.iter().find(|known| **known == name)?).ok()?;
    // SAFETY: valid strings. The mathematical library need not be linked to this process.
    unsafe {
        let mut found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if found.is_null() {
            found = libc::dlsym(libc::dlopen(c"libm.so.6".as_ptr(), libc::RTLD_NOW), name.as_ptr());
        }
        (!found.is_null()).then_some(found.cast_const())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_state_of_a_process_are_unknown() {
        for name in ["fork", "pthread_create", "signal", "chdir", "getpid", "dlopen", "mmap", "clock_gettime"] {
            assert_eq!(find(name.as_bytes(), false), None, "{name}");
        }
        assert_eq!(find(b"__gmon_start__", true), Some(Symbol::Function(0)));
        assert_eq!(find(b"__gmon_start__", false), None);
        assert_eq!(find(b"stderr", false), Some(Symbol::Stream(2)));
        for name in ["printf", "malloc", "exit", "PtlPut", "spin_barrier", "sin"] {
            assert!(matches!(find(name.as_bytes(), false), Some(Symbol::Function(1..))), "{name}");
        }
    }
}
