// SPDX-License-Identifier: Apache-2.0
//! Start of a program's ranks: each executes the program, or all are copies of one process that has (`ranks::Job`).
//!
//! Copies are equivalent to processes that execute the program if the constructors of its libraries do the same in
//! every rank, so the libraries must be known ones. The program's own code starts after the copy.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use object::read::elf::{Dyn, ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use rustix::io::Errno;

use super::links;

/// Smallest number of ranks that `auto` starts as copies.
const FEWEST: u32 = 4;
/// Libraries whose constructors do the same in every rank. Other names with these prefixes are other versions.
const KNOWN: [&str; 11] = [
    "libc.so.",
    "libm.so.",
    "libmvec.so.",
    "libpthread.so.",
    "libdl.so.",
    "librt.so.",
    "libgcc_s.so.",
    "libstdc++.so.",
    "libatomic.so.",
    "libportals.so",
    "ld-linux-x86-64.so.",
];
/// Variables that make the loader load more, or print messages in every process.
const OF_LOADER: [&str; 4] = ["LD_PRELOAD", "LD_AUDIT", "LD_DEBUG", "LD_PROFILE"];
/// Functions through which a program may use PMI without naming it: it loads a library, or executes another program.
const TO_OTHERS: [&str; 17] = [
    "dlopen",
    "dlmopen",
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "execle",
    "fexecve",
    "execveat",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "wordexp",
    "syscall",
];
/// Prefix of all variables of PMI. A program that uses PMI directly contains it.
const PMI: &[u8] = b"PMI_";

/// Value of `--start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Start {
    Auto,
    Exec,
    Fork,
}

/// Facts that decide the start method of a program's ranks.
pub struct Facts {
    /// Reason for which they cannot be copies.
    pub objection: Option<String>,
    /// Set if certainly no rank uses PMI.
    pub speaks_no_pmi: bool,
}

impl Facts {
    /// Finds the facts about a program with these libraries and variables.
    pub fn of(program: &OsStr, libraries: &[PathBuf], variable: impl Fn(&str) -> Option<OsString>) -> Facts {
        let Some(image) = links::find(program).as_deref().and_then(Image::read) else {
            let objection = Some("it is no program that the system's loader starts".to_owned());
            return Facts { objection, speaks_no_pmi: false };
        };
        let foreign = foreign_code(libraries, variable);
        let speaks_no_pmi = foreign.is_none() && !image.names_pmi && !TO_OTHERS.iter().any(|name| image.imports(name));
        Facts { objection: foreign.or_else(|| image.objection()), speaks_no_pmi }
    }
}

impl Start {
    /// Returns true if `ranks` ranks are copies, or the reason for which they are not. With `measures`, the CPU time of
    /// ranks counts from their start.
    ///
    /// # Errors
    /// When the user demands copies, and they are impossible.
    pub fn decide(self, facts: &Facts, ranks: u32, measures: bool) -> Result<Result<(), String>, String> {
        match (self, &facts.objection) {
            (Start::Exec, _) => Ok(Err("as --start exec asks".into())),
            (Start::Fork, None) => Ok(Ok(())),
            (Start::Fork, Some(objection)) => Err(objection.clone()),
            (Start::Auto, Some(objection)) => Ok(Err(objection.clone())),
            (Start::Auto, None) if ranks < FEWEST => Ok(Err(format!("there are fewer than {FEWEST}"))),
            (Start::Auto, None) if measures => Ok(Err("--compute measures CPU time from its beginning".into())),
            (Start::Auto, None) => Ok(Ok(())),
        }
    }
}

/// Returns the reason for which unknown code may run in a process before the program itself.
fn foreign_code(libraries: &[PathBuf], variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let is_known = |name: &[u8]| KNOWN.iter().any(|known| name.starts_with(known.as_bytes()));
    let mut names = libraries.iter().filter_map(|path| path.file_name());
    if let Some(name) = names.find(|name| !is_known(name.as_bytes())) {
        return Some(format!("it links {}", name.display()));
    }
    let set = OF_LOADER.into_iter().find(|name| variable(name).is_some_and(|value| !value.is_empty()));
    set.map(|name| format!("{name} is set"))
}

/// Relevant contents of a program's file.
struct Image {
    imports: BTreeSet<Vec<u8>>,
    has_early_functions: bool,
    names_pmi: bool,
    changes_user: bool,
}

impl Image {
    /// Reads a program that names a loader.
    fn read(path: &Path) -> Option<Image> {
        let bytes = fs::read(path).ok()?;
        let file = ElfFile64::<Endianness>::parse(&*bytes).ok()?;
        let endian = file.endian();
        let headers = file.elf_program_headers();
        headers.iter().find_map(|header| header.interpreter(endian, &*bytes).ok()?)?;
        let entries = headers.iter().filter_map(|header| header.dynamic(endian, &*bytes).ok()?).flatten();
        let has_early_functions = entries.into_iter().any(|entry| entry.tag(endian) == elf::DT_PREINIT_ARRAY);
        let undefined = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let mode = fs::metadata(path).ok()?.mode();
        let capabilities = rustix::fs::getxattr(path, "security.capability", &mut [0_u8; 64]);
        let has_none = matches!(capabilities, Err(Errno::NODATA | Errno::OPNOTSUPP));
        Some(Image {
            imports: undefined.filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec())).collect(),
            has_early_functions,
            names_pmi: bytes.windows(PMI.len()).any(|window| window == PMI),
            changes_user: mode & (libc::S_ISUID | libc::S_ISGID) != 0 || !has_none,
        })
    }

    fn imports(&self, name: &str) -> bool {
        self.imports.contains(name.as_bytes())
    }

    /// Returns the reason for which ranks of the program cannot be copies.
    fn objection(&self) -> Option<String> {
        let objections = [
            (!cfg!(target_arch = "x86_64"), "that is for processors with the x86-64 architecture only"),
            (self.changes_user, "the system's loader preloads nothing into a program with the rights of another user"),
            (self.has_early_functions, "it has functions that run before libraries are initialised"),
            (!self.imports("__libc_start_main"), "it does not start through the C library"),
        ];
        objections.into_iter().find_map(|(holds, why)| holds.then(|| why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(program: &str, libraries: &[&str], variables: &[(&str, &str)]) -> Facts {
        let libraries: Vec<PathBuf> = libraries.iter().map(PathBuf::from).collect();
        let variable = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
        Facts::of(OsStr::new(program), &libraries, variable)
    }

    fn objection(program: &str, libraries: &[&str], variables: &[(&str, &str)]) -> String {
        facts(program, libraries, variables).objection.unwrap_or_default()
    }

    #[test]
    fn only_known_code_may_run_before_the_copy() {
        let known = ["/lib/libc.so.6", "/lib/libm.so.6", "/lib64/ld-linux-x86-64.so.2", "/x/libportals.so.4"];
        assert_eq!(objection("/bin/true", &known, &[("LD_PRELOAD", "")]), "");
        assert_eq!(objection("/bin/true", &["/lib/libc.so.6", "libmpi.so.12"], &[]), "it links libmpi.so.12");
        assert_eq!(objection("/bin/true", &known, &[("LD_AUDIT", "a.so")]), "LD_AUDIT is set");
        for program in ["/etc/passwd", "/nowhere"] {
            assert!(objection(program, &known, &[]).contains("no program that the system's loader starts"));
        }
    }

    #[test]
    fn programs_that_may_execute_others_may_speak_pmi() {
        assert!(!facts("/bin/sh", &["/lib/libc.so.6"], &[]).speaks_no_pmi);
        assert!(facts("/bin/true", &["/lib/libc.so.6"], &[]).speaks_no_pmi);
        assert!(!facts("/bin/true", &["/lib/libpmi.so"], &[]).speaks_no_pmi);
        // This test contains the name.
        let own = std::env::current_exe().unwrap();
        assert!(!facts(own.to_str().unwrap(), &["/lib/libc.so.6"], &[]).speaks_no_pmi);
    }

    #[test]
    fn the_user_or_else_the_number_of_ranks_decides() {
        let can = Facts { objection: None, speaks_no_pmi: true };
        let cannot = Facts { objection: Some("it links x".into()), speaks_no_pmi: true };
        assert_eq!(Start::Auto.decide(&can, FEWEST, false), Ok(Ok(())));
        assert_eq!(Start::Auto.decide(&cannot, FEWEST, false), Ok(Err("it links x".into())));
        assert!(Start::Auto.decide(&can, FEWEST - 1, false).unwrap().is_err());
        assert!(Start::Auto.decide(&can, FEWEST, true).unwrap().is_err());
        assert_eq!(Start::Fork.decide(&can, 1, true), Ok(Ok(())));
        assert_eq!(Start::Fork.decide(&cannot, 100, false), Err("it links x".into()));
        assert!(Start::Exec.decide(&can, 100, false).unwrap().is_err());
    }
}
