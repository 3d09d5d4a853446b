// SPDX-License-Identifier: Apache-2.0
//! Tests errors in texts, and their locations.

use goal::text::read;
use proptest::prelude::*;

fn error(text: &str) -> String {
    read(text.as_bytes()).expect_err(text).to_string()
}

/// Returns the error of a schedule of two ranks whose rank 0 has this body, on line 2.
fn in_rank(body: &str) -> String {
    error(&format!("num_ranks 2\nrank 0 {{ {body}\n}}\nrank 1 {{ }}"))
}

#[test]
fn texts_that_end_or_start_wrong() {
    for (text, expected) in [
        ("", "1:1: expected num_ranks, found the end of the text"),
        ("num_ranks", "1:10: expected num_ranks, found the end of the text"),
        ("num_ranks 0", "1:11: expected at least one rank, found \"0\""),
        ("num_ranks 99999999999999999999", "1:11: num_ranks 99999999999999999999 is too large: at most 1073741824"),
        ("num_ranks 2\nrank 0 {}\n", "3:1: rank 1 has no block, but num_ranks is 2"),
        ("num_ranks 1\nrank 0 {\nl1: calc 5\n", "4:1: the text ends within rank 0: no }"),
        ("num_ranks 1\nrank 1 {}", "2:6: rank 1 does not exist: num_ranks is 1, ranks are numbered from 0"),
        ("num_ranks 1\nrank 0 {}\nrank 0 {}", "3:1: rank 0 has two blocks"),
        ("num_ranks 1 /* so", "1:13: comment without end"),
        ("num_ranks 1\nrank 0 {} }", "2:11: expected rank, found \"}\""),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn statements_that_are_wrong() {
    for (body, expected) in [
        ("calc 18446744073709552", "2:15: calc 18446744073709552 is too large: at most 18446744073709551"),
        ("calc 5x", "2:16: expected the end of the calc, found \"x\""),
        ("calc 5 tag 3", "2:17: calc has no tag"),
        ("l1: clac 5", "2:14: expected an operation, found \"clac\""),
        ("send 8 to 1", "2:16: expected b behind the number of bytes, found \" \""),
        ("send 8b from 1", "2:18: expected to, found \"from\""),
        ("send 8b to 2", "2:21: rank 2 does not exist: num_ranks is 2, ranks are numbered from 0"),
        ("send 8b to any", "2:14: only a receive may have any rank"),
        ("send 8b to 1 tag -1", "2:14: only a receive may have any tag"),
        ("send 8b to 1 tag 1 tag 2", "2:29: tag is given twice"),
        ("recv 8b from 1 cpu 256", "2:29: cpu 256 is too large: at most 255"),
        ("recv 8b from 1 tag 4294967295", "2:29: tag 4294967295 is too large: at most 4294967294"),
        ("a: calc 1 a: calc 2", "2:20: label a is defined twice in rank 0"),
        ("a: calc 1 a requires b", "2:31: label b is not defined in rank 0"),
        (
            "a: calc 1 a needs b",
            "2:22: expected an operation, or `:`, requires or irequires behind a label, found \"needs\"",
        ),
        ("a: calc 1\na requires a", "3:1: rank 0: cycle of dependencies: operation 1 waits for itself"),
        (
            "a: calc 1 b: calc 1\nb requires a\na irequires b",
            "4:1: rank 0: cycle of dependencies: operation 1 waits for itself through 2",
        ),
        ("append 8b to some_list", "2:23: expected priority_list or overflow_list, found \"some_list\""),
        ("append 8b to priority_list ct 1 tag 2", "2:16: append needs allowed"),
        ("put 8b to 1 hh 3 tag 4", "2:13: put has no hh"),
        ("tput 8b to 1 tag 4", "2:14: tput needs when"),
        ("test 4 for 1 ct 2", "2:14: test has no ct"),
    ] {
        assert_eq!(in_rank(body), expected, "{body}");
    }
}

#[test]
fn labels_may_come_later_and_comments_anywhere() {
    let text = "num_ranks 1 // one\nrank 0 { b requires a /* both\n later */ a: calc 1 cpu: calc 2 cpu 3 b: calc 3}";
    let schedule = read(text.as_bytes()).unwrap();
    assert_eq!((schedule.len(), schedule.cpus()), (3, 4));
    assert_eq!(schedule.dependents(0).map(|(op, _)| op).collect::<Vec<_>>(), [2]);
}

const GOOD: &str = "num_ranks 2
rank 0 {
l1: calc 100 cpu 1 // c
l2: send 1024b to 1 tag 7 nic 2
l2 requires l1
put 8b to 1 arg2 7 ct 3 tag 5
append 8b to overflow_list hh 1 allowed any ct 3 use_once tag 5
}
rank 1 { /* c */ recv 1024b from -1 tag any space 3 x: tget 4b from 0 when 3 reaches 9 tag 1 }
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any bytes either parse, or cause an error with a location in the text.
    #[test]
    fn mutated_text_is_no_disaster(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut text = GOOD.as_bytes().to_vec();
        prop_assert!(read(&text).is_ok());
        for (at, kind, from, byte) in edits {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = byte,
                1 => drop(text.remove(at)),
                2 => text.truncate(at.max(1)),
                _ => {
                    let from = from.index(text.len());
                    let copy = text[from..(from + 9).min(text.len())].to_vec();
                    text.splice(at..at, copy);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        if let Err(error) = read(&text) {
            let lines = text.split(|&byte| byte == b'\n').count();
            prop_assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
        }
    }
}
