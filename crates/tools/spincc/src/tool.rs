// SPDX-License-Identifier: Apache-2.0
//! Runs the compilers.

use std::env;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use output::Scratch;

use super::kind::Kind;
use super::options::{Language, Options};
use super::{Error, Result};
use command::listable::Listable;
use command::sdk::{Sdk, SdkError};

/// SDK, compilers, and a folder for temporary files.
pub struct Tools {
    /// SDK under its own name, for messages.
    pub sdk: Sdk,
    /// SDK under a name that zig accepts, valid as long as `_home`.
    pub listed: Sdk,
    _home: Listable,
    /// Folder for temporary files, removed when dropped.
    pub temp: Scratch,
    verbose: bool,
    zig: OnceLock<PathBuf>,
    cache: OnceLock<Listable>,
}

impl Tools {
    /// Prepares the tools of an SDK; `verbose` prints each command that they run.
    ///
    /// # Errors
    /// When the temporary folder cannot be made, or no name of the SDK is acceptable to zig.
    pub fn new(sdk: Sdk, verbose: bool) -> Result<Tools> {
        let temp = Scratch::new("spincc.").map_err(Error::write(&env::temp_dir()))?;
        let home = Listable::new(sdk.home.clone()).map_err(Error::read(&sdk.home))?;
        Ok(Tools {
            listed: sdk.named(home.name()),
            sdk,
            _home: home,
            temp,
            verbose,
            zig: OnceLock::new(),
            cache: OnceLock::new(),
        })
    }

    /// Returns a path in the temporary folder.
    pub fn temp_path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.temp.path().join(name)
    }

    /// Returns a command for the system's compiler, or for zig's Clang if there is none. The SDK's headers are system
    /// headers, because users cannot fix warnings in them.
    pub fn host(&self, language: Language) -> Command {
        let (variable, default) = match language {
            Language::C => ("SPIN_HOST_CC", "cc"),
            Language::Cxx => ("SPIN_HOST_CXX", "c++"),
        };
        let compiler = env::var(variable).unwrap_or_default();
        // Like CC in make, the variable may contain arguments ("ccache gcc").
        let mut words = compiler.split_whitespace();
        let mut command = match words.next() {
            Some(given) => Command::new(given),
            None if is_on_path(default) => Command::new(default),
            // A missing zig lets the system's compiler be reported as missing.
            None => self.zig().map_or_else(
                |_| Command::new(default),
                |mut zig| {
                    zig.arg(default);
                    zig
                },
            ),
        };
        command.args(words).arg("-isystem").arg(self.sdk.include_dir()).arg("-isystem").arg(self.sdk.library_dir());
        command
    }

    fn zig_path(&self) -> Result<&Path> {
        // The search may start Python, so its result is stored.
        if self.zig.get().is_none() {
            let _ = self.zig.set(self.sdk.zig()?);
        }
        Ok(self.zig.get().expect("just found"))
    }

    /// Returns true if a source file belongs to the user, not to the SDK, zig or the system. Compilers shorten names of
    /// files below the current folder.
    pub fn is_users(&self, file: &str) -> bool {
        let Ok(file) = path::absolute(file) else { return true };
        let include = self.sdk.include_dir();
        let zig = self.zig_path().ok().and_then(Path::parent);
        ![Some(include.as_path()), zig, Some(Path::new("/usr"))]
            .into_iter()
            .flatten()
            .any(|folder| file.starts_with(folder))
    }

    /// Returns a command for zig.
    ///
    /// # Errors
    /// When zig is not found.
    pub fn zig(&self) -> Result<Command> {
        let mut command = Command::new(self.zig_path()?);
        if self.cache.get().is_none() {
            let folder = self.sdk.cache()?.folder("").map_err(SdkError::from)?;
            let _ = self.cache.set(Listable::new(folder.clone()).map_err(Error::read(&folder))?);
        }
        let cache = self.cache.get().expect("just found").name();
        command.env("ZIG_GLOBAL_CACHE_DIR", cache).env("ZIG_LOCAL_CACHE_DIR", cache);
        Ok(command)
    }

    /// Makes debug information use the user's name of a folder, if zig knows it by another name.
    pub fn keep_name(command: &mut Command, listed: &Path, own: &Path) {
        if listed != own {
            command.arg(format!("-ffile-prefix-map={}={}", listed.display(), own.display()));
        }
    }

    /// Returns a command for zig's Clang with the flags common to all uses of `kind`.
    ///
    /// # Errors
    /// When zig is not found.
    pub fn device(&self, kind: &Kind, language: Language, target: &str) -> Result<Command> {
        let mut command = self.zig()?;
        command.arg(if language == Language::C { "cc" } else { "c++" });
        command.args(["-target", target]).arg(format!("-mcpu={}", kind.cpu)).args(&kind.flags);
        command.arg("-D__SPIN_DEVICE__=1").arg(format!("-DSPIN_ARCH_HEADER=<spin/arch/{}.h>", kind.arch));
        command.arg("-isystem").arg(self.listed.include_dir()).arg("-isystem").arg(self.listed.library_dir());
        Tools::keep_name(&mut command, &self.listed.home, &self.sdk.home);
        command.args([
            // Put each function into a section, so that the linker drops functions unreachable from handlers. Line
            // numbers are for error messages.
            "-g",
            "-ffunction-sections",
            "-fdata-sections",
            // No operating system: addresses are fixed, the stack is not unwound, and checks that need a run-time
            // library are off.
            "-fno-pic",
            "-fomit-frame-pointer",
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-fno-sanitize=all",
            "-fno-math-errno",
            // Code with undefined behaviour must not continue in another function. Address 0 has no special meaning to
            // the compiler and is unmapped; unreachable code traps; endless loops are kept. Correct code is not slower
            // for that.
            "-fno-delete-null-pointer-checks",
            "-fno-finite-loops",
            "-fno-strict-return",
            "-mllvm",
            "-trap-unreachable",
        ]);
        Ok(command)
    }

    /// Runs a tool whose messages go to the user.
    ///
    /// # Errors
    /// [`Error::Reported`] when the tool fails, after printing the reason.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        self.show(command);
        let status = command.status().map_err(|source| start_error(command, source))?;
        if status.success() { Ok(()) } else { Err(Error::Reported) }
    }

    /// Runs a tool and returns its output.
    ///
    /// # Errors
    /// [`Error::Start`] when it cannot be started.
    pub fn capture(&self, command: &mut Command) -> Result<Output> {
        self.show(command);
        command.output().map_err(|source| start_error(command, source))
    }

    /// Runs the host compiler alone, for `-E`, `-S` and similar options.
    ///
    /// # Errors
    /// [`Error::Reported`] when it fails.
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

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Returns true if a folder of PATH has a command.
pub fn is_on_path(command: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(command).is_file()))
}
