// SPDX-License-Identifier: Apache-2.0
//! Groups of ranks: all, those of a file or of the trace, and those of some dimensions of a grid.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::error::ChakraError;

/// Named groups of ranks.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(HashMap<String, Vec<u32>>);

impl Groups {
    /// Reads ASTRA-sim's file of groups: `{"1": [0, 1], "2": [2, 3]}`.
    pub fn of_file(path: &Path, ranks: u32) -> Result<Groups, ChakraError> {
        let wrong = |problem: String| ChakraError::Files { path: path.into(), problem };
        let text = fs::read_to_string(path).map_err(|error| ChakraError::Io { path: path.into(), error })?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("no JSON: {error}")))?;
        let Some(object) = value.as_object() else {
            return Err(wrong("it is no object of groups, such as {\"1\": [0, 1]}".into()));
        };
        let mut groups = HashMap::new();
        for (name, list) in object {
            groups.insert(
                name.clone(),
                members(list, ranks).map_err(|problem| wrong(format!("group {name}: {problem}")))?,
            );
        }
        Ok(Groups(groups))
    }

    /// Adds the process groups of a metadata node of PyTorch: a list in JSON within a list of texts.
    pub fn add_of_trace(&mut self, text: &str, ranks: u32) -> Result<(), String> {
        let wrong = || "its process groups are no list in JSON".to_owned();
        let (start, end) = (text.find("[{").ok_or_else(wrong)?, text.rfind("}]").ok_or_else(wrong)?);
        let list = text.get(start..end + 2).ok_or_else(wrong)?;
        let value: Value = serde_json::from_str(list)
            .or_else(|_| serde_json::from_str(&list.replace("\\\"", "\"")))
            .map_err(|error| format!("its process groups are no JSON: {error}"))?;
        for group in value.as_array().ok_or_else(wrong)? {
            let name = group["pg_name"].as_str().ok_or("a process group without pg_name")?;
            let mut ranks_of_group =
                members(&group["ranks"], ranks).map_err(|problem| format!("group {name}: {problem}"))?;
            if ranks_of_group.is_empty() {
                ranks_of_group = (0..ranks).collect();
            }
            self.0.insert(name.into(), ranks_of_group);
        }
        Ok(())
    }

    /// Returns the members of a group; all ranks for the empty name.
    pub fn members(&self, name: &str, ranks: u32) -> Option<Vec<u32>> {
        match self.0.get(name) {
            Some(members) => Some(members.clone()),
            None => name.is_empty().then(|| (0..ranks).collect()),
        }
    }
}

fn members(list: &Value, ranks: u32) -> Result<Vec<u32>, String> {
    let list = list.as_array().ok_or("its ranks are no list")?;
    let mut found = Vec::new();
    for rank in list {
        let number = rank.as_u64().and_then(|rank| u32::try_from(rank).ok()).filter(|rank| *rank < ranks);
        let number = number.ok_or_else(|| format!("{rank} is none of the {ranks} ranks"))?;
        if found.contains(&number) {
            return Err(format!("rank {number} is in it twice"));
        }
        found.push(number);
    }
    Ok(found)
}

/// Returns the ranks that differ from `rank` only in the involved dimensions. Dimension 0 is that of neighbours.
pub(super) fn of_dimensions(rank: u32, dims: &[u32], involved: &[bool]) -> Vec<u32> {
    let mut members = vec![0];
    let mut stride = 1;
    for (dim, size) in dims.iter().enumerate() {
        let own = rank / stride % size;
        let places: Vec<u32> =
            if involved.get(dim).copied().unwrap_or(true) { (0..*size).collect() } else { vec![own] };
        members = places.iter().flat_map(|place| members.iter().map(move |other| other + place * stride)).collect();
        stride *= size;
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_counted_from_neighbours() {
        assert_eq!(of_dimensions(5, &[4, 2], &[true, false]), [4, 5, 6, 7]);
        assert_eq!(of_dimensions(5, &[4, 2], &[false, true]), [1, 5]);
        assert_eq!(of_dimensions(5, &[2, 2, 2], &[true, false, true]), [0, 1, 4, 5]);
        assert_eq!(of_dimensions(3, &[2, 2], &[]), [0, 1, 2, 3]);
    }

    #[test]
    fn process_groups_of_pytorch_are_read() {
        let mut groups = Groups::default();
        groups
            .add_of_trace(r#"["[{\"pg_name\": \"0\", \"ranks\": []}, {\"pg_name\": \"1\", \"ranks\": [1, 3]}]"]"#, 4)
            .unwrap();
        assert_eq!(groups.members("0", 4).unwrap(), [0, 1, 2, 3]);
        assert_eq!(groups.members("1", 4).unwrap(), [1, 3]);
        assert_eq!(groups.members("2", 4), None);
        let error = groups.add_of_trace(r#"['[{"pg_name": "1", "ranks": [4]}]']"#, 4).unwrap_err();
        assert_eq!(error, "group 1: 4 is none of the 4 ranks");
    }
}
