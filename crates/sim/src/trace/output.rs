use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that appears under its name only when it is whole.
#[derive(Debug)]
pub(super) struct Output {
    file: BufWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
    whole: bool,
}

impl Output {
    pub(super) fn create(target: &Path) -> io::Result<Output> {
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
        let temporary = target.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        let file = BufWriter::new(File::create(&temporary)?);
        Ok(Output { file, temporary, target: target.to_owned(), whole: false })
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        fs::rename(&self.temporary, &self.target)?;
        self.whole = true;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.whole {
            // Nobody is left to hear of a failure.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
