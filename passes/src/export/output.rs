//! Files that are there whole or not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A folder or file in the making: under another name beside its place, until it is complete. If it never is, it is gone.
pub(crate) struct Draft {
    target: PathBuf,
    path: PathBuf,
    done: bool,
}

impl Draft {
    /// A folder.
    pub(crate) fn folder(target: &Path) -> io::Result<Self> {
        let draft = Self::new(target)?;
        fs::create_dir_all(&draft.path)?;
        Ok(draft)
    }

    /// A file.
    pub(crate) fn file(target: &Path) -> io::Result<Self> {
        Self::new(target)
    }

    fn new(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let path = target.with_file_name(hidden);
        remove(&path)?;
        Ok(Self { target: target.to_owned(), path, done: false })
    }

    /// Where it is being made.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it into its place, instead of what is there.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if !self.path.is_dir() || !self.target.exists() {
            fs::rename(&self.path, &self.target)?;
            self.done = true;
            return Ok(());
        }
        // A folder takes the place of an empty one only.
        let mut old = self.path.clone().into_os_string();
        old.push(".old");
        let old = PathBuf::from(old);
        remove(&old)?;
        fs::rename(&self.target, &old)?;
        let outcome = fs::rename(&self.path, &self.target);
        if outcome.is_err() {
            fs::rename(&old, &self.target)?;
        }
        outcome?;
        self.done = true;
        remove(&old)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.done {
            // Nobody can be told any more; the name says what it is.
            let _ = remove(&self.path);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let outcome = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
