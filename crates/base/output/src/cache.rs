// SPDX-License-Identifier: Apache-2.0
//! The folder of data that commands keep between runs. Commands load and execute files from it, so only the user may
//! write to it.

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

/// User id of root, who may change everything.
const ROOT: u32 = 0;
/// Mode bits that let group and others write.
const OTHERS_WRITE: u32 = 0o022;
/// Mode bit that lets others write.
const ALL_WRITE: u32 = 0o002;
/// Mode bit that lets only owners rename the entries of a folder.
const STICKY: u32 = 0o1000;

/// A cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    /// Owner of the checkout that contains the cache. They are trusted: their programs run in any case.
    owner: Option<u32>,
}

/// Errors of an unusable cache.
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
    /// The folder cannot be created or written.
    #[error("{0}: {1}; set SPIN_CACHE to a folder that you may write")]
    File(PathBuf, io::Error),
}

impl Cache {
    /// Finds the cache: the first of these:
    ///
    /// - `$SPIN_CACHE`;
    /// - `.cache/zig` of the checkout `home`, if the user may write to it;
    /// - `spinkit/zig` in `$XDG_CACHE_HOME`, or in `$HOME/.cache`;
    /// - `spinkit-UID` in the folder for temporary files.
    ///
    /// Empty variables count as unset, as do relative paths of all but the first (XDG Base Directory Specification
    /// 0.8).
    ///
    /// # Errors
    /// [`CacheError`] if other users could change its contents.
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

    /// Returns this cache, or one below `/tmp` if this path has characters that are special in a Makefile.
    ///
    /// # Errors
    /// [`CacheError`] if other users could change its contents.
    pub fn for_make(self) -> Result<Cache, CacheError> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"/._-+,@^".contains(byte);
        if self.root.as_os_str().as_bytes().iter().all(is_plain) {
            Ok(self)
        } else {
            Cache::temporary(Path::new("/tmp"))
        }
    }

    /// Returns the user's cache in the shared folder for temporary files.
    fn temporary(folder: &Path) -> Result<Cache, CacheError> {
        let root = folder.join(format!("spinkit-{}", geteuid().as_raw()));
        match fs::symlink_metadata(&root) {
            // Another user's link would lead to a folder that this user did not choose.
            Ok(there) if there.is_symlink() => Err(CacheError::Foreign(root, there.uid())),
            _ => Cache::at(&root),
        }
    }

    /// Returns the cache in a folder, which need not exist.
    ///
    /// # Errors
    /// [`CacheError`] if other users could change its contents.
    pub fn at(folder: &Path) -> Result<Cache, CacheError> {
        let root = absolute(folder).map_err(|error| CacheError::File(folder.to_owned(), error))?;
        Cache { root, owner: None }.checked()
    }

    /// Returns the folder, which need not exist.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Creates the folder with this relative path in the cache, unless it exists; the empty path is the cache itself.
    ///
    /// # Errors
    /// [`CacheError`] if it cannot be created or written, or if other users could change its contents.
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

    /// Checks a folder, if it exists.
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

    /// Checks that no other user can replace the cache, or a folder above it. In a checkout they could replace the
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

/// Writes a checksum file beside a cache file, for [`is_whole`].
///
/// # Errors
/// The system's error if the file cannot be read, or its checksum not be written.
pub fn seal(file: &Path) -> io::Result<()> {
    let sum = sum(file)?;
    crate::write(&sum_file(file), |out| out.write_all(sum.as_bytes()))
}

/// Returns true if a cache file has its sealed contents. A machine crash may leave it empty or truncated.
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
