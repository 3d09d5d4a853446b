// SPDX-License-Identifier: Apache-2.0
//! Program of the card, as built by `make deploy`.

use std::fs;
use std::path::{Path, PathBuf};

use machine::Pspin;
use object::{Object, ObjectSymbol};
use pspin_nic::program::Loaded;

use crate::diagnostics::{Error, Result};

/// Name of the program in the folder of memory images.
const IN_FOLDER: &str = "program.elf";

/// Program and its path.
pub struct Image {
    pub path: PathBuf,
    pub elf: Vec<u8>,
}

impl Image {
    /// Reads a program.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(path: &Path) -> Result<Image> {
        let elf = fs::read(path).map_err(|error| Error::Read(error, path.to_owned()))?;
        Ok(Image { path: path.to_owned(), elf })
    }

    /// Reads the program in a folder of memory images, if any.
    ///
    /// # Errors
    /// When the program cannot be read.
    pub fn in_folder(folder: &Path) -> Result<Option<Image>> {
        let path = folder.join(IN_FOLDER);
        if path.exists() { Image::read(&path).map(Some) } else { Ok(None) }
    }

    /// Prepares the program for a unit.
    ///
    /// # Errors
    /// When the program is not for its cores, or too large for it.
    pub fn load(&self, unit: &Pspin) -> Result<Loaded> {
        Loaded::new(&self.elf, unit).map_err(|error| Error::File(error.to_string(), self.path.clone()))
    }

    /// Returns the address of the first symbol with this name.
    ///
    /// # Errors
    /// When the file is not an ELF file.
    pub fn find(&self, name: &str) -> Result<Option<u32>> {
        let wrong = |error: object::Error| Error::File(format!("not an ELF file: {error}"), self.path.clone());
        let file = object::File::parse(&*self.elf).map_err(wrong)?;
        let mut symbols = file.symbols().filter(|symbol| symbol.is_definition());
        Ok(symbols.find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address() as u32))
    }
}
