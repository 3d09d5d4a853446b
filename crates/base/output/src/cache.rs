//! The folder of what commands keep from one run to the next. They load and run what they find there, so it must be the user's own.

use std::env;
use std::fs::{self, DirBuilder, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf, absolute};

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use thiserror::Error;

/// The user who may change everything.
const ROOT: u32 = 0;
/// The bits of a mode by which group and others may write.
const OTHERS_WRITE: u32 = 0o022;
/// The bit by which others may write to a folder.
const ALL_WRITE: u32 = 0o002;
/// The bit by which only owners rename what is in a folder.
const STICKY: u32 = 0o1000;

/// The folder of what commands keep.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    /// The owner of the checkout that has the cache: its programs are run in any case.
    owner: Option<u32>,
}

/// The error of a cache that cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// Another user owns it.
    #[error(
        "{0} belongs to user {1}, who could change what commands run from this cache; set SPIN_CACHE to a folder of your own"
    )]
    Foreign(PathBuf, u32),
    /// Others may write to it.
    #[error(
        "{0} may be written by other users (mode {1:o}), who could change what commands run from this cache; take their right away \
         (chmod go-w), or set SPIN_CACHE to another folder"
    )]
    Open(PathBuf, u32),
    /// It cannot be made or written.
    #[error("{0}: {1}; set SPIN_CACHE to a folder that you may write")]
    File(PathBuf, io::Error),
}

impl Cache {
    /// Finds the cache, which is the first of these:
    ///
    /// - `$SPIN_CACHE`;
    /// - `.cache/zig` of the checkout `home`, if it is one that the user may write;
    /// - `spinkit/zig` in `$XDG_CACHE_HOME`, or in `$HOME/.cache`;
    /// - `spinkit-UID` in the folder for temporary files.
    ///
    /// Variables that are empty count as unset, as do relative paths of all but the first (XDG Base Directory Specification 0.8).
    ///
    /// # Errors
    /// [`CacheError`] when others could change what is in it.
    pub fn find(home: &Path) -> Result<Cache, CacheError> {
        let named = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(folder) = named("SPIN_CACHE") {
            return Cache::at(&folder);
        }
        if home.join("Cargo.toml").is_file() {
            let root = home.join(".cache/zig");
            let there = root.ancestors().find(|folder| folder.exists()).unwrap_or(home);
            if access(there, Access::WRITE_OK).is_ok() {
                return Cache { root, owner: fs::metadata(home).ok().map(|home| home.uid()) }.checked();
            }
        }
        let whole = |name| named(name).filter(|folder| folder.is_absolute());
        if let Some(user) = whole("XDG_CACHE_HOME").or_else(|| whole("HOME").map(|home| home.join(".cache"))) {
            return Cache::at(&user.join("spinkit/zig"));
        }
        Cache::temporary(&whole("TMPDIR").unwrap_or_else(|| "/tmp".into()))
    }

    /// Returns this cache, or one below `/tmp` if the path of this one has characters that mean something in a Makefile.
    ///
    /// # Errors
    /// [`CacheError`] when others could change what is in it.
    pub fn for_make(self) -> Result<Cache, CacheError> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"/._-+,@^".contains(byte);
        if self.root.as_os_str().as_bytes().iter().all(is_plain) {
            Ok(self)
        } else {
            Cache::temporary(Path::new("/tmp"))
        }
    }

    /// Returns the user's cache in a folder for the temporary files of all users.
    fn temporary(folder: &Path) -> Result<Cache, CacheError> {
        let root = folder.join(format!("spinkit-{}", geteuid().as_raw()));
        match fs::symlink_metadata(&root) {
            // Another user's link would name a folder that this user did not choose.
            Ok(there) if there.is_symlink() => Err(CacheError::Foreign(root, there.uid())),
            _ => Cache::at(&root),
        }
    }

    /// Returns the cache in a folder, which need not be there.
    ///
    /// # Errors
    /// [`CacheError`] when others could change what is in it.
    pub fn at(folder: &Path) -> Result<Cache, CacheError> {
        let root = absolute(folder).map_err(|error| CacheError::File(folder.to_owned(), error))?;
        Cache { root, owner: None }.checked()
    }

    /// The folder, which need not be there.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the folder with this relative path in the cache, unless it is there; the empty path is the cache itself.
    ///
    /// # Errors
    /// [`CacheError`] when it cannot be made or written, or when others could change what is in it.
    pub fn folder(&self, path: impl AsRef<Path>) -> Result<PathBuf, CacheError> {
        let folder = path.as_ref().iter().fold(self.root.clone(), |folder, part| folder.join(part));
        let failed = |error| CacheError::File(folder.clone(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        for part in folder.ancestors().take_while(|part| part.starts_with(&self.root)) {
            self.check(part)?;
        }
        self.check_above()?;
        access(&folder, Access::WRITE_OK).map_err(|error| failed(error.into()))?;
        Ok(folder)
    }

    fn checked(self) -> Result<Cache, CacheError> {
        self.check(&self.root)?;
        self.check_above()?;
        Ok(self)
    }

    /// Checks a folder, if it is there.
    fn check(&self, folder: &Path) -> Result<(), CacheError> {
        let Some(there) = metadata(folder)? else { return Ok(()) };
        if there.uid() != geteuid().as_raw() && there.uid() != ROOT && Some(there.uid()) != self.owner {
            return Err(CacheError::Foreign(folder.to_owned(), there.uid()));
        }
        if there.mode() & OTHERS_WRITE != 0 {
            return Err(CacheError::Open(folder.to_owned(), there.mode() & 0o7777));
        }
        Ok(())
    }

    /// Checks that nobody can put another folder in the place of the cache, or of one above it. In a checkout they could replace the
    /// programs as well.
    fn check_above(&self) -> Result<(), CacheError> {
        if self.owner.is_some() {
            return Ok(());
        }
        let Ok(root) = self.root.canonicalize() else { return Ok(()) };
        for folder in root.ancestors().skip(1) {
            if let Some(there) = metadata(folder)?
                && there.mode() & ALL_WRITE != 0
                && there.mode() & STICKY == 0
            {
                return Err(CacheError::Open(folder.to_owned(), there.mode() & 0o7777));
            }
        }
        Ok(())
    }
}

fn metadata(folder: &Path) -> Result<Option<Metadata>, CacheError> {
    match fs::metadata(folder) {
        Ok(there) if there.is_dir() => Ok(Some(there)),
        Ok(_) => Err(CacheError::File(folder.to_owned(), ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CacheError::File(folder.to_owned(), error)),
    }
}

/// Writes beside a file of the cache the sum by which [`is_whole`] knows it.
///
/// # Errors
/// The system's error when the file cannot be read, or its sum not be written.
pub fn seal(file: &Path) -> io::Result<()> {
    let sum = sum(file)?;
    crate::write(&sum_file(file), |out| out.write_all(sum.as_bytes()))
}

/// Returns true if a file of the cache has the contents that were sealed. A machine that fails may leave it empty, or a part of it.
pub fn is_whole(file: &Path) -> bool {
    let sealed = fs::read_to_string(sum_file(file));
    sealed.is_ok_and(|sealed| sum(file).is_ok_and(|sum| sum == sealed))
}

fn sum_file(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sum");
    name.into()
}

fn sum(file: &Path) -> io::Result<String> {
    let bytes = fs::read(file)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(format!("{:016x} {}\n", hasher.finish(), bytes.len()))
}

#[cfg(test)]
mod tests;
