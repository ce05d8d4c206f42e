//! Destinations of constants: the model, a file beside it, or none if a file in the model's folder already has them.

use super::{
    constants::{Key, Source},
    proto,
};
use crate::{import::tensor_proto::TensorProto, paths::relative};
use divi_onnx::DType;
use rustc_hash::FxHashMap;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Component, Path, PathBuf},
};

/// Alignment of constants in the file, in bytes.
const ALIGNMENT: u64 = 64;

/// Random constants are generated in chunks of this many bytes.
const PIECE: usize = 1 << 20;

/// Destination of the bytes of constants.
pub(super) struct Sink<'m> {
    /// File for large constants; without it, they are stored in the model.
    side_file: Option<SideFile<'m>>,
    /// Folder whose weight files are referred to instead of being copied.
    referenced: Option<PathBuf>,
}

impl<'m> Sink<'m> {
    /// Creates a sink that stores all constants in the model.
    pub(super) fn memory() -> Self {
        Self { side_file: None, referenced: None }
    }

    /// Creates a sink that writes large constants to a file at `path`, created on first use. Models refer to it as
    /// `location`.
    pub(super) fn file(path: PathBuf, location: &str) -> Self {
        let file =
            SideFile { path, location: location.to_owned(), writer: None, end: 0, written: FxHashMap::default() };
        Self { side_file: Some(file), referenced: None }
    }

    /// Makes the sink refer to files below `folder`, if given.
    pub(super) fn referring_to(self, folder: Option<PathBuf>) -> Self {
        Self { referenced: folder, ..self }
    }

    /// Returns the location by which a model refers to a file of weights; `None` if the weights are copied.
    pub(super) fn reference(&self, path: &Path) -> Option<String> {
        let location = relative(path, self.referenced.as_ref()?);
        let is_inside = location.components().all(|component| matches!(component, Component::Normal(_)));
        location.to_str().filter(|_| is_inside).map(str::to_owned)
    }

    /// Returns the initializer of a large constant, which is written to the side file if there is one.
    pub(super) fn put(
        &mut self,
        name: &str,
        dtype: DType,
        dims: &[i64],
        key: Key<'m>,
        source: Source<'_>,
    ) -> Result<TensorProto, String> {
        let Some(file) = &mut self.side_file else {
            let mut bytes = vec![];
            write(&mut bytes, &source).expect("memory can be written to");
            return Ok(proto::tensor(name, dtype, dims, bytes.into()));
        };
        let extent = match file.written.get(&key) {
            Some(&extent) => extent,
            None => file
                .append(key, &source)
                .map_err(|error| format!("cannot be written to '{}': {error}", file.path.display()))?,
        };
        Ok(proto::external_tensor(name, dtype, dims, &file.location, extent))
    }

    /// Completes the file and returns its size in bytes.
    pub(super) fn finish(self) -> io::Result<u64> {
        let Some(SideFile { writer: Some(mut writer), end, .. }) = self.side_file else { return Ok(0) };
        writer.flush()?;
        Ok(end)
    }
}

/// File of constants, each written once.
struct SideFile<'m> {
    path: PathBuf,
    location: String,
    writer: Option<BufWriter<File>>,
    end: u64,
    /// Offset and length of each constant.
    written: FxHashMap<Key<'m>, (u64, u64)>,
}

impl<'m> SideFile<'m> {
    fn append(&mut self, key: Key<'m>, source: &Source<'_>) -> io::Result<(u64, u64)> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            empty => empty.insert(BufWriter::with_capacity(PIECE, File::create(&self.path)?)),
        };
        let offset = self.end.next_multiple_of(ALIGNMENT);
        writer.write_all(&[0; ALIGNMENT as usize][..(offset - self.end) as usize])?;
        let length = write(writer, source)?;
        self.end = offset + length;
        self.written.insert(key, (offset, length));
        Ok((offset, length))
    }
}

/// Writes a constant and returns its size in bytes.
fn write(writer: &mut impl Write, source: &Source<'_>) -> io::Result<u64> {
    match source {
        Source::Bytes(bytes) => {
            writer.write_all(bytes)?;
            Ok(bytes.len() as u64)
        }
        Source::Random { recipe, seed } => {
            let length = recipe.byte_length();
            let mut piece = vec![0; PIECE.min(length as usize)];
            let mut offset = 0;
            while offset < length {
                let bytes = &mut piece[..PIECE.min((length - offset) as usize)];
                recipe.fill(*seed, offset, bytes);
                writer.write_all(bytes)?;
                offset += bytes.len() as u64;
            }
            Ok(length)
        }
    }
}
