//! Which key stands for which field: the one list that reading, describing and the check for unknown keys share.

use toml::Table;

use crate::load::Problem;
use crate::value::{Parameter, must_be};
use crate::{Dma, Host, Hpu, Machine, Network, Nic};

macro_rules! section {
    ($section:literal $type:ident { $($field:ident = $key:literal),+ $(,)? }) => {
        impl $type {
            const KEYS: &[&str] = &[$(concat!($section, ".", $key)),+];

            fn read(table: &Table) -> Result<$type, Problem> {
                Ok($type { $($field: read(table, concat!($section, ".", $key))?),+ })
            }

            fn describe(&self, rows: &mut Vec<(&'static str, String, &'static str)>) {
                $(rows.push((concat!($section, ".", $key), self.$field.show(), unit($key)));)+
            }
        }
    };
}

section!("network" Network {
    topology = "topology",
    radix = "radix",
    switch = "switch_ns",
    wire = "wire_ns",
    gap_per_byte = "G_ps_per_byte",
    gap = "g_ns",
    mtu = "mtu_bytes",
});

section!("host" Host {
    cores = "cores",
    clock = "clock_ghz",
    overhead = "o_ns",
    poll = "poll_ns",
    matching = "match_ns",
    dram_latency = "dram_latency_ns",
    dram_gap_per_byte = "dram_G_ps_per_byte",
    core_lines = "core_lines",
});

section!("nic" Nic {
    kind = "kind",
    match_header = "match_header_ns",
    match_cam = "match_cam_ns",
});

section!("dma" Dma {
    latency = "L_ns",
    gap_per_byte = "G_ps_per_byte",
});

section!("hpu" Hpu {
    kind = "kind",
    timing = "timing",
    count = "count",
    contexts = "contexts",
    clock = "clock_ghz",
    scratchpad_cycles = "scratchpad_cycles",
    memory = "memory_bytes",
    program = "program_bytes",
    data = "data_bytes",
    stack = "stack_bytes",
    packet_buffer = "packet_buffer_bytes",
    max_initial_state = "max_initial_state_bytes",
    max_user_hdr = "max_user_hdr_bytes",
    watchdog_cycles = "watchdog_cycles",
    put_blocks = "put_blocks",
});

const DESCRIPTION: &str = "description";

impl Machine {
    /// Every parameter as (key, value, unit), in the order of the sections; the unit of a count or a name is empty.
    pub fn describe(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut rows = Vec::new();
        self.network.describe(&mut rows);
        self.host.describe(&mut rows);
        self.nic.describe(&mut rows);
        self.dma.describe(&mut rows);
        self.hpu.describe(&mut rows);
        rows
    }

    pub(crate) fn read(name: &str, table: &Table) -> Result<Machine, Problem> {
        check_known(table, "")?;
        Ok(Machine {
            name: name.to_owned(),
            description: read(table, DESCRIPTION)?,
            network: Network::read(table)?,
            host: Host::read(table)?,
            nic: Nic::read(table)?,
            dma: Dma::read(table)?,
            hpu: Hpu::read(table)?,
        })
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    [&[DESCRIPTION], Network::KEYS, Host::KEYS, Nic::KEYS, Dma::KEYS, Hpu::KEYS].into_iter().flatten().copied()
}

fn read<T: Parameter>(table: &Table, key: &'static str) -> Result<T, Problem> {
    let (mut table, mut name) = (table, key);
    if let Some((section, rest)) = key.split_once('.') {
        let value = table.get(section).ok_or_else(|| Problem::new(key, "missing"))?;
        table = value.as_table().ok_or_else(|| Problem::new(section, must_be("a table", value)))?;
        name = rest;
    }
    let value = table.get(name).ok_or_else(|| Problem::new(key, "missing"))?;
    T::read(value).map_err(|what| Problem::new(key, what))
}

/// The unit that a key carries at its end.
fn unit(key: &str) -> &'static str {
    const UNITS: [(&str, &str); 5] =
        [("_ps_per_byte", "ps/B"), ("_ns", "ns"), ("_ghz", "GHz"), ("_bytes", "B"), ("_cycles", "cycles")];
    UNITS.iter().find(|(suffix, _)| key.ends_with(suffix)).map_or("", |(_, unit)| unit)
}

fn check_known(table: &Table, prefix: &str) -> Result<(), Problem> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        let inside = format!("{key}.");
        match value.as_table() {
            Some(inner) if known().any(|known| known.starts_with(&inside)) || !inner.is_empty() => {
                check_known(inner, &inside)?;
            }
            _ if known().any(|known| known == key || known.starts_with(&inside)) => (),
            _ => return Err(unknown(key)),
        }
    }
    Ok(())
}

fn unknown(key: String) -> Problem {
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned);
    // The right name in the wrong section is nearer than two wrong letters.
    let distance = |known: &str| {
        let letters = 2 * edit_distance(known, &key);
        if last(known) == last(&key) { letters.min(3) } else { letters }
    };
    let what = match known().min_by_key(|known| distance(known)) {
        Some(near) if distance(near) <= 4 + key.len() / 2 => format!("unknown key, did you mean `{near}`?"),
        _ => "unknown key".to_owned(),
    };
    Problem::new(key, what)
}

/// Levenshtein's distance, in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("hpu.count", "hpu.count"), 0);
    }

    #[test]
    fn units_come_from_the_key() {
        assert_eq!(unit("dram_G_ps_per_byte"), "ps/B");
        assert_eq!(unit("L_ns"), "ns");
        assert_eq!(unit("mtu_bytes"), "B");
        assert_eq!(unit("count"), "");
    }
}
