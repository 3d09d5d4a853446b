// SPDX-License-Identifier: Apache-2.0
//! Checks doc comments: they are sentences with a subject, or noun phrases. This test refuses beginnings that cannot be
//! either. And none contains code to run: `make test` runs no documentation tests, for each of which `rustdoc` would
//! read the whole crate again.

use std::fs;
use std::path::{Path, PathBuf};

/// Refused beginnings.
const BARE: [&str; 7] = ["Of ", "By ", "So many", "Whom", "Who ", "Those", "The same"];

/// Returns the line numbers, from 1, and texts of doc comments that begin with one of [`BARE`].
fn bare_beginnings(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = "";
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker)).unwrap_or_default();
        let text = line[marker.len()..].trim_start();
        let begins = !marker.is_empty() && marker != inside;
        if begins && BARE.iter().any(|bare| text.starts_with(bare)) {
            found.push((index + 1, text));
        }
        inside = marker;
    }
    found
}

/// Returns the line numbers, from 1, and texts of lines that begin a code block that `rustdoc` would run.
fn documentation_tests(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = ["///", "//!"].into_iter().find_map(|marker| line.strip_prefix(marker)) else { continue };
        if let Some(language) = text.trim_start().strip_prefix("```") {
            if !inside && language != "text" {
                found.push((index + 1, line));
            }
            inside = !inside;
        }
    }
    found
}

/// Returns all Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Returns the findings in all sources, one per line.
fn in_all_sources(find: fn(&str) -> Vec<(usize, &str)>) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut files = sources(crates);
    files.sort();
    assert!(files.len() > 100, "too few sources in {}", crates.display());
    let mut found = String::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        for (line, text) in find(&source) {
            found += &format!("{}:{line}: {text}\n", file.strip_prefix(crates).unwrap().display());
        }
    }
    found
}

#[test]
fn doc_comments_begin_with_their_subject() {
    let found = in_all_sources(bare_beginnings);
    assert!(found.is_empty(), "doc comments without a subject:\n{found}");
}

#[test]
fn no_documentation_has_tests() {
    let found = in_all_sources(documentation_tests);
    assert!(found.is_empty(), "code that no test runs; if it is an example only, begin it with ```text:\n{found}");
    let source = "//! ```\n//! f();\n//! ```\n\n/// ```text\n/// g\n/// ```\n    /// ```rust\n    /// ```\n";
    assert_eq!(documentation_tests(source), [(1, "//! ```"), (8, "/// ```rust")]);
}

#[test]
fn only_the_beginning_of_a_doc_comment_counts() {
    let source =
        "//! By hand.\n//! Of two.\n\n    /// Those that wait.\nfn f() {} // Who is it?\n/// A list\n/// Of names.\n";
    assert_eq!(bare_beginnings(source), [(1, "By hand."), (4, "Those that wait.")]);
    assert_eq!(bare_beginnings("/// Offset in bytes.\n\n/// Byte.\n\n// The same.\nlet text = \"Of \";\n"), []);
}
