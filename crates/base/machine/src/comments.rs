// SPDX-License-Identifier: Apache-2.0
//! Extracts the comments of a machine file, which name the sources of values.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, RawString, TableLike};

/// Returns the comment of each key, by its dotted name: the one after the value, else the lines directly above the key.
pub(crate) fn comments(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // Loading has already refused a file that is not TOML.
    if let Ok(document) = text.parse::<DocumentMut>() {
        collect(document.as_table(), "", &mut found);
    }
    found
}

fn collect(table: &dyn TableLike, prefix: &str, found: &mut BTreeMap<String, String>) {
    for (name, item) in table.iter() {
        let key = format!("{prefix}{name}");
        if let Some(inner) = item.as_table_like() {
            collect(inner, &format!("{key}."), found);
        }
        let above = table.key(name).and_then(|key| key.leaf_decor().prefix());
        let behind = item.as_value().and_then(|value| value.decor().suffix());
        let comment = [behind, above].into_iter().flatten().map(joined).find(|comment| !comment.is_empty());
        found.extend(comment.map(|comment| (key, comment)));
    }
}

/// Joins the last block of comment lines into one line.
fn joined(raw: &RawString) -> String {
    let lines: Vec<&str> = raw.as_str().unwrap_or_default().lines().map(str::trim).collect();
    let block = lines.rsplit(|line| !line.starts_with('#')).next().unwrap_or_default();
    let words: Vec<&str> = block.iter().map(|line| line.trim_start_matches('#').trim()).collect();
    words.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stand_behind_or_directly_above() {
        let text = "# The file.\n\n[a] # a table\n# one\n# two\nx = 1\n\n# apart\n\ny = 2\nz = 3 # §4.2 \"z\"\n\n\
                    # above\nw = 4 # behind\n[a.b]\n# deep\nv = \"# none\"\n";
        let expected = [("a.b.v", "deep"), ("a.w", "behind"), ("a.x", "one two"), ("a.z", "§4.2 \"z\"")];
        assert_eq!(comments(text), expected.map(|(key, comment)| (key.to_owned(), comment.to_owned())).into());
    }
}
