//! `docs/architecture.md` is correct: its tables name the folders, the crates with the crates that they use, and the
//! third-party libraries, exactly as in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use toml::Table;

type Names = BTreeSet<String>;

fn home() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

fn text(path: &str) -> String {
    fs::read_to_string(home().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest(path: &str) -> Table {
    text(path).parse().unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in `backticks` of a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The rows of the table with this header: the name in the first cell, and the last cell.
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

/// The keys of a crate's dependencies, by crate; those for tests and builds too if `all`.
fn dependencies(all: bool) -> BTreeMap<String, Names> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let folders = fs::read_dir(home().join("crates")).unwrap();
    folders
        .map(|folder| {
            let name = folder.unwrap().file_name().into_string().unwrap();
            let manifest = manifest(&format!("crates/{name}/Cargo.toml"));
            let tables = kinds[..if all { 3 } else { 1 }].iter().filter_map(|kind| manifest.get(*kind)?.as_table());
            (name, tables.flat_map(|table| table.keys().cloned()).collect())
        })
        .collect()
}

#[test]
fn crates_use_what_the_page_says() {
    let table = rows("| crate | what it is for | uses |");
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
    for name in first_cells("| folder | what it is for |") {
        assert!(home().join(&name).is_dir(), "{name} is not a folder");
    }
    assert!(manifest("Cargo.toml")["workspace"]["members"].as_array().unwrap().contains(&"crates/*".into()));
}
