//! Temporary files and folders, named after the process id and removed when the process ends.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

pub(crate) const TEMPORARY: &str = "tmp";
pub(crate) const OLD: &str = "old";
/// Maximum number of bytes of the target's name in a temporary name; file systems limit names to 255 bytes. The end of a longer
/// name is replaced by a hash.
const LONGEST: usize = 200;

/// Temporary paths of this process.
static REGISTRY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Locks the list of temporary paths. [`discard_all`] blocks while the lock is held.
pub(crate) fn registry() -> MutexGuard<'static, Vec<PathBuf>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all temporary files and folders of this process. To be called just before the process exits.
pub fn discard_all() {
    for path in registry().drain(..) {
        // Retry: other threads may still create files in a folder.
        for _ in 0..10 {
            if remove(&path).is_ok() {
                break;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File { mode: u32 },
    Folder,
}

/// Temporary file or folder, removed when dropped.
pub(crate) struct Temporary {
    path: PathBuf,
    /// Lock held while the file is in use, so that a process in another PID namespace does not remove it as stale.
    _lock: Option<File>,
    is_finished: bool,
}

impl Temporary {
    /// Creates a temporary file or folder in the directory of `target`, after removing those of dead processes.
    pub(crate) fn beside(target: &Path, kind: Kind) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        remove_stale(crate::path::parent(target), name, Some(target));
        Self::create(&|number| target.with_file_name(name_of(name, number, TEMPORARY)), kind)
    }

    fn create(path: &dyn Fn(u32) -> PathBuf, kind: Kind) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let path = path(number);
            let mut registry = registry();
            let created = match kind {
                Kind::File { mode } => {
                    OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).map(|_| ())
                }
                Kind::Folder => DirBuilder::new().mode(0o777).create(&path),
            };
            match created {
                // Used by another draft of this process for the same target.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
                Err(error) => return Err(error),
                Ok(()) => {
                    registry.push(path.clone());
                    let lock = File::open(&path).ok().filter(|file| file.try_lock().is_ok());
                    return Ok(Self { path, _lock: lock, is_finished: false });
                }
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file or folder at the path and its entry in the registry.
    pub(crate) fn finish(&mut self, registry: &mut Vec<PathBuf>) {
        // On failure, a later run removes the leftover.
        let _ = remove(&self.path);
        registry.retain(|path| *path != self.path);
        self.is_finished = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_finished {
            self.finish(&mut registry());
        }
    }
}

/// Temporary folder in the system's temporary directory, removed when dropped.
pub struct Scratch(Temporary);

impl Scratch {
    /// Creates `.NAME.PID.tmp`, after removing those of dead processes.
    pub fn new(name: &str) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir();
        remove_stale(&folder, OsStr::new(name), None);
        let first = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = |number| folder.join(name_of(OsStr::new(name), first + number, TEMPORARY));
        Temporary::create(&path, Kind::Folder).map(Self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Returns `.NAME.PID.SUFFIX` for number 0 and `.NAME.PID-N.SUFFIX` for number N.
pub(crate) fn name_of(name: &OsStr, number: u32, suffix: &str) -> OsString {
    let mut bytes = prefix(name);
    bytes.extend(process::id().to_string().into_bytes());
    if number > 0 {
        bytes.extend(format!("-{number}").into_bytes());
    }
    bytes.extend(format!(".{suffix}").into_bytes());
    OsString::from_vec(bytes)
}

fn prefix(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    if name.len() <= LONGEST {
        return [b".", name, b"."].concat();
    }
    // FNV-1a.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = format!("{:016x}", name.iter().fold(0xcbf2_9ce4_8422_2325, mix));
    [b".", &name[..LONGEST - hash.len()], hash.as_bytes(), b"."].concat()
}

/// Parses a temporary name for `name` into its process id and suffix.
fn parse<'a>(entry: &'a OsStr, name: &OsStr) -> Option<(u32, &'a str)> {
    let rest = std::str::from_utf8(entry.as_bytes().strip_prefix(&prefix(name)[..])?).ok()?;
    let (numbers, suffix) = rest.split_once('.')?;
    let (pid, number) = numbers.split_once('-').unwrap_or((numbers, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = is_number(pid) && is_number(number) && (suffix == TEMPORARY || suffix == OLD);
    is_ours.then_some(())?;
    Some((pid.parse().ok()?, suffix))
}

/// Removes temporary files and folders for `name` whose processes are dead. If a process died in `replace_in_steps` after it
/// had moved the old folder aside and before it had moved the new one to `target`, the old folder is restored.
fn remove_stale(folder: &Path, name: &OsStr, target: Option<&Path>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    // The lock keeps other threads from creating temporary files, which would look stale before they are registered.
    let registry = registry();
    for entry in entries.flatten() {
        let entry_name = entry.file_name();
        let Some((pid, suffix)) = parse(&entry_name, name) else { continue };
        let path = entry.path();
        // SAFETY: takes no arguments.
        let is_ours = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.uid() == unsafe { libc::geteuid() });
        // An unregistered name with this process's id is a leftover of an earlier process with the same id.
        let is_listed = || registry.iter().any(|path| path.file_name() == Some(&entry_name));
        let is_alive = if pid == process::id() { is_listed() } else { is_alive(pid) };
        if !is_ours || is_alive || is_locked(&path) {
            continue;
        }
        if let (OLD, Some(target)) = (suffix, target)
            && fs::symlink_metadata(target).is_err()
        {
            let _ = fs::rename(&path, target);
        } else {
            let _ = remove(&path);
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: signal 0 is not delivered.
    pid > 0 && (unsafe { libc::kill(pid, 0) } == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH))
}

fn is_locked(path: &Path) -> bool {
    // Opening a pipe would block until its other end is opened.
    let is_plain = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() || metadata.is_dir());
    let lock = is_plain.then(|| File::open(path).map(|file| file.try_lock()));
    matches!(lock, Some(Ok(Err(fs::TryLockError::WouldBlock))))
}

pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let outcome = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_with_a_common_start_have_different_temporary_names() {
        let [a, b] = ["a", "b"].map(|end| OsString::from("n".repeat(LONGEST) + end));
        assert_ne!(prefix(&a), prefix(&b));
        assert_eq!(prefix(&a).len(), LONGEST + 2);
        assert_eq!(parse(&name_of(&a, 3, OLD), &a), Some((process::id(), OLD)));
        assert_eq!(parse(&name_of(&a, 3, OLD), &b), None);
    }
}
