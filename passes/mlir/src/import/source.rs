//! Model files, and their distinction from MLIR.

use bytes::Bytes;
use divi_runtime::weights;
use std::path::{Path, PathBuf};

/// Bytes of a model, and their origin.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name in messages.
    pub name: String,
    /// Path of the file; `None` for a model from a pipe, whose bytes the IR cannot refer to.
    pub path: Option<PathBuf>,
    /// The encoded model.
    pub bytes: Bytes,
}

impl Source {
    /// Maps a file.
    pub fn open(path: &Path) -> Result<Self, weights::Error> {
        Ok(Self { name: path.display().to_string(), path: Some(path.to_owned()), bytes: weights::map(path)? })
    }

    /// Wraps a model that is in memory only.
    pub fn from_memory(name: &str, bytes: Bytes) -> Self {
        Self { name: name.to_owned(), path: None, bytes }
    }

    /// Returns the folder that external data must be in.
    pub(super) fn folder(&self) -> &Path {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    /// Returns the offset in the file of a slice of its bytes.
    pub(super) fn offset_of(&self, slice: &[u8]) -> Option<u64> {
        self.path.as_ref()?;
        let start = (slice.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        (start + slice.len() <= self.bytes.len()).then_some(start as u64)
    }
}

/// Returns true if bytes are a protobuf rather than MLIR, which is text or starts with the magic number of its
/// bytecode.
pub fn is_onnx(bytes: &[u8]) -> bool {
    const BYTECODE: &[u8] = b"ML\xefR";
    let head = &bytes[..bytes.len().min(4096)];
    if head.starts_with(BYTECODE) {
        return false;
    }
    let is_control = |&byte: &u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let is_text = match std::str::from_utf8(head) {
        Ok(_) => true,
        // A character cut by the end of the head is still text.
        Err(error) => error.error_len().is_none(),
    };
    !is_text || head.iter().any(is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_distinguished_from_mlir() {
        assert!(is_onnx(b"\x08\x08\x12\x07pytorch"));
        assert!(is_onnx(&[0xff, 0xfe]));
        assert!(!is_onnx(b"module {\n}\n"));
        assert!(!is_onnx("// caf\u{e9}".as_bytes()));
        assert!(!is_onnx(b"ML\xefR\x0d\x01"));
        assert!(!is_onnx(b""));
    }
}
