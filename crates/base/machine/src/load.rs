// SPDX-License-Identifier: Apache-2.0
//! Loads files and `--set` arguments into a checked [`Machine`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::Machine;
use crate::accelerator::Accelerator;
use crate::assumed::Assumption;
use crate::comments::comments;
use crate::keys::{CONTEXTS, HPUS, MODEL, check_key};
use crate::network::{Fabric, NetworkModel};
use crate::old;
use crate::problem::Problem;
use crate::transport::Transport;
use crate::value::must_be;

/// Errors when loading a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// No folder has a file of this name.
    #[error("{wanted}: no such machine; {}", list(.meant.as_deref(), .known))]
    UnknownMachine {
        /// Name; for a `base`, with the file and key that name it.
        wanted: String,
        /// Most similar existing machine, if any.
        meant: Option<String>,
        /// Existing machines, sorted.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// File.
        path: String,
        /// Reason.
        source: std::io::Error,
    },
    /// A file is not TOML.
    #[error("{origin}:{line}:{column}: {message}")]
    Syntax {
        /// File.
        origin: String,
        /// Line number, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// TOML's message.
        message: String,
    },
    /// A key is unknown, missing, of the wrong type, out of range, or in conflict with another.
    #[error("{origin}: {key}: {what}")]
    Key {
        /// File that set the key, or the requested file if none did.
        origin: String,
        /// Dotted key.
        key: String,
        /// Description of the error.
        what: String,
    },
    /// An override is malformed, or its key or value is invalid.
    #[error("--set {argument}: {what}")]
    Set {
        /// Argument.
        argument: String,
        /// Description of the error.
        what: String,
    },
}

/// Minimum Jaro-Winkler similarity for a suggestion.
const LIKE: f64 = 0.85;

/// Returns the known name most similar to a wrong one, if it is similar enough.
fn most_like(wrong: &str, known: &[String]) -> Option<String> {
    let similarity = known.iter().map(|known| (strsim::jaro_winkler(wrong, known), known));
    let (similarity, most_like) = similarity.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (similarity >= LIKE).then(|| most_like.clone())
}

fn list(meant: Option<&str>, known: &[String]) -> String {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    meant.map_or(format!("known are: {known}"), |meant| format!("did you mean `{meant}`? Known are: {known}"))
}

impl Machine {
    /// Loads the machine `name_or_path`: a path if it has a `/` or ends in `.toml`, else the first `NAME.toml` in the
    /// folders `search`. Each of `overrides` is the `key=value` of a `--set`; the value is TOML, or a bare word that
    /// stands for a string.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub fn load(name_or_path: &str, search: &[PathBuf], overrides: &[String]) -> Result<Machine, MachineError> {
        Machine::load_with_sources(name_or_path, search, overrides).map(|sourced| sourced.machine)
    }

    /// Like [`Machine::load`], and also returns the sources of all values.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub fn load_with_sources(
        name_or_path: &str,
        search: &[PathBuf],
        overrides: &[String],
    ) -> Result<Sourced, MachineError> {
        let path = locate(name_or_path, search)?;
        build(&path, &read_file(&path)?, search, overrides)
    }

    /// Returns the names of the machines in the folders `search`, sorted.
    pub fn names(search: &[PathBuf]) -> Vec<String> {
        let entries = search.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "toml"));
        let mut known: Vec<String> =
            files.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        known.sort();
        known.dedup();
        known
    }

    /// Like [`Machine::load`], from text. Errors name `origin` as the file, and its stem is the machine's name. A
    /// `base` is searched for in the folder of `origin`.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub fn parse(origin: &str, text: &str, overrides: &[String]) -> Result<Machine, MachineError> {
        build(Path::new(origin), text, &[], overrides).map(|sourced| sourced.machine)
    }
}

/// A machine and the sources of its values.
#[derive(Clone, Debug)]
pub struct Sourced {
    /// The machine.
    pub machine: Machine,
    /// Its file and the files on which it is based, in reading order.
    pub files: Vec<PathBuf>,
    /// Source of each value, by key: the comment of the file that sets it, or the `--set`. Keys without a comment are
    /// absent.
    pub sources: BTreeMap<String, String>,
    /// Assumptions, by key. A value from a `--set` need not be plausible.
    pub assumed: BTreeMap<String, Assumption>,
}

fn locate(name_or_path: &str, search: &[PathBuf]) -> Result<PathBuf, MachineError> {
    if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
        return Ok(PathBuf::from(name_or_path));
    }
    find(name_or_path, search, name_or_path.to_owned())
}

/// Returns a notice about valid parameters that no simulation uses.
fn unsimulated(machine: &Machine) -> Option<String> {
    let Accelerator::Pspin(unit) = &machine.accelerator else { return None };
    let (ports, hpus) = (unit.icache.ports, unit.units.hpus);
    let text = "it is not simulated that HPUs wait for a port of the instruction cache";
    (ports < hpus).then(|| format!("accelerator.icache.ports is {ports} for {hpus} HPUs of a cluster: {text}"))
}

fn build(path: &Path, text: &str, search: &[PathBuf], overrides: &[String]) -> Result<Sourced, MachineError> {
    let mut layers = Layers::default();
    layers.add_file(path, text, search, &mut Vec::new())?;
    if !layers.notices.is_empty() {
        old::complete(&mut layers.table);
    }
    let mut renamed = Vec::new();
    for argument in overrides {
        renamed.extend(layers.add_override(argument)?);
    }
    layers.let_contexts_follow(|origin| matches!(origin, Origin::Set(_)));
    if !renamed.is_empty() {
        layers.notices.push(format!("--set: {}", renamed.join(", ")));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let machine = Machine::read(&name, &layers.table).and_then(|machine| machine.check().map(|()| machine));
    let machine = machine.map_err(|problem| layers.blame(problem, path))?;
    layers.check_assumed()?;
    let unused = (machine.network.model != NetworkModel::Fabric).then(|| layers.unused_of_fabric()).flatten();
    layers.notices.extend(unsimulated(&machine));
    let Layers { notices, files, sources, assumed, .. } = layers;
    let assumed = assumed.into_iter().map(|(key, (assumption, _))| (key, assumption)).collect();
    Ok(Sourced { machine: Machine { notices, unused, ..machine }, files, sources, assumed })
}

fn read_file(path: &Path) -> Result<String, MachineError> {
    std::fs::read_to_string(path).map_err(|source| MachineError::Read { path: path.display().to_string(), source })
}

/// Finds the file of a machine. `wanted` is the name with its context, for the error.
fn find(name: &str, search: &[PathBuf], wanted: String) -> Result<PathBuf, MachineError> {
    let file = format!("{name}.toml");
    let found = search.iter().map(|folder| folder.join(&file)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let known = Machine::names(search);
        MachineError::UnknownMachine { wanted, meant: most_like(name, &known), known }
    })
}

/// File or option that set a key.
#[derive(Clone)]
enum Origin {
    File(String),
    Set(String),
}

impl Origin {
    fn error(&self, problem: Problem) -> MachineError {
        let Problem { key, what } = problem;
        match self {
            Origin::File(origin) => MachineError::Key { origin: origin.clone(), key, what },
            Origin::Set(argument) => MachineError::Set { argument: argument.clone(), what },
        }
    }
}

/// Merged values (files replace those of their bases, overrides those of files), and the origin of each key.
#[derive(Default)]
struct Layers {
    table: Table,
    origins: BTreeMap<String, Origin>,
    /// One notice for each file with renamed keys, with their present names.
    notices: Vec<String>,
    /// Files read, and the sources of their values.
    files: Vec<PathBuf>,
    sources: BTreeMap<String, String>,
    /// Assumptions, with the files that make them.
    assumed: BTreeMap<String, (Assumption, Origin)>,
}

impl Layers {
    /// Adds a file and its bases. `above` are the files whose `base` keys led here.
    fn add_file(
        &mut self,
        path: &Path,
        text: &str,
        search: &[PathBuf],
        above: &mut Vec<PathBuf>,
    ) -> Result<(), MachineError> {
        let name = path.display().to_string();
        let mut table: Table = toml::from_str(text).map_err(|error| syntax(&name, text, &error))?;
        let origin = Origin::File(name.clone());
        if let Some(base) = table.remove("base") {
            let wrong = |what: String| origin.error(Problem::new("base", what));
            let base = base.as_str().ok_or_else(|| wrong(must_be("a string", &base)))?;
            let beside = path.parent().map(Path::to_owned);
            let folders: Vec<PathBuf> = beside.into_iter().chain(search.iter().cloned()).collect();
            let base_path = find(base, &folders, format!("{}: base: {base}", path.display()))?;
            above.push(path.to_owned());
            if above.contains(&base_path) {
                return Err(wrong(format!("{base} is based on this machine itself")));
            }
            self.add_file(&base_path, &read_file(&base_path)?, search, above)?;
        }
        let assumed = table.remove("assumed");
        for key in keys(&table, "") {
            let key = old::present_name(&key);
            self.sources.remove(&key);
            self.assumed.remove(&key);
        }
        if let Some(assumed) = assumed {
            let table = assumed.as_table();
            let table = table.ok_or_else(|| origin.error(Problem::new("assumed", must_be("a table", &assumed))))?;
            for (key, value) in table {
                let key = old::present_name(key);
                let assumption = Assumption::read(&key, value).map_err(|problem| origin.error(problem))?;
                self.assumed.insert(key, (assumption, origin.clone()));
            }
        }
        self.sources.extend(comments(text).into_iter().map(|(key, comment)| (old::present_name(&key), comment)));
        self.files.push(path.to_owned());
        let renamed = old::rename(&mut table).map_err(|problem| origin.error(problem))?;
        if !renamed.is_empty() {
            self.notices.push(format!("{name}: {}", renamed.join(", ")));
        }
        merge(&mut self.table, table, "", &origin, &mut self.origins);
        if self.let_contexts_follow(|other| matches!(other, Origin::File(file) if *file == name)) {
            self.assumed.remove(CONTEXTS);
        }
        Ok(())
    }

    /// Sets the number of contexts to that of HPUs if a layer (a file, or all options together) sets only the latter.
    /// Returns true if it did; `is_layer` recognises the layer's keys.
    fn let_contexts_follow(&mut self, is_layer: impl Fn(&Origin) -> bool) -> bool {
        let (Some(hpus), Some(contexts)) = (self.origins.get(HPUS), self.origins.get(CONTEXTS)) else { return false };
        if !is_layer(hpus) || is_layer(contexts) {
            return false;
        }
        let origin = hpus.clone();
        let Some(accelerator) = self.table.get_mut("accelerator").and_then(Value::as_table_mut) else { return false };
        let Some(hpus) = accelerator.get("hpus").cloned() else { return false };
        accelerator.insert("contexts".to_owned(), hpus);
        self.origins.insert(CONTEXTS.to_owned(), origin);
        self.sources.insert(CONTEXTS.to_owned(), format!("as {HPUS}, which was set without it"));
        true
    }

    /// Adds the `key=value` of a `--set`. Returns the present name of a renamed key.
    fn add_override(&mut self, argument: &str) -> Result<Vec<String>, MachineError> {
        let origin = Origin::Set(argument.to_owned());
        let wrong = |what: &str| origin.error(Problem::new("", what));
        let (key, text) = argument.split_once('=').ok_or_else(|| wrong("must be key=value"))?;
        let (key, text) = (key.trim(), text.trim());
        let bare_word = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let value = match text.parse::<Value>() {
            Ok(value) => value,
            Err(_) if bare_word(text) => Value::String(text.to_owned()),
            Err(error) => return Err(wrong(&format!("the value is not TOML: {}", one_line(&error)))),
        };
        let mut parts = key.rsplit('.');
        let leaf = parts.next().unwrap_or_default();
        if key.split('.').any(str::is_empty) {
            return Err(wrong("must be key=value, with a key such as `accelerator.hpus`"));
        }
        let table = Table::from_iter([(leaf.to_owned(), value)]);
        let mut table = parts.fold(table, |inner, part| Table::from_iter([(part.to_owned(), Value::Table(inner))]));
        let renamed = old::rename(&mut table).map_err(|problem| origin.error(problem))?;
        self.sources.insert(old::present_name(key), format!("--set {argument}"));
        merge(&mut self.table, table, "", &origin, &mut self.origins);
        Ok(renamed)
    }

    /// Checks that assumptions name existing keys, and that the values in files are plausible.
    fn check_assumed(&self) -> Result<(), MachineError> {
        for (key, (assumption, origin)) in &self.assumed {
            let known = check_key(&self.table, key)
                .map_err(|Problem { key, what }| Problem { key: format!("assumed.{key}"), what });
            let is_set = matches!(self.origins.get(key), Some(Origin::Set(_)));
            let checked = known.and_then(|()| if is_set { Ok(()) } else { assumption.check(key, &self.table) });
            checked.map_err(|problem| origin.error(problem))?;
        }
        Ok(())
    }

    /// Names the keys of the fabric set after `network.model` was set to another model.
    fn unused_of_fabric(&self) -> Option<String> {
        let layer = |origin: &Origin| match origin {
            Origin::File(name) => self.files.iter().position(|file| file.display().to_string() == *name),
            Origin::Set(_) => Some(self.files.len()),
        };
        let model = self.origins.get(MODEL);
        let is_unused = |origin: &Origin| match (origin, model) {
            (Origin::Set(_), _) => true,
            (origin, Some(model)) => layer(origin) > layer(model),
            (_, None) => false,
        };
        let keys = Fabric::KEYS.iter().chain(Transport::KEYS).filter_map(|key| Some((key, self.origins.get(*key)?)));
        let unused = keys.filter(|(_, origin)| is_unused(origin)).map(|(key, origin)| match origin {
            Origin::File(name) => format!("{key} ({name})"),
            Origin::Set(argument) => format!("--set {argument}"),
        });
        let unused: Vec<String> = unused.collect();
        let keys = unused.join(", ");
        let note = || format!("no effect with network.model=latency: {keys}; add --set network.model=fabric");
        (!keys.is_empty()).then(note)
    }

    fn blame(&self, problem: Problem, asked_for: &Path) -> MachineError {
        let file = || Origin::File(asked_for.display().to_string());
        self.origins.get(&problem.key).cloned().unwrap_or_else(file).error(problem)
    }
}

fn merge(into: &mut Table, from: Table, prefix: &str, origin: &Origin, origins: &mut BTreeMap<String, Origin>) {
    for (name, value) in from {
        let key = format!("{prefix}{name}");
        match (into.get_mut(&name), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new, &format!("{key}."), origin, origins),
            (_, Value::Table(new)) => {
                let mut table = Table::new();
                merge(&mut table, new, &format!("{key}."), origin, origins);
                origins.insert(key, origin.clone());
                into.insert(name, Value::Table(table));
            }
            (_, value) => {
                origins.insert(key, origin.clone());
                into.insert(name, value);
            }
        }
    }
}

/// Returns the dotted names of all keys of a table that are not tables themselves.
fn keys(table: &Table, prefix: &str) -> Vec<String> {
    let inner = |(name, value): (&String, &Value)| match value {
        Value::Table(inner) => keys(inner, &format!("{prefix}{name}.")),
        _ => vec![format!("{prefix}{name}")],
    };
    table.iter().flat_map(inner).collect()
}

fn syntax(origin: &str, text: &str, error: &toml::de::Error) -> MachineError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    MachineError::Syntax {
        origin: origin.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before.chars().rev().take_while(|c| *c != '\n').count() + 1,
        message: one_line(error),
    }
}

/// Joins the lines of a TOML message.
fn one_line(error: &toml::de::Error) -> String {
    error.message().split_whitespace().collect::<Vec<_>>().join(" ")
}
