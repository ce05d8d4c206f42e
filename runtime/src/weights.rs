//! Weight files that a model refers to, read or mapped.

use crate::files;
use bytes::Bytes;
use memmap2::Mmap;
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Error about a weight file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The location is absolute or outside of the model's folder.
    #[error("external data '{location}' leaves the model's folder '{folder}': keep weights in it or below it")]
    Escapes {
        /// Location in the model.
        location: String,
        /// Folder of the model.
        folder: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read '{path}': {error}")]
    Unreadable {
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file ends before the end of the requested range.
    #[error(
        "'{path}' has {size} bytes, too few for {length} at offset {offset}: it is truncated or not the file the model was \
         saved with"
    )]
    TooShort {
        /// File.
        path: PathBuf,
        /// Offset of the range in bytes.
        offset: u64,
        /// Length of the range in bytes.
        length: u64,
        /// Size of the file in bytes.
        size: u64,
    },
}

/// Returns the path of a file that a model in `folder` refers to as `location`, relative to `folder`, without `.` and `..`.
///
/// The location must not be absolute, and must not leave the folder through `..` or a symbolic link.
pub fn confine(folder: &Path, location: &str) -> Result<PathBuf, Error> {
    let escapes = || Error::Escapes { location: location.to_owned(), folder: folder.to_owned() };
    let mut confined = PathBuf::new();
    for component in Path::new(location).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => confined.push(name),
            Component::ParentDir if confined.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(escapes()),
        }
    }
    if confined.as_os_str().is_empty() || location.contains('\0') {
        return Err(escapes());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if let (Ok(real), Ok(root)) = (folder.join(&confined).canonicalize(), folder.canonicalize())
        && !real.starts_with(root)
    {
        return Err(escapes());
    }
    Ok(confined)
}

/// Maps a file into memory. Pages are read on first access.
///
/// The file must not be truncated while it is mapped.
pub fn map(path: &Path) -> Result<Bytes, Error> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    let file = fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        // Pipes cannot be mapped.
        return fs::read(path).map(Bytes::from).map_err(unreadable);
    }
    if metadata.len() == 0 {
        return Ok(Bytes::new());
    }
    // SAFETY: the mapping is private and read-only; see above for truncation.
    let mapping = unsafe { Mmap::map(&file) }.map_err(unreadable)?;
    Ok(Bytes::from_owner(mapping))
}

/// Reads a range of a regular file. Unlike a mapping, the result stays valid if the file is truncated.
pub fn read(path: &Path, offset: u64, length: u64) -> Result<Bytes, Error> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    let other = |error: crate::Error| match error {
        crate::Error::Unreadable { error, .. } => unreadable(error),
        other => unreadable(io::Error::other(other.to_string())),
    };
    let (file, size) = files::open(path).map_err(other)?;
    check_extent(path, size, offset, length)?;
    let mut bytes = vec![];
    bytes.try_reserve_exact(length as usize).map_err(|_| unreadable(io::ErrorKind::OutOfMemory.into()))?;
    bytes.resize(length as usize, 0);
    files::read_range(&file, path, offset, &mut bytes).map_err(other)?;
    Ok(bytes.into())
}

/// Maps a range of a file; the offset need not be page-aligned. The file must not be truncated while it is mapped.
pub(crate) fn map_range(file: &fs::File, offset: u64, length: u64) -> io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only; see above for truncation.
    let mapping = unsafe { memmap2::MmapOptions::new().offset(offset).len(length as usize).map(file) }?;
    Ok(Bytes::from_owner(mapping))
}

/// Returns the size of a file; `None` if it does not exist.
pub fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|metadata| metadata.len())
}

/// Checks that a file of `size` bytes contains the range of `length` bytes at `offset`.
pub fn check_extent(path: &Path, size: u64, offset: u64, length: u64) -> Result<(), Error> {
    match offset.checked_add(length) {
        Some(end) if end <= size => Ok(()),
        _ => Err(Error::TooShort { path: path.to_owned(), offset, length, size }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_stay_in_the_folder() {
        let folder = Path::new("models");
        assert_eq!(confine(folder, "weights.bin").unwrap(), Path::new("weights.bin"));
        assert_eq!(confine(folder, "./a/../weights.bin").unwrap(), Path::new("weights.bin"));
        for location in ["/etc/passwd", "../weights.bin", "a/../../b", "", ".", "a\0b"] {
            let message = confine(folder, location).expect_err(location).to_string();
            assert!(message.contains("leaves the model's folder"), "{message}");
        }
    }

    #[test]
    fn symbolic_links_cannot_leave_the_folder() {
        let folder = std::env::temp_dir().join(format!("divi-weights-{}", std::process::id()));
        fs::create_dir_all(folder.join("inside")).unwrap();
        fs::write(folder.join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(folder.join("secret"), folder.join("inside/link")).unwrap();
        let verdict = confine(&folder.join("inside"), "link");
        fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(verdict, Err(Error::Escapes { .. })));
    }

    #[test]
    fn extents_are_checked_against_the_file() {
        let path = Path::new("weights.bin");
        let verdicts = [(0, 16), (8, 8), (8, 9), (u64::MAX, 1)].map(|(o, l)| check_extent(path, 16, o, l).is_ok());
        assert_eq!(verdicts, [true, true, false, false]);
    }

    #[test]
    fn whole_files_are_mapped() {
        let path = std::env::temp_dir().join(format!("divi-map-{}", std::process::id()));
        fs::write(&path, [7; 16]).unwrap();
        let (mapped, size_before) = (map(&path).unwrap(), size(&path));
        fs::remove_file(&path).unwrap();
        assert_eq!((&mapped[..], size_before, size(&path)), (&[7; 16][..], Some(16), None));
        assert!(matches!(map(&path), Err(Error::Unreadable { .. })));
    }
}
