//! Path resolution: symbolic links, devices, file identity.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum number of symbolic links followed (the same limit as in Linux).
const LINKS: usize = 40;

/// Returns the path at the end of a chain of symbolic links; it need not exist.
pub(crate) fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&end) {
            Ok(next) => end = end.parent().unwrap_or(Path::new("")).join(next),
            // Not a link, or does not exist.
            Err(_) => return Ok(end),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// Returns true if a path names an open descriptor, which cannot be replaced by a rename.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    let names = ["/dev/stdin", "/dev/stdout", "/dev/stderr"];
    names.iter().any(|name| path == Path::new(name)) || path.starts_with("/dev/fd") || path.starts_with("/proc")
}

/// Returns the parent folder of a path; `.` for a bare name.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns an absolute path with the links of its parent folder resolved. The last component need not exist and is not
/// followed.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    match path.file_name() {
        Some(name) => Some(parent(path).canonicalize().or_else(|_| std::path::absolute(parent(path))).ok()?.join(name)),
        None => path.canonicalize().ok(),
    }
}

/// Identity of a file or folder, independent of the path used: device and inode, or the resolved path if it does not exist yet.
#[derive(PartialEq, Eq)]
pub(crate) enum Identity {
    Inode(u64, u64),
    Missing(PathBuf),
}

/// Returns the identity of a file or folder; `None` for devices and pipes, which may be input and output at the same time.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => {
            Some(Identity::Inode(metadata.dev(), metadata.ino()))
        }
        Ok(_) => None,
        Err(_) => Some(Identity::Missing(resolve(&follow_links(path).ok()?)?)),
    }
}
