// SPDX-License-Identifier: Apache-2.0
//! Page of a run (`--report`), which `spinkit page` makes of the run's report and timeline.

use std::path::Path;
use std::process::Command;

use command::sdk::Sdk;

use crate::RunError;

/// File with the report in the folder of `--report`.
pub const REPORT: &str = "report.json";
/// File with the timeline.
pub const TIMELINE: &str = "timeline.pftrace";

/// Makes the pages in `folder`.
///
/// # Errors
/// When `spinkit` is missing or fails; report and timeline are kept.
pub fn write(folder: &Path) -> Result<(), RunError> {
    let sdk = Sdk::find()?;
    let beside = [sdk.command("spinkit"), sdk.home.join(".venv/bin/spinkit")];
    let program = beside.into_iter().find(|path| path.is_file()).unwrap_or_else(|| "spinkit".into());
    let status = Command::new(&program).arg("page").arg(folder).status();
    let remedy = format!("the report and the timeline are kept; `spinkit page {}` makes the page", folder.display());
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(RunError::Page(format!("{} ended with {status}; {remedy}", program.display()))),
        Err(error) => Err(RunError::Page(format!("{} does not start: {error}; {remedy}", program.display()))),
    }
}
