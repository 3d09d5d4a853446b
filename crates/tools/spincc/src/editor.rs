// SPDX-License-Identifier: Apache-2.0
//! Editor support: the flags with which the host compiler finds the SDK's headers, and `compile_commands.json` for
//! clangd.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::options::{Language, Options};
use super::tool::Tools;
use super::{Error, Result};

/// File that clangd looks for in the folder of a source and in those above.
const FILE: &str = "compile_commands.json";

/// Compilation of a source, in the format of Clang's compilation databases. Entries of other tools have further keys.
#[derive(Deserialize, Serialize)]
struct Entry {
    directory: String,
    file: String,
    #[serde(flatten)]
    more: serde_json::Map<String, serde_json::Value>,
}

/// Returns the flags for the host compiler, as `pkg-config --cflags` prints them.
pub fn cflags(tools: &Tools) -> String {
    let command = tools.host(Language::C);
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    // Words of SPIN_HOST_CC may precede it.
    let first = words.iter().position(|word| word == "-isystem").unwrap_or(words.len());
    words[first..].join(" ") + "\n"
}

/// Writes the host compilation of each source to `compile_commands.json` of this folder. Other entries of the file
/// stay.
pub fn compile_commands(tools: &Tools, options: &Options) -> Result<()> {
    if options.sources.is_empty() {
        return Err(Error::Usage("--compile-commands: no sources".into()));
    }
    let path = Path::new(FILE);
    let mut entries: Vec<Entry> = match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| Error::malformed(path, error.to_string()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
        Err(error) => return Err(Error::read(path)(error)),
    };
    let here = std::env::current_dir().map_err(Error::read(Path::new(".")))?.to_string_lossy().into_owned();
    for source in &options.sources {
        let file = source.path.to_string_lossy().into_owned();
        entries.retain(|entry| (&entry.directory, &entry.file) != (&here, &file));
        let command = tools.host(source.language);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        words.extend(options.host_flags.iter().cloned());
        words.extend(["-c".into(), file.clone()]);
        let more = [("arguments".to_owned(), words.into())].into_iter().collect();
        entries.push(Entry { directory: here.clone(), file, more });
    }
    let text = serde_json::to_string_pretty(&entries).expect("entries are plain data") + "\n";
    output::write(path, |out| out.write_all(text.as_bytes())).map_err(Error::write(path))
}
