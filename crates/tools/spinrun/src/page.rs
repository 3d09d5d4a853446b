// SPDX-License-Identifier: Apache-2.0
//! Page of a run (`--report`), which `spinkit page` makes of the run's report and timeline.

use std::path::Path;
use std::process::Command;

use command::sdk::{Sdk, SdkError};

/// Pages of a run that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The SDK is missing.
    #[error(transparent)]
    Sdk(#[from] SdkError),
    /// `spinkit page` failed.
    #[error("--report: {0}")]
    Failed(String),
}

/// File with the report in the folder of `--report`.
pub const REPORT: &str = "report.json";
/// File with the timeline.
pub const TIMELINE: &str = "timeline.pftrace";

/// Makes the pages in `folder`.
///
/// # Errors
/// When `spinkit` is missing or fails; report and timeline are kept.
pub fn write(folder: &Path) -> Result<(), PageError> {
    let sdk = Sdk::find()?;
    let beside = [sdk.command("spinkit"), sdk.home.join(".venv/bin/spinkit")];
    let program = beside.into_iter().find(|path| path.is_file()).unwrap_or_else(|| "spinkit".into());
    let status = Command::new(&program).arg("page").arg(folder).status();
    let remedy = format!("the report and the timeline are kept; `spinkit page {}` makes the page", folder.display());
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(PageError::Failed(format!("{} ended with {status}; {remedy}", program.display()))),
        Err(error) => Err(PageError::Failed(format!("{} does not start: {error}; {remedy}", program.display()))),
    }
}
