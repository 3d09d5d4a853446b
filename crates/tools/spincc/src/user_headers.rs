// SPDX-License-Identifier: Apache-2.0
//! Several typedefs `ptl_user_header_t` in a source with `<spin/paper.h>`: the listing of sPIN App. C.3.5 declares the
//! type for the data server and again for the parity server, and the former's handlers use fields of both. C refuses
//! the second typedef, so each gets a name, and `user_hdr` the fields of all.

use std::collections::BTreeMap;

/// The program's type.
const NAME: &str = "ptl_user_header_t";

/// Macro that prevents `<spin/paper.h>` from replacing [`NAME`].
pub const SCAN: &str = "-DSPIN_PAPER_SCAN";

/// Returns the compiler flags for a preprocessed source with more than one typedef; none for other sources.
pub fn flags(preprocessed: &str) -> Vec<String> {
    let mentions = mentions(preprocessed);
    let mut bodies: Vec<&str> = vec![];
    let mut at_line = BTreeMap::new();
    for mention in &mentions {
        let first = bodies.is_empty();
        if let Some(body) = mention.body {
            bodies.push(body);
        }
        let name = format!("spin_paper_user_header_{}", bodies.len());
        let declares = first && mention.body.is_some();
        let meaning = if declares { format!("SPIN_PAPER_DECLARES_USER_HEADER({name})") } else { name };
        at_line.insert(mention.line, meaning);
    }
    if bodies.len() < 2 {
        return vec![];
    }
    let fields = bodies.iter().map(|body| format!("struct {{ {} }};", one_line(body))).collect::<Vec<_>>();
    let mut flags = vec![format!("-DSPIN_PAPER_USER_HEADERS={}", fields.join(" "))];
    flags.extend(at_line.iter().map(|(line, meaning)| format!("-Dspin_paper_user_header_at_{line}={meaning}")));
    flags
}

/// A place that names the type.
struct Mention<'a> {
    /// Line in its file.
    line: usize,
    /// Fields of the structure that a typedef gives this name.
    body: Option<&'a str>,
}

fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = vec![];
    let mut number = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(marked) = marker(line) {
            number = marked;
        } else {
            for (column, _) in line.match_indices(NAME) {
                let (before, after) = (&text[..start + column], &text[start + column + NAME.len()..]);
                if !before.ends_with(is_name) && !after.starts_with(is_name) {
                    found.push(Mention { line: number, body: body(before, after) });
                }
            }
            number += 1;
        }
        start += line.len();
    }
    found
}

/// Returns the number of the following line in a line marker (`# 12 "file.c"`).
fn marker(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("#line "))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the fields between the braces of `typedef struct {...} NAME;`.
fn body<'a>(before: &'a str, after: &str) -> Option<&'a str> {
    if !after.trim_start().starts_with(';') {
        return None;
    }
    let inner = before.trim_end().strip_suffix('}')?;
    let mut depth = 1;
    let open = inner.rfind(|c| {
        depth += i32::from(c == '}') - i32::from(c == '{');
        depth == 0
    })?;
    let head = inner[..open].rsplit(['}', ';']).next().unwrap_or_default();
    let mut words = head.split_whitespace().skip_while(|word| *word != "typedef").skip(1);
    (words.next() == Some("struct")).then_some(&inner[open + 1..])
}

/// Joins the lines of a structure, without line markers.
fn one_line(body: &str) -> String {
    body.lines().filter(|line| marker(line).is_none()).flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::flags;

    #[test]
    fn each_typedef_gets_a_name_and_the_header_all_fields() {
        let text = "# 1 \"a.c\"\ntypedef struct {\nint length;\n} ptl_user_header_t;\nptl_user_header_t one;\n\
                    # 40 \"b.c\" 2\ntypedef struct s { struct { int x; } in;\n# 42 \"b.c\"\n int client; } ptl_user_header_t;\n\
                    int my_ptl_user_header_t;\nint n = sizeof(ptl_user_header_t);\n";
        assert_eq!(
            flags(text),
            [
                "-DSPIN_PAPER_USER_HEADERS=struct { int length; }; struct { struct { int x; } in; int client; };",
                "-Dspin_paper_user_header_at_3=SPIN_PAPER_DECLARES_USER_HEADER(spin_paper_user_header_1)",
                "-Dspin_paper_user_header_at_4=spin_paper_user_header_1",
                "-Dspin_paper_user_header_at_42=spin_paper_user_header_2",
                "-Dspin_paper_user_header_at_44=spin_paper_user_header_2",
            ]
        );
    }

    #[test]
    fn one_typedef_needs_no_flags() {
        assert!(flags("typedef struct { int a; } ptl_user_header_t;\nptl_user_header_t x;\n").is_empty());
        assert!(flags("int x;\n").is_empty());
    }
}
