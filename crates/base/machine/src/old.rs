// SPDX-License-Identifier: Apache-2.0
//! Key names of earlier versions. Files and options that use them still work, with a notice.

use toml::{Table, Value};

use crate::problem::Problem;

/// Old section and key, new section and key.
const RENAMED: [([&str; 2], [&str; 2]); 12] = [
    (["hpu", "count"], ["accelerator", "hpus"]),
    (["hpu", "contexts"], ["accelerator", "contexts"]),
    (["hpu", "scratchpad_cycles"], ["accelerator", "scratchpad_cycles"]),
    (["hpu", "memory_bytes"], ["accelerator", "memory_bytes"]),
    (["hpu", "program_bytes"], ["accelerator", "program_bytes"]),
    (["hpu", "data_bytes"], ["accelerator", "data_bytes"]),
    (["hpu", "stack_bytes"], ["accelerator", "stack_bytes"]),
    (["hpu", "packet_buffer_bytes"], ["accelerator", "packet_buffer_bytes"]),
    (["hpu", "max_initial_state_bytes"], ["accelerator", "max_initial_state_bytes"]),
    (["hpu", "max_user_hdr_bytes"], ["accelerator", "max_user_hdr_bytes"]),
    (["hpu", "watchdog_cycles"], ["accelerator", "watchdog_cycles"]),
    (["hpu", "put_blocks"], ["accelerator", "put_blocks"]),
];

/// Keys missing from files of earlier versions, and their implied value.
const IMPLIED: [([&str; 2], &str); 11] = [
    (["network", "model"], "latency"),
    (["network", "injection"], "max"),
    (["network", "reception"], "cut-through"),
    (["network", "retransmit_ns"], "16384"),
    (["network", "retries"], "7"),
    (["nic", "match_overlaps"], "reception"),
    (["dma", "messages"], "transfers"),
    (["dma", "handlers"], "transfers"),
    (["accelerator", "kind"], "sc17"),
    (["accelerator", "watchdog_flow_control"], "false"),
    (["host", "shared_memory"], "false"),
];

/// Keys missing from files of earlier versions, and the keys whose values they copy.
const COPIED: [([&str; 2], &str); 2] =
    [(["host", "copy_lines"], "core_lines"), (["nic", "match_reply_ns"], "match_cam_ns")];

/// Removed keys, and the reason.
const REMOVED: [(&str, &str); 1] =
    [("host.clock_ghz", "is no longer a parameter, as nothing depended on it: remove it")];

/// Renames the old keys of a table. Each returned sentence names one renamed key.
///
/// # Errors
/// If a table has a key under both names.
pub(crate) fn rename(table: &mut Table) -> Result<Vec<String>, Problem> {
    let mut notices = Vec::new();
    for (old, new) in RENAMED {
        let Some(section) = table.get_mut(old[0]).and_then(Value::as_table_mut) else { continue };
        let Some(value) = section.remove(old[1]) else { continue };
        if section.is_empty() {
            table.remove(old[0]);
        }
        let (old, new_name) = (old.join("."), new.join("."));
        match table.entry(new[0]).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(section) if !section.contains_key(new[1]) => section.insert(new[1].to_owned(), value),
            _ => return Err(Problem::new(old, format!("is also there by its new name, {new_name}"))),
        };
        notices.push(format!("{old} is now {new_name}"));
    }
    Ok(notices)
}

/// Returns the reason for the removal of a key of an earlier version.
pub(crate) fn removed(key: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == key).map(|(_, why)| *why)
}

/// Returns the present name of a key.
pub(crate) fn present_name(key: &str) -> String {
    let renamed = RENAMED.iter().find(|(old, _)| old.join(".") == key);
    renamed.map_or_else(|| key.to_owned(), |(_, new)| new.join("."))
}

/// Adds the missing keys to a file of an earlier version.
pub(crate) fn complete(table: &mut Table) {
    for ([section, key], value) in IMPLIED {
        if let Value::Table(section) = table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
            let value = match value.parse() {
                Ok(number) => Value::Integer(number),
                Err(_) if value == "false" => Value::Boolean(false),
                Err(_) => Value::String(value.to_owned()),
            };
            section.entry(key).or_insert(value);
        }
    }
    for ([section, key], from) in COPIED {
        if let Some(Value::Table(section)) = table.get_mut(section)
            && let Some(value) = section.get(from).cloned()
        {
            section.entry(key).or_insert(value);
        }
    }
}
