// SPDX-License-Identifier: Apache-2.0
//! Man pages and completions of all commands, generated from their command-line parsers: `spinkit-manuals FOLDER`
//! writes them in the layout of an installation's `share`. `spinkit` itself is Python; it describes its commands on
//! standard input.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use clap_mangen::Man;
use serde::Deserialize;

use crate::{goal, machines, pspin};

/// Command of `spinkit`, as described by Python.
#[derive(Deserialize)]
struct Description {
    name: String,
    about: String,
    options: Vec<Opt>,
    /// Names of the positional arguments.
    arguments: Vec<String>,
    commands: Vec<Description>,
}

/// Option of a command.
#[derive(Deserialize)]
struct Opt {
    /// Flags with their dashes: `-n`, `--out`.
    flags: Vec<String>,
    /// Name of its value, if it has one.
    value: Option<String>,
    help: String,
}

/// Runs `spinkit-manuals` with these arguments: a folder. The exit status is 0, 1 on failure, or 2 for a wrong command
/// line.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: spinkit-manuals FOLDER, with the description of spinkit on standard input");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spinkit-manuals: error: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    let mut described = String::new();
    io::stdin().read_to_string(&mut described)?;
    let described: Description = serde_json::from_str(&described)?;
    for mut command in [of_help("spincc", spincc::options::HELP), spinrun::command(), of_python(described, true)] {
        let name = command.get_name().to_owned();
        for (shell, file) in [
            (Shell::Bash, format!("bash-completion/completions/{name}")),
            (Shell::Zsh, format!("zsh/site-functions/_{name}")),
            (Shell::Fish, format!("fish/vendor_completions.d/{name}.fish")),
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, &name, &mut text);
            save(&folder.join(file), &text)?;
        }
        command.build();
        manuals(&folder.join("man/man1"), &command, &name)?;
    }
    Ok(())
}

/// Writes the page of a command, and those of its subcommands, such as `spinkit-goal-run.1`.
fn manuals(folder: &Path, command: &Command, name: &str) -> io::Result<()> {
    let mut page = Vec::new();
    let text = command.clone().disable_help_subcommand(true);
    Man::new(text).title(name.to_owned()).source(concat!("spinkit ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    save(&folder.join(format!("{name}.1")), &page)?;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        manuals(folder, inner, &format!("{name}-{}", inner.get_name()))?;
    }
    Ok(())
}

fn save(file: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    output::write(file, |out| out.write_all(content))
}

/// Converts a command described by Python; Rust commands inside it describe themselves.
fn of_python(described: Description, is_root: bool) -> Command {
    let mut command = with_about(Command::new(described.name.leak() as &str), &described.about);
    if is_root {
        command = command.version(env!("CARGO_PKG_VERSION"));
    }
    for option in described.options {
        let long = option.flags.iter().find_map(|flag| flag.strip_prefix("--"));
        let short = option.flags.iter().find(|flag| !flag.starts_with("--")).and_then(|flag| flag.chars().nth(1));
        if matches!(long, Some("help" | "version")) {
            continue; // clap adds them
        }
        let name: &str = option.flags.last().cloned().unwrap_or_default().leak();
        command = command.arg(flag(name, long, short, option.value.as_deref()).help(option.help));
    }
    for (place, argument) in described.arguments.into_iter().enumerate() {
        let name: &str = argument.leak();
        let arg = Arg::new(name).index(place + 1).value_hint(ValueHint::AnyPath).value_name(name);
        command = command.arg(arg.action(ArgAction::Set));
    }
    for inner in described.commands {
        command = command.subcommand(match inner.name.as_str() {
            "goal" if is_root => goal::command().name("goal").bin_name("spinkit goal"),
            "machines" if is_root => machines::command().name("machines").bin_name("spinkit machines"),
            "pspin" if is_root => with_python(pspin::command().name("pspin").bin_name("spinkit pspin"), inner),
            _ => of_python(inner, false),
        });
    }
    command
}

/// Adds Python-only commands to a group that exists on both sides.
fn with_python(mut group: Command, described: Description) -> Command {
    for inner in described.commands {
        if group.find_subcommand(&inner.name).is_none() {
            group = group.subcommand(of_python(inner, false));
        }
    }
    group
}

fn flag(name: &'static str, long: Option<&str>, short: Option<char>, value: Option<&str>) -> Arg {
    let mut arg = Arg::new(name);
    if let Some(long) = long {
        arg = arg.long(long.to_owned().leak() as &str);
    }
    if let Some(short) = short {
        arg = arg.short(short);
    }
    match value {
        Some(value) => arg.value_name(value.to_owned().leak() as &str).action(ArgAction::Append),
        None => arg.action(ArgAction::SetTrue),
    }
}

/// Parses a command from its `--help`: a usage line, paragraphs, and sections with one option per line, two blanks and
/// its meaning. Other text is kept unchanged.
fn of_help(name: &'static str, help: &str) -> Command {
    let mut command = Command::new(name).version(env!("CARGO_PKG_VERSION"));
    let mut paragraphs = help.split("\n\n");
    let usage = paragraphs.next().unwrap_or_default().trim_start_matches("Usage: ");
    command = command.override_usage(usage.to_owned());
    let (mut about, mut rest) = (String::new(), String::new());
    for paragraph in paragraphs {
        let Some(lines) = paragraph.strip_prefix("Options of ").and_then(|lines| lines.split_once('\n')) else {
            let target = if about.is_empty() { &mut about } else { &mut rest };
            *target += paragraph.trim_end();
            *target += "\n\n";
            continue;
        };
        for (option, meaning) in entries(lines.1) {
            let (option, value) = option.split_once(' ').map_or((option.as_str(), None), |(o, v)| (o, Some(v)));
            match option.strip_prefix("--").filter(|long| long.bytes().all(|c| c.is_ascii_lowercase() || c == b'-')) {
                Some(long) => {
                    let id: &str = long.to_owned().leak();
                    command = command.arg(flag(id, Some(long), None, value).help(meaning));
                }
                None if option.starts_with("-W") => rest += &format!("{option}: {meaning}\n\n"),
                None => {} // --version, --help: clap's own
            }
        }
    }
    command = command.arg(Arg::new("files").value_name("FILE").num_args(1..).value_hint(ValueHint::FilePath));
    with_about(command, about.trim_end()).after_help(rest.trim_end().to_owned())
}

/// Describes a command: by its first sentence in a list, by the whole text on its page.
fn with_about(command: Command, text: &str) -> Command {
    let end = text.find(". ").or_else(|| text.find(".\n")).unwrap_or(text.len());
    command.about(text[..end].trim_end_matches('.').to_owned()).long_about(text.to_owned())
}

/// Returns the options of a section with their meanings, which may span several lines.
fn entries(lines: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in lines.lines() {
        let text = line.trim_start();
        if line.len() - text.len() == 2 {
            let (option, meaning) = text.split_once("  ").unwrap_or((text, ""));
            found.push((option.into(), meaning.trim().into()));
        } else if let Some((_, meaning)) = found.last_mut() {
            *meaning = format!("{meaning} {text}");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_spincc_becomes_its_options() {
        let command = of_help("spincc", spincc::options::HELP);
        let hpu = command.get_arguments().find(|arg| arg.get_long() == Some("hpu")).unwrap();
        assert_eq!(hpu.get_value_names().unwrap()[0], "KIND[,KIND]");
        assert!(hpu.get_help().unwrap().to_string().starts_with("HPU kinds to compile for"));
        let longs: Vec<_> = command.get_arguments().filter_map(Arg::get_long).collect();
        for option in ["keep", "disassemble", "layouts", "verbose"] {
            assert!(longs.contains(&option), "{option}: {longs:?}");
        }
        let rest = command.get_after_help().unwrap().to_string();
        assert!(rest.contains("-W[no-]spin-layout: warn when") && rest.contains("SPIN_HOST_CC"), "{rest}");
    }

    #[test]
    fn a_meaning_may_have_several_lines() {
        let found = entries("  -a  one\n      two\n  --bb X  three\n  -c, --cc");
        assert_eq!(found[0], ("-a".into(), "one two".into()));
        assert_eq!(found[1], ("--bb X".into(), "three".into()));
        assert_eq!(found[2], ("-c, --cc".into(), String::new()));
    }

    #[test]
    fn python_describes_its_commands_and_rust_its_own() {
        let described = r#"{"name": "spinkit", "about": "x", "options": [{"flags": ["-h", "--help"], "value": null, "help": ""}],
            "arguments": [], "commands": [
              {"name": "goal", "about": "", "options": [], "arguments": [], "commands": []},
              {"name": "profile", "about": "y", "arguments": ["PROGRAM"], "commands": [],
               "options": [{"flags": ["-n"], "value": "N", "help": "ranks"}]}]}"#;
        let mut command = of_python(serde_json::from_str(described).unwrap(), true);
        command.build();
        assert!(command.find_subcommand("goal").unwrap().find_subcommand("gen").is_some());
        let profile = command.find_subcommand("profile").unwrap();
        assert_eq!(profile.get_arguments().find_map(Arg::get_short), Some('n'));
        assert!(profile.get_positionals().any(|arg| arg.get_id() == "PROGRAM"));
    }
}
