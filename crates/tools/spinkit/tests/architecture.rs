// SPDX-License-Identifier: Apache-2.0
//! `docs/architecture.md` is correct: its tables name the folders, the crates with their dependencies, and the
//! third-party libraries, exactly as in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use toml::Table;

type Names = BTreeSet<String>;

fn home() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../..")).canonicalize().unwrap()
}

fn text(path: &str) -> String {
    fs::read_to_string(home().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest(path: &str) -> Table {
    text(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names in `backticks` of a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the rows of the table with this header: the name in the first cell, and the last cell.
fn rows(header: &str) -> Vec<(String, String)> {
    let page = text("docs/architecture.md");
    let lines = page.lines().skip_while(|line| *line != header).skip(2);
    let rows: Vec<_> = lines
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let [name] = &names(cells[0])[..] else { panic!("the first cell must have one name: {line}") };
            (name.clone(), cells[cells.len() - 1].to_owned())
        })
        .collect();
    assert!(!rows.is_empty(), "no table {header}");
    let distinct: Names = rows.iter().map(|row| row.0.clone()).collect();
    assert_eq!(distinct.len(), rows.len(), "{header}: a name comes twice");
    rows
}

fn first_cells(header: &str) -> Names {
    rows(header).into_iter().map(|row| row.0).collect()
}

/// Returns the folders of all crates, by group, such as `base/abi`.
fn folders() -> Names {
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(home().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let groups = names("crates");
    groups
        .iter()
        .flat_map(|group| names(&format!("crates/{group}")).into_iter().map(move |name| format!("{group}/{name}")))
        .collect()
}

/// Returns the names of a crate's dependencies, by crate (without the prefix `spinkit-` of its package); those for
/// tests and builds too if `all`.
fn dependencies(all: bool) -> BTreeMap<String, Names> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let workspace = manifest("Cargo.toml");
    let packages = workspace["workspace"]["dependencies"].as_table().unwrap();
    let name = |key: &String| {
        let package = packages.get(key).and_then(|row| row.get("package")?.as_str());
        package.and_then(|package| package.strip_prefix("spinkit-")).unwrap_or(key).to_owned()
    };
    folders()
        .iter()
        .map(|folder| {
            let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
            let tables = kinds[..if all { 3 } else { 1 }].iter().filter_map(|kind| manifest.get(*kind)?.as_table());
            let (_, crate_name) = folder.split_once('/').unwrap();
            (crate_name.to_owned(), tables.flat_map(|table| table.keys().map(name)).collect())
        })
        .collect()
}

#[test]
fn crates_use_what_the_page_says() {
    let table = rows("| crate | group | purpose | uses |");
    let crates: Names = table.iter().map(|row| row.0.clone()).collect();
    let real = dependencies(false);
    assert_eq!(crates, real.keys().cloned().collect());
    let mut above = Names::new();
    for (name, uses) in table {
        let uses: Names = names(&uses).into_iter().collect();
        assert_eq!(uses, real[&name].intersection(&crates).cloned().collect(), "what `{name}` uses");
        assert!(uses.is_subset(&above), "`{name}` uses crates below it in the table");
        above.insert(name);
    }
}

/// Groups whose crates a group may use, besides its own.
const BELOW: [(&str, &[&str]); 6] = [
    ("base", &[]),
    ("guest", &["base"]),
    ("card", &["base"]),
    ("system", &["base", "guest", "card"]),
    ("live", &["base", "card"]),
    ("tools", &["base", "guest", "card", "system", "live"]),
];

#[test]
fn groups_of_crates_are_layers() {
    let folders = folders();
    let group = |name: &str| folders.iter().find_map(|folder| folder.strip_suffix(name)?.strip_suffix('/'));
    let real = dependencies(false);
    for folder in &folders {
        let (own, name) = folder.split_once('/').unwrap();
        let (_, below) =
            BELOW.iter().find(|(group, _)| *group == own).unwrap_or_else(|| panic!("{own}: no such group"));
        for used in real[name].iter().filter_map(|used| Some((used, group(used)?))) {
            assert!(used.1 == own || below.contains(&used.1), "{folder} uses {} of {}", used.0, used.1);
        }
        let manifest = manifest(&format!("crates/{folder}/Cargo.toml"));
        let package = manifest["package"]["name"].as_str().unwrap();
        assert!(
            package == name || package.strip_prefix("spinkit-") == Some(name),
            "{folder}: its package is {package}"
        );
        assert!(manifest["package"].get("description").is_some(), "{folder}: Cargo.toml has no description");
    }
}

#[test]
fn third_party_libraries_are_those_of_the_page() {
    let real = dependencies(true);
    let used: Names = real.values().flatten().filter(|name| !real.contains_key(*name)).cloned().collect();
    assert_eq!(first_cells("| crate | why |"), used);
    let packages = text("requirements.in") + &text("requirements-mpi.in") + &text("requirements-docs.in");
    let packages = packages.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let packages: Names =
        packages.filter_map(|line| line.split(['=', '<', '>', '~', '[']).next()).map(str::to_owned).collect();
    assert_eq!(first_cells("| Python package | why |"), packages);
}

#[test]
fn folders_exist() {
    for name in first_cells("| folder | purpose |") {
        assert!(home().join(&name).is_dir(), "{name} is not a folder");
    }
    assert!(manifest("Cargo.toml")["workspace"]["members"].as_array().unwrap().contains(&"crates/*/*".into()));
}
