// SPDX-License-Identifier: Apache-2.0
//! Command-line form of earlier versions, `run FILE --model MODEL`.

use std::ffi::{OsStr, OsString};

use super::super::error::GoalError;

/// Models: the subcommands of `run`.
const MODELS: [&str; 4] = ["loggops", "packet", "protocol", "nic"];

/// Rewrites the command line `spinkit-goal run FILE --model MODEL …` as `spinkit-goal run MODEL FILE …`. Without
/// `--model` the model is loggops. Other command lines stay unchanged.
///
/// # Errors
/// When the model is unknown or given twice.
pub fn with_model_as_subcommand(arguments: Vec<OsString>) -> Result<Vec<OsString>, GoalError> {
    let is_run = arguments.get(1).is_some_and(|command| command == "run");
    let Some(first) = arguments.get(2).filter(|_| is_run) else { return Ok(arguments) };
    if MODELS.iter().any(|model| first == model) || ["help", "--help", "-h"].iter().any(|help| first == help) {
        return Ok(arguments);
    }
    let (mut model, mut kept) = (None, Vec::with_capacity(arguments.len()));
    let mut rest = arguments[2..].iter();
    while let Some(argument) = rest.next() {
        let given = match argument.to_str() {
            Some("--") => {
                kept.push(argument.clone());
                kept.extend(rest.by_ref().cloned());
                break;
            }
            Some("--model") => rest.next().map_or(OsStr::new(""), |model| model),
            Some(text) if text.starts_with("--model=") => OsStr::new(&text["--model=".len()..]),
            _ => {
                kept.push(argument.clone());
                continue;
            }
        };
        if model.replace(known(given)?).is_some() {
            return Err(GoalError::Usage("--model is given twice".into()));
        }
    }
    let start = [&arguments[0], &arguments[1], OsStr::new(model.unwrap_or(MODELS[0]))].map(OsString::from);
    Ok(start.into_iter().chain(kept).collect())
}

/// Returns the model with this name.
fn known(name: &OsStr) -> Result<&'static str, GoalError> {
    let unknown = || {
        let name = name.to_string_lossy();
        GoalError::Usage(format!("invalid value '{name}' for --model: the models are {}", MODELS.join(", ")))
    };
    MODELS.into_iter().find(|model| name == *model).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> Result<String, String> {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_model_as_subcommand(words).map_err(|error| error.to_string())?;
        Ok(words.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn the_option_becomes_the_subcommand() {
        for (old, new) in [
            ("goal run a.goal", "goal run loggops a.goal"),
            ("goal run a.goal --model packet --mtu 64", "goal run packet a.goal --mtu 64"),
            ("goal run --progress off --model=nic -- --model", "goal run nic --progress off -- --model"),
            ("goal run -", "goal run loggops -"),
            ("goal run packet a.goal --mtu 64", "goal run packet a.goal --mtu 64"),
            ("goal run --help", "goal run --help"),
            ("goal run", "goal run"),
            ("goal stats a.goal", "goal stats a.goal"),
            ("goal", "goal"),
        ] {
            assert_eq!(rewritten(old).as_deref(), Ok(new));
        }
        let models = "the models are loggops, packet, protocol, nic";
        assert_eq!(rewritten("goal run a --model x"), Err(format!("invalid value 'x' for --model: {models}")));
        assert_eq!(rewritten("goal run a --model"), Err(format!("invalid value '' for --model: {models}")));
        assert_eq!(rewritten("goal run a --model nic --model=nic"), Err("--model is given twice".into()));
    }
}
