//! Access to files that a bundle names: regular files only, in allowed folders.

use crate::error::{Error, Result};
use std::{
    fs, io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Buffer size in bytes for reading a file sequentially.
const PIECE: usize = 1 << 18;

/// Opens a regular file and returns it with its size; devices, pipes and folders are rejected.
pub(crate) fn open(path: &Path) -> Result<(fs::File, u64)> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    // Without O_NONBLOCK, opening a pipe would block until it has a writer.
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
    }
    Ok((file, metadata.len()))
}

/// Reads a whole regular file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let (file, size) = open(path)?;
    if size > limit {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, format!("it has {size} bytes, more than {limit}"));
        return Err(Error::Unreadable { path: path.to_owned(), error });
    }
    let mut bytes = Vec::with_capacity(size as usize);
    read_pieces(&file, path, 0, size, |piece| bytes.extend_from_slice(piece))?;
    Ok(bytes)
}

/// Reads a range of a file piece by piece. It is an error if the file was truncated since it was opened.
pub(crate) fn read_pieces(
    file: &fs::File,
    path: &Path,
    offset: u64,
    length: u64,
    mut use_piece: impl FnMut(&[u8]),
) -> Result<()> {
    let mut memory = vec![0; PIECE.min(length as usize)];
    let mut done = 0;
    while done < length {
        let piece = &mut memory[..PIECE.min((length - done) as usize)];
        read_range(file, path, offset + done, piece)?;
        use_piece(piece);
        done += piece.len() as u64;
    }
    Ok(())
}

/// Fills memory with the bytes of a file at an offset.
pub(crate) fn read_range(file: &fs::File, path: &Path, offset: u64, memory: &mut [u8]) -> Result<()> {
    file.read_exact_at(memory, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::damaged(path, "it was truncated while it was read"),
        _ => Error::Unreadable { path: path.to_owned(), error },
    })
}

/// Folders that a bundle's weights may be in: those of the bundle and the model, and those allowed by the user.
pub(crate) struct Roots {
    folder: PathBuf,
    /// `None` for version 1, which does not record the model's folder: any relative path is allowed.
    roots: Option<Vec<PathBuf>>,
}

impl Roots {
    /// Builds the roots of the bundle in `folder`. `model_folder` is relative to it, empty if the bundle refers to no file of
    /// the model, and `None` for version 1.
    pub(crate) fn new(folder: &Path, model_folder: Option<&str>, allowed: &[PathBuf]) -> Result<Self> {
        let Some(model_folder) = model_folder else {
            return Ok(Self { folder: folder.to_owned(), roots: None });
        };
        let real = |path: &Path| path.canonicalize().map_err(Error::unreadable(path));
        let mut roots = vec![real(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?];
        // The folder need not exist unless a file in it is read.
        roots.extend(folder.join(model_folder).canonicalize().ok().filter(|_| !model_folder.is_empty()));
        for path in allowed {
            roots.push(real(path)?);
        }
        Ok(Self { folder: folder.to_owned(), roots: Some(roots) })
    }

    /// Returns the bundle's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file that the bundle refers to. Symbolic links are resolved and must not leave the roots.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf> {
        let full = self.folder.join(path);
        let outside = || Error::Outside { path: full.clone() };
        let Some(roots) = &self.roots else {
            return if Path::new(path).is_absolute() { Err(outside()) } else { Ok(full) };
        };
        let real = full.canonicalize().map_err(Error::unreadable(&full))?;
        if roots.iter().any(|root| real.starts_with(root)) { Ok(full) } else { Err(outside()) }
    }
}
