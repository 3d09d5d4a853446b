// SPDX-License-Identifier: Apache-2.0
//! Checks that no doc comment contains code to run: `make test` runs no documentation tests, for each of which `rustdoc`
//! would read the whole crate again. `tests/python/test_comments.py` checks the English of comments.

use std::fs;
use std::path::{Path, PathBuf};

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
fn no_documentation_has_tests() {
    let found = in_all_sources(documentation_tests);
    assert!(found.is_empty(), "code that no test runs; if it is an example only, begin it with ```text:\n{found}");
    let source = "//! ```\n//! f();\n//! ```\n\n/// ```text\n/// g\n/// ```\n    /// ```rust\n    /// ```\n";
    assert_eq!(documentation_tests(source), [(1, "//! ```"), (8, "/// ```rust")]);
}
