// SPDX-License-Identifier: Apache-2.0
//! The modules of a crate have no cycles: of two modules at most one uses the other, directly or through others. The
//! failure names a cycle with a line for each of its uses.
//!
//! A module uses another if its code names an item that the other defines, by any path, or calls a method of an `impl`
//! block there. Re-exports (`pub use`) and code for tests do not count. A parent and its child are two modules like any
//! others: code used by both belongs in a module next to the child.

mod graph;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use graph::Graph;
use source::Crate;

#[test]
fn modules_have_no_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut found = BTreeMap::new();
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries(crates).flat_map(|group| entries(&group)).collect();
    folders.sort();
    assert!(folders.len() > 10, "no crates in {}", crates.display());
    for folder in folders {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let name = manifest["lib"]["name"].as_str().unwrap();
        let modules = Crate::read(name, &folder);
        found.extend(Graph::new(&modules).circles());
    }
    let found: Vec<&str> = found.values().map(String::as_str).collect();
    assert!(found.is_empty(), "circles of modules:\n{}", found.join("\n"));
}

/// Returns the cycles of a crate called `demo` with this source text.
fn circles(text: &str) -> BTreeMap<String, String> {
    Graph::new(&Crate::parse("demo", text)).circles()
}

#[test]
fn a_circle_is_named_with_its_uses() {
    let text = "
        mod card { pub struct Card; fn start() { crate::spin::run(); } }
        mod spin { use super::card::Card; pub fn run() {} }
        mod other { use crate::card::Card; }";
    let expected = "demo::card -> demo::spin -> demo::card\n    \
        lib.rs:2 uses demo::spin\n    lib.rs:3 uses demo::card";
    assert_eq!(circles(text)["demo::card"], expected);
    assert_eq!(circles(text).len(), 2);
}

#[test]
fn a_parent_and_its_child_are_two_modules() {
    let text = "mod card { mod send { use super::Card; } pub struct Card; fn go() { send::packet(); } }";
    assert_eq!(circles(text).into_keys().collect::<Vec<_>>(), ["demo::card", "demo::card::send"]);
    let text = "mod card { mod send { pub struct Card; } pub use send::Card; } fn go(_: card::Card) {}";
    assert_eq!(circles(text).len(), 0);
}

#[test]
fn a_name_counts_for_the_module_that_defines_it() {
    // `b` imports `Kind` from the outermost module, which imports it from `a`, which uses `b`.
    let text = "mod a { pub enum Kind { One } fn f() { super::b::g(); } }
        mod b { use crate::*; pub fn g() { let _ = Kind::One; } }
        pub use a::Kind;";
    assert_eq!(circles(text).into_keys().collect::<Vec<_>>(), ["demo::a", "demo::b"]);
}

#[test]
fn a_method_counts_for_the_module_of_its_impl() {
    let text = "mod card { pub struct Card; impl Card { fn go(&self) { self.send(); } } }
        mod send { use crate::card::Card; impl Card { pub fn send(&self) {} } }";
    assert_eq!(circles(text).len(), 2);
    assert_eq!(circles(&text.replace("self.send()", "other.send()")).len(), 0);
    assert_eq!(circles(&text.replace("self.send()", "Self::send(self)")).len(), 2);
}

#[test]
fn text_of_macros_is_read() {
    let text = "mod a { pub const X: u8 = 1; fn f() { assert!(crate::b::g(2) > 1); } }
        mod b { pub fn g(_: u8) -> u8 { vec![super::a::X, 1][0] } }";
    assert_eq!(circles(text).len(), 2);
}

#[test]
fn tests_and_visibilities_do_not_count() {
    let text = "mod a { pub(in crate::b) struct X; #[cfg(test)] mod tests { use crate::b::g; }
            #[cfg(all(test, unix))] fn f() { crate::b::g(); } impl X { #[cfg(test)] fn h() { crate::b::g(); } } }
        mod b { use crate::a::X; pub fn g() {} }";
    assert_eq!(circles(text).len(), 0);
    assert_eq!(circles(&text.replace("test, unix", "unix")).len(), 2);
}

#[test]
fn other_crates_and_local_names_do_not_count() {
    let text = "mod time { use object; use time; pub fn now() { let card = 1; card; object::read(); } }
        mod card { pub fn f() { crate::time::now(); } }";
    assert_eq!(circles(text).len(), 0);
}
