//! Running the compilers.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::kind::Kind;
use super::options::{Language, Options};
use super::{Error, Result};
use crate::sdk::Sdk;

/// The SDK, the compilers, and a folder for what is between them.
pub struct Tools {
    pub sdk: Sdk,
    pub temp: TempDir,
    verbose: bool,
    zig: OnceLock<PathBuf>,
}

impl Tools {
    pub fn new(sdk: Sdk, verbose: bool) -> Result<Tools> {
        let temp = tempfile::Builder::new().prefix("spincc-").tempdir().map_err(Error::write(&env::temp_dir()))?;
        Ok(Tools { sdk, temp, verbose, zig: OnceLock::new() })
    }

    /// A path in the temporary folder.
    pub fn temp_path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.temp.path().join(name)
    }

    /// The machine's compiler, with the SDK's headers as system headers: no warnings about what users cannot change.
    pub fn host(&self, language: Language) -> Command {
        let (variable, default) = match language {
            Language::C => ("SPIN_HOST_CC", "cc"),
            Language::Cxx => ("SPIN_HOST_CXX", "c++"),
        };
        let compiler = env::var(variable).unwrap_or_default();
        // Like CC in make, it may hold arguments ("ccache gcc").
        let mut words = compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(default));
        command.args(words).arg("-isystem").arg(self.sdk.include_dir()).arg("-isystem").arg(self.sdk.library_dir());
        command
    }

    fn zig_path(&self) -> Result<&Path> {
        // The search may start Python, which once is enough.
        if self.zig.get().is_none() {
            let _ = self.zig.set(self.sdk.zig()?);
        }
        Ok(self.zig.get().expect("just found"))
    }

    /// Whether a source file is the user's, not the SDK's, zig's or the system's.
    pub fn is_users(&self, file: &str) -> bool {
        let include = self.sdk.include_dir();
        let zig = self.zig_path().ok().and_then(Path::parent);
        ![Some(include.as_path()), zig, Some(Path::new("/usr"))]
            .into_iter()
            .flatten()
            .any(|folder| Path::new(file).starts_with(folder))
    }

    /// zig.
    pub fn zig(&self) -> Result<Command> {
        let mut command = Command::new(self.zig_path()?);
        let cache = self.sdk.cache_dir();
        command.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache);
        Ok(command)
    }

    /// zig's Clang with what every use of `kind` needs.
    pub fn device(&self, kind: &Kind, language: Language, target: &str) -> Result<Command> {
        let mut command = self.zig()?;
        command.arg(if language == Language::C { "cc" } else { "c++" });
        command.args(["-target", target]).arg(format!("-mcpu={}", kind.cpu)).args(&kind.flags);
        command.arg("-D__SPIN_DEVICE__=1").arg(format!("-DSPIN_ARCH_HEADER=<spin/arch/{}.h>", kind.arch));
        command.arg("-isystem").arg(self.sdk.include_dir()).arg("-isystem").arg(self.sdk.library_dir());
        command.args([
            // One section a function, so that the link drops what handlers do not reach; line numbers for errors.
            "-g",
            "-ffunction-sections",
            "-fdata-sections",
            // No operating system: fixed addresses, nothing unwinds, no checks that end in a run-time library.
            "-fno-pic",
            "-fomit-frame-pointer",
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-fno-sanitize=all",
            "-fno-math-errno",
            // What is undefined must not run on into another function: address 0 is no special one to the compiler, and
            // is not mapped; what cannot be reached is a trap; a loop without end is one. None costs an instruction
            // where the code is right.
            "-fno-delete-null-pointer-checks",
            "-fno-finite-loops",
            "-fno-strict-return",
            "-mllvm",
            "-trap-unreachable",
        ]);
        Ok(command)
    }

    /// Runs a tool whose messages are for the user.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        self.show(command);
        let status = command.status().map_err(|source| start_error(command, source))?;
        if status.success() { Ok(()) } else { Err(Error::Reported) }
    }

    /// Runs a tool and keeps what it prints.
    pub fn capture(&self, command: &mut Command) -> Result<Output> {
        self.show(command);
        command.output().map_err(|source| start_error(command, source))
    }

    /// `-E`, `-S` and the like: the host compiler alone.
    pub fn host_only(&self, options: &Options) -> Result<()> {
        let cxx = options.sources.iter().any(|s| s.language == Language::Cxx);
        self.run(self.host(if cxx { Language::Cxx } else { Language::C }).args(&options.host_line))
    }

    fn show(&self, command: &Command) {
        if self.verbose {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let quoted: Vec<String> = words.map(|w| quote(&w.to_string_lossy())).collect();
            eprintln!("{}", quoted.join(" "));
        }
    }
}

fn start_error(command: &Command, source: std::io::Error) -> Error {
    Error::Start { program: command.get_program().to_string_lossy().into_owned(), source }
}

/// A word as a shell would take it.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
