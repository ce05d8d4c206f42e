//! Outputs under construction.

use crate::{
    path::{follow_links, is_descriptor, parent},
    rename::{self, aside},
    temporary::{Kind, Temporary, registry},
};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Builds an error whose text callers print after "cannot write 'NAME': ".
fn refuse(reason: impl Into<String>) -> io::Error {
    io::Error::other(reason.into())
}

type Check = Box<dyn Fn(&Path) -> Result<(), String>>;

/// Output file or folder under a temporary name in the target's directory. Dropping it without [`Draft::commit`] removes it.
pub struct Draft {
    target: PathBuf,
    /// `None` for devices, pipes and descriptors, which are written directly.
    temporary: Option<Temporary>,
    /// Returns an error if an existing target folder must not be replaced. `None` for a file.
    check: Option<Check>,
}

impl Draft {
    /// Starts a file. If `target` is a symbolic link, the link is kept and the file that it points to is replaced.
    pub fn file(target: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(target).ok();
        if metadata.as_ref().is_some_and(|metadata| metadata.is_dir()) {
            return Err(refuse("it is a folder: name a file"));
        }
        if is_descriptor(target) || metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            return Ok(Self { target: target.to_owned(), temporary: None, check: None });
        }
        let is_named = target.file_name().is_some() && !target.as_os_str().as_encoded_bytes().ends_with(b"/");
        if !is_named {
            return Err(refuse("it is not the name of a file"));
        }
        let target = follow_links(target)?;
        // A replacement must not be readable by others before it has the permissions of the old file.
        let mode = if metadata.is_some() { 0o600 } else { 0o666 };
        let temporary = Temporary::beside(&target, Kind::File { mode })?;
        if let Some(metadata) = metadata {
            fs::set_permissions(temporary.path(), metadata.permissions())?;
        }
        Ok(Self { target, temporary: Some(temporary), check: None })
    }

    /// Starts a folder. An existing folder is replaced if it is empty or `check` accepts its contents.
    pub fn folder(target: &Path, check: impl Fn(&Path) -> Result<(), String> + 'static) -> io::Result<Self> {
        let mut target = follow_links(target)?;
        match fs::metadata(&target) {
            Ok(metadata) if !metadata.is_dir() => return Err(refuse("it is a file: name a folder")),
            Ok(metadata) => {
                target = target.canonicalize()?;
                if std::env::current_dir().is_ok_and(|current| current.starts_with(&target)) {
                    return Err(refuse("it is the working directory or contains it: name a folder in it"));
                }
                if metadata.permissions().mode() & 0o200 == 0 {
                    return Err(refuse("it is read-only: choose another folder"));
                }
                check_folder(&target, &check)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                target.file_name().ok_or_else(|| refuse("it is not the name of a folder"))?;
                fs::create_dir_all(parent(&target))?;
            }
            Err(error) => return Err(error),
        }
        let temporary = Temporary::beside(&target, Kind::Folder)?;
        Ok(Self { target, temporary: Some(temporary), check: Some(Box::new(check)) })
    }

    /// Returns the path to write to.
    pub fn path(&self) -> &Path {
        self.temporary.as_ref().map_or(&self.target, Temporary::path)
    }

    /// Moves the file or folder to its target.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = &mut self.temporary else { return Ok(()) };
        // The lock delays `discard_all` in the signal thread until the renames are complete.
        let mut registry = registry();
        match &self.check {
            Some(check) if !is_empty(&self.target)? => {
                fs::set_permissions(temporary.path(), fs::metadata(&self.target)?.permissions())?;
                let check = |folder: &Path| check_folder(folder, check);
                check(&self.target)?;
                rename::replace(temporary.path(), &self.target, &aside(&self.target), &check)?;
            }
            _ => fs::rename(temporary.path(), &self.target)?,
        }
        temporary.finish(&mut registry);
        Ok(())
    }
}

/// Returns true if a folder is empty or does not exist.
fn is_empty(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn check_folder(folder: &Path, check: &dyn Fn(&Path) -> Result<(), String>) -> io::Result<()> {
    if is_empty(folder)? { Ok(()) } else { check(folder).map_err(refuse) }
}

/// Writes a file atomically. Devices, pipes and open descriptors are appended to, so that a log opened by a shell is not
/// truncated.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let draft = Draft::file(path)?;
    match &draft.temporary {
        Some(temporary) => fs::write(temporary.path(), contents)?,
        None => fs::OpenOptions::new().append(true).open(path)?.write_all(contents.as_ref())?,
    }
    draft.commit()
}
