// SPDX-License-Identifier: Apache-2.0
//! Files of a workload: `PREFIX.N.et` for each rank N.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::error::ChakraError;

/// Files of a workload, in the order of ranks.
#[derive(Debug)]
pub struct Files(Vec<PathBuf>);

/// Returns prefix and rank of a file's name.
fn recognise(name: &str) -> Option<(&str, u32)> {
    let stem = name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".et")?;
    let (prefix, rank) = stem.rsplit_once('.')?;
    Some((prefix, rank.parse().ok()?))
}

impl Files {
    /// Finds the files of a workload: in a folder, of a file of one rank, or of a prefix. Returns `None` if the path is
    /// none of them.
    ///
    /// # Errors
    /// If the folder has several workloads, or a rank is missing or has two files.
    pub fn find(path: &Path) -> Result<Option<Files>, ChakraError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (folder, wanted) = if path.is_dir() {
            (path, None)
        } else {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (parent, Some(recognise(name).map_or(name, |found| found.0)))
        };
        let Ok(entries) = fs::read_dir(folder) else { return Ok(None) };
        let wrong = |problem| Err(ChakraError::Files { path: path.into(), problem });
        let (mut found, mut prefixes) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries.flatten() {
            let (file, name) = (entry.path(), entry.file_name());
            let Some((prefix, rank)) = name.to_str().and_then(recognise) else { continue };
            if wanted.is_some_and(|wanted| wanted != prefix) {
                continue;
            }
            prefixes.insert(prefix.to_owned());
            if let Some(other) = found.insert((prefix.to_owned(), rank), file.clone()) {
                return wrong(format!("{} and {} are of the same rank", other.display(), file.display()));
            }
        }
        if prefixes.len() > 1 {
            let names: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            return wrong(format!(
                "workloads {}: name one, such as {}",
                names.join(", "),
                path.join(names[0]).display()
            ));
        }
        if found.is_empty() {
            return Ok(None);
        }
        match found.keys().zip(0..).find(|(key, expected)| key.1 != *expected) {
            Some(((prefix, _), missing)) => {
                wrong(format!("the trace of rank {missing} ({prefix}.{missing}.et) is missing"))
            }
            None => Ok(Some(Files(found.into_values().collect()))),
        }
    }

    /// Returns the files, that of rank 0 first.
    pub fn paths(&self) -> &[PathBuf] {
        &self.0
    }
}
