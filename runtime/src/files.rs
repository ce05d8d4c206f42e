//! Files that a bundle names: regular ones only, in folders that it may read from.

use crate::error::{Error, Result};
use std::{
    fs, io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Bytes that are read at a time where a file is read through.
const PIECE: usize = 1 << 18;

/// Opens a regular file; devices, pipes and folders are refused. Returns it with its size.
pub(crate) fn open(path: &Path) -> Result<(fs::File, u64)> {
    let unreadable = |error| Error::Unreadable { path: path.to_owned(), error };
    // Opening a pipe would wait for a writer otherwise.
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

/// Reads a range of a file piece by piece. The file has the range when it is opened; that it was truncated since is an error.
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

/// Fills memory with the bytes of a file from an offset on.
pub(crate) fn read_range(file: &fs::File, path: &Path, offset: u64, memory: &mut [u8]) -> Result<()> {
    file.read_exact_at(memory, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::damaged(path, "it was truncated while it was read"),
        _ => Error::Unreadable { path: path.to_owned(), error },
    })
}

/// The folders that a bundle's weights may be in: the bundle's, the model's, and those that the user allows.
pub(crate) struct Roots {
    folder: PathBuf,
    /// `None` if the bundle does not say where its model is: then any relative path may.
    roots: Option<Vec<PathBuf>>,
}

impl Roots {
    /// Roots of the bundle in `folder`. `model_folder` is relative to it, empty if the bundle refers to no file of the model, and `None`
    /// if the bundle does not say where these files are.
    pub(crate) fn new(folder: &Path, model_folder: Option<&str>, allowed: &[PathBuf]) -> Result<Self> {
        let Some(model_folder) = model_folder else {
            return Ok(Self { folder: folder.to_owned(), roots: None });
        };
        let real = |path: &Path| path.canonicalize().map_err(Error::unreadable(path));
        let mut roots = vec![real(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?];
        // It need not be there if nothing in it is referred to.
        roots.extend(folder.join(model_folder).canonicalize().ok().filter(|_| !model_folder.is_empty()));
        for path in allowed {
            roots.push(real(path)?);
        }
        Ok(Self { folder: folder.to_owned(), roots: Some(roots) })
    }

    /// The bundle's folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file that the bundle refers to. Symbolic links are followed and must not leave the folders either.
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
